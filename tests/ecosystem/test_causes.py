"""Root causes across libraries."""

from __future__ import annotations

import pytest

from conformance.ecosystem.causes import find_ecosystem_causes, find_jax_name
from conformance.scan.hits import Hit, HitKind

from .builders import record

TRACER = "AttributeError: module 'jax.core' has no attribute 'Tracer'"
IMPORT = "ImportError: cannot import name 'Tracer' from 'jax.core' (core.py)"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (TRACER, "jax.core.Tracer"),
        (IMPORT, "jax.core.Tracer"),
        ("ModuleNotFoundError: No module named 'jax.experimental.maps'", "jax.experimental.maps"),
        ("AttributeError: jax.tree_map is deprecated; use jax.tree.map", "jax.tree_map"),
        ("AttributeError: jax.lib.xla_bridge was removed in JAX v0.9", "jax.lib.xla_bridge"),
        ("AttributeError: module 'numpy' has no attribute 'product'", ""),
        ("TypeError: f() got an unexpected keyword argument 'jax'", ""),
    ],
)
def test_name_of_jax_in_an_error(error: str, name: str) -> None:
    """However Python or JAX says that it is gone."""
    assert find_jax_name(error) == name


def test_errors_about_one_name_have_one_cause() -> None:
    """In two libraries, with another error in each; the first release comes from the API."""
    records = [
        record("chex", "0.7.2", "0.1.85", TRACER),
        record("haiku", "0.8.1", "0.0.12", IMPORT),
        record("optax", "0.8.1", error="ValueError: 3"),
        record("flax", "0.8.1"),
    ]
    hit = Hit(
        name="jax.core.Tracer", kind=HitKind.REMOVED, release="0.7.0", text="gone", is_loud=True
    )
    causes = find_ecosystem_causes(records, lambda name, release: hit)
    assert [one.name for one in causes] == ["jax.core.Tracer", ""]
    assert causes[0].libraries == {"chex": ("0.1.85",), "haiku": ("0.0.12",)}
    assert (causes[0].releases, causes[0].first) == (("0.7.2", "0.8.1"), "0.7.0")
    assert causes[1].first == "0.8.1"


def test_errors_that_differ_in_numbers_have_one_cause() -> None:
    """The same check fails with other values."""
    records = [
        record("a", "0.8.1", error="ValueError: 3"),
        record("b", "0.8.1", error="ValueError: 4"),
    ]
    (cause,) = find_ecosystem_causes(records, lambda name, release: None)
    assert [*cause.libraries] == ["a", "b"]
