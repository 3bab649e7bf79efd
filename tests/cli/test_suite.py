"""`conformance suite run`, and the upgrade of a suite: real pytest in real cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import CELL, ROOT
from tests.workbench import planned_cell, python_of

from .packages import package_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project

    from .conftest import MakeProject

GOOD = """\
import jax
import pytest


def test_sum():
    assert jax.numpy.arange(4).sum() == 6


def test_devices():
    assert len(jax.devices()) == 8


@pytest.mark.skip(reason="no need")
def test_skipped(): pass
"""
BAD = """\
import os


def test_fails():
    assert 1 == 2


def test_fails_alike():
    assert 1 == 2


def test_crashes():
    os.abort()


def test_fine(): pass
"""
CORE = """\
from jax.core import Primitive


def test_primitive():
    assert Primitive("mine").name == "mine"


def test_other(): pass
"""
"""Goes wrong as it is imported from jax 0.6.0 on."""
SHARD_MAP = """\
import jax


def test_shard_map():
    from jax import shard_map


def test_the_same():
    print(jax.__version__)
"""


pytestmark = pytest.mark.project({
    "tests/test_good.py": GOOD,
    "tests/bad/test_bad.py": BAD,
    "pyproject.toml": "[tool.pytest.ini_options]\n",
})  # fmt: skip
"""A project with a suite."""


def run_suite(project: Project, *arguments: str) -> tuple[int, dict[str, tuple[str, bool]]]:
    """Run a suite; return the status, and the verdict and cache state of each test."""
    ending = project.run("suite", "run", "--cell", "0.6.2", "--json", "-", *arguments)
    results: list[dict[str, Any]] = ending.json["results"]
    return ending.code, {one["case"]: (one["verdict"], one["cached"]) for one in results}


@pytest.mark.cell
def test_suite_run_groups_failures_and_caches_tests(project: Project) -> None:
    """Each group has the command that runs it again."""
    ending = project.run("suite", "run", "tests", "--cell", "0.6.2")
    assert ending.code == 1
    assert f"{CELL}  3 passed, 2 failed, 1 crashed, 1 skipped" in ending.out
    alike = "tests/bad/test_bad.py::test_fails, tests/bad/test_bad.py::test_fails_alike"
    assert f"failed: 2 tests on {CELL}" in ending.out
    assert alike in ending.out
    again = f"conformance suite run --cell {CELL} tests/bad/test_bad.py::test_crashes"
    assert again in ending.out
    assert f"skipped: tests/test_good.py::test_skipped on {CELL}: no need" in ending.out
    crash = "tests/bad/test_bad.py::test_crashes"
    nodes = ("tests/bad/test_bad.py::test_fails", crash)
    code, known = run_suite(project, "tests/test_good.py", *nodes)
    assert code == 1
    assert known == {
        "tests/test_good.py::test_sum": ("match", True),
        "tests/test_good.py::test_devices": ("match", True),
        "tests/test_good.py::test_skipped": ("excluded", True),
        "tests/bad/test_bad.py::test_fails": ("regressed", True),
        crash: ("crashed", True),
    }
    project.write({"tests/helper.py": "changed = True\n"})
    code, results = run_suite(project, "tests/test_good.py", "--", "-k", "sum")
    assert (code, results) == (0, {"tests/test_good.py::test_sum": ("match", False)})


@pytest.mark.long
@pytest.mark.cell
def test_suite_run_can_be_diffed_and_reported(project: Project) -> None:
    """But it has no goldens to accept."""
    for good in (True, False):
        text = GOOD if good else GOOD.replace("== 6", "== 7")
        project.write({"tests/test_good.py": text})
        project.run("suite", "run", "tests/test_good.py", "--cell", "0.6.2")
    before, after = project.runs
    ending = project.run("diff", before, after)
    assert ending.code == 1
    assert "1 regressed, 2 same" in ending.out
    markdown = project.run("report", after, "--markdown", "-").out
    assert f"conformance suite run --cell {CELL} tests/test_good.py::test_sum" in markdown
    assert project.run("report", after).code == 0
    assert project.run("accept").code == 2  # a test has no golden


@pytest.mark.cell
@pytest.mark.long
def test_with_package_is_importable_in_the_suite(project: Project) -> None:
    """In its current state; a release that it does not support is left out."""
    project.write({
        "tests/test_mine.py": "import mine\n\ndef test_mine():\n    assert mine.two == 2\n",
        **package_files({"mine.py": "two = 2\n"}, "mine"),
    })  # fmt: skip
    beside = ("tests/test_mine.py", "--with", "./mine")
    assert run_suite(project, *beside) == (0, {"tests/test_mine.py::test_mine": ("match", False)})
    project.write({"mine/mine.py": "two = 3\n"})
    assert run_suite(project, *beside) == (
        1, {"tests/test_mine.py::test_mine": ("regressed", False)},
    )  # fmt: skip
    ending = project.run("suite", "run", *beside, "--cell", "0.6.0")
    assert ending.code == 3
    assert "does not go with mine" in ending.err


@pytest.mark.long
@pytest.mark.cell
def test_invalid_suite_runs_are_refused(project: Project) -> None:
    """One error line each."""

    def run_refused(*arguments: str) -> tuple[int, str]:
        ending = project.run("suite", "run", "--cell", "0.6.2", *arguments)
        return ending.code, ending.error

    assert run_refused("testz") == (2, "testz: no such file or folder, expected the path of tests")
    project.write({"empty/test_empty.py": ""})
    assert run_refused("empty") == (3, f"empty: no tests are collected in {CELL}")
    assert run_refused("tests", "--", "-k", "nothing_of_it")[0] == 3
    code, error = run_refused("tests", "--", "--numprocesses", "2")
    assert (code, "unrecognized arguments: --numprocesses" in error) == (2, True), error
    assert "--with" in error
    project.write({"tests/conftest.py": "raise KeyError('this')\n"})
    code, error = run_refused("tests")
    assert code == 2
    assert f"cannot be collected in any cell; {CELL}: KeyError: 'this'" in error
    project.write({"tests/conftest.py": "import os\nos._exit(7)\n"})
    assert "exit: the process exited with status 7" in run_refused("tests")[1]


@pytest.mark.cell
def test_suite_refuses_compile_only_and_multi_process_cells(project: Project) -> None:
    """The reason is given for each cell."""
    where = ("--cell", "0.6.2@tpu:v5e:2x2", "--cell", "0.6.2@cpu-mp2")
    ending = project.run("suite", "run", "tests", *where)
    assert ending.code == 3
    assert "for tpu:v5e:2x2 programs are compiled only" in ending.error
    assert "tests are written for one process, cpu-mp2 has 2" in ending.error


@pytest.mark.long
@pytest.mark.cell
def test_suite_runs_in_a_path_environment_without_pytest(project: Project) -> None:
    """The layer of the suite adds pytest; nothing is installed."""
    python = python_of(planned_cell("0.6.2"))
    ending = project.run("suite", "run", "tests/test_good.py", "--cell", f"path:{python}")
    assert ending.code == 0, ending
    assert "2 passed, 1 skipped" in ending.out


@pytest.mark.long
@pytest.mark.cell
def test_suite_that_one_cell_cannot_collect_fails_there_only(
    new_project: MakeProject, tmp_path: Path
) -> None:
    """And a test that fails every other time is flaky."""
    lock = "matrix/locks/jax0.5.3-py311.txt"
    counter = tmp_path / "counter"
    project = new_project({
        "whole/conftest.py": "from jax.core import Primitive\n",
        "whole/test_one.py": "def test_a(): pass\n\ndef test_b(): pass\n",
        "flaky/test_one.py": f"from pathlib import Path\n\ndef test_c():\n"
        f"    file = Path({str(counter)!r})\n    file.write_text(file.read_text() + 'x')\n"
        "    assert len(file.read_text()) % 2\n",
        "pytest.ini": "",
        lock: (ROOT / lock).read_text(),
    })  # fmt: skip
    ending = project.run("suite", "run", "whole", "--cell", "0.5.3", "--cell", "0.6.2")
    assert ending.code == 1
    assert "jax0.5.3-py311-cpu8  2 passed" in ending.out
    assert f"failed: 2 tests on {CELL}\n  raised ImportError at import" in ending.out
    counter.write_text("x")
    ending = project.run("suite", "run", "flaky", "--cell", "0.6.2")
    assert (ending.code, f"{CELL}  1 flaky" in ending.out) == (1, True), ending


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_of_a_suite_finds_broken_and_fixed_tests(new_project: MakeProject) -> None:
    """Only tests that change are run on the releases between the ends."""
    lock = "matrix/locks/jax0.5.3-py311.txt"
    project = new_project({
        "tests/test_core.py": CORE,
        "tests/test_map.py": SHARD_MAP,
        "tests/test_new.py": "import jax\nimport pytest\n\n"
        "@pytest.mark.skipif(jax.__version__ < '0.6', reason='too old')\ndef test_new(): pass\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        lock: (ROOT / lock).read_text(),
    })  # fmt: skip
    ending = project.run("upgrade", "0.5.3", "0.6.2", "--suite", "tests", "--json", "-")
    data = ending.json
    assert ending.code == 1
    changed = {(one["case"], one["kind"]): one for one in data["transitions"]}
    assert {key: one["changed_in"] for key, one in changed.items()} == {
        ("tests/test_core.py::test_primitive", "broken"): "0.6.0",
        ("tests/test_core.py::test_other", "broken"): "0.6.0",
        ("tests/test_map.py::test_shard_map", "fixed"): "0.6.1",
    }
    broken = changed["tests/test_core.py::test_primitive", "broken"]
    assert broken["before"] == "ok"
    assert broken["after"].startswith("ImportError: cannot import name 'Primitive' from 'jax.core'")
    assert broken["command"] == (
        "conformance suite run --cell jax0.5.3-py311-cpu8 --cell jax0.6.0-py311-cpu8 "
        "tests/test_core.py::test_primitive"
    )
    (new,) = data["not_compared"]
    assert (new["case"], new["reason"]) == (
        "tests/test_new.py::test_new",
        "0.5.3: skipped: too old",
    )
    assert data["counts"]["unchanged"] == 1
    assert "of 4 tests 2 break (in 0.6.0), 1 is fixed and 1 is unchanged" in data["verdict"]
    assert data["jobs"]["tried"] < data["jobs"]["of"]
    both = project.run("upgrade", "0.5.3", "0.6.2", "shard_map_while", "--suite", "tests")
    assert (both.code, "--suite and SELECT" in both.error) == (2, True)


@pytest.mark.long
@pytest.mark.cell
def test_changed_data_file_reruns_the_tests_that_read_it(project: Project) -> None:
    """A test that reads a changed file runs again; others are cached.

    A collection whose parameters come from a changed file is repeated, too.
    """
    project.write({
        "data/sum.json": "[1, 2]",
        "data/ids.json": '["one"]',
        "tests/test_data.py": """\
import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("name", json.loads((DATA / "ids.json").read_text()))
def test_named(name): pass


@pytest.mark.skipif(not DATA.exists(), reason="no data")
def test_sum():
    assert sum(json.loads((DATA / "sum.json").read_text())) == 3
""",
    })  # fmt: skip
    node, other = "tests/test_data.py::test_sum", "tests/test_data.py::test_named[one]"
    assert run_suite(project, "tests/test_data.py")[0] == 0
    project.write({"data/sum.json": "[1, 3]"})
    assert run_suite(project, "tests/test_data.py") == (
        1, {node: ("regressed", False), other: ("match", True)},
    )  # fmt: skip
    project.write({"data/sum.json": "[1, 2]", "data/ids.json": '["two"]'})
    code, found = run_suite(project, "tests/test_data.py")
    assert (code, set(found)) == (0, {node, "tests/test_data.py::test_named[two]"})
