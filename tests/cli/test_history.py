"""`conformance history`: add, list, show, link and prune runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine.default import DefaultDialect

from conformance.model.outcome import ExitCode, Outcome, Verdict
from conformance.model.run import RunCell
from tests.engine.written_runs import A, record, write
from tests.failing import CALLS, fail_each_call_once, input_output_error

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


NIGHTLY = "jax0.13.0.dev20260501-py312-cpu8"
SECRET = "s3cret-word"  # noqa: S105 - made up
REASON = "out[0] differs in 12 elements"


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without cases; tests write its runs directly."""
    monkeypatch.delenv("CONFORMANCE_STORE", raising=False)
    return project


def make_run(project: Project, day: int, verdict: Verdict = Verdict.MATCH, **info: Any) -> Path:
    """Make a run of two jobs that started some days ago."""
    began = datetime.now(UTC) - timedelta(days=40 - day)
    times = {"started": began.isoformat(), "host": {"cpus": 2}, "versions": {"python": "3.11"}}
    attempts = info.pop("attempts", 1)
    return write(
        project.path / "reports" / "runs" / f"night-{day}",
        record("f/a", A, verdict, reasons=(REASON,), attempts=attempts),
        record("f/a", NIGHTLY),
        cells=(
            RunCell(id=A, versions={"jax": "0.5.3"}),
            RunCell(id=NIGHTLY, versions={"jax": "0.13.0.dev20260501"}),
        ),
        **{**times, **info},
    ).path


def test_history_adds_and_lists_runs(project: Project) -> None:
    """By default in the database of the project; a stored run is reported as such."""
    first = make_run(project, 1)
    ending = project.run("history", "add", first)
    assert (ending.code, ending.out, ending.err) == (0, "night-1: added as 1\n", "")
    make_run(project, 2, Verdict.REGRESSED)
    ending = project.run("history", "add", "reports/runs")
    assert ending.out == "night-1: already stored\nnight-2: added as 2\n"
    assert (project.path / "reports" / "history.db").is_file()
    lines = project.run("history", "runs").out.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert lines[1].endswith("night-2  smoke  1 unexpected of 2 (1 match, 1 regressed)")
    runs = project.run("history", "runs", "--json", "-").json
    assert [(run["number"], run["name"]) for run in runs] == [(1, "night-1"), (2, "night-2")]
    assert runs[0]["cells"]["nightly-cpu8"] == [NIGHTLY, "0.13.0.dev20260501"]
    assert (runs[0]["host"], runs[0]["versions"]) == ({"cpus": 2}, {"python": "3.11"})


def test_history_add_skips_unfinished_and_unreadable_runs(project: Project) -> None:
    """They are reported with exit status 2, and the others are added."""
    make_run(project, 1)
    half = make_run(project, 2, finished="", exit=None)
    broken = make_run(project, 3)
    (broken / "run.json").write_text("{")
    ending = project.run("history", "add", "reports/runs")
    assert (ending.code, ending.out) == (ExitCode.USAGE, "night-1: added as 1\n")
    lines = ending.err.splitlines()
    assert len(lines) == 2
    assert "night-3" in lines[0]
    assert lines[1].endswith(
        "the run did not end, expected one that did; "
        f"conformance run --resume --run {half.relative_to(project.path)}"
    )
    ending = project.run("history", "add", half)
    assert (ending.code, ending.out) == (ExitCode.NOTHING, "")
    assert "did not end" in ending.error


def test_history_shows_the_verdicts_of_a_case_by_cell(project: Project) -> None:
    """With or without the word `show`."""
    for day, verdict in enumerate((Verdict.MATCH, Verdict.MATCH, Verdict.REGRESSED), 1):
        make_run(project, day, verdict)
    project.run("history", "add", "reports/runs")
    ending = project.run("history", "f/a")
    assert ending.out.splitlines() == [
        A,
        "         1..2  match",
        f"            3  regressed: {REASON}",
        "nightly-cpu8",
        "         1..3  match",
    ]
    assert project.run("history", "show", "f/a").out == ending.out
    data = project.run("history", "f/a", "--json", "-").json
    assert data["case"] == "f/a"
    assert [(s["first"], s["last"], s["runs"]) for s in data["places"][A]] == [(1, 2, 2), (3, 3, 1)]
    assert data["places"][A][1]["reason"] == REASON
    ending = project.run("history", "f/none")
    assert ending.code == ExitCode.NOTHING
    assert ending.error.startswith("no run that was added has case f/none")


