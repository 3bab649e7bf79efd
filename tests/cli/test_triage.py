"""`conformance triage` of a run in a modified copy of a real environment."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.cells.interpreter_inspection import inspect_path_environment
from tests.projects import HEAD

if TYPE_CHECKING:
    from tests.projects import Project

    from .conftest import MakeProject

PLACE = "0.6.2@cpu1"
CASES = f"""\
{HEAD.replace("import numpy as np", "import jax" + chr(10) + "import numpy as np")}


@program(devices=1)
def slope(env):
    return Program(jax.grad(lambda x: x**3), args=(np.float32(2),),
                   reference=lambda x: 3.0 * x**2)


@program(devices=1)
def slopes(env):
    return Program(lambda x: jax.vmap(jax.grad(lambda y: y**3 + y))(x).sum(),
                   args=(np.float32([1, 2, 3]),), reference=lambda x: (3.0 * x**2 + 1).sum())


@program(devices=1)
def doubled(env):
    return Program(lambda x: 2 * x, args=(np.float32(2),), reference=lambda x: 2.0 * x)
"""
POWERS = """\
import jax
import numpy as np
from conformance.kit import Observed, probe
""" + "".join(
    f"""

@probe()
def power_{n}(env):
    slope = jax.grad(lambda x: x**{n})(np.float32(2))
    return Observed(slope, reference=np.float32({n * 2 ** (n - 1)}))
