"""Worked stories and examples: every command is run, and prints what stands below it."""

from __future__ import annotations

import difflib
import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.projects import without_progress
from tests.repositories import copy_sources, find_installed, make_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
STORIES = ("docs/stories.md", "examples/training/README.md")
LONG = {"Calls of a script", "Functions, listed", "The test suite"}
"""Parts of the second story that take as long as the first."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Step(NamedTuple):
    """A command, and what it prints."""

    command: str
    output: str


def steps_of(text: str) -> list[Step]:
    """Return the commands of a text, in order."""
    blocks = re.findall(r"(?ms)^```console\n(.*?)^```$", text)
    parts = [part for block in blocks for part in re.split(r"(?m)^\$ ", block)[1:]]
    return [Step(*part.split("\n", 1)) for part in parts]


def parts_of(story: str) -> Iterator[tuple[str, str]]:
    """Yield each part of a story: its title and its text."""
    parts = re.split(r"(?m)^## (.*)$", (ROOT / story).read_text())[1:]
    yield from zip(map(str.strip, parts[::2]), parts[1::2], strict=True)


PARTS = [
    pytest.param(
        story,
        steps_of(text),
        id=title,
        marks=[pytest.mark.long] if story == STORIES[0] or title in LONG else [],
    )
    for story in STORIES
    for title, text in parts_of(story)
]


@pytest.fixture
def checkout(tmp_path: Path, story: str) -> Path:
    """A copy of what a story uses, that it may write to; an example needs its folder alone."""
    own = "cases" if story.startswith("docs") else "examples"
    shutil.copytree(ROOT / own, tmp_path / own)
    for name in ("matrix", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture(scope="module")
def jax_repository(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a clone of jax: the one that `CONFORMANCE_JAX_REPO` names, or a small one.

    The small one leads from 0.9.2 to 0.10.0 in a few commits, made of the wheels of both. One
    refuses the keywords of `jnp.clip`, as the commit of the story does.
    """
    if given := os.environ.get("CONFORMANCE_JAX_REPO"):
        return given
    made = make_repository(tmp_path_factory.mktemp("repositories") / "jax", "2026-03")
    module = made.folder / "jax" / "_src" / "numpy" / "lax_numpy.py"
    copy_sources(find_installed("0.9.2"), made.folder / "jax")
    made.commit("release 0.9.2", tag="jax-v0.9.2")
    made.commit("a comment", {"jax/_src/comment.py": "# a comment\n"})
    made.month, made.day = "2026-04", 0
    text = f"{module.read_text()}\n{WITHOUT_KEYWORDS}"
    made.commit("Remove deprecated argument names to jnp.clip.", {str(module): text})
    made.commit("another comment", {"jax/_src/comment.py": "# another\n"})
    copy_sources(find_installed("0.10.0"), made.folder / "jax")
    made.commit("release 0.10.0", tag="jax-v0.10.0")
    return str(made.folder)


WITHOUT_KEYWORDS = """
_clip_with_keywords = clip


def clip(arr, /, min=None, max=None):
    return _clip_with_keywords(arr, min, max)
"""


@pytest.mark.cell
@pytest.mark.parametrize(("story", "steps"), PARTS)
def test_every_command_prints_what_is_said(
    checkout: Path, jax_repository: str, story: str, steps: list[Step]
) -> None:
    """In the order of the story, each with what the ones before it left.

    The commands of docs are run where the project is, those of an example in its own folder.
    """
    folder = checkout if story.startswith("docs") else (checkout / story).parent
    variables = {**os.environ, "COLUMNS": "80", "CONFORMANCE_JAX_REPO": jax_repository}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert steps
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=folder, env=variables, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode in {0, 1}, f"{step.command}\n{done.stdout}"
        printed = without_progress(done.stdout)
        if not doctest.OutputChecker().check_output(step.output, printed, FLAGS):
            lines = step.output.splitlines(), printed.splitlines()
            pytest.fail("\n".join([step.command, *difflib.ndiff(*lines)]))
