"""Releases, selectors, matrices and interpreters that are not there, or not right."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.cells import interpreters
from conformance.errors import InfrastructureError
from tests.cells.builders import make_python
from tests.projects import CELL, GOOD, case

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project

    from .conftest import MakeProject

CASES = {"cases/fam/topic.py": GOOD}


@pytest.mark.parametrize(
    ("selector", "messages"),
    [
        (
            "0.6.9",
            [
                "unknown jax release '0.6.9' (did you mean '0.6.",
                "known are 0.4.30 to ",
                "refresh the table with: conformance matrix --refresh",
            ],
        ),
        (
            ">=9000",
            ["selector '>=9000' matches no known release; the release table has 0.4.30 to "],
        ),
        (">=0.7,<0.6", ["selector '>=0.7,<0.6' matches no known release"]),
        ("=>0.6", ["selector '=>0.6' is not valid; expected an exact release, a PEP 440"]),
        ("banana", ["selector 'banana' is not valid"]),
        ("latest-900", ["selector 'latest-900': only ", "releases are known"]),
        ("jax0.6.9-py311-cpu8", ["unknown jax release '0.6.9'"]),
    ],
)
def test_a_cell_that_cannot_be(
    new_project: MakeProject, selector: str, messages: list[str]
) -> None:
    """Exit 2, the known range, and how to refresh it."""
    ending = new_project(CASES).run("run", "--cell", selector)
    assert ending.code == 2
    for message in messages:
        assert message in ending.error
    assert not ending.error.endswith(".")


def test_a_matrix_that_is_narrowed_to_nothing(new_project: MakeProject) -> None:
    """A selector that no cell of the matrix has is exit 3; the message names its cells."""
    ending = new_project(CASES).run("run", "--matrix", "smoke", "--cell", "0.5.3")
    assert (ending.code, ending.error) == (
        3,
        f"no cell of matrix smoke matches 0.5.3; it has {CELL}",
    )


def test_a_matrix_that_is_narrowed_tells_of_the_cells_asked_for_alone(
    new_project: MakeProject,
) -> None:
    """What it leaves out elsewhere is not in the way."""
    axes = 'jax = ["0.4.30", "0.5.3", "0.6.2"], python = ["3.11", "3.14"]'
    project = new_project({**CASES, "matrix/wide.toml": f"[matrix]\naxes = {{ {axes} }}\n"})
    data = project.run("matrix", "wide", "--cell", "0.6.2", "--json", "-").json
    assert [cell["cell"] for cell in data["cells"]] == [CELL]
    assert [out["cell"] for out in data["exclusions"]] == ["jax0.6.2-py314-cpu8"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smoek", "unknown matrix 'smoek' (did you mean 'smoke'?); expected one of "),
        ("no/where.toml", "matrix file 'no/where.toml': no such file"),
    ],
)
def test_a_matrix_that_is_not_there(new_project: MakeProject, name: str, message: str) -> None:
    """The nearest name, and all there are."""
    ending = new_project(CASES).run("run", "--matrix", name)
    assert ending.code == 2
    assert ending.error.startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[matrix\n", "not TOML"),
        ("", "matrix: got nothing, expected a table [matrix]"),
        ("[matrix]\naxes = {}\n", "matrix.axes: no jax in it, expected a list of selectors"),
        (
            "[matrix]\naxes = {jax = ['0.6.2'], device = [8]}\n",
            "matrix.axes.device: unknown key (did you mean 'devices'?); expected jax, python",
        ),
        ("[matrix]\naxes = {jax = [0.6]}\n", "matrix.axes.jax: got [0.6], expected selectors"),
        ("[matrix]\naxes = {jax = []}\n", "matrix.axes.jax: got an empty list, expected"),
        ("[matrix]\naxes = {jax = ['0.6.9']}\n", "unknown jax release '0.6.9'"),
        (
            "[matrix]\naxes = {jax = ['0.6.2']}\nexclude = [{jax = '0.6.2'}]\n",
            "matrix.exclude[0].reason: got nothing, expected why these cells are left out",
        ),
    ],
)
def test_a_broken_matrix_file(new_project: MakeProject, text: str, message: str) -> None:
    """File, key, got and expected."""
    project = new_project({**CASES, "matrix/broken.toml": text})
    ending = project.run("run", "--matrix", "broken")
    assert ending.code == 2
    assert "matrix/broken.toml: " in ending.error
    assert message in ending.error


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[[release]]\nversion = 'x'\n", b"release = 3\n"])
def test_a_broken_table_of_releases(new_project: MakeProject, data: bytes) -> None:
    """The file is named, and how to make it anew."""
    project = new_project(CASES)
    (project.path / "matrix/releases.toml").write_bytes(data)
    ending = project.run("run")
    assert ending.code == 2
    assert "matrix/releases.toml" in ending.error
    assert ending.error.endswith("refresh the table with: conformance matrix --refresh")


def test_a_matrix_that_leaves_all_out(new_project: MakeProject) -> None:
    """Nothing to run is exit 3, with the reason of each exclusion."""
    text = "[matrix]\naxes = {jax = ['0.6.2']}\nexclude = [{jax = '0.6.2', reason = 'is old'}]\n"
    ending = new_project({**CASES, "matrix/none.toml": text}).run("run", "--matrix", "none")
    assert (ending.code, ending.error) == (3, f"nothing to run; every case on {CELL}: is old")


def test_a_case_that_no_cell_has_devices_for(new_project: MakeProject) -> None:
    """The reason is the case's own need."""
    project = new_project({"cases/fam/big.py": case("return 1", "probe(devices=64)")})
    ending = project.run("run")
    assert ending.code == 3
    assert ending.error.endswith(f"fam/case on {CELL}: needs 64 devices, the cell has 8")


