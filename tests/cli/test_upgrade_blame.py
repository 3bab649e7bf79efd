"""`conformance upgrade --blame`: the package to blame, in real mixtures of two releases."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.projects import HEAD

if TYPE_CHECKING:
    from tests.projects import Project


ENDS = ("0.6.1", "0.6.2")
"""Between which numpy moves, too, from 2.2.6 to 2.3.0."""
CASES = f"""\
import jax
{HEAD}


@program(devices=1)
def of_numpy(env):
    factor = 3 if np.__version__ == "2.3.0" else 2
    return Program(lambda x: x * factor, args=(np.float32([1, 2]),), reference=lambda x: x * 2)


@program(devices=1)
def of_jax(env):
    if jax.__version__ == "0.6.2":
        raise KeyError("axis")
    return Program(lambda x: x, args=(np.float32([1, 2]),), reference=lambda x: x)


@program(devices=1)
def larger(env):
    def f(x):
        more = (0 * (x @ x)).sum() if np.__version__ == "2.3.0" else 0
        return x.sum() + more
    return Program(f, args=(np.ones((64, 64), np.float32),))
"""
SLOW = f"""\
import pathlib, time

import jax
{HEAD}


@probe(timeout=60)
def slow(env):
    moved = np.__version__ == "2.3.0", jax.__version__ == "0.6.2"
    if moved[0] != moved[1]:
        pathlib.Path("{{note}}").touch()
        time.sleep(60)
    return int(moved[0])
"""


pytestmark = pytest.mark.project({"cases/family/topic.py": CASES})
"""A project with cases that numpy or jax changes."""


@pytest.mark.cell
@pytest.mark.long
def test_upgrade_blame_names_the_package_of_each_breakage(project: Project) -> None:
    """Changes that break nothing are searched only with `--blame-all`."""
    ending = project.run("upgrade", *ENDS, "--blame", "--json", "-")
    assert ending.code == 1, ending.err
    changes = {one["case"].partition("/")[2]: one for one in ending.json["transitions"]}
    kinds = {name: (one["kind"], one["culprit"]) for name, one in changes.items()}
    assert kinds == {
        "of_numpy": ("wrong", "numpy"), "of_jax": ("broken", "jax"), "larger": ("larger", ""),
    }  # fmt: skip
    (guilty,) = changes["of_numpy"]["searched"]["guilty"]
    assert guilty == [{"package": "numpy", "from": "2.2.6", "to": "2.3.0"}]
    every = project.run("upgrade", *ENDS, "family/larger", "--blame-all", "--json", "-")
    (larger,) = every.json["transitions"]
    assert (larger["artifact"], larger["culprit"]) == ("flops", "numpy")
    run = project.newest.read_run()
    assert {cell.release for cell in run.cells} == set(ENDS)
    assert not any("mix" in cell.id for cell in run.cells)


@pytest.mark.long
@pytest.mark.cell
def test_interrupted_blame_still_prints_the_upgrade(project: Project) -> None:
    """The search that was interrupted has a command to continue."""
    note = project.path / "note"
    project.write({"cases/family/slow.py": SLOW.format(note=note)})
    with project.start("upgrade", *ENDS, "family/slow", "--blame", "--json", "up.json") as search:
        while not note.exists():
            assert search.poll() is None
            time.sleep(0.05)
        search.send_signal(signal.SIGINT)
        out, errors = search.communicate()
    assert search.returncode == 130
    assert "interrupted; the same command goes on where it was" in errors
    assert "1 silently changes its value (in 0.6.2)" in out
    assert "with numpy 2.2.6 -> 2.3.0: conformance blame family/slow" in out
    assert (project.path / "up.json").exists()
