"""`pytest CASES --cell ...`: jobs as tests, in a separate pytest process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest

from conformance.cells.accelerators import find_missing_accelerator
from conformance.cells.platforms import get_platform
from conformance.engine.runs.directory import RunDirectory
from conformance.pytest_plugin import Bench
from tests.projects import CELL, GOOD, HEAD, ONE, ROOT, Project, case, make_project
from tests.workbench import make_test_cache

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell
KNOWN = case(
    "raise ValueError('no good')",
    "probe(deviations=[deviation('<0.7', error='ValueError', reason='not yet')])",
    name="known",
)
CASES = {
    "cases/fam/good.py": GOOD,
    "cases/fam/known.py": KNOWN,
    "cases/fam/wrong.py": case("return Observed(1, reference=2)", name="wrong"),
    "cases/other/big.py": case("return 1", "probe(devices=99)", name="big"),
    "pytest.ini": "[pytest]\n",
}
# An installed plugin is loaded by its entry point, a checkout's must be named.
INSTALLED = any(point.name == "conformance" for point in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "conformance.pytest_plugin")
BOTH = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of this module's own, but for the environments that are there already."""
    return make_test_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def project(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """A project with a case of each kind."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    monkeypatch.delenv("CI", raising=False)
    return make_project(tmp_path / "project", CASES, capsys)


def run_pytest(project: Project, *arguments: str) -> tuple[int, str]:
    """Run pytest in a project with the plugin, and nothing of this session's."""
    # With TOX_ENV_DIR pytest has its cache there: one for all projects.
    ours = ("PYTEST", "TOX")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, *arguments],
        cwd=project.path,
        env={**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "INTERNALERROR" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def summary(said: str) -> str:
    """Return the last line of pytest, without its time."""
    return re.sub(r" in [0-9.]+s.*", "", said.strip().splitlines()[-1]).strip("= ")


@pytest.mark.long(keep=1)
@BOTH
def test_verdicts_are_results_of_pytest(project: Project, workers: tuple[str, ...]) -> None:
    """Conforming passes, declared deviations are xfail, exclusions skip, others fail."""
    code, said = run_pytest(project, "cases", "--cell", "0.6.2", "-ra", *workers)
    assert code == 1
    assert summary(said) == "1 failed, 2 passed, 1 skipped, 1 xfailed"
    assert f"FAILED cases/fam/wrong.py::{CELL}::wrong - regressed: " in said
    assert "needs 99 devices, the cell has 8" in said
    assert "ValueError" in said
    assert "pytest_plugin.py" not in said


@pytest.mark.long(keep=1)
@BOTH
def test_the_run_directory_is_written_and_accepted(
    project: Project, workers: tuple[str, ...]
) -> None:
    """`conformance accept --run` accepts its results; then the verdict is match."""
    _, said = run_pytest(project, "cases", "--cell", "0.6.2", "--run", "out", *workers)
    assert f"results in {project.path / 'out'}" in said.replace(
        "results in out", f"results in {project.path / 'out'}"
    )
    directory = RunDirectory(project.path / "out")
    assert sorted(record.case for record in directory.read_records()) == [
        "fam/known",
        "fam/one",
        "fam/two",
        "fam/wrong",
    ]
    described = directory.read_run()
    assert sorted(case for case, _ in described.plan) == [
        record.case for record in sorted(directory.read_records(), key=lambda r: r.case)
    ]
    ending = project.run("accept", "--run", "out")
    assert ending.code == 1
    assert "not accepted: fam/wrong" in ending.out
    assert ending.out.splitlines()[-1].startswith("3 added")
    _, said = run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2", *workers)
    assert {record.verdict for record in project.newest.read_records()} == {"match"}


@pytest.mark.long
def test_used_run_directory_is_rejected(project: Project) -> None:
    """As by `conformance run`: results of two runs are not mixed."""
    run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2", "--run", "out")
    code, said = run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2", "--run", "out")
    assert code == 4
    assert "ERROR: out is not empty; name another folder with --run" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--matrix", "smoek"], "unknown matrix 'smoek' (did you mean 'smoke'?)"),
        (["--cell", "0.6.9"], "unknown jax release '0.6.9'"),
        (
            ["--cell", "path:/nonexistent/python"],
            "path:/nonexistent/python: no such file, expected",
        ),
    ],
)
def test_invalid_cell_is_a_usage_error(project: Project, arguments: list[str], words: str) -> None:
    """With pytest's exit status, and one line."""
    code, said = run_pytest(project, "cases", *arguments)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {words}" in said


