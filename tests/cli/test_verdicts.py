"""Each verdict from case file to exit status, and the JSON of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL, GOOD, case

if TYPE_CHECKING:
    from .conftest import MakeProject

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"
DECLARED = "probe(deviations=[deviation('<0.7', error='ValueError', match='no good', reason='x')])"
FAILS = case("raise ValueError('no good')", DECLARED)
WORKS = case("return Observed(1, reference=1)", DECLARED)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("source", "verdict", "code"),
    [
        (GOOD, "new", 0),
        (case("return 1"), "new", 1),
        (FAILS, "known", 0),
        (WORKS, "fixed", 1),
        (case("return Observed(1, reference=2)"), "regressed", 1),
        (case("import os\nos.kill(os.getpid(), 11)"), "crashed", 1),
        (case("import time\ntime.sleep(9)", "probe(timeout=0.2)"), "timed_out", 1),
        (case("import time\nreturn time.time_ns() // 1000"), "flaky", 1),
        (case("env.unsupported('no such thing here')"), "excluded", 3),
    ],
)
def test_verdict_and_exit_status_of_a_case(
    new_project: MakeProject, source: str, verdict: str, code: int
) -> None:
    """0 nothing unexpected, 1 unexpected, 3 nothing ran."""
    project = new_project({TOPIC: source})
    got, records = project.results()
    assert ({record.verdict for record in records.values()}, got) == ({verdict}, code)


def test_a_deviation_that_ends_is_fixed_and_then_stale(new_project: MakeProject) -> None:
    """Fixed names the declaration to end; if it remains after accepting, it is stale."""
    project = new_project({TOPIC: WORKS})
    _, records = project.results()
    assert f"end its range <0.7 in {project.path / TOPIC}:" in records["case"].reasons[0]
    assert project.run("accept").code == 0
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "stale")
    assert "is stale" in records["case"].reasons[0]


@pytest.mark.long
def test_flaky_case_is_neither_changed_nor_accepted(new_project: MakeProject) -> None:
    """Also after resuming the run."""
    project = new_project({TOPIC: case("return 1")})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: case("import time\nreturn time.time_ns()")})
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "flaky")
    assert project.run("accept").code == 1
    assert project.run("run", "--resume").code == 1
    code, records = project.results()
    assert (code, records["case"].verdict) == (1, "flaky")


def test_run_json_has_the_documented_keys(new_project: MakeProject) -> None:
    """The text report goes to standard error."""
    project = new_project({TOPIC: GOOD, "cases/fam/big.py": case("return 1", "probe(devices=9)")})
    ending = project.run("run", "--json", "-")
    data = ending.json
    assert {"run", "exit", "counts", "cells", "results", "exclusions", "irs"} <= set(data)
    assert (data["run"], data["exit"], data["counts"]) == (project.newest.id, 0, {"new": 2})
    (cell,) = data["cells"]
    assert sorted(cell) == ["id", "identity", "lock"]
    assert (cell["id"], cell["identity"]["versions"]["jax"]) == (CELL, "0.6.2")
    assert data["exclusions"] == [
        {"case": "fam/case", "cell": CELL, "reason": "needs 9 devices, the cell has 8"}
    ]
    assert "results in" in ending.err


RECORD = (
    *("case", "cell", "case_hash", "cell_hash", "outcome", "stage", "error", "artifacts", "facts"),
    *("conformance", "verdict", "reasons", "seconds", "attempts", "max_rss_bytes"),
)


def test_record_json_has_the_documented_fields(new_project: MakeProject) -> None:
    """Also if the JSON is written to a file."""
    project = new_project({TOPIC: GOOD})
    file = project.path / "out" / "result.json"
    file.parent.mkdir()
    assert project.run("run", "--json", file).out.count("\n") > 3
    data = project.run("run", "--json", "-").json
    assert set(RECORD) <= set(data["results"][0])
    assert file.read_bytes().startswith(b"{")


@pytest.mark.usefixtures("missing_interpreter_fails")  # doctor reports it
@pytest.mark.parametrize("command", ["run", "list", "matrix", "doctor"])
def test_json_option_prints_only_json(new_project: MakeProject, command: str) -> None:
    """Nothing else on standard output."""
    project = new_project({TOPIC: GOOD})
    options = {"run": ["--json", "-"], "matrix": ["smoke", "--json"]}
    assert project.run(command, *options.get(command, ["--json"])).json


def test_unwritable_json_file_is_refused_before_the_run(
    new_project: MakeProject,
) -> None:
    """Not after an hour of jobs."""
    project = new_project({TOPIC: GOOD})
    ending = project.run("run", "--json", "nowhere/result.json")
    assert (ending.code, ending.error) == (
        2,
        "--json nowhere/result.json: cannot be written: no such file or directory",
    )
    assert project.runs == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--shard", "3/2"], "--shard 3/2: expected I/N with 1 <= I <= N, e.g. 1/4"),
        (["run", "--shard", "x"], "--shard x: expected I/N"),
        (["run", "--resume", "fam"], "--resume continues a run as it was asked for"),
        (["run", "--jobs", "0"], "0 is not in the range"),
        (["run", "--nonsense"], "No such option"),
        (["rum"], "no command 'rum' (did you mean 'run'?)"),
        (["run", "--run", "cases"], "cases is not empty; continue it with --resume, or name"),
        (["run", "--resume"], "runs holds no run, expected one; `conformance run` makes it"),
        (["run", "--resume", "--run", "none"], "none/run.json: cannot be read: no such file"),
        (["accept", "--run", "none"], "none: no such run"),
    ],
)
def test_wrong_usage_exits_2(new_project: MakeProject, arguments: list[str], words: str) -> None:
    """With the value and the expectation."""
    ending = new_project({TOPIC: GOOD}).run(*arguments)
    assert ending.code == 2
    assert words in ending.err
    assert "Traceback" not in ending.err


def test_shard_without_jobs_exits_3(new_project: MakeProject) -> None:
    """A plan of two jobs has no third shard."""
    project = new_project({TOPIC: GOOD})
    ending = project.run("run", "--shard", "3/3")
    assert (ending.code, ending.error) == (3, "shard 3/3 of 2 jobs has none")
    assert project.run("run", "--shard", "2/2").code == 0
