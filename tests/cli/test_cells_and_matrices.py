"""Releases, selectors, matrices and interpreters that are missing or invalid."""

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
def test_invalid_cell_selector_exits_2(
    new_project: MakeProject, selector: str, messages: list[str]
) -> None:
    """The message names the known range and the command that refreshes it."""
    ending = new_project(CASES).run("run", "--cell", selector)
    assert ending.code == 2
    for message in messages:
        assert message in ending.error
    assert not ending.error.endswith(".")


def test_cell_filter_that_matches_no_cell_of_the_matrix_exits_3(new_project: MakeProject) -> None:
    """The message lists the cells of the matrix."""
    ending = new_project(CASES).run("run", "--matrix", "smoke", "--cell", "0.5.3")
    assert (ending.code, ending.error) == (
        3,
        f"no cell of matrix smoke matches 0.5.3; it has {CELL}",
    )


def test_cell_filter_also_filters_the_exclusions_of_a_matrix(
    new_project: MakeProject,
) -> None:
    """Exclusions of other releases are not listed."""
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
def test_unknown_matrix_exits_2(new_project: MakeProject, name: str, message: str) -> None:
    """The message proposes the nearest name and lists all."""
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
def test_broken_matrix_file_exits_2(new_project: MakeProject, text: str, message: str) -> None:
    """The message has file, key, value and expectation."""
    project = new_project({**CASES, "matrix/broken.toml": text})
    ending = project.run("run", "--matrix", "broken")
    assert ending.code == 2
    assert "matrix/broken.toml: " in ending.error
    assert message in ending.error


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[[release]]\nversion = 'x'\n", b"release = 3\n"])
def test_broken_release_table_exits_2(new_project: MakeProject, data: bytes) -> None:
    """The message names the file and the command that renews it."""
    project = new_project(CASES)
    (project.path / "matrix/releases.toml").write_bytes(data)
    ending = project.run("run")
    assert ending.code == 2
    assert "matrix/releases.toml" in ending.error
    assert ending.error.endswith("refresh the table with: conformance matrix --refresh")


def test_matrix_that_excludes_every_cell_exits_3(new_project: MakeProject) -> None:
    """The message has the reason of each exclusion."""
    text = "[matrix]\naxes = {jax = ['0.6.2']}\nexclude = [{jax = '0.6.2', reason = 'is old'}]\n"
    ending = new_project({**CASES, "matrix/none.toml": text}).run("run", "--matrix", "none")
    assert (ending.code, ending.error) == (3, f"nothing to run; every case on {CELL}: is old")


def test_case_that_needs_too_many_devices_exits_3(new_project: MakeProject) -> None:
    """The reason compares the devices of the case with those of the cell."""
    project = new_project({"cases/fam/big.py": case("return 1", "probe(devices=64)")})
    ending = project.run("run")
    assert ending.code == 3
    assert ending.error.endswith(f"fam/case on {CELL}: needs 64 devices, the cell has 8")


@pytest.fixture
def _no_python_310(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing_interpreter_fails: None
) -> None:
    """A host whose only Python 3.10 is a shim that fails, and for which uv has no build."""
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
def test_missing_interpreter_is_infra_and_other_cells_run(new_project: MakeProject) -> None:
    """Infra is listed first, with the failing shim and a remedy; exit 4."""
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
def test_provision_skips_environment_without_interpreter(new_project: MakeProject) -> None:
    """The other environments are made; the message names the cell and a remedy; exit 4."""
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
def test_only_cell_without_interpreter_exits_4(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch, *, forbidden: bool
) -> None:
    """A run without any result is never green, whether uv may download Python or not."""
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
def test_matrix_lists_cell_without_interpreter_with_reason(new_project: MakeProject) -> None:
    """Listing a matrix is no error."""
    project = new_project({**CASES, "matrix/two.toml": TWO_PYTHONS})
    ending = project.run("matrix", "two")
    assert ending.code == 0
    assert f"{MISSING}  python 3.10: no interpreter runs on this host (" in ending.out


def _by_path(project: Project, python: Path | str) -> tuple[int, str]:
    ending = project.run("run", "--cell", f"path:{python}")
    return ending.code, ending.error


def test_path_cell_that_is_no_interpreter_is_refused(
    new_project: MakeProject, tmp_path: Path
) -> None:
    """Exit 2 if the file is missing, 4 if it does not run."""
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


def test_path_cell_without_jax_is_refused(new_project: MakeProject) -> None:
    """The interpreter of this test has no jax; the message differs from that of a broken one."""
    code, error = _by_path(new_project(CASES), sys.executable)
    assert code == 4
    assert error.startswith(f"{sys.executable}: no jax among its ")
    assert error.endswith("install jax there or select another environment")


def test_path_cell_with_another_python_than_the_matrix_is_infra(
    new_project: MakeProject, tmp_path: Path
) -> None:
    """The message has both versions."""
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
def test_matrix_shows_which_cells_are_provisioned(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after `--provision`, as text and as JSON."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    project = new_project(CASES)
    assert project.run("matrix", "--cell", CELL).out.splitlines()[0].endswith("not provisioned yet")
    assert project.run("matrix", "--cell", CELL, "--provision").code == 0
    assert project.run("matrix", "--cell", CELL).out.splitlines()[0].endswith(", provisioned")
    (row,) = project.run("matrix", "--cell", CELL, "--json", "-").json["cells"]
    assert (row["cell"], row["jax"], row["provisioned"]) == (CELL, "0.6.2", True)