def test_without_cells_the_plugin_does_nothing(project: Project) -> None:
    """Case files are no tests unless cells are selected."""
    code, said = run_pytest(project, "cases")
    assert code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert summary(said) == "no tests ran"


def test_other_tests_are_collected(project: Project) -> None:
    """Test files are collected as usual, also in the folder of the cases."""
    project.write({"cases/fam/test_own.py": "def test_own():\n    assert True\n"})
    code, said = run_pytest(project, "cases/fam", "--cell", "0.6.2", "-k", "test_own or one")
    assert (code, summary(said)) == (0, "2 passed, 3 deselected")


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("one", "1 passed, 4 deselected"),
        ("jax0.6.2 and two", "1 passed, 4 deselected"),
        ("probe and known", "4 deselected, 1 xfailed"),
        ("jax0.5.3", "5 deselected"),
    ],
)
def test_keyword_option_selects_jobs(project: Project, words: str, result: str) -> None:
    """By name, kind, family and release."""
    _, said = run_pytest(project, "cases", "--cell", "0.6.2", "-k", words)
    assert summary(said) == result


@pytest.mark.skipif(not find_missing_accelerator(get_platform("gpu")), reason="a GPU is here")
@pytest.mark.parametrize(
    ("required", "result"), [((), "skipped"), (("--require-platform",), "failed")]
)
def test_missing_accelerator_skips_or_fails(
    project: Project, required: tuple[str, ...], result: str
) -> None:
    """A failure if it is required; both with the reason."""
    _, said = run_pytest(project, "cases", "--cell", "0.6.2@gpu", "-k", "one", "-rsf", *required)
    assert summary(said) == f"1 {result}, 4 deselected"
    assert "no GPU on this host" in said


def test_printed_id_selects_a_single_item(project: Project) -> None:
    """As an argument of pytest."""
    _, said = run_pytest(project, f"cases/fam/good.py::{CELL}::one", "--cell", "0.6.2")
    assert summary(said) == "1 passed"


def test_bench_is_hashable() -> None:
    """Pytest 8 hashes each registered plugin."""
    assert Bench.__hash__ is object.__hash__


@pytest.mark.long
def test_last_failed_selects_failed_jobs(project: Project) -> None:
    """And no others."""
    run_pytest(project, "cases", "--cell", "0.6.2")
    code, said = run_pytest(project, "cases", "--cell", "0.6.2", "--lf")
    assert code == 1
    assert summary(said).startswith("1 failed")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mode", [(), ("--dist", "loadgroup")], ids=["default", "loadgroup"])
def test_jobs_of_a_cell_share_a_worker_of_xdist(project: Project, mode: tuple[str, ...]) -> None:
    """So the cell is opened once."""
    cells = ("--cell", "0.6.2", "--cell", "0.6.2@cpu8-x64")
    _, said = run_pytest(project, "cases/fam", *cells, "-v", "-n", "2", *mode)
    places = set(re.findall(r"\[(gw\d)\] .*::(jax0\.6\.2\S*)::", said))
    assert [cell for _, cell in sorted(places, key=lambda place: place[1])] == [CELL, f"{CELL}-x64"]


GROUPED = ("-n", "2", "--dist", "loadgroup")