def test_regression_is_new_confirmed_known_and_fixed(project: Project) -> None:
    """Linking an issue makes it known; the events have the runs."""
    for day, verdict in enumerate((Verdict.MATCH, Verdict.REGRESSED, Verdict.REGRESSED), 1):
        make_run(project, day, verdict)
        project.run("history", "add", "reports/runs")
    first, second = project.run("history", "regressions").out.splitlines()
    standing, number, rest = first.split(maxsplit=2)
    assert (standing, rest) == ("confirmed", "f/a: regressed since run 2, last seen in 3")
    assert second.strip() == f"{A}: {REASON}"
    linked = project.run("history", "link", number[:6], "jax-ml/jax#1")
    assert linked.out.startswith(f"known      {number}")
    assert linked.out.splitlines()[0].endswith("last seen in 3, jax-ml/jax#1")
    make_run(project, 4)
    project.run("history", "add", "reports/runs")
    assert project.run("history", "regressions").out == "nothing is open\n"
    assert "fixed in 4, jax-ml/jax#1" in project.run("history", "regressions", "--all").out
    data = project.run("history", "regressions", "--all", "--json", "-").json
    (regression,) = data["regressions"]
    assert (regression["standing"], regression["verdict"], regression["places"]) == (
        "fixed",
        "regressed",
        [A],
    )
    assert [(e["kind"], e["run"]) for e in data["events"]] == [
        ("new", 2), ("confirmed", 3), ("fixed", 4),
    ]  # fmt: skip
    assert project.run("history", "link", number, "--remove").out.startswith("fixed")
    both = project.run("history", "link", number, "o/r#1", "--remove")
    assert (both.code, both.error) == (2, "expected either an issue or --remove")


def test_regression_of_a_repeated_job_is_confirmed_at_once(project: Project) -> None:
    """Several attempts in one run are enough."""
    make_run(project, 1, Verdict.REGRESSED, attempts=2)
    project.run("history", "add", "reports/runs")
    assert project.run("history", "regressions").out.startswith("confirmed")


def test_history_prune_keeps_the_state_of_old_runs(project: Project) -> None:
    """Regressions that started in a removed run stay confirmed."""
    make_run(project, 1, Verdict.REGRESSED)
    make_run(project, 35, Verdict.REGRESSED)
    project.run("history", "add", "reports/runs")
    ending = project.run("history", "prune", "--keep-days", "30")
    assert ending.out == "removed 1 run, 0 jobs, 0 changes\n"
    assert len(project.run("history", "runs").out.splitlines()) == 1
    assert "confirmed" in project.run("history", "regressions").out


