"""The choice of a version among those of an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from conformance.ecosystem.versions import PublishedVersion, choose_version

START = datetime(2025, 1, 1, tzinfo=UTC)


def published(version: str, day: int, python: str = "") -> PublishedVersion:
    """Return a version that was uploaded some days after the start."""
    return PublishedVersion(
        version=Version(version), uploaded=START + timedelta(days=day), requires_python=python
    )


VERSIONS = [published("1.0", 0), published("1.1", 10, ">=3.12"), published("2.0", 20, ">=3.11")]


def test_newest_version_of_a_date_for_a_python() -> None:
    """Later uploads and versions for other Pythons do not count."""
    until = START + timedelta(days=15)
    assert choose_version(VERSIONS, "3.11") == "2.0"
    assert choose_version(VERSIONS, "3.11", until) == "1.0"
    assert choose_version(VERSIONS, "3.12", until) == "1.1"
    assert choose_version(VERSIONS, "3.12", START) == ""


def test_prerelease_counts_where_there_is_no_other_version() -> None:
    """As for pip."""
    beta = published("3.0b1", 0)
    assert choose_version([*VERSIONS, beta], "3.11") == "2.0"
    assert choose_version([beta], "3.11") == "3.0b1"


def test_specifier_that_is_not_valid_admits_every_python() -> None:
    """As for pip."""
    assert choose_version([published("1.0", 0, ">=3.x")], "3.11") == "1.0"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), unique=True), st.integers(0, 30))
def test_a_later_date_never_chooses_an_older_version(
    uploads: list[tuple[int, int]], day: int
) -> None:
    """What was there stays there."""
    versions = [published(f"1.{minor}", when) for minor, when in uploads]
    earlier = choose_version(versions, "3.11", START + timedelta(days=day))
    later = choose_version(versions, "3.11", START + timedelta(days=day + 1))
    assert not earlier or Version(later) >= Version(earlier)
