"""What the README, the docs and tox.ini say is so."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.cells.matrix import load_matrix
from conformance.cells.releases import load_releases

ROOT = Path(__file__).resolve().parents[1]


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """What a newcomer is told to run is what every change must pass."""
    readme = _read("README.md")
    _, test_command = re.findall(r"^python3 -m venv .*$", readme, re.MULTILINE)[:2]
    assert test_command in _read(".ci/run").splitlines()


def test_every_subcommand_named_in_the_docs_exists() -> None:
    """A page that names a command that is not there sends its reader nowhere."""
    from_docs = set()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        from_docs |= set(re.findall(r"\bconformance (run|[a-z]+)\b", page.read_text("utf-8")))
    known = {"run", "list", "matrix", "diff", "accept", "doctor"}
    words = {"import", "kit", "package", "cache"}
    assert from_docs - words <= known


def test_tox_knows_every_cell_by_name() -> None:
    """The environments of tox.ini are the cells of the matrix of all releases."""
    releases = load_releases(ROOT / "matrix")
    sections = re.findall(r"^\[testenv:jax\{(.*)\}-(py\d+)-cpu8\]$", _read("tox.ini"), re.MULTILINE)
    named = {f"jax{v}-{python}-cpu8" for versions, python in sections for v in versions.split(",")}
    cells = load_matrix("releases", (ROOT / "matrix",), releases).cells
    assert named == {cell.id for cell in cells}