@pytest.mark.long
@pytest.mark.parametrize(("first", "flag", "then"), [(GROUPED, "--lf", ()), ((), "--ff", GROUPED)])
def test_last_failed_works_with_xdist(
    project: Project, first: tuple[str, ...], flag: str, then: tuple[str, ...]
) -> None:
    """The names of tests are the same with and without xdist."""
    run_pytest(project, "cases", "--cell", "0.6.2", *first)
    failed = json.loads((project.path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert [name for name in failed if "@" in name] == []
    _, said = run_pytest(project, "cases", "--cell", "0.6.2", flag, *then)
    assert summary(said).startswith("1 failed" if flag == "--lf" else "1 failed, 2 passed"), said
    again = json.loads((project.path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert (again, len(again)) == (failed, 1)


PARAMETRISED = case(
    "return Observed(which, reference=1)",
    "probe(params={'good': {'which': 1}, 'bad': {'which': 2}})",
    name="of",
).replace("def of(env)", "def of(env, which)")


@pytest.mark.long
@pytest.mark.parametrize(("flag", "result"), [("--lf", "1 failed"), ("--ff", "1 failed, 1 passed")])
def test_last_failed_finds_a_parametrised_case(project: Project, flag: str, result: str) -> None:
    """Its id is the one in pytest's cache."""
    project.write({"cases/fam/wrong.py": PARAMETRISED})
    arguments = ("cases/fam/wrong.py", "--cell", "0.6.2")
    assert summary(run_pytest(project, *arguments)[1]) == "1 failed, 1 passed"
    _, said = run_pytest(project, *arguments, flag, "-v")
    assert "rerun previous 1 failure" in said
    assert re.findall(r"of\[(\w+)\] (?:PASSED|FAILED)", said)[0] == "bad"
    assert summary(said).startswith(result)


def test_conftest_loads_without_hypothesis() -> None:
    """Pytest loads it for any call in a checkout; `.[pytest]` has no hypothesis."""
    hidden = "import sys; sys.modules['hypothesis'] = None; import tests.conftest"
    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_junit_xml_has_every_job(project: Project) -> None:
    """With the message of a failure."""
    run_pytest(project, "cases", "--cell", "0.6.2", "--junitxml", "out.xml", "-n", "2")
    cases = ET.parse(project.path / "out.xml").getroot().iter("testcase")  # noqa: S314 - our own file
    found = {case.get("name"): [child.tag for child in case] for case in cases}
    assert found == {
        "one": [],
        "two": [],
        "known": ["skipped"],
        "wrong": ["failure"],
        "big": ["skipped"],
    }


def test_failed_job_shows_its_own_traceback(project: Project) -> None:
    """Not that of the plugin or the worker."""
    body = "@probe()\ndef raises(env):\n    return np.zeros(3).reshape(2, 2)\n"
    project.write({"cases/fam/raising.py": f"{HEAD}\n\n\n{body}"})
    code, said = run_pytest(project, "cases/fam/raising.py", "--cell", "0.6.2")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "cases/fam/raising.py" in said[said.index("traceback (most recent call last):") :]
    assert "return np.zeros(3).reshape(2, 2)" in said
    assert "pytest_plugin.py" not in said
    assert "conformance/worker" not in said


def test_broken_case_file_is_a_collection_error(project: Project) -> None:
    """With file and line, without a traceback of the plugin."""
    project.write({"cases/fam/broken.py": "@probe(device=3)\ndef case(env): ...\n"})
    code, said = run_pytest(project, "cases", "--cell", "0.6.2")
    assert code == pytest.ExitCode.INTERRUPTED
    assert "broken.py:1: probe: unknown keyword `device`; did you mean `devices`?" in said
    assert "Traceback" not in said


@pytest.mark.long
def test_broken_golden_fails_its_job_only(project: Project) -> None:
    """The message names the file and a remedy."""
    run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2")
    project.run("accept")
    project.golden("one/spans.toml").write_text("[")
    code, said = run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2")
    assert (code, summary(said)) == (1, "1 failed, 1 passed")
    assert "restore it from version control, or delete it and accept again" in said


@pytest.mark.long
def test_cell_without_environment_fails_its_jobs(project: Project) -> None:
    """Infra is no pass."""
    lock = project.path / "matrix" / "locks" / "jax0.6.2-py311.txt"
    lock.write_text("")
    code, said = run_pytest(project, "cases/fam/good.py", "--cell", "0.6.2")
    assert (code, summary(said)) == (1, "2 failed")
    assert "infra: " in said
    assert "expected '# jax-conformance lock 1'" in said


def test_duplicate_case_id_is_rejected(project: Project) -> None:
    """Results are stored by id: the second would replace the first."""
    project.write({"cases/fam/again.py": f"{HEAD}\n\n\n{ONE}"})
    code, said = run_pytest(project, "cases", "--cell", "0.6.2")
    assert code == pytest.ExitCode.INTERRUPTED
    assert "the id fam/one is also that of " in said
