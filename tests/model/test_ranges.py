"""Version ranges, and on which side of them a nightly is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from conformance.model.ranges import in_range

NIGHT = "0.8.3.dev20251120"
FINAL = st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 4)).map(
    lambda parts: ".".join(map(str, parts))
)
OPERATOR = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [
        ("", True),
        (">=0.8.3", True),
        ("<0.8.3", False),
        ("<=0.8.2", False),
        (">0.8.2", True),
        ("==0.8.3", True),
        ("!=0.8.3", False),
        ("==0.8.*", True),
        (">=0.6,<0.8", False),
        ("===0.8.2", False),
        (">=0.8.3.dev20251110", True),
        (">=0.8.3.dev20251121", False),
        ("<0.8.3.dev20251121", True),
        ("==0.8.3.dev20251121", False),
        (">=0.8.1,<0.8.3.dev20251121", True),
    ],
)
def test_a_nightly_counts_as_the_release_that_it_precedes_in_ranges(
    specifier: str, expected: bool
) -> None:
    """Unless the range itself names a nightly."""
    assert in_range(NIGHT, specifier) is expected


@given(version=FINAL, other=FINAL, operator=OPERATOR)
def test_a_nightly_is_in_the_ranges_of_its_release(version: str, other: str, operator: str) -> None:
    """On exactly one side of every range of releases."""
    specifier = f"{operator}{other}"
    assert in_range(f"{version}.dev20251120", specifier) is in_range(version, specifier)


@given(version=FINAL, other=FINAL, operator=OPERATOR, suffix=st.sampled_from(["", "rc1", ".1"]))
def test_other_versions_follow_pep_440(
    version: str, other: str, operator: str, suffix: str
) -> None:
    """Ranges contain pre-releases."""
    specifier = f"{operator}{other}"
    expected = SpecifierSet(specifier, prereleases=True).contains(f"{version}{suffix}")
    assert in_range(f"{version}{suffix}", specifier) is expected
