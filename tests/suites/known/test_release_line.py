"""Ranges of releases as points of a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.ranges import in_range
from conformance.suites.known.release_line import list_points, make_ranges

VERSIONS = ("0.4.30", "0.5", "0.5.3", "0.6.2", "0.12.0", "0.12.0.1", "0.8.3.dev20251120")
bounds = st.tuples(st.sampled_from([">=", ">", "<", "<=", "==", "!="]), st.sampled_from(VERSIONS))
specifiers = st.lists(bounds, max_size=2).map(lambda them: ",".join(a + b for a, b in them))


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [
        ("", [""]),
        (">=0.5,<0.6", [">=0.5,<0.6"]),
        ("!=0.5", ["<0.5", ">0.5"]),
        ("==0.5.*", [">=0.5,<0.6"]),
        ("~=0.5.1", [">=0.5.1,<0.6"]),
        ("==0.5.3", ["==0.5.3"]),
        (">0.5,<=0.6", [">0.5,<=0.6"]),
        (">1,<0.5", []),
    ],
)
def test_ranges_have_a_canonical_spelling(specifier: str, expected: list[str]) -> None:
    """By their bounds, for any specifier."""
    line = list_points([specifier], ["0.5.0", "0.12.0.1"])
    assert make_ranges(line, [in_range(point, specifier) for point in line]) == expected


@given(specifiers, st.lists(st.sampled_from(VERSIONS)), st.sampled_from(VERSIONS))
def test_ranges_contain_exactly_the_given_points(
    specifier: str, releases: list[str], release: str
) -> None:
    """No release is added or lost."""
    line = list_points([specifier], releases)
    ranges = make_ranges(line, [in_range(point, specifier) for point in line])
    assert any(in_range(release, one) for one in ranges) is in_range(release, specifier)
