"""`conformance run` compares with the previous run: changes since then, and the exit status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import CELL, GOOD, case

if TYPE_CHECKING:
    from tests.projects import Ending, Project


WRONG = GOOD.replace("reference=np.int32(3)", "reference=np.int32(4)")
FILE = "cases/fam/numbers.py"
RUN = ("run", "--matrix", "smoke", "--json", "-")

pytestmark = [pytest.mark.cell, pytest.mark.project({FILE: GOOD})]


def count_changes(ending: Ending, *kinds: str) -> list[Any]:
    """Return the number of changes of each kind."""
    since = ending.json["since"]
    return [len(since[kind]) for kind in kinds]


def test_run_lists_new_still_and_gone_root_causes(project: Project) -> None:
    """The first run is compared with none."""
    alone = project.run(*RUN).json
    assert alone["since"] is None
    assert "no earlier finished run of matrix smoke" in alone["not_compared"]
    assert project.run(*RUN, "--since", "none").json["not_compared"] == ""
    project.write({FILE: WRONG})
    came = project.run(*RUN)
    assert came.json["exit_reason"] == "1 root cause is unexpected"
    assert (came.code, count_changes(came, "new", "still", "gone")) == (1, [1, 0, 0])
    stayed = project.run(*RUN)
    assert (stayed.code, count_changes(stayed, "new", "still", "gone")) == (1, [0, 1, 0])
    (one,) = project.run(*RUN).json["since"]["still"]
    assert (one["nights"], one["run"]) == (3, came.json["run"])
    assert one["jobs"] == [{"case": "fam/two", "place": CELL}]
    project.write({FILE: GOOD})
    went = project.run(*RUN)
    assert (went.code, count_changes(went, "new", "still", "gone")) == (0, [0, 0, 1])
    lines = project.run("run", "--matrix", "smoke").out.splitlines()
    assert (
        f"since {went.json['run']} of {went.json['since']['started'][:10]}: nothing changed"
        in lines
    )


@pytest.mark.long
def test_run_lists_added_and_removed_cases(project: Project) -> None:
    """Relative to the previous run."""
    project.run(*RUN)
    body = "return Observed(np.float32(0.5))"
    project.write({"cases/fam/more.py": case(body, name="more")})
    assert count_changes(project.run(*RUN), "added", "removed") == [1, 0]
    (project.path / "cases" / "fam" / "more.py").unlink()
    assert count_changes(project.run(*RUN), "added", "removed") == [0, 1]


def test_run_is_compared_with_the_last_finished_run_of_its_matrix(project: Project) -> None:
    """A run of other cases or cells, or an unfinished one, must be named."""
    project.run("run", "fam/one", "--matrix", "smoke")
    project.run("run", "--cell", "0.6.2")
    assert project.run(*RUN).json["since"] is None
    unfinished = project.newest.path / "run.json"
    data = json.loads(unfinished.read_text())
    unfinished.write_text(json.dumps({**data, "finished": "", "exit": None}))
    assert project.run(*RUN).json["since"] is None
    assert project.run(*RUN, "--since", "none").json["since"] is None
    named = project.run(*RUN, "--since", unfinished.parent.name).json["since"]
    assert named["run"] == unfinished.parent.name
    elsewhere = project.run(*RUN, "--since", unfinished.parent).json["since"]
    assert elsewhere["run"] == unfinished.parent.name


def test_unknown_run_in_since_is_refused_before_any_job(project: Project) -> None:
    """Exit 2."""
    ending = project.run("run", "--since", "20260101-000000-000abcd")
    assert ending.code == 2
    assert ending.error.startswith("--since 20260101-000000-000abcd: no such run, expected its")
    assert project.runs == []


@pytest.mark.long
def test_fail_on_policy_decides_the_exit_status(project: Project) -> None:
    """The policy is stored with the run, so `report` has the same status."""
    project.run(*RUN)
    project.write({FILE: WRONG})
    assert project.run(*RUN, "--fail-on", "never").code == 0
    (old,) = project.run(*RUN, "--fail-on", "new").json["since"]["still"]
    ending = project.run(*RUN, "--fail-on", "new")
    assert (ending.code, ending.json["exit"]) == (0, 0)
    info = project.newest.read_run()
    assert (info.exit, info.request["fail_on"]) == (0, "new")
    assert project.run("report", "--json", "-").json["exit"] == 0
    assert project.run(*RUN).code == 1
    more = case("return Observed(np.int32(1), reference=np.int32(2))", name="more")
    project.write({"cases/fam/more.py": more})
    assert project.run(*RUN, "--fail-on", "new").code == 1
    assert old["verdict"] == "regressed"


def test_run_is_compared_with_the_last_run_of_the_store(project: Project) -> None:
    """Its directory may be deleted; a regression without a linked issue counts as new."""
    project.write({FILE: WRONG})
    first = project.run(*RUN).json["run"]
    project.run("history", "add", project.newest.path)
    (project.path / "reports" / "runs" / first).rename(project.path / "moved")
    stored = (*RUN, "--store", "reports/history.db", "--fail-on", "new")
    ending = project.run(*stored)
    assert (ending.code, count_changes(ending, "new", "still", "gone")) == (1, [0, 1, 0])
    assert ending.json["since"]["run"] == first
    (regression,) = project.run("history", "regressions", "--json", "-").json["regressions"]
    project.run("history", "link", regression["id"], "jax-ml/jax#1")
    assert project.run(*stored).code == 0
    assert project.run(*RUN, "--store", "nowhere.db").code == 1
    assert not (project.path / "nowhere.db").exists()


def test_unreadable_store_does_not_stop_a_run(project: Project) -> None:
    """A warning; the run is compared with the previous directory."""
    project.run(*RUN)
    ending = project.run(*RUN, "--store", "mysql://user:secret@host/db")
    assert ending.code == 0
    assert "not compared: store ...://" in ending.err
    assert "secret" not in ending.err + ending.out
    assert ending.json["since"]["new"] == []


def test_damaged_previous_run_does_not_stop_a_run(project: Project) -> None:
    """A warning; the age of a root cause restarts at the damaged run."""
    project.write({FILE: WRONG})
    project.run(*RUN)
    project.run(*RUN)
    (project.newest.path / "since.json").write_text("{")
    ending = project.run(*RUN)
    assert "since.json: expected the changes since another run" in ending.err
    (one,) = ending.json["since"]["still"]
    assert one["nights"] == 2
    (project.newest.path / "results.jsonl").write_text("nonsense\n")
    ending = project.run(*RUN)
    assert (ending.code, ending.json["since"]) == (1, None)
    assert "not compared: " in ending.err


def test_shards_are_compared_after_the_merge(project: Project) -> None:
    """With the last undivided or merged run; `merge` may have another policy."""
    project.write({FILE: WRONG})
    before = project.run(*RUN).json["run"]
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "--run", f"part-{number}", "--fail-on", "never")
        part = project.run(*RUN, *shard)
        assert (part.code, part.json["since"]) == (0, None)
    parts = ("merge", "part-1", "part-2", "--json", "-")
    merged = project.run(*parts)
    assert (merged.code, merged.json["since"]["run"]) == (0, before)
    again = project.run(*parts, "--fail-on", "new")
    assert (again.code, again.json["since"]["run"]) == (0, merged.json["run"])
    assert count_changes(again, "new", "still", "gone") == [0, 1, 0]
    assert project.run(*parts, "--fail-on", "unexpected").code == 1
