"""The README's first commands are the ones that are run."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """What a newcomer is told to run is what every change must pass."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    _, test_command = re.findall(r"^python3 -m venv .*$", readme, re.MULTILINE)[:2]
    assert test_command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_subcommand_named_in_the_docs_exists() -> None:
    """A page that names a command that is not there sends its reader nowhere."""
    from_docs = set()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        from_docs |= set(re.findall(r"\bconformance (run|[a-z]+)\b", page.read_text("utf-8")))
    known = {"run", "list", "matrix", "accept", "doctor"}
    words = {"import", "kit", "package", "cache"}
    assert from_docs - words <= known
