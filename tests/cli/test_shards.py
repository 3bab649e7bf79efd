"""`conformance plan`, `run --shard` and `merge`: a run split across runners."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import load_run
from conformance.model.outcome import ExitCode
from tests.engine.written_runs import A, write
from tests.engine.written_runs import record as record_of
from tests.failing import CALLS, fail_each_call_once
from tests.holders import another_writer
from tests.projects import CELL, ROOT, case

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Ending, Project


CASES = {
    f"cases/family/{name}.py": case(f"return Observed({number}.0)", name=name)
    for number, name in enumerate(("a", "b", "c", "d", "e"))
}
CASES["cases/family/e.py"] = case('raise ValueError("no such thing")', name="e")
CELLS = ("--cell", "0.6.1", "--cell", "0.6.2")


pytestmark = pytest.mark.project(CASES)
"""Five cases, of which one fails."""


def comparable_json(ending: Ending) -> dict[str, Any]:
    """Return the JSON of a run without times, places and cache state."""
    data = ending.json
    for record in data["results"]:
        for name in ("seconds", "max_rss_bytes", "cached", "artifacts"):
            record.pop(name)
    cells = [(cell["id"], cell["lock"]) for cell in data["cells"]]
    counts = [data[name] for name in ("exit", "counts", "results", "exclusions")]
    return {"cells": cells, "counts": counts}


@pytest.mark.cell
def test_merged_shards_equal_the_undivided_run(project: Project) -> None:
    """Same records in the same order, same exit status; the shards are not changed."""
    undivided = project.run("run", *CELLS, "--json", "-")
    for number in (1, 2, 3):
        part = project.run("run", *CELLS, "--shard", f"{number}/3", "--run", f"part-{number}")
        assert part.code in {0, 1}
    merged = project.run("merge", "part-3", "part-1", "part-2", "--json", "-")
    assert merged.code == undivided.code == 1
    assert comparable_json(merged) == comparable_json(undivided)
    whole = load_run(project.newest)
    assert all(whole.blobs.get(name) for one in whole.records for name in one.artifacts.values())
    again = project.run("merge", "part-1", "part-2", "part-3", "--run", "whole", "--json", "-")
    assert comparable_json(again) == comparable_json(undivided)


@pytest.mark.cell
def test_shards_are_balanced_by_learned_durations(project: Project) -> None:
    """The durations are in a file of the checkout, which every runner has."""
    (project.path / "matrix").mkdir(exist_ok=True)
    project.run("run", "--cell", "0.6.2")
    (run,) = project.runs
    results = run / "results.jsonl"
    records = [json.loads(line) for line in results.read_text().splitlines()]
    for record in records:
        record["seconds"]["job"] = 300.0 if record["case"] == "family/c" else 10.0
    results.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    ending = project.run(
        "plan", "--cell", "0.6.2", "--shards", "3", "--learn", run, "--format", "json"
    )
    assert [part["jobs"] for part in ending.json] == [2, 1, 2]
    part = project.run("run", "--cell", "0.6.2", "--shard", "2/3", "--json", "-")
    assert [record["case"] for record in part.json["results"]] == ["family/c"]


@pytest.mark.long
@pytest.mark.cell
def test_plan_learn_waits_for_another_writer(project: Project) -> None:
    """It adds its durations to those written meanwhile."""
    project.run("run", "family/a", "--cell", "0.6.2")
    (run,) = project.runs
    with another_writer(project.path / "matrix", 2) as released:
        assert project.run("plan", "--cell", "0.6.2", "--learn", run).code == 0
        assert released.is_set()


@pytest.mark.cell
def test_plan_github_prints_a_job_matrix(project: Project) -> None:
    """One line; each shard has the labels of its runner and the arguments of `run`."""
    cells = ("--cell", "0.6.2", "--cell", "0.6.2@gpu")
    ending = project.run(
        "plan", "family/?", *cells, "--shards", "2", "--runner", "gpu=self-hosted,h100",
        "--format", "github",
    )  # fmt: skip
    assert len(ending.out.splitlines()) == 1
    first, second = ending.json["include"]
    assert (first["runner"], second["runner"]) == ("ubuntu-latest", ["self-hosted", "h100"])
    assert first["arguments"] == "'family/?' --cell 0.6.2 --cell 0.6.2@gpu --shard 1/2"


@pytest.mark.cell
def test_plan_prints_cells_jobs_duration_and_shards(project: Project) -> None:
    """And the jobs that are left out, with the reason."""
    project.write({"cases/family/f.py": case("return Observed(1.0)", "probe(devices=99)", "f")})
    ending = project.run("plan", *CELLS, "--shards", "2")
    lines = ending.out.splitlines()
    assert lines[0].split("  ") == ["jax0.6.1-py311-cpu8", "5 jobs"]
    assert lines[2].startswith("10 jobs in 2 cells, about 50 s one after another")
    assert "left out: 2: needs 99 devices, the cell has 8" in lines
    assert lines[-2] == "shard 1/2  ubuntu-latest  5 jobs, 25 s: jax0.6.1-py311-cpu8"


@pytest.mark.long
@pytest.mark.cell
def test_shard_without_its_cell_does_not_lose_jobs_of_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own jobs are infra or left out."""
    more = {f"cases/family/{name}.py": case("return Observed(1.0)", name=name) for name in "fgh"}
    old = case("return Observed(1.0)", 'probe(requires=["numpy<1"])', "a")
    project.write({**more, "cases/family/a.py": old})
    undivided = project.run("run", *CELLS, "--json", "-")
    parts = [("run", *CELLS, "--shard", f"{number}/2", "--run", f"part-{number}")
             for number in (1, 2)]  # fmt: skip
    project.run(*parts[0])
    with monkeypatch.context() as there:
        there.setenv("CONFORMANCE_CACHE", str(project.path / "another"))
        there.setenv("CONFORMANCE_INDEX_URL", "http://127.0.0.1:9/index/")
        (project.path / "matrix" / "locks" / "jax0.6.2-py311.txt").rename(project.path / "kept")
        assert project.run(*parts[1]).code == 4
    merged = project.run("merge", "part-1", "part-2", "--json", "-")
    jobs = [[(one["case"], one["cell"]) for one in ending.json["results"]]
            for ending in (undivided, merged)]  # fmt: skip
    assert len(set(jobs[1])) == len(jobs[1])
    assert set(jobs[0]) <= set(jobs[1])
    assert {one["verdict"] for one in merged.json["results"]} >= {"infra", "new"}


