"""Shards come from elsewhere: nothing in one makes `merge` read or write outside its folders."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.written_runs import A, record, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.projects import Project

    Attack = Callable[[Path], object]

OUTSIDE = "a text outside of the shard"


@pytest.fixture
def project(project: Project) -> Project:
    """A project beside whose folder lies a shard of one job with one artifact."""
    run = write(project.path / "shard", record("f/a", A), request={"shard": "1/1"})
    name = run.blobs.put(b"content")
    _edit(run.path, lambda line: line["artifacts"].update(value=name))
    (project.path / "outside").write_text(OUTSIDE)
    return project


def _edit(shard: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = shard / "results.jsonl"
    line = json.loads(file.read_text())
    change(line)
    file.write_text(json.dumps(line) + "\n")


def _blob(shard: Path) -> Path:
    (file,) = (shard / "blobs").iterdir()
    return file


def _to_outside(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parents[len(file.parts) - 2 - file.parts.index("project")] / "outside")


def _into_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


ATTACKS: dict[str, tuple[Attack, str]] = {
    "name of an artifact": (
        lambda shard: _edit(shard, lambda line: line["artifacts"].update(value="../../evil.py")),
        "got '../../evil.py' as the name of an artifact",
    ),
    "absolute name": (
        lambda shard: _edit(shard, lambda line: line["artifacts"].update(value="/etc/passwd")),
        "got '/etc/passwd' as the name of an artifact",
    ),
    "linked blob": (lambda shard: _to_outside(_blob(shard)), "is a symbolic link"),
    "linked results": (lambda shard: _to_outside(shard / "results.jsonl"), "is a symbolic link"),
    "linked run": (lambda shard: _to_outside(shard / "run.json"), "is a symbolic link"),
    "pipe": (lambda shard: _into_pipe(_blob(shard)), "is no regular file"),
    "piped results": (lambda shard: _into_pipe(shard / "results.jsonl"), "is no regular file"),
    "forged content": (lambda shard: _blob(shard).write_bytes(b"forged"), "expected "),
    "id of a case": (
        lambda shard: _edit(shard, lambda line: line.update(case="../../evil")),
        "expected ids of a run",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_shard_is_one_error(project: Project, name: str) -> None:
    """Of exit status 2; nothing of it is in the merged run, and nothing lies beside it."""
    attack, said = ATTACKS[name]
    attack(project.path / "shard")
    before = sorted(project.path.parent.rglob("*"))
    ending = project.run("merge", "shard", "--run", "whole")
    assert ending.code == 2
    assert said in ending.error
    assert OUTSIDE not in ending.err
    beyond = [path for path in sorted(project.path.parent.rglob("*")) if path not in before]
    assert [path for path in beyond if not path.is_relative_to(project.path / "whole")] == []
    assert [path for path in beyond if path.is_file()] == []


def test_the_shard_as_it_was_is_merged(project: Project) -> None:
    """So that each attack is why the others are not."""
    ending = project.run("merge", "shard", "--run", "whole")
    assert (project.path / "whole" / "run.json").exists(), ending.err
