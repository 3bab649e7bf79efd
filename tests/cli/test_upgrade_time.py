"""`conformance upgrade --time` of real releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import HEAD

if TYPE_CHECKING:
    from tests.projects import Project

    from .conftest import MakeProject

pytestmark = pytest.mark.cell
CASE = f"""\
{HEAD}

from jax import lax


@program(devices=1)
def planted(env):
    steps = 40 if env.cell.release == "0.6.2" else 1
    return Program(lambda x: lax.fori_loop(0, 300 * steps, lambda i, x: x[::-1], x),
                   args=(np.ones(8, np.float32),))
"""


@pytest.fixture
def project(new_project: MakeProject) -> Project:
    """A project with a case that takes longer since one release."""
    return new_project({"cases/loops/topic.py": CASE})


@pytest.mark.long
def test_the_release_of_a_slowdown_is_found(project: Project) -> None:
    """Between the ends, in the text and in the file."""
    ending = project.run("upgrade", "0.6.0", "0.6.2", "--time", "loops", "--json", "up.json")
    assert ending.code == 0, ending.err
    assert "time and memory: of 1 case, 1 takes more and 0 take less" in ending.out
    assert "loops/planted takes more time or memory since 0.6.2" in ending.out


def test_tests_of_a_suite_are_not_measured(project: Project) -> None:
    """Their time is that of pytest, too."""
    ending = project.run("upgrade", "0.6.0", "0.6.2", "--time", "--suite", "tests")
    assert (ending.code, ending.error) == (2, "--time: goes with cases, got a suite")
