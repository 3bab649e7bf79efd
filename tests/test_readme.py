"""What the README, the docs and tox.ini say is so."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.app.case_choice import choose_cases
from conformance.app.context import ProjectContext
from conformance.app.run_request import RunRequest
from conformance.cells.matrix import load_matrix
from conformance.cells.releases import load_releases
from conformance.cli.commands import COMMANDS
from conformance.engine.plan import list_possible_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        from_docs |= set(re.findall(r"(?<!-)\bconformance (run|[a-z]+)\b", page.read_text("utf-8")))
    words = {"import", "kit", "package", "cache"}
    assert from_docs - words <= set(COMMANDS)


def test_figures_of_the_readme_come_from_the_corpus() -> None:
    """The table has families of the default run, and each release of the matrix is counted."""
    context = ProjectContext(ROOT)
    cells, _ = context.select_cells(None, ())
    cases, count = choose_cases(context, RunRequest())
    jobs = list_possible_jobs(cases, cells)
    readme = _read("README.md")
    assert f"smoke run: {len(cases)} of {count:,} case ids; all: conformance run --all" in readme
    header, *rows = readme.partition("\nfamily ")[2].partition(". match")[0].splitlines()
    shown = [row.split()[0] for row in rows if row != "..."]
    assert shown == sorted({*shown} & {job.case.family for job in jobs})
    assert header.split() == [cell.release for cell in cells]
    releases = len(load_releases(ROOT / "matrix").versions)
    assert f"the releases come from running all {releases}." in readme


def expanded(name: str) -> Iterator[str]:
    """Yield the environments of a section of tox.ini: a{b,c} is ab and ac."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    alternatives = [part if number % 2 else [",".join(part)] for number, part in enumerate(parts)]
    yield from map("".join, product(*alternatives))


@pytest.mark.parametrize("matrix", ["releases", "platforms"])
def test_tox_knows_every_cell_by_name(matrix: str) -> None:
    """The environments of tox.ini are the cells of the matrices."""
    sections = re.findall(r"^\[testenv:(jax.*)\]$", _read("tox.ini"), re.MULTILINE)
    named = {env for section in sections for env in expanded(section)}
    cells = load_matrix(matrix, (ROOT / "matrix",), load_releases(ROOT / "matrix")).cells
    assert {cell.id for cell in cells} <= named
