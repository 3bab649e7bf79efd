"""The version of a standard that a cell is held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.suites.catalogue.definition import Definition, NamedSuite
from conformance.suites.catalogue.standards import CLAIMED, Standards, select_standards

KNOWN = ("2022.12", "2023.12", "2024.12")


def standards(asked: str) -> Standards:
    """Return the versions, as they are asked for."""
    return Standards(versions=KNOWN, variable="V", claim="m:a", requested=asked)


@pytest.mark.parametrize(
    ("asked", "claimed", "version", "refused"),
    [
        (CLAIMED, "2023.12", "2023.12", ""),
        (CLAIMED, "2030.12", "2030.12", ""),
        (CLAIMED, "", "2022.12", ""),
        ("2022.12", "2023.12", "2022.12", ""),
        ("2023.12", "2023.12", "2023.12", ""),
        ("2024.12", "2023.12", "2024.12", "its release claims 2023.12"),
        ("2022.12", "", "2022.12", ""),
        ("2023.12", "", "2023.12", "claims no version, which counts as 2022.12"),
    ],
)
def test_release_is_held_against_its_claim(
    asked: str, claimed: str, version: str, refused: str
) -> None:
    """Or against an older requested version, never a newer one."""
    assert standards(asked).find_version(claimed) == version
    assert refused in standards(asked).explain_refusal(claimed)
    assert bool(refused) == bool(standards(asked).explain_refusal(claimed))


def suite(*versions: str) -> NamedSuite:
    """Return a suite with some versions."""
    given = Definition(
        title="", url="", revision="", licence="", paths=("t",), standards=versions,
        standard="V", claim="m:a",
    )  # fmt: skip
    return NamedSuite(name="mini", folder=Path(), definition=given)


def test_unknown_version_is_a_usage_error() -> None:
    """Only versions that the suite knows can be requested."""
    assert select_standards(suite(*KNOWN), "2023.12") == standards("2023.12")
    assert select_standards(suite(), CLAIMED) is None
    with pytest.raises(UsageError, match=r"--standard 2023\.11: mini knows no such .*'2023.12'"):
        select_standards(suite(*KNOWN), "2023.11")
    with pytest.raises(UsageError, match="mini is not about a standard"):
        select_standards(suite(), "2023.12")
