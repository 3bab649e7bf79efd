"""A seed draws the same examples in each process."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers

from conformance.laws.reproducible import without_local_constants


def test_constants_of_modules_are_left_out_within_the_context() -> None:
    """And are back after it: other tests of the process may use Hypothesis."""
    before = providers._get_local_constants
    with without_local_constants():
        found = providers._get_local_constants()
        assert not any(found.set_for_type(kind) for kind in ("integer", "float", "string"))
    assert providers._get_local_constants is before
