"""The corpus of behaviour changes is well formed; what it says is checked by running it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import tomllib

from conformance.cells.releases import load_releases

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "benchmarks" / "behaviour_changes"
CHANGES: list[dict[str, Any]] = tomllib.loads((CORPUS / "answers.toml").read_text())["change"]
ORDER = [*load_releases(ROOT / "matrix" / "releases.toml").versions]
NEEDED = {"script", "good", "bad", "when", "first", "source", "note"}
OPTIONAL = {"find", "changes"}
SOURCE = re.compile(r"CHANGELOG (?P<release>\d[\d.]+)|[\w-]+/[\w.-]+(#\d+|@[0-9a-f]{10})")
LINES = 25
every_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["script"])


def test_every_script_has_one_answer() -> None:
    """Neither a script without an answer nor an answer without a script."""
    scripts = [f"scripts/{file.name}" for file in (CORPUS / "scripts").iterdir() if file.is_file()]
    assert sorted(change["script"] for change in CHANGES) == sorted(scripts)


def test_there_are_many_and_of_several_kinds() -> None:
    """Errors, exits, outputs, crashes and fixes; some with two changes."""
    assert len(CHANGES) >= 24
    assert {change["when"] for change in CHANGES} == {"error", "exit", "output", "crash"}
    assert sum(change.get("find") == "fix" for change in CHANGES) >= 3
    assert sum(len(change.get("changes", ())) == 2 for change in CHANGES) >= 2


@every_change
def test_an_answer_is_complete(change: dict[str, Any]) -> None:
    """It has the fields it needs and no others, and says where it is from."""
    assert set(change) >= NEEDED
    assert set(change) <= NEEDED | OPTIONAL
    assert change.get("find", "fix") == "fix"
    assert SOURCE.fullmatch(change["source"])
    assert change["note"].endswith(".")


@every_change
def test_the_first_release_lies_between_the_ends(change: dict[str, Any]) -> None:
    """After the older end, up to the newer; with several changes it is one of them."""
    ends = [change["good"], change["bad"]]
    older, newer = reversed(ends) if change.get("find") == "fix" else ends
    inside = ORDER[ORDER.index(older) + 1 : ORDER.index(newer) + 1]
    changes = change.get("changes", [change["first"]])
    assert change["first"] in changes
    assert [release for release in inside if release in changes] == changes


@every_change
def test_a_script_is_as_somebody_would_paste_it(change: dict[str, Any]) -> None:
    """Short, with jax and nothing of ours."""
    text = (CORPUS / change["script"]).read_text()
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert "jax" in imported
    assert "conformance" not in imported
    assert 3 <= len([line for line in text.splitlines() if line.strip()]) <= LINES