@pytest.fixture
def _no_python_310(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing_interpreter_fails: None
) -> None:
    """A host whose only 3.10, which no orchestrator runs on, is a dead shim; uv knows no build."""
    monkeypatch.delenv("CONFORMANCE_PYTHON_DOWNLOADS", raising=False)
    builds = tmp_path / "builds.json"
    builds.write_text("{}")
    # Without a build in its list uv refuses a version even if it has installed it before.
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(builds))
    shim = tmp_path / "bin" / "python3.10"
    make_python(shim, "echo pyenv: python3.10: command not found >&2; exit 127")
    candidates = interpreters._list_candidates
    monkeypatch.setattr(
        interpreters,
        "_list_candidates",
        lambda python: iter([shim]) if python == "3.10" else candidates(python),
    )


MISSING = "jax0.6.2-py310-cpu8"
TWO_PYTHONS = "[matrix]\naxes = {jax = ['0.6.2'], python = ['3.11', '3.10']}\n"


def _first_lines(out: str) -> list[str]:
    """Return the first two lines of a report, below that of the progress."""
    progress, *lines = filter(None, out.splitlines())
    assert re.match(r"\d+ jobs? in \d+ cells?", progress)
    return lines[:2]


@pytest.mark.cell("3.11")
@pytest.mark.usefixtures("_no_python_310")
def test_a_missing_interpreter_is_infra_and_the_rest_runs(new_project: MakeProject) -> None:
    """Its jobs are infra, first in the output, with the dead shim and what to do: exit 4."""
    project = new_project({**CASES, "matrix/two.toml": TWO_PYTHONS})
    ending = project.run("run", "--matrix", "two", "--json", "result.json")
    assert ending.code == 4
    data = json.loads((project.path / "result.json").read_text())
    assert data["exclusions"] == []
    verdicts = {record["cell"]: record["verdict"] for record in data["results"]}
    assert verdicts == {CELL: "new", MISSING: "infra"}
    first, reason = _first_lines(ending.out)
    assert (first, reason[:49]) == (
        f"infra 2 cases on {MISSING}",
        "  python 3.10: no interpreter runs on this host (",
    )
    assert "exit status 127: pyenv: python3.10: command not found" in reason
    assert reason.endswith("or put a python3.10 on PATH")


@pytest.mark.cell("3.11")
@pytest.mark.usefixtures("_no_python_310")
def test_an_environment_whose_interpreter_is_missing_is_not_made(new_project: MakeProject) -> None:
    """The others are; the message names the cell and what to do: exit 4."""
    project = new_project({**CASES, "matrix/two.toml": TWO_PYTHONS})
    ending = project.run("matrix", "two", "--provision")
    assert ending.code == 4
    assert ending.out.startswith(f"{CELL}: /")
    assert ending.out.count("\n") == 1
    assert ending.error.startswith(f"{MISSING}: python 3.10: no interpreter runs on this host (")
    assert ending.error.endswith("or put a python3.10 on PATH")
    shown = project.run("matrix", "two")
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "2 cells, 0 excluded")


