"""The release that a failure is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.ecosystem.comparison import compare_failure, is_new_failure
from conformance.ecosystem.library import Library
from conformance.ecosystem.outcome import Failure

from .builders import BOUNDS, TESTS, record

if TYPE_CHECKING:
    from conformance.ecosystem.outcome import LibraryRecord

LIBRARY = Library(name="chex", repository="a/chex", imports=("chex",), requires=("dm-tree",))
PROGRAM = "/cache/test_chex.py"


def test_same_version_on_the_nearest_older_release_is_preferred() -> None:
    """Only jax differs then, so that a bisection finds its release."""
    bad = record("chex", "0.8.1", "1.0", "ImportError: x")
    records = [
        record("chex", "0.5.3", "1.0"), record("chex", "0.6.2", "1.0"),
        record("chex", "0.7.2", "0.9"), record("chex", "0.9.0", "1.0"), bad,
    ]  # fmt: skip
    found = compare_failure(bad, records, LIBRARY, PROGRAM)
    assert found is not None
    assert found.command == (
        """conformance bisect --command 'python -c '"'"'import chex'"'"'' """
        "--good 0.6.2 --bad 0.8.1 --with chex==1.0"
    )


def test_other_version_is_compared_by_package() -> None:
    """The library may be the culprit itself."""
    failure = Failure(test="x/test_chex.py::test_one", error="TypeError")
    bad = record("chex", "0.8.1", "1.1", outcome=TESTS, failures=(failure,), tests=2)
    found = compare_failure(bad, [record("chex", "0.7.2", "1.0"), bad], LIBRARY, PROGRAM)
    assert found is not None
    assert found.command == (
        "conformance blame /cache/test_chex.py::test_one --good jax0.7.2-chex "
        "--bad jax0.8.1-chex --with dm-tree"
    )


def test_nothing_to_compare_with() -> None:
    """No older release works, or the test is one of the library's own, which differ by version."""
    bad = record("chex", "0.8.1", "1.0", "ImportError: x")
    assert compare_failure(bad, [record("chex", "0.9.0"), bad], LIBRARY, PROGRAM) is None
    failure = Failure(test="chex/asserts_test.py::test_two", error="TypeError")
    own = record("chex", "0.8.1", outcome=TESTS, failures=(failure,))
    assert compare_failure(own, [record("chex", "0.7.2"), own], LIBRARY, PROGRAM) is None


@pytest.mark.parametrize(
    ("earlier", "new"),
    [
        ([], True),
        ([record("chex", "0.8.1")], True),
        ([record("chex", "0.8.1", error="ImportError: x")], False),
        ([record("chex", "0.7.2", error="ImportError: x")], False),
        ([record("chex", "0.7.2", error="ImportError: x"), record("chex", "0.8.0")], True),
        ([record("chex", "0.9.0", error="ImportError: x")], True),
        ([record("chex", "0.8.1", policy=BOUNDS, error="ImportError: x")], True),
    ],
)
def test_failure_is_new_if_it_worked_on_the_newest_older_release(
    earlier: list[LibraryRecord], *, new: bool
) -> None:
    """Of the same policy; a nightly without a record is compared with the release before it."""
    assert is_new_failure(record("chex", "0.8.1", error="ImportError: y"), earlier) is new
    assert not is_new_failure(record("chex", "0.8.1"), earlier)


def test_module_that_does_not_import_is_the_target() -> None:
    """It has no test that could be named."""
    failure = Failure(test="x/test_chex.py", error="ImportError")
    bad = record("chex", "0.8.1", outcome=TESTS, failures=(failure,), tests=1)
    found = compare_failure(bad, [record("chex", "0.7.2"), bad], LIBRARY, PROGRAM)
    assert found is not None
    assert found.target == PROGRAM