def test_store_option_overrides_the_environment_variable(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both override the database of the project."""
    run = make_run(project, 1)
    one, other = tmp_path / "deep" / "one.db", tmp_path / "other.db"
    monkeypatch.setenv("CONFORMANCE_STORE", str(other))
    assert project.run("history", "add", run, "--store", one).code == 0
    assert (one.is_file(), other.exists()) == (True, False)
    assert project.run("history", "runs").out.startswith("no run was added yet")
    assert other.is_file()
    assert not (project.path / "reports" / "history.db").exists()


@pytest.mark.parametrize(
    ("store", "code"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1/nights", ExitCode.INFRA),
        (f"mysql://me:{SECRET}@127.0.0.1/nights", ExitCode.USAGE),
    ],
)
def test_password_in_the_store_address_is_never_printed(
    project: Project, monkeypatch: pytest.MonkeyPatch, store: str, code: int
) -> None:
    """Neither from the option nor from the environment variable."""
    ending = project.run("history", "runs", "--store", store)
    assert (ending.code, ending.out) == (code, "")
    assert SECRET not in ending.err
    monkeypatch.setenv("CONFORMANCE_STORE", store)
    for arguments in (["runs"], ["runs", "--help"], ["runs", "--unknown"]):
        ending = project.run("history", *arguments)
        assert SECRET not in ending.out + ending.err


def test_damaged_store_is_repaired_with_a_warning(project: Project) -> None:
    """The warning is on standard error, so that standard output stays JSON."""
    make_run(project, 1)
    project.run("history", "add", "reports/runs")
    file = project.path / "reports" / "history.db"
    file.write_bytes(file.read_bytes()[:5000])
    ending = project.run("history", "runs", "--json", "-")
    assert len(json.loads(ending.out)) == 1
    assert ending.error.startswith(f"{file}: damaged: ")


def test_only_history_and_notify_import_sqlalchemy() -> None:
    """Importing it takes time that other commands must not spend."""
    code = (
        "import importlib, sys\n"
        "from conformance.cli.commands import COMMANDS\n"
        "others = COMMANDS.keys() - {'history', 'notify'}\n"
        "for name in others: importlib.import_module(COMMANDS[name].module)\n"
        "print({'sqlalchemy', 'alembic'} & sys.modules.keys() or '')\n"
        "import conformance.cli.history\n"
        "print('sqlalchemy' in sys.modules, 'alembic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "True False"]


def test_infra_outcomes_are_no_regressions(project: Project) -> None:
    """Such as an environment that could not be provisioned."""
    run = write(
        project.path / "reports" / "runs" / "night",
        record("f/a", A, Verdict.INFRA, outcome=Outcome.INFRA),
    )
    project.run("history", "add", run.path)
    assert project.run("history", "regressions", "--all").out == "nothing is open\n"


def make_sqlite_io_error() -> sqlite3.OperationalError:
    """Return the error that SQLite raises on a broken disk."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


FAULTS = (
    *((os, call, input_output_error) for call in CALLS),
    *((DefaultDialect, call, make_sqlite_io_error)
      for call in ("do_execute", "do_executemany", "do_commit")),
)  # fmt: skip


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("owner", "call", "error"), FAULTS, ids=[name for _, name, _ in FAULTS])
def test_io_error_while_adding_loses_no_stored_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, owner: Any, call: str, error: Any
) -> None:
    """Each call and statement fails once: one error line, and the next add works."""
    first, second = make_run(project, 1), make_run(project, 2, Verdict.REGRESSED)
    for nth, failing in enumerate(fail_each_call_once(monkeypatch, owner, call, error)):
        store = ("--store", f"history{nth}.db")
        with failing.pause():
            assert project.run("history", "add", first, *store).code == 0
        ending = project.run("history", "add", second, *store)
        with failing.pause():
            if ending.code:
                assert ending.code in {ExitCode.USAGE, ExitCode.INFRA}
                assert "input/output error" in ending.error
                assert ending.err.count("\n") == 1, ending.err
            assert list_run_names(project, *store) in (["night-1"], ["night-1", "night-2"])
            assert project.run("history", "add", second, *store).code == 0
            assert list_run_names(project, *store) == ["night-1", "night-2"]


def list_run_names(project: Project, *store: str) -> list[str]:
    """Return the names of the runs in a store."""
    return [run["name"] for run in project.run("history", "runs", "--json", *store).json]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("call", ["do_execute", "do_executemany", "do_commit"])
def test_failing_prune_removes_all_old_runs_or_none(
    project: Project, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The remaining runs are complete."""
    first, second = make_run(project, 1), make_run(project, 30, Verdict.REGRESSED)
    for nth, failing in enumerate(
        fail_each_call_once(monkeypatch, DefaultDialect, call, make_sqlite_io_error)
    ):
        store = ("--store", f"history{nth}.db")
        with failing.pause():
            assert project.run("history", "add", first, second, *store).code == 0
        ending = project.run("history", "prune", "--keep-days", "20", *store)
        with failing.pause():
            assert ending.code in {ExitCode.OK, ExitCode.INFRA}
            assert list_run_names(project, *store) in (["night-1", "night-30"], ["night-30"])
            assert project.run("history", "prune", "--keep-days", "20", *store).code == 0
            assert list_run_names(project, *store) == ["night-30"]
            assert project.run("history", "f/a", *store).code == 0
