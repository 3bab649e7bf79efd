"""`--with`: cases that need a user's package, in cells with that package in addition."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.projects import HEAD

from .packages import package_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


CASE = f"""\
{HEAD}


@program(devices=1, requires=["mine"])
def doubled(env):
    import mine

    return Program(mine.doubled, args=(np.float32([1, 2]),), reference=lambda x: x * 2)
"""
MODULE = "def doubled(x):\n    return x * {factor}\n"


pytestmark = pytest.mark.project({
    "cases/family/topic.py": CASE,
    **package_files({"mine.py": MODULE.format(factor=2)}, "mine"),
})  # fmt: skip
"""A project with a case of a package that lies beside it."""


def run_and_count(project: Project, *arguments: str) -> dict[str, int]:
    """Run, and return the number of jobs with each verdict."""
    ending = project.run("run", *arguments, "--json", "-")
    counts: dict[str, int] = ending.json["counts"]
    return counts


@pytest.mark.cell
def test_with_package_is_available_to_cases(project: Project) -> None:
    """In its current state; without `--with` the case is excluded."""
    cell = ("--cell", "0.6.2")
    lacking = project.run("run", *cell)
    assert lacking.code == 3
    assert "requires mine, the cell has none" in lacking.err
    assert run_and_count(project, *cell, "--with", "./mine") == {"new": 1}
    project.write({"mine/mine.py": MODULE.format(factor=3)})
    ending = project.run("run", *cell, "--with", "./mine", "--json", "-")
    (record,) = ending.json["results"]
    assert (record["conformance"], record["cached"]) == ("deviates", False)


@pytest.mark.cell
def test_release_excluded_by_the_package_is_left_out(project: Project) -> None:
    """The reason quotes the requirement."""
    ending = project.run("run", "--cell", "0.6.0", "--with", "./mine")
    assert ending.code == 3
    assert "does not go with mine: " in ending.err
    assert "jax>=0.6.1" in ending.err


def test_invalid_with_argument_is_refused(project: Project, tmp_path: Path) -> None:
    """One error line, before anything runs."""
    with zipfile.ZipFile(tmp_path / "odd.whl", "w"):
        pass
    for text, message in (("./nothing", "no such file"), (f"{tmp_path}/odd.whl", "not a wheel")):
        ending = project.run("run", "--with", text)
        assert (ending.code, message in ending.error) == (2, True), ending
