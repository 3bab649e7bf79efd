"""`conformance doctor` reports missing interpreters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app import context, host_checks
from conformance.cells.interpreters import MissingInterpreterError, find_interpreter
from tests.projects import GOOD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Ending

    from .conftest import MakeProject

MATRIX = """\
[matrix]
axes = { jax = ["0.8.3"], python = ["3.14"] }
"""


def hide_python(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Pretend that a Python is missing on this host."""
    find = find_interpreter

    def find_other(python: str, *, download: bool = True) -> Path:
        if python == missing:
            raise MissingInterpreterError(python, [])
        return find(python, download=download)

    monkeypatch.setattr(host_checks, "find_interpreter", find_other)


def find_line(ending: Ending, what: str) -> str:
    """Return the line of a report about one thing."""
    return next(line for line in ending.out.splitlines() if f" {what}: " in line)


@pytest.fixture(autouse=True)
def _no_built_in_matrices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the matrices of the installed package, which doctor checks, too."""
    monkeypatch.setattr(context, "PACKAGE", tmp_path)


@pytest.mark.usefixtures("missing_interpreter_fails")
def test_doctor_reports_python_missing_for_a_matrix(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the matrix and the command that installs it; other matrices can run."""
    hide_python(monkeypatch, "3.14")
    project = new_project({"cases/fam/numbers.py": GOOD, "matrix/pythons.toml": MATRIX})
    ending = project.run("doctor")
    line = find_line(ending, "python 3.14")
    assert line.startswith("absent python 3.14: 1 cell of matrix pythons needs it: ")
    assert "uv python install 3.14" in line
    status = {one["what"]: one["status"] for one in project.run("doctor", "--json", "-").json}
    assert status["python 3.14"] == "absent"


@pytest.mark.usefixtures("missing_interpreter_fails")
def test_doctor_accepts_missing_python_that_no_cell_needs(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says that no cell of a matrix needs it."""
    hide_python(monkeypatch, "3.14")
    project = new_project({"cases/fam/numbers.py": GOOD})
    line = find_line(project.run("doctor"), "python 3.14")
    assert line == "ok     python 3.14: not on this host, and no cell of a matrix needs it"


@pytest.mark.usefixtures("missing_interpreter_fails")
def test_doctor_fails_without_a_python_that_releases_need(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4."""
    hide_python(monkeypatch, "3.12")
    ending = new_project({"cases/fam/numbers.py": GOOD}).run("doctor")
    assert ending.code == 4
    assert find_line(ending, "python 3.12").startswith("wrong  python 3.12: ")
