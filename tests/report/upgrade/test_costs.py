"""Changes of time and memory in the report of an upgrade."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from conformance.model.run_files import CulpritCommit
from conformance.report.upgrade.file import decode_upgrade, make_upgrade_file
from conformance.report.upgrade.text import render_upgrade, render_upgrade_markdown
from conformance.triage.upgrade.costs import CostChange
from tests.report.upgrades import OK, compared, told

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.upgrade.result import UpgradeResult

COMMIT = CulpritCommit(
    package="jax", hash="a" * 40, date="2026-01-02", title="Cache less", references=(), url=""
)
SLOWER = CostChange(
    case="f/loop", platform="cpu8", is_worse=True, differences=("run 2.10 times",), last="0.6.0",
    changed_in="0.6.1", layer="front end: Python code", commits=(COMMIT,),
)  # fmt: skip
FASTER = CostChange(
    case="f/sum", platform="cpu8", is_worse=False, differences=("lower 0.50 times",),
    problem="time of phase lower: ambiguous",
)  # fmt: skip


def measured(folder: Path) -> UpgradeResult:
    """Return an upgrade with one slower and one faster case."""
    upgraded = told(compared(folder, "f/loop", OK, OK, OK, OK))
    return replace(upgraded, costs=(FASTER, SLOWER), measured=40)


def test_the_slower_cases_come_first_with_release_layer_and_commit(tmp_path: Path) -> None:
    """A case whose release was not found has the reason."""
    lines = list(render_upgrade(measured(tmp_path)))
    start = lines.index("time and memory: of 40 cases, 1 takes more and 1 takes less")
    assert lines[start + 1 : -1] == [
        "  f/loop takes more time or memory since 0.6.1",
        "    run 2.10 times",
        "    layer: front end: Python code",
        f"    commit {'a' * 12} Cache less",
        "  f/sum takes less time or memory since an unknown release",
        "    lower 0.50 times",
        "    time of phase lower: ambiguous",
        "",
    ]


def test_markdown_has_a_table(tmp_path: Path) -> None:
    """One row for each case."""
    page = render_upgrade_markdown(measured(tmp_path))
    assert "## Time and memory\n\nTime and memory: of 40 cases, 1 takes more and 1" in page
    assert f"| `f/loop` | 0.6.1 | run 2.10 times | front end: Python code | `{'a' * 12}` |" in page


def test_an_upgrade_without_measurements_does_not_mention_them(tmp_path: Path) -> None:
    """Neither as text nor as Markdown."""
    upgraded = told(compared(tmp_path, "f/loop", OK, OK, OK, OK))
    text = "\n".join(render_upgrade(upgraded)) + render_upgrade_markdown(upgraded)
    assert "time and memory" not in text.lower()


def test_the_file_keeps_them(tmp_path: Path) -> None:
    """Reports read it back."""
    content = msgspec.json.encode(make_upgrade_file(measured(tmp_path)))
    assert decode_upgrade(content, "upgrade.json").costs == (FASTER, SLOWER)
