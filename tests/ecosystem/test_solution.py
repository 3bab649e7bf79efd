"""Sets of libraries, and their formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tomllib

from conformance.cells.lock import read_foreign_pins
from conformance.ecosystem.outcome import LibraryOutcome
from conformance.ecosystem.solution import (
    SetRecord,
    list_candidates,
    render_constraints,
    render_group,
)

from .builders import BOUNDS, record

if TYPE_CHECKING:
    from pathlib import Path

SET = SetRecord(
    jax="0.8.1", deps="era", versions={"flax": "0.12.0", "optax": "0.2.6"}, definitions={},
    outcome=LibraryOutcome.OK, python="3.11", tested="2026-01-31",
    packages={"jax": "0.8.1", "flax": "0.12.0", "optax": "0.2.6", "numpy": "2.3.4"},
)  # fmt: skip


def test_newest_sets_come_first() -> None:
    """Of the newest release; with the packages of today before those of the release date."""
    records = [
        record("a", "0.7.2", "1.0"), record("b", "0.7.2", "2.0"),
        record("a", "0.8.1", "1.1"), record("b", "0.8.1", "2.1"),
        record("a", "0.8.1", "1.2", policy=BOUNDS), record("b", "0.8.1", "2.2", policy=BOUNDS),
        record("a", "0.9.0", "1.3"), record("b", "0.9.0", "2.3", "ImportError: x"),
    ]  # fmt: skip
    found = [
        (one.jax, one.deps, *one.versions.values())
        for one in list_candidates(records, ["a", "b"], ["0.7.2", "0.8.1", "0.9.0"])
    ]
    assert found == [
        ("0.8.1", "latest", "1.2", "2.2"),
        ("0.8.1", "era", "1.1", "2.1"),
        ("0.7.2", "era", "1.0", "2.0"),
    ]


def test_one_library_at_a_time_goes_back_to_an_older_version() -> None:
    """After the set with the newest versions."""
    records = [
        record("a", "0.8.1", "1.9", policy=BOUNDS), record("a", "0.8.1", "1.10", policy=BOUNDS),
        record("b", "0.8.1", "2.0", policy=BOUNDS),
    ]  # fmt: skip
    found = [dict(one.versions) for one in list_candidates(records, ["a", "b"], ["0.8.1"])]
    assert found == [{"a": "1.10", "b": "2.0"}, {"a": "1.9", "b": "2.0"}]


def test_constraints_pin_every_package(tmp_path: Path) -> None:
    """As any tool that reads requirements finds them."""
    file = tmp_path / "constraints.txt"
    file.write_text(render_constraints(SET))
    assert read_foreign_pins(file) == SET.packages


def test_group_is_valid_toml() -> None:
    """And has every package."""
    group = tomllib.loads(render_group(SET))["dependency-groups"]["jax"]
    assert dict(text.split("==") for text in group) == SET.packages
