"""A project with committed goldens, and a run in which every case differs from its golden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.projects import ROOT, SMOKE, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "cases/fam/topic.py"
BEFORE = '''\
"""Cases."""

import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program


@program(source="jax-ml/jax#27664", params={"four": {"n": 4}, "eight": {"n": 8}})
def doubled(env, n):
    """Twice as much."""
    return Program(lambda x: x * 2.0, args=(np.ones(n, np.float32),))


@probe(source="jax-ml/jax#1")
def value(env):
    """Nothing vouches for it."""
    return np.float32([1, 2])


@probe()
def wrong(env):
    return Observed(np.float32([1, 2]), reference=np.float32([1, 2]))


@probe()
def breaks(env):
    return Observed(np.int32(1), reference=np.int32(1))


@probe(
    deviations=[
        deviation("jax<0.7", error="ValueError"),
    ],
)
def mended(env):
    raise ValueError("not yet")
'''
ONE = "Observed(np.int32(1), reference=np.int32(1))"
AFTER = (
    BEFORE.replace("x * 2.0", "x + x")
    .replace("return np.float32([1, 2])", "return np.float32([1, 3])")
    .replace("Observed(np.float32([1, 2]), ", "Observed(np.float32([1, 3]), ")
    .replace(f"return {ONE}", 'raise TypeError("\\x1b[2J bad shape of 3")')
    .replace('raise ValueError("not yet")', f"return {ONE}")
)  # fmt: skip
"""Each case changed: an IR, a value, a value with a reference, an error, and what is fixed."""


def run_program(folder: Path, *arguments: str) -> str:
    """Run a program in a folder, and return its standard output."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        arguments, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


def run_conformance(folder: Path, *arguments: str) -> str:
    """Run a `conformance` command in a separate process."""
    return run_program(folder, sys.executable, "-m", "conformance", *arguments)


def commit_all(folder: Path) -> None:
    """Commit every file."""
    run_program(folder, "git", "add", "-A")
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@x")
    run_program(folder, "git", *who, "commit", "-qm", "all")


@pytest.fixture(scope="session")
def changed_project(shared_cache: Path) -> Path:
    """A repository with goldens of `BEFORE` and a run of `AFTER`; tests copy it."""
    folder = shared_cache / "reviewed" / "project"
    if folder.exists():  # pytest sets the fixture up once for each module that imports it
        return folder
    files = {TOPIC: BEFORE, ".gitignore": "reports/\n", "matrix/smoke.toml": SMOKE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONFORMANCE_CACHE", str(shared_cache))
        patch.delenv("CI", raising=False)
        make_project(folder, files, None)  # type: ignore[arg-type] # commands run by themselves
        run_program(folder, "git", "init", "-q")
        for name, setting in (("name", "Ann"), ("email", "ann@x")):
            run_program(folder, "git", "config", f"user.{name}", setting)
        run_conformance(folder, "run", "--no-report")
        run_conformance(folder, "accept")
        shutil.rmtree(folder / "reports")
        (folder / TOPIC).write_text(AFTER)
        commit_all(folder)
        run_conformance(folder, "run", "--no-report")
    return folder


@pytest.fixture
def reviewed(changed_project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    """A copy of the changed project, for one test."""
    folder = tmp_path / "project"
    shutil.copytree(changed_project, folder)
    return Project(folder, capsys)