@pytest.mark.usefixtures("_no_python_310")
@pytest.mark.parametrize("forbidden", [True, False])
def test_a_missing_interpreter_alone_is_infra(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch, *, forbidden: bool
) -> None:
    """Green on nothing is impossible: exit 4, whether uv may download it and fails, or may not."""
    asked = []

    def run_uv(arguments: list[str], **_: object) -> str:
        asked.append(arguments[:2])
        raise InfrastructureError("no network")

    monkeypatch.setattr(interpreters, "run_uv", run_uv)
    more = ["--no-python-downloads"] if forbidden else []
    ending = new_project(CASES).run("run", "--cell", MISSING, *more)
    assert ending.code == 4
    assert _first_lines(ending.out)[0] == f"infra 2 cases on {MISSING}"
    assert asked == ([] if forbidden else [["python", "install"]])
    assert os.environ.get("CONFORMANCE_PYTHON_DOWNLOADS") is None


@pytest.mark.usefixtures("_no_python_310")
def test_a_matrix_of_a_missing_interpreter(new_project: MakeProject) -> None:
    """It lists the cell with the reason, and makes what it can."""
    project = new_project({**CASES, "matrix/two.toml": TWO_PYTHONS})
    ending = project.run("matrix", "two")
    assert ending.code == 0
    assert f"{MISSING}  python 3.10: no interpreter runs on this host (" in ending.out


def _by_path(project: Project, python: Path | str) -> tuple[int, str]:
    ending = project.run("run", "--cell", f"path:{python}")
    return ending.code, ending.error


def test_a_path_that_is_no_interpreter(new_project: MakeProject, tmp_path: Path) -> None:
    """It is named, and why it does not serve: exit 2 for one that is not there, else 4."""
    project = new_project(CASES)
    shim = make_python(tmp_path / "shim", "echo pyenv: not installed >&2; exit 127")
    assert _by_path(project, "/nonexistent/python") == (
        2,
        "path:/nonexistent/python: no such file, expected the python of an environment",
    )
    assert _by_path(project, shim) == (
        4,
        f"{shim}: does not run: exit status 127: pyenv: not installed",
    )


def test_an_environment_without_jax(new_project: MakeProject) -> None:
    """The environment of this very test has none: it is told apart from a broken one."""
    code, error = _by_path(new_project(CASES), sys.executable)
    assert code == 4
    assert error.startswith(f"{sys.executable}: no jax among its ")
    assert error.endswith("install jax there or select another environment")


def test_a_path_cell_of_another_python(new_project: MakeProject, tmp_path: Path) -> None:
    """A matrix that names a Python the environment does not have: infra for its jobs."""
    packages = '{"version": "3.11.9", "packages": {"jax": "0.6.2"}}'
    python = make_python(tmp_path / "python", f"echo '{packages}'")
    text = f"[matrix]\naxes = {{jax = ['path:{python}'], python = ['3.13']}}\n"
    source = case("return 1", "probe(releases='>=0.6')")
    project = new_project({"cases/fam/topic.py": source, "matrix/own.toml": text})
    ending = project.run("run", "--matrix", "own")
    assert ending.code == 4
    text = " ".join(ending.out.split())
    assert f"{python}: is python 3.11.9, the cell expects 3.13" in text


@pytest.mark.cell
def test_a_matrix_says_which_cells_are_there(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before `--provision` and after it, for people and for machines."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    project = new_project(CASES)
    assert project.run("matrix", "--cell", CELL).out.splitlines()[0].endswith("not provisioned yet")
    assert project.run("matrix", "--cell", CELL, "--provision").code == 0
    assert project.run("matrix", "--cell", CELL).out.splitlines()[0].endswith(", provisioned")
    (row,) = project.run("matrix", "--cell", CELL, "--json", "-").json["cells"]
    assert (row["cell"], row["jax"], row["provisioned"]) == (CELL, "0.6.2", True)
