"""`conformance plan`, `run --shard` and `merge`: a run divided among runners, and put together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.loading import load
from tests.projects import case

if TYPE_CHECKING:
    from tests.projects import Ending, Project

    from .conftest import MakeProject

CASES = {
    f"cases/family/{name}.py": case(f"return Observed({number}.0)", name=name)
    for number, name in enumerate(("a", "b", "c", "d", "e"))
}
CASES["cases/family/e.py"] = case('raise ValueError("no such thing")', name="e")
CELLS = ("--cell", "0.6.1", "--cell", "0.6.2")


@pytest.fixture
def project(new_project: MakeProject) -> Project:
    """Five cases, of which one fails."""
    return new_project(CASES)


def told(ending: Ending) -> dict[str, Any]:
    """Return what a run says of itself but when, where and how long."""
    said = ending.json
    for record in said["results"]:
        for name in ("seconds", "max_rss_bytes", "cached", "artifacts"):
            record.pop(name)
    cells = [(cell["id"], cell["lock"]) for cell in said["cells"]]
    counts = [said[name] for name in ("exit", "counts", "results", "exclusions")]
    return {"cells": cells, "counts": counts}


@pytest.mark.cell
def test_put_together_they_are_the_run_undivided(project: Project) -> None:
    """The same records in the same order, the same exit status; parts stay as they were."""
    undivided = project.run("run", *CELLS, "--json", "-")
    for number in (1, 2, 3):
        part = project.run("run", *CELLS, "--shard", f"{number}/3", "--run-dir", f"part-{number}")
        assert part.code in {0, 1}
    merged = project.run("merge", "part-3", "part-1", "part-2", "--json", "-")
    assert merged.code == undivided.code == 1
    assert told(merged) == told(undivided)
    whole = load(project.newest)
    assert all(whole.blobs.get(name) for one in whole.records for name in one.artifacts.values())
    again = project.run("merge", "part-1", "part-2", "part-3", "--run-dir", "whole", "--json", "-")
    assert told(again) == told(undivided)


@pytest.mark.cell
def test_parts_are_about_as_long_as_one_another(project: Project) -> None:
    """By what was learned of a run: every runner has it with the checkout."""
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


@pytest.mark.cell
def test_the_job_matrix_of_a_workflow(project: Project) -> None:
    """In one line; each part with the labels of its runner, and what is said to `run`."""
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
def test_what_a_run_would_do(project: Project) -> None:
    """Its cells and jobs, how long it takes, what is left out, and who does what."""
    project.write({"cases/family/f.py": case("return Observed(1.0)", "probe(devices=99)", "f")})
    ending = project.run("plan", *CELLS, "--shards", "2")
    lines = ending.out.splitlines()
    assert lines[0].split("  ") == ["jax0.6.1-py311-cpu8", "5 jobs"]
    assert lines[2].startswith("10 jobs in 2 cells, about 50 s one after another")
    assert "left out: 2: needs 99 devices, the cell has 8" in lines
    assert lines[-2] == "shard 1/2  ubuntu-latest  5 jobs, 25 s: jax0.6.1-py311-cpu8"


@pytest.mark.cell
def test_a_runner_that_cannot_have_a_cell_loses_no_job(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own part of that cell says so, or is left out; the other runners' jobs stay theirs."""
    more = {f"cases/family/{name}.py": case("return Observed(1.0)", name=name) for name in "fgh"}
    old = case("return Observed(1.0)", 'probe(requires=["numpy<1"])', "a")
    project.write({**more, "cases/family/a.py": old})
    undivided = project.run("run", *CELLS, "--json", "-")
    parts = [("run", *CELLS, "--shard", f"{number}/2", "--run-dir", f"part-{number}")
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
def test_a_part_that_is_missing(project: Project) -> None:
    """It is said which; nothing is written."""
    project.run("run", "--cell", "0.6.2", "--shard", "2/3", "--run-dir", "part")
    ending = project.run("merge", "part", "--run-dir", "whole")
    assert ending.code == 2
    assert ending.error.startswith("shards 1/3, 3/3 missing")
    assert not (project.path / "whole").exists()


def test_a_runner_that_is_none(project: Project) -> None:
    """It is said how one is named."""
    ending = project.run("plan", "--cell", "0.6.2", "--runner", "gpus=h100")
    assert ending.code == 2
    assert ending.error.startswith("--runner gpus=h100: expected KIND=LABEL, of any, gpu or tpu")
