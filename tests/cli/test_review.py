"""`conformance review` by flags: groups, decisions, written files and exported patches."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import CELL, HEAD, Project

from .reviewed import AFTER, TOPIC, changed_project, commit_all, reviewed, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeProject

__all__ = ["changed_project", "reviewed"]
pytestmark = pytest.mark.cell


def read_groups(project: Project, *arguments: str) -> dict[str, Any]:
    """Return the groups of the newest run, by the name of their first case."""
    found = project.run("review", *arguments, "--json", "-").json["groups"]
    return {group["cases"][0].partition("/")[2]: group for group in found}


def read_tree(folder: Path, below: str = "cases") -> dict[str, bytes]:
    """Return the files below a folder, except bytecode."""
    root = folder / below
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_review_groups_changes_with_their_evidence(reviewed: Project) -> None:
    """One group per change; ids do not depend on the selection."""
    before = read_tree(reviewed.path, ".")
    ending = reviewed.run("review", "--json", "-")
    data = ending.json
    assert (ending.code, data["exit"], data["pending"], data["outcome"]) == (1, 1, 5, None)
    found = read_groups(reviewed)
    assert {name: (g["kind"], g["verdict"], g["cases"]) for name, g in found.items()} == {
        "doubled[four]": ("ir", "match", ["fam/doubled[four]", "fam/doubled[eight]"]),
        "value": ("unexpected", "changed", ["fam/value"]),
        "wrong": ("unexpected", "regressed", ["fam/wrong"]),
        "breaks": ("unexpected", "regressed", ["fam/breaks"]),
        "mended": ("unexpected", "fixed", ["fam/mended"]),
    }
    evidence = {name: "\n".join(group["evidence"]) for name, group in found.items()}
    assert "in doubled[four]" not in evidence["value"]
    assert "jaxpr (warn):" in evidence["doubled[four]"]
    assert "    semantic" in evidence["doubled[four]"]
    assert "      + %add" in evidence["doubled[four]"]
    assert "of all elements at most 1 absolute, 0.5 relative" in evidence["value"]
    assert "comes from jax-ml/jax#1" in evidence["value"]
    assert "accept: refuses 1: it deviates" in evidence["wrong"]
    assert "\x1b" not in ending.out
    assert read_groups(reviewed, "fam/wrong") == {"wrong": found["wrong"]}
    assert read_groups(reviewed, "--cell", CELL) == found
    assert read_tree(reviewed.path, ".") == before
    assert reviewed.run("review", "fam/none").code == 3


def test_review_flags_write_goldens_and_deviations(reviewed: Project) -> None:
    """The next run has no unexpected job, and nothing is pending."""
    found = read_groups(reviewed)
    ids = {name: group["id"] for name, group in found.items()}
    accepted = reviewed.run("review", "--all", "--json", "-")
    assert accepted.code == 1
    assert sorted({e["case"] for e in accepted.json["outcome"]["goldens"]}) == [
        "fam/breaks", "fam/doubled[eight]", "fam/doubled[four]", "fam/mended", "fam/value",
    ]  # fmt: skip
    assert [g["cases"] for g in accepted.json["groups"]] == [["fam/mended"], ["fam/wrong"]]
    assert read_groups(reviewed)["mended"]["verdict"] == "stale"
    ended = read_groups(reviewed)["mended"]["id"]
    done = reviewed.run("review", "--deviation", ended, "--reason", "it works")
    assert 'deviation("jax<0.6.2", error="ValueError")' in (reviewed.path / TOPIC).read_text()
    assert done.code == 1
    last = reviewed.run(
        "review", "--deviation", ids["wrong"], "--reason", "computes 3", "--issue", "jax-ml/jax#2"
    )
    assert (last.code, last.out.splitlines()[-1][:18]) == (0, "nothing is pending")
    text = (reviewed.path / TOPIC).read_text()
    assert '            outcome="ok",\n' in text
    assert '            reason="computes 3",\n            issue="jax-ml/jax#2",\n' in text
    code, records = reviewed.results()
    assert (code, records["wrong"].verdict) == (0, "known")
    assert reviewed.run("review").code == 0


@pytest.mark.long
def test_decisions_of_concurrent_reviewers_are_all_stored(reviewed: Project) -> None:
    """Each process adds its decision to those stored meanwhile."""
    ids = [group["id"] for group in read_groups(reviewed).values()]
    reviewers = [
        reviewed.start("review", "--reject", one, "--reason", f"because {one}") for one in ids
    ]
    for reviewer in reviewers:
        _, errors = reviewer.communicate()
        assert (reviewer.returncode in {0, 1}, errors) == (True, "")
    reasons = {group["decision"]["reason"] for group in read_groups(reviewed).values()}
    assert reasons == {f"because {one}" for one in ids}


def test_rejected_group_reappears_in_the_next_run(reviewed: Project) -> None:
    """With the reason; in the reviewed run it counts as decided."""
    found = read_groups(reviewed)
    ids = [group["id"] for group in found.values()]
    flags = [flag for one in ids for flag in ("--reject", one[:8])]
    before = read_tree(reviewed.path)
    assert reviewed.run("review", *flags, "--reason", "bugs of ours").code == 0
    assert read_tree(reviewed.path) == before
    decision = read_groups(reviewed)["value"]["decision"]
    assert (decision["reason"], decision["by"]) == ("bugs of ours", "Ann <ann@x>")
    reviewed.run("run", "--no-report")
    again = read_groups(reviewed)
    assert {g["id"] for g in again.values()} == set(ids)
    assert "Ann <ann@x>" in "\n".join(again["value"]["evidence"])
    assert reviewed.run("review").code == 1


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--accept", "{wrong}"], "no deviation declares that; declare a deviation, or reject it"),
        (["--deviation", "{value}", "--reason", "x"], "no deviation: it conforms"),
        (["--reject", "{value}"], "a reject needs a reason, got none"),
        (["--deviation", "{wrong}", "--reason", "x", "--range", "<0.6"], "would still be "),
        (["--deviation", "{wrong}", "--reason", "x", "--match", "nope"], "would still be "),
        (["--deviation", "{wrong}", "--reason", "x", "--range", "new"], "expected a specifier"),
        (["--accept", "zz"], "group 'zz': no group has this id; expected an id, or"),
        (["--accept", "{value}", "--reject", "{value}", "--reason", "x"], "is named twice"),
        (["--export", "out.patch"], "no decision changes a golden or a case file"),
    ],
)  # fmt: skip
def test_invalid_decisions_are_refused(reviewed: Project, flags: list[str], words: str) -> None:
    """Exit 2, and no decision is stored."""
    ids = {name: group["id"] for name, group in read_groups(reviewed).items()}
    before = read_tree(reviewed.path)
    named = [ids[flag.strip("{}")] if "{" in flag else flag for flag in flags]
    ending = reviewed.run("review", *named)
    assert ending.code == 2
    assert words in ending.error
    assert read_tree(reviewed.path) == before
    assert not (reviewed.newest.path / "review.json").exists()


def test_review_dry_run_writes_nothing(reviewed: Project) -> None:
    """It prints the changes."""
    before = read_tree(reviewed.path, ".")
    ending = reviewed.run("review", "--all", "--dry-run")
    assert "no golden and no case file is written" in ending.out
    assert "goldens: 0 added, 5 changed, 0 extended, 0 unchanged" in ending.out
    assert read_tree(reviewed.path, ".") == before


def test_exported_patches_equal_writing_in_place(
    reviewed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exporting also works in CI; `git am` in a clone gives the same files."""
    ids = {name: group["id"] for name, group in read_groups(reviewed).items()}
    flags = ["--deviation", ids["wrong"], "--accept", ids["value"], "--accept", ids["breaks"]]
    flags += ["--accept", ids["doubled[four]"], "--reason", "as meant", "--by", "Bob <bob@x>"]
    before = read_tree(reviewed.path)
    monkeypatch.setenv("CI", "true")
    refused = reviewed.run("review", *flags)
    assert (refused.code, refused.error[:32]) == (2, "goldens are never written in CI ")
    patch, body = tmp_path / "review.patch", tmp_path / "body.md"
    exported = reviewed.run("review", *flags, "--export", patch, "--body", body)
    assert exported.code == 1  # what is fixed is not decided
    assert read_tree(reviewed.path) == before
    assert run_program(reviewed.path, "git", "status", "--porcelain") == ""
    clone = tmp_path / "clone"
    run_program(tmp_path, "git", "clone", "-q", str(reviewed.path), str(clone))
    who = ("-c", "user.name=Z", "-c", "user.email=z@x")
    done = subprocess.run(
        ["git", *who, "am", "-q", str(patch)], cwd=clone, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.delenv("CI")
    assert reviewed.run("review", *flags).code == 1
    assert read_tree(clone) == read_tree(reviewed.path) != before
    commits = run_program(clone, "git", "log", "-2", "--format=%s", "--name-only").split("\n\n")
    golden, fix = (
        commits[0].splitlines()[0],
        run_program(clone, "git", "log", "-1", "--skip=1", "--format=%s"),
    )
    assert golden.startswith("golden: fam/")
    assert fix.startswith("fix: deviations of fam/wrong")
    names = run_program(clone, "git", "show", "--format=", "--name-only", "HEAD").split()
    assert all("/golden/" in name for name in names)
    text = body.read_text()
    assert "3 accepted, 1 declared" in text
    assert "- why: `as meant`" in text
    assert "- decided by `Bob <bob@x>`" in text
    assert "\x1b" not in text


def test_export_refuses_uncommitted_goldens(reviewed: Project, tmp_path: Path) -> None:
    """The message names the file, and no patch is written."""
    golden = reviewed.path / "cases/fam/golden/topic/value/spans.toml"
    golden.write_text(golden.read_text() + "# edited\n")
    ending = reviewed.run("review", "--all", "--export", tmp_path / "x.patch")
    assert ending.code == 2
    assert "spans.toml is not as in the last commit" in ending.error
    assert not (tmp_path / "x.patch").exists()


def test_review_leaves_out_cases_edited_after_the_run(reviewed: Project) -> None:
    """They are listed as not judged."""
    reviewed.write({"cases/fam/more.py": HEAD})
    reviewed.write({TOPIC: f"{AFTER}\n# edited\n"})
    ending = reviewed.run("review")
    assert ending.code == 1
    assert "not judged: fam/doubled[four], fam/doubled[eight], fam/value and 3 more" in ending.err


def test_review_shows_the_evidence_of_triage(reviewed: Project) -> None:
    """First bad release, culprit and reproduction; a broken evidence file is an error."""
    identity = read_groups(reviewed)["breaks"]["id"]
    found = {
        "cause": identity, "case": "fam/breaks", "cell": CELL, "last_good": "0.6.1",
        "first_bad": "0.6.2", "confirmed": True, "repro": "repro/breaks.py", "command": "uv run x",
        "culprits": [{"package": "jaxlib", "before": "0.6.1", "after": "0.6.2"}],
    }  # fmt: skip
    file = reviewed.newest.path / "evidence.json"
    file.write_text(json.dumps([found]))
    group = read_groups(reviewed)["breaks"]
    assert group["found_out"]["first_bad"] == "0.6.2"
    text = "\n".join(group["evidence"])
    assert "first bad 0.6.2 (last good 0.6.1), confirmed" in text
    assert "culprit jaxlib 0.6.1 -> 0.6.2" in text
    file.write_text("{")
    assert "evidence.json: expected what was found out" in reviewed.run("review").error


def test_development_builds_never_change_goldens(reviewed: Project) -> None:
    """Neither by accept nor by review; a deviation can be declared."""
    run = reviewed.newest.path
    info = json.loads((run / "run.json").read_text())
    (cell,) = info["cells"]
    night, path = "0.12.1.dev20261122", "path-venv-1a2b3c4d-py311-cpu8"
    cell["versions"] |= {"jax": night, "jaxlib": night}
    cell["id"] = path
    info["plan"] = [[case, path] for case, _ in info["plan"]]
    (run / "run.json").write_text(json.dumps(info))
    results = (run / "results.jsonl").read_text().replace(CELL, path)
    (run / "results.jsonl").write_text(results)
    before = read_tree(reviewed.path)
    ending = reviewed.run("accept")
    assert ending.code == 1
    assert ending.out.count(f"jax {night} is no release: what a nightly or a develop") == 4
    assert reviewed.run("review", "--all").code == 1
    assert read_tree(reviewed.path) == before
    found = read_groups(reviewed)
    refused = reviewed.run("review", "--accept", found["value"]["id"])
    assert "is never golden" in refused.error
    reviewed.run("review", "--deviation", found["breaks"]["id"], "--reason", "new")
    after = read_tree(reviewed.path)
    assert {name for name in after if after[name] != before.get(name)} == {"fam/topic.py"}
    assert '"jax>=0.12.1"' in (reviewed.path / TOPIC).read_text()


def test_merged_run_has_the_groups_of_the_undivided_run(reviewed: Project) -> None:
    """With the same ids."""
    ids = {group["id"] for group in read_groups(reviewed).values()}
    for number in (1, 2):
        reviewed.run("run", "--shard", f"{number}/2", "--run", f"part{number}", "--no-report")
    assert reviewed.run("merge", "part1", "part2", "--run", "whole").code == 1
    assert {g["id"] for g in read_groups(reviewed, "--run", "whole").values()} == ids


def test_review_restores_a_missing_golden(reviewed: Project) -> None:
    """Its case is pending, and accepting writes the file again."""
    commit_all(reviewed.path)
    reviewed.run("review", "--all")
    before = read_tree(reviewed.path)
    lost = reviewed.path / "cases/fam/golden/topic/value/value.txt"
    lost.unlink()
    assert "is missing" in read_groups(reviewed)["value"]["title"]
    reviewed.run("review", "--all")
    assert read_tree(reviewed.path) == before


def test_review_without_a_run_exits_2(new_project: MakeProject) -> None:
    """A new case is pending until it is accepted, and again after its golden is deleted."""
    project = new_project({TOPIC: f"{HEAD}\n\n\n@probe()\ndef one(env):\n    return 1\n"})
    assert project.run("review").code == 2
    project.run("run", "--no-report")
    (group,) = read_groups(project).values()
    assert (group["kind"], group["title"]) == (
        "new", "no golden yet: fam/topic, no reference vouches for it",
    )  # fmt: skip
    assert project.run("review", "--all").code == 0
    shutil.rmtree(project.path / "cases" / "fam" / "golden")
    assert project.run("review").code == 1
