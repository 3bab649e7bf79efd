"""Selectors: the releases and cells that they select, and their errors."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.cell import Cell
from conformance.cells.selectors import (
    matches_cell,
    matches_selector,
    resolve_selector,
    select_cells,
    split_platform,
)
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
def test_selector_resolves_to_releases_in_order(
    selector: str, expected: list[str], releases: Releases
) -> None:
    """Exact releases, specifiers, and `latest-N`."""
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
        (
            ">=0.12",
            "matches no known release; the release table has 0.5.3 to 0.11.0",
        ),
        (">0.6,<0.6", "matches no known release"),
        ("newest", "is not valid; expected an exact release"),
        ("", "is not valid"),
        (">=six", "is not valid"),
        ("latest-5", "only 5 releases are known"),
    ],
)
def test_selector_without_a_release_is_a_usage_error(
    selector: str, message: str, releases: Releases
) -> None:
    """A selection is never empty."""
    with pytest.raises(UsageError, match=message):
        resolve_selector(selector, releases)


def test_path_selector_becomes_absolute(
    releases: Releases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Relative to the working directory."""
    monkeypatch.chdir(tmp_path)
    assert resolve_selector("path:env/bin/python", releases) == (f"path:{tmp_path}/env/bin/python",)


def test_cells_are_selected_by_id_or_selector(releases: Releases) -> None:
    """The option --cell accepts both."""
    assert [cell.id for cell in select_cells("jax0.6.0-cpu4", releases)] == ["jax0.6.0-py311-cpu4"]
    assert [cell.id for cell in select_cells(">=0.8", releases)] == [
        "jax0.8.3-py311-cpu8",
        "jax0.11.0-py312-cpu8",
    ]


def test_interpreter_without_jax_is_rejected(releases: Releases) -> None:
    """The message has a remedy."""
    with pytest.raises(InfrastructureError, match=r"no jax among its .* install jax"):
        select_cells(f"path:{sys.executable}", releases)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.6.2@tpu:v5e:2x2", ["jax0.6.2-py311-tpu.v5e.2x2"]),
        (">=0.6,<0.7@cuda:h100:1x1x4", [f"jax0.6.{n}-py311-cuda.h100.1x1x4" for n in (0, 2)]),
        ("latest@gpu4", ["jax0.11.0-py312-gpu4"]),
        ("0.5.3@cpu-mp2", ["jax0.5.3-py311-cpu8-mp2"]),
        ("0.5.3 @cpu4", ["jax0.5.3-py311-cpu4"]),
    ],
)
def test_selector_may_have_a_platform(text: str, expected: list[str], releases: Releases) -> None:
    """After an `@`, for every kind of selector."""
    assert [cell.id for cell in select_cells(text, releases)] == expected


def test_path_selector_may_contain_an_at_sign() -> None:
    """The platform is after the last `@`; `python@3.11` is a path."""
    path = "path:/opt/python@3.11/bin/python"
    assert split_platform(path) == (path, {})
    assert split_platform("path:/opt/python@3.11") == ("path:/opt/python@3.11", {})
    assert split_platform(f"{path}@gpu") == (path, {"platform": "gpu"})


def test_selector_may_have_options(releases: Releases) -> None:
    """As in a cell id."""
    (cell,) = select_cells("0.6.2@cpu4-x64-numpy2.0.2-cfg.jax_a=b", releases)
    assert cell.id == "jax0.6.2-py311-cpu4-numpy2.0.2-x64-cfg.jax_a=b"
    with pytest.raises(UsageError, match="unknown factor 'Q'"):
        select_cells("0.6.2@cpu4-Q", releases)


def test_unknown_platform_of_a_selector_is_a_usage_error(releases: Releases) -> None:
    """With the message for platforms."""
    with pytest.raises(UsageError, match="platform 'nope': expected one of"):
        select_cells("0.6.2@nope", releases)
    with pytest.raises(UsageError, match="v5e has no topology 3x3"):
        select_cells("0.6.2@tpu:v5e:3x3", releases)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        (">=0.6", True),
        (">=0.6@tpu:v5e:2x2", True),
        ("0.6.2@tpu:v5e:4x4", False),
        ("0.5.3@tpu:v5e:2x2", False),
        ("jax0.6.2-tpu.v5e.2x2", True),
        ("jax0.6.2", False),
    ],
)
def test_matrix_cells_are_filtered_by_platform(
    text: str, matches: bool, releases: Releases
) -> None:
    """A selector without a platform matches all of them."""
    (cell,) = select_cells("0.6.2@tpu:v5e:2x2", releases)
    assert matches_cell(text, cell, releases) is matches


@pytest.mark.parametrize("platform", ["cpu", "gpu", "cpu-mp2"])
def test_path_cell_is_selected_by_its_selector(platform: str) -> None:
    """Its id does not contain the path."""
    cell = Cell(release="path:/opt/env/bin/python", python="3.11", platform=platform, devices=4)
    assert cell.selector != cell.id
    assert matches_cell(cell.selector, cell, table("0.6.2"))
    other = replace(
        cell, x64=True, config=(("jax_a", "b-c/@d e"),), xla_flags=("--xla_b=c-d/e",)
    )  # fmt: skip
    assert matches_cell(other.selector, other, table("0.6.2"))
    assert not matches_cell(other.selector, cell, table("0.6.2"))
    plain = Cell(release="0.6.2", python="3.11", devices=4)
    assert plain.selector == plain.id