"""
    for n in (3, 4)
)
"""Two cases, each of which says something else when the derivative of a power is wrong."""
RIGHT = "mul(g, mul(_const(x, y), integer_pow(x, y - 1)))"
WRONG = "mul(g, mul(_const(x, y - 1), integer_pow(x, y - 1)))"
FILE = "jax/_src/lax/lax.py"


pytestmark = pytest.mark.project({"cases/slopes/powers.py": CASES})


@pytest.fixture
def project(project: Project) -> Project:
    """A project whose goldens are those of the release."""
    assert project.run("run", "--cell", PLACE, "--fresh").code == 0
    assert project.run("accept").code == 0
    return project


def make_changed_copy(project: Project) -> tuple[Path, Path]:
    """Return the interpreter of the release, and that of a copy with a wrong constant.

    Of all but jax itself the copy has links.
    """
    (identity,) = project.newest.read_run().identities.values()
    python = Path(identity["executable"])
    copy = project.path / "copy"
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    within = copy / packages.relative_to(python.parent.parent)
    within.mkdir(parents=True)
    for path in packages.iterdir():
        if path.name != "jax":
            (within / path.name).symlink_to(path)
    shutil.copytree(packages / "jax", within / "jax")
    text = (within / FILE).read_text()
    assert text.count(RIGHT) == 1
    (within / FILE).write_text(text.replace(RIGHT, WRONG))
    shutil.copy(python.parent.parent / "pyvenv.cfg", copy)
    (copy / "bin").mkdir()
    (copy / "bin" / "python").symlink_to(python.resolve())
    return python, copy / "bin" / "python"


def run_file(python: Path, file: Path) -> int:
    """Return the exit status of a file."""
    return subprocess.run([python, file], capture_output=True, check=False).returncode


@pytest.mark.long
def test_triage_finds_the_changed_file_of_an_environment(project: Project) -> None:
    """The search ends at the copy, with a reproduction; the evidence is stored and shown."""
    release, copy = make_changed_copy(project)
    assert project.run("run", "--cell", f"path:{copy}@cpu1").code == 1
    ending = project.run("triage", "--json", "-")
    assert ending.code == 0, ending.err
    (found,) = ending.json["evidence"]
    assert ending.json["jobs"] == {found["cause"]: 2}
    assert (found["good"], found["last_good"], found["confirmed"]) == ("0.6.2", "0.6.2", True)
    assert found["first_bad"] == f"path:{copy} (jax 0.6.2)"
    (culprit,) = found["culprits"]
    assert (culprit["package"], culprit["files"]) == ("jax", [FILE])
    run = project.newest.path
    assert [run_file(python, run / found["repro"]) for python in (copy, release)] == [1, 0]
    assert json.loads((run / "evidence.json").read_text()) == [found]

    # Evidence is not searched again, and the pages show it.
    again = project.run("triage")
    assert (again.code, "(again)" in again.out) == (0, False)
    assert f"culprit: jax 0.6.2 with 1 changed file: {FILE}" in again.out
    assert project.run("report", "--out", "site").code == 0
    assert FILE in (project.path / "site" / "causes.html").read_text()
    shown = project.path / "site" / "repro" / f"{found['cause']}.py"
    assert shown.read_text() == (run / found["repro"]).read_text()

    # A copy that changed after the search is searched again.
    lax = next((project.path / "copy").glob(f"lib/python*/site-packages/{FILE}"))
    lax.write_text(lax.read_text().replace(WRONG, RIGHT))
    ending = project.run("triage", "--fresh")
    assert ending.code == 1
    assert "are alike" in ending.out


@pytest.mark.long
def test_triage_merges_cases_that_fail_in_the_same_line(new_project: MakeProject) -> None:
    """In the terminal, the next run, issues, reviews and the site."""
    matrix = '[matrix]\naxes = { jax = ["0.6.2"], platform = ["cpu"], devices = [1] }\n'
    project = new_project({"cases/slopes/powers.py": POWERS, "matrix/smoke.toml": matrix})
    assert project.run("run").code == 0
    assert project.run("accept").code == 0
    _, copy = make_changed_copy(project)
    night = ("run", "--matrix", "smoke", "--cell", f"path:{copy}@cpu1")
    project.run(*night)
    before = project.run(*night)
    assert "exit status 1: 2 root causes are unexpected" in before.out
    assert "nothing changed, 2 still there" in before.out
    assert project.run("triage").code == 0

    shown = project.run("report", "--terminal").out
    assert shown.count("\nregressed ") == 1
    assert "nothing changed, 1 still there" in shown
    assert "regressed 2 cases on path-" in shown
    assert project.run("report", "--out", "site").code == 0
    page = (project.path / "site" / "causes.html").read_text()
    assert page.count('id="cause-') == page.count('id="cause-1') > 0
    (group,) = project.run("review", "--json", "-").json["groups"]
    assert len(group["jobs"]) == 2
    assert project.run("history", "add").code == 0
    actions = project.run("notify", "--json", "-").json["actions"]
    assert [one["kind"] for one in actions] == ["open"]

    again = project.run(*night)
    assert "exit status 1: 1 root cause is unexpected" in again.out
    (still,) = json.loads((project.newest.path / "since.json").read_text())["still"]
    assert (len(still["jobs"]), still["nights"]) == (2, 3)


@pytest.mark.long
def test_triage_reports_causes_that_it_did_not_search(project: Project) -> None:
    """Because nothing is unexpected, the time is over, or the environment is deleted."""
    ending = project.run("triage")
    assert (ending.code, ending.out) == (0, "nothing is unexpected\n")

    _, copy = make_changed_copy(project)
    project.run("run", "--cell", f"path:{copy}@cpu1")
    ending = project.run("triage", "--timeout", "0", "--json", "-")
    assert (ending.code, ending.json["evidence"]) == (0, [])
    assert [one["why"] for one in ending.json["left_out"]] == [
        "no time is left; the same command goes on"
    ]
    assert not (project.newest.path / "evidence.json").exists()

    # `bisect` does the same search.
    ends = ("--good", "0.6.2", "--bad", f"path:{copy}", "--platform", "cpu1")
    ending = project.run("bisect", "slopes/slope", *ends, "--json", "-")
    assert (ending.code, ending.json["last_good"]) == (0, "0.6.2")
    assert ending.json["first_bad"] == f"path:{copy} (jax 0.6.2)"

    shutil.rmtree(project.path / "copy")
    inspect_path_environment.cache_clear()
    ending = project.run("triage")
    assert ending.code == 1
    assert "no longer exists" in ending.out


def test_triage_searches_from_the_previous_release(new_project: MakeProject) -> None:
    """With `--no-blame` the differing packages are not separated."""
    factor = '(3 if jax.__version__ == "0.6.2" else 2)'
    wrong = CASES.replace("lambda x: 2 * x", f"lambda x: {factor} * x")
    project = new_project({"cases/slopes/powers.py": wrong})
    assert project.run("run", "slopes/doubled", "--cell", PLACE).code == 1
    ending = project.run("triage", "--no-blame", "--json", "-")
    assert ending.code == 0
    (found,) = ending.json["evidence"]
    assert (found["last_good"], found["first_bad"], found["confirmed"]) == ("0.6.1", "0.6.2", True)
    assert found["command"] == f"uv run repro/{found['cause']}.py"
    (reason,) = found["untold"]
    assert reason.endswith("packages differ, and were not separated")
