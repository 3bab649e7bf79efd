"""Selectors: which releases they name, and what they say when they name none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.selectors import matches_selector, resolve_selector, select_cells
from conformance.errors import InfrastructureError, UsageError

from .builders import table

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.releases import Releases


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("0.6.0", ["0.6.0"]),
        (" 0.6.0 ", ["0.6.0"]),
        (">=0.8", ["0.8.3", "0.11.0"]),
        (">=0.6,<0.7", ["0.6.0", "0.6.2"]),
        ("==0.6.*", ["0.6.0", "0.6.2"]),
        ("latest", ["0.11.0"]),
        ("latest-3", ["0.6.0"]),
    ],
)
def test_a_selector_names_releases_in_order(
    selector: str, expected: list[str], releases: Releases
) -> None:
    """Exact releases, specifiers, and counting back from the newest."""
    assert list(resolve_selector(selector, releases)) == expected


@given(st.sampled_from(["0.6.0", ">=0.6", "<0.8", "==0.6.*", "latest", "latest-1", "!=0.5.3"]))
def test_matching_and_resolving_agree(selector: str) -> None:
    """A release matches a selector exactly when the selector resolves to it."""
    releases = table("0.5.3", "0.6.0", "0.8.3", "0.11.0")
    matching = [v for v in releases.versions if matches_selector(selector, v, releases)]
    assert matching == list(resolve_selector(selector, releases))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            "0.6.1",
            r"unknown jax release '0.6.1' \(did you mean .*known are 0.5.3 to 0.11.0.*refresh",
        ),
        (">=0.12", "matches no known release; known are 0.5.3 to 0.11.0"),
        (">0.6,<0.6", "matches no known release"),
        ("newest", "is not understood; expected an exact release"),
        ("", "is not understood"),
        (">=six", "is not understood"),
        ("latest-5", "only 5 releases are known"),
        ("nightly", "no nightly index is configured"),
    ],
)
def test_a_selector_that_names_nothing_is_one_clear_error(
    selector: str, message: str, releases: Releases
) -> None:
    """An impossible selector never becomes an empty list."""
    with pytest.raises(UsageError, match=message):
        resolve_selector(selector, releases)


def test_a_path_selector_becomes_absolute(
    releases: Releases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A relative interpreter is meant from where the command is run."""
    monkeypatch.chdir(tmp_path)
    assert resolve_selector("path:env/bin/python", releases) == (f"path:{tmp_path}/env/bin/python",)


def test_cells_come_from_ids_and_from_selectors(releases: Releases) -> None:
    """The command line's --cell takes both."""
    assert [cell.id for cell in select_cells("jax0.6.0-cpu4", releases)] == ["jax0.6.0-py311-cpu4"]
    assert [cell.id for cell in select_cells(">=0.8", releases)] == [
        "jax0.8.3-py311-cpu8",
        "jax0.11.0-py312-cpu8",
    ]


def test_a_path_without_jax_is_no_cell(releases: Releases) -> None:
    """An interpreter that has no jax is refused with what to do."""
    with pytest.raises(InfrastructureError, match=r"no jax among its .* install jax"):
        select_cells(f"path:{sys.executable}", releases)
