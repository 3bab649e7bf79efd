"""Truncated or edited files cost one job, and no other result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.projects import GOOD, SMOKE, case
from tests.workbench import make_test_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.projects import Project

    from .conftest import MakeProject

    Harm = Callable[[Path], object]

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"
CASES = {TOPIC: GOOD}


def _make_accepted_project(new_project: MakeProject) -> Project:
    project = new_project(CASES)
    project.run("run")
    project.run("accept")
    return project


def _replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


HARMS: dict[str, tuple[str, Harm, str]] = {
    "truncated toml": ("toml", lambda f: f.write_text(f.read_text()[:50]), "no TOML ("),
    "empty": ("toml", lambda f: f.write_text(""), "is empty, expected a golden file"),
    "cut at a line": (
        "toml",
        lambda f: f.write_text("".join(f.read_text().splitlines(keepends=True)[:2])),
        "holds no golden",
    ),
    "edited span": (
        "toml",
        lambda f: f.write_text(f.read_text().replace('= "value.txt"', '= "valve.txt"')),
        "names 'valve.txt'",
    ),
    "another case's": (
        "toml",
        lambda f: f.write_text(f.read_text().replace("fam/one", "fam/eno")),
        "case 'fam/eno', expected case 'fam/one'",
    ),
    "not text": ("toml", lambda f: f.write_bytes(b"\xff\xfe"), "no UTF-8"),
    "a folder": ("toml", _replace_by_folder, "cannot be read: is a directory"),
    "truncated content": ("value", lambda f: f.write_bytes(f.read_bytes()[:-2]), "hashes to"),
    "edited content": (
        "value",
        lambda f: f.write_bytes(f.read_bytes()[:-1] + b"\x01"),
        "; goldens are not edited by hand",
    ),
    "missing content": ("value", lambda f: f.unlink(), "is missing, expected the content a golden"),
    "content is a folder": ("value", _replace_by_folder, "is a directory"),
}


def _damage_golden(project: Project, name: str) -> tuple[Path, str]:
    kind, harm, words = HARMS[name]
    file = project.golden("one/spans.toml" if kind == "toml" else "one/value.txt")
    harm(file)
    return file, words


@pytest.mark.parametrize("name", HARMS)
def test_damaged_golden_is_infra_and_other_cases_are_judged(
    new_project: MakeProject, name: str
) -> None:
    """Exit 2 with the file, the problem and a remedy."""
    project = _make_accepted_project(new_project)
    file, words = _damage_golden(project, name)
    code, records = project.results()
    assert code == 2
    assert (records["one"].verdict, records["one"].conformance) == ("infra", "conforms")
    (reason,) = records["one"].reasons
    assert reason.startswith(f"{file}: ")
    assert words in reason
    assert "restore it from version control" in reason
    assert records["two"].verdict == "match"


@pytest.mark.parametrize("name", ["truncated content", "edited content", "missing content"])
def test_accept_repairs_damaged_golden_content(new_project: MakeProject, name: str) -> None:
    """The remedy that the message advises works."""
    project = _make_accepted_project(new_project)
    _damage_golden(project, name)
    assert project.run("run").code == 2
    assert project.run("accept", "fam/one").code == 0
    assert project.run("run").code == 0


def test_damaged_span_file_must_be_deleted_before_accept(new_project: MakeProject) -> None:
    """Accepting over it is refused; other cases can be accepted meanwhile."""
    project = _make_accepted_project(new_project)
    file, _ = _damage_golden(project, "truncated toml")
    project.run("run")
    ending = project.run("accept")
    assert ending.code == 2
    assert ending.error.startswith(f"{file}: no TOML")
    assert ending.error.endswith("or delete it and accept again")
    assert project.run("accept", "fam/two").code == 0
    file.unlink()
    assert project.run("accept").code == 0
    assert project.run("run", "--resume").code == 0


def test_regression_is_reported_despite_a_damaged_golden(new_project: MakeProject) -> None:
    """A deviation from the reference needs no golden: exit 1, with both reasons."""
    project = _make_accepted_project(new_project)
    _damage_golden(project, "truncated toml")
    project.write({TOPIC: GOOD.replace("reference=np.float32([1, 2])", "reference=0")})
    code, records = project.results()
    assert (code, records["one"].verdict) == (1, "regressed")
    assert "no TOML" in records["one"].reasons[-1]


def _results_file(project: Project) -> Path:
    return project.newest.path / "results.jsonl"


def test_resume_runs_the_job_of_a_truncated_last_line(new_project: MakeProject) -> None:
    """A killed run may leave half a line, which is no record and no error."""
    project = new_project(CASES)
    project.run("run")
    file = _results_file(project)
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert project.run("run", "--resume").code == 0
    assert len(file.read_bytes().splitlines()) == 2
    assert {r.case for r in project.newest.read_records()} == {"fam/one", "fam/two"}


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda line: line[:40], "input data was truncated"),
        (lambda line: b"banana", "json is malformed"),
        (lambda line: b"", "input data was truncated"),
        (lambda line: b'{"case": "\xff"}', "utf-8"),
        (lambda line: line.replace(b'"ok"', b'"fine"'), "invalid enum value 'fine'"),
        (lambda line: line.replace(b'"case":', b'"cause":'), "missing required field `case`"),
    ],
)
@pytest.mark.parametrize("command", [["run", "--resume"], ["accept"]])
def test_invalid_record_is_reported_with_its_line(
    new_project: MakeProject,
    command: list[str],
    edit: Callable[[bytes], bytes],
    words: str,
) -> None:
    """Exit 2 with file, line and a remedy; following the remedy completes the run."""
    project = new_project(CASES)
    project.run("run")
    file = _results_file(project)
    first, second = file.read_bytes().splitlines()
    file.write_bytes(edit(first) + b"\n" + second + b"\n")
    ending = project.run(*command)
    assert ending.code == 2
    assert ending.error.startswith(f"{file}:1: expected a record: ")
    assert words in ending.error
    assert ending.error.endswith("; delete the line to run its job again")
    file.write_bytes(second + b"\n")
    assert project.run("run", "--resume").code == 0
    assert len(project.newest.read_records()) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "\x00", '{"request": 3}', '{"request": {"cell": 3}}', "{}"]
)
@pytest.mark.parametrize("command", [["run", "--resume"], ["accept"]])
def test_invalid_run_json_exits_2(new_project: MakeProject, command: list[str], text: str) -> None:
    """The message has the file and a remedy; the results are not touched."""
    project = new_project(CASES)
    project.run("run")
    before = _results_file(project).read_bytes()
    file = project.newest.path / "run.json"
    file.write_text(text)
    ending = project.run(*command)
    assert ending.code == 2
    assert ending.error.startswith(f"{file}: ")
    assert ending.error.endswith("run again: unchanged jobs are taken from the cache")
    assert _results_file(project).read_bytes() == before


def _damage_blobs(folder: Path, how: str) -> None:
    for file in folder.iterdir():
        data = file.read_bytes()
        file.unlink()  # it may be a link to the cache's
        if how != "missing":
            file.write_bytes(data[:-1] if how == "truncated" else data[:-1] + b"\x7f")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["missing", "truncated", "edited"])
def test_resume_recreates_damaged_blobs(new_project: MakeProject, how: str) -> None:
    """Accept refuses their jobs and names the command."""
    project = _make_accepted_project(new_project)
    (project.path / TOPIC).write_text(GOOD + "\n# other\n")
    project.run("run")
    _damage_blobs(project.newest.path / "blobs", how)
    ending = project.run("accept")
    assert ending.code == 1
    assert "not accepted: fam/one on " in ending.out
    assert ending.out.count("; run it again: conformance run fam/") == 2
    assert project.run("run", "--resume").code == 0
    assert project.run("accept").code == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["missing", "truncated", "edited"])
def test_damaged_cache_entry_only_costs_another_run(
    new_project: MakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """Jobs with damaged blobs or entries run again, and are cached again."""
    cache = make_test_cache(tmp_path / "cache")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    project = new_project({TOPIC: case("return Observed(7, reference=7)")})
    project.run("run")
    _damage_blobs(cache / "blobs", how)
    code, records = project.results()
    assert (code, records["case"].cached) == (0, False)
    code, records = project.results()
    assert (code, records["case"].cached) == (0, True)
    kept = [cache / "results", cache / "settled"]
    for entry in [entry for folder in kept for entry in folder.rglob("*.json*")]:
        entry.write_bytes(b'{"case": "\xff' if how == "edited" else b"{")
    code, records = project.results()
    assert (code, records["case"].cached) == (0, False)


def test_run_json_describes_the_run(new_project: MakeProject) -> None:
    """Request, plan, cells with locks, versions and host, and the exit status."""
    project = new_project(CASES)
    project.run("run", "fam/one")
    data = json.loads((project.newest.path / "run.json").read_text())
    assert {"request", "plan", "cells", "versions", "host", "exclusions", "exit"} <= set(data)
    assert data["plan"] == [["fam/one", "jax0.6.2-py311-cpu8"]]


def test_resume_and_accept_work_from_another_folder(new_project: MakeProject) -> None:
    """Relative paths of the first command keep their meaning."""
    project = new_project({**CASES, "mine/fam/a.py": GOOD, "own.toml": SMOKE, "sub/x": ""})
    ended = project.run("run", "mine", "--matrix", "own.toml", "--run", "out")
    assert ended.code == 0
    below = type(project)(project.path / "sub", project.capsys)
    assert below.run("run", "--resume", "--run", "../out").code == 0
    assert below.run("accept", "--run", "../out").code == 0
    assert (project.path / "mine/fam/golden/a/one/spans.toml").exists()