@pytest.mark.cell
def test_merge_with_missing_shards_is_refused(project: Project) -> None:
    """The message lists them, and nothing is written."""
    project.run("run", "--cell", "0.6.2", "--shard", "2/3", "--run", "part")
    ending = project.run("merge", "part", "--run", "whole")
    assert ending.code == 2
    assert ending.error.startswith("shards 1/3, 3/3 missing")
    assert not (project.path / "whole").exists()


def test_invalid_runner_option_is_refused(project: Project) -> None:
    """The message has the syntax."""
    ending = project.run("plan", "--cell", "0.6.2", "--runner", "gpus=h100")
    assert ending.code == 2
    assert ending.error.startswith("--runner gpus=h100: expected KIND=LABEL, of any, gpu or tpu")


@pytest.mark.cell
@pytest.mark.parametrize("lines", [0, 1, 9])
def test_damaged_lock_is_reported_in_one_line(project: Project, lines: int) -> None:
    """A warning of `plan`, and infra in `run`."""
    name = "matrix/locks/jax0.6.2-py311.txt"
    text = "".join((ROOT / name).read_text().splitlines(keepends=True)[:lines])
    project.write({name: text})
    ending = project.run("plan", "--shards", "2", "--cell", "0.6.2")
    assert (ending.code, ending.err.count("\n")) == (0, 1)
    assert ending.error.startswith(f"{CELL}: {project.path / name}: ")
    assert "delete" in ending.error
    ending = project.run("run", "--cell", "0.6.2")
    assert ending.code == ExitCode.INFRA
    assert f"{project.path / name}: " in ending.out


def make_shard(folder: Path, number: int, values: tuple[bytes, ...]) -> Path:
    """Make the directory of one of two shards, with a job for each value."""
    names = [BlobStore(folder / "blobs").put(value) for value in values]
    jobs = [
        record_of(f"family/{number}{at}", A, artifacts={"value": name})
        for at, name in enumerate(names)
    ]
    return write(folder, *jobs, exit=0, request={"shard": f"{number}/2"}).path


@pytest.mark.parametrize("call", CALLS)
def test_io_error_while_merging_leaves_the_shards_unchanged(
    project: Project, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Each call fails once: one error line, and a merge into another folder works."""
    parts = [
        make_shard(project.path / f"part-{number}", number, values)
        for number, values in ((1, (b"one", b"two")), (2, (b"three",)))
    ]
    before = read_files(*parts)
    for nth, failing in enumerate(fail_each_call_once(monkeypatch, os, call)):
        ending = project.run("merge", *parts, "--run", f"whole{nth}")
        with failing.pause():
            assert read_files(*parts) == before
            if ending.code:
                assert ending.code in {ExitCode.USAGE, ExitCode.INFRA}
                assert "input/output error" in ending.error
                assert ending.err.count("\n") == 1, ending.err
                assert project.run("merge", *parts, "--run", f"again{nth}").code == 0
            name = f"{'again' if ending.code else 'whole'}{nth}"
            whole = load_run(RunDirectory(project.path / name))
            found = [whole.blobs.get(one.artifacts["value"]) for one in whole.records]
            assert found == [b"one", b"two", b"three"]


def read_files(*folders: Path) -> dict[Path, bytes]:
    """Return the files below some folders."""
    return {f: f.read_bytes() for one in folders for f in one.rglob("*") if f.is_file()}


def test_second_merge_into_the_same_folder_is_refused(project: Project) -> None:
    """While the first one writes."""
    part = write(project.path / "part", record_of("f/a", A, artifacts={}), request={"shard": "1/1"})
    with RunDirectory(project.path / "whole").lock():
        ending = project.run("merge", part.path, "--run", "whole")
    assert ending.code == ExitCode.USAGE
    assert "another run is writing to it" in ending.error
