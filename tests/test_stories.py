"""The worked stories of the docs: every command is run, and prints what stands below it."""

from __future__ import annotations

import difflib
import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
STORIES = ROOT / "docs" / "stories.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PARTS = re.split(r"(?m)^## (.*)$", STORIES.read_text())[1:]


class Step(NamedTuple):
    """A command, and what it prints."""

    command: str
    output: str


def steps_of(text: str) -> list[Step]:
    """Return the commands of a text, in order."""
    blocks = re.findall(r"(?ms)^```console\n(.*?)^```$", text)
    parts = [part for block in blocks for part in re.split(r"(?m)^\$ ", block)[1:]]
    return [Step(*part.split("\n", 1)) for part in parts]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the stories use, that they may write to."""
    shutil.copytree(ROOT / "cases", tmp_path / "cases")
    for name in ("matrix", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.cell
@pytest.mark.parametrize(
    "steps", [steps_of(text) for text in PARTS[1::2]], ids=[name.strip() for name in PARTS[::2]]
)
def test_every_command_prints_what_is_said(checkout: Path, steps: list[Step]) -> None:
    """In the order of the story, each with what the ones before it left."""
    variables = {**os.environ, "COLUMNS": "80"}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert steps
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=checkout, env=variables, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{step.command}\n{done.stdout}"
        if not doctest.OutputChecker().check_output(step.output, done.stdout, FLAGS):
            lines = step.output.splitlines(), done.stdout.splitlines()
            pytest.fail("\n".join([step.command, *difflib.ndiff(*lines)]))
