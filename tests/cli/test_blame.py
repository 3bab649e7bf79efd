"""`conformance blame` in real environments, and its errors."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.app.context import ProjectContext
from conformance.app.search.blame import blame_case
from conformance.app.session import Session
from conformance.engine.cache.blobs import BlobStore
from tests.projects import HEAD
from tests.workbench import planned_cell, python_of

from .packages import package_files, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.lock import Lock
    from tests.projects import Ending, Project


SCRIPT = """\
import numpy
if numpy.__version__ == "2.2.6":
    raise KeyError("axis")
"""
NUMPY = {"package": "numpy", "from": "2.2.4", "to": "2.2.6"}
CASE = f"""\
{HEAD}


@program(devices=1)
def doubled(env):
    wrong = np.__version__ == "2.2.6"
    return Program(lambda x: x * (3 if wrong else 2), args=(np.float32([1, 2]),),
                   reference=lambda x: x * 2)
"""


pytestmark = pytest.mark.project({"cases/numbers/doubling.py": CASE, "report.py": SCRIPT})
"""A project with a case and a script that numpy 2.2.6 breaks."""


def blame_json(project: Project, target: str, *options: str) -> dict[str, Any]:
    """Return the JSON of a search for the package to blame, from jax 0.6.0 to 0.6.1."""
    ending = project.run(
        "blame", target, "--good", "0.6.0", "--bad", "0.6.1", "--json", "-", *options
    )
    assert ending.code == 0, ending.err
    found: dict[str, Any] = ending.json
    return found


def find_differing_packages(one: str, other: str) -> set[str]:
    """Return the packages whose versions differ between two cells."""
    sides = [set(planned_cell(cell).versions.items()) for cell in (one, other)]
    return {package for package, _ in sides[0] ^ sides[1]}


def run_refused(project: Project, *arguments: str) -> Ending:
    """Run a search that is refused before any trial, and return its ending."""
    ending = project.run("blame", *arguments)
    assert ending.out == ""
    return ending


def test_blame_finds_the_package_that_breaks_a_script(project: Project) -> None:
    """Few environments are tried; a second search replays the log."""
    found = blame_json(project, "report.py")
    assert found["culprits"] == [NUMPY]
    assert (found["from"], found["to"]) == ("jax0.6.0-py311-cpu1", "jax0.6.1-py311-cpu1")
    assert found["predicate"]["name"] == "ending"
    assert found["confirmed"]
    assert found["held_back"] == "before"
    assert [entry["packages"] for entry in found["together"]] == [["jax", "jaxlib"]]
    assert {each["package"] for each in found["packages"]} == find_differing_packages(
        found["from"], found["to"]
    )
    assert len({step["cell"] for step in found["steps"]}) <= 8
    again = blame_json(project, "report.py")
    assert again["culprits"] == [NUMPY]
    assert all(step["replayed"] != step["again"] for step in again["steps"])
    lines = project.run("blame", "report.py", "--good", "0.6.0", "--bad", "0.6.1").out.splitlines()
    assert "before   nothing moved: ok (from the log)" in lines
    assert "to blame: numpy 2.2.4 -> 2.2.6 (after: ends with KeyError: 'axis')" in lines


@pytest.mark.long
def test_blame_judges_a_case_by_its_reference(project: Project) -> None:
    """The predicate is the conformance of the case."""
    found = blame_json(project, "numbers/doubled")
    assert found["culprits"] == [NUMPY]
    assert found["predicate"]["name"] == "conformance"


@pytest.mark.long
def test_blame_case_with_cells_and_runner_of_the_caller(project: Project) -> None:
    """Another search passes its own cells, runner and locks."""
    context = ProjectContext(project.path)
    locks: dict[str, Lock] = {}
    blobs = BlobStore(project.path / "blobs")
    session = Session(context=context)
    runner = session.make_job_runner(session.make_executor(locks), blobs)
    found = blame_case(
        context, context.find_case("numbers/doubled"),
        (context.find_cell("0.6.0"), context.find_cell("0.6.1")),
        prepare=session.prepare, runner=runner, locks=locks,
    )  # fmt: skip
    assert [str(moved) for moved in found.culprits] == ["numpy 2.2.4 -> 2.2.6"]


MINE = """\
import numpy as np


def doubled(x):
    return x * (3 if np.__version__ >= "2.3" else 2)
"""
NEEDS_MINE = f"""\
{HEAD}


@program(devices=1, requires=["mine"])
def mine(env):
    import mine

    return Program(mine.doubled, args=(np.float32([1, 2]),), reference=lambda x: x * 2)
"""


@pytest.mark.long
def test_with_package_is_installed_in_every_mixture(project: Project) -> None:
    """A release that the package does not support cannot be an end."""
    project.write(
        {"cases/numbers/owned.py": NEEDS_MINE, **package_files({"mine.py": MINE}, "mine")}
    )
    options = ("numbers/mine", "--good", "0.6.1", "--bad", "0.6.2", "--json", "-")
    lacking = project.run("blame", *options)
    assert (lacking.code, "requires mine, the cell has none" in lacking.error) == (2, True)
    ending = project.run("blame", *options, "--with", "./mine")
    assert ending.code == 0, ending.err
    found = ending.json
    assert [one["package"] for one in found["culprits"]] == ["numpy"]
    project.write({"report.py": "import mine\nif mine.doubled(1) == 3: raise KeyError('axis')"})
    ending = project.run("blame", "report.py", *options[1:], "--with", "./mine")
    assert ending.code == 0, ending.err
    assert ending.json["culprits"] == found["culprits"]
    refused = project.run(
        "blame", "numbers/mine", "--good", "0.6.0", "--bad", "0.6.2", "--with", "./mine"
    )
    assert refused.code == 2
    assert "cannot be an end: does not go with mine: " in refused.error


FLOATS = """\
import mine
if mine.version == 2:
    raise KeyError("axis")
"""
NEEDS_VERSION = f"""\
{HEAD}


@program(devices=1, requires=["mine"])
def versioned(env):
    import mine

    return Program(lambda x: x * (1 + mine.version), args=(np.float32([1, 2]),),
                   reference=lambda x: x * 2)
"""


@pytest.mark.long
@pytest.mark.parametrize("oldest", ["jax", "jax<0.6.1"])
@pytest.mark.parametrize("target", ["numbers/versioned", "floats.py"])
def test_a_wanted_package_of_other_versions(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, oldest: str
) -> None:
    """A `--with` package whose version differs is a candidate, alone or together with jax.

    A script gets one version where one goes with both ends.
    """
    links = tmp_path / "links"
    write_wheel(links, "1.0", oldest, "version = 1")
    write_wheel(links, "2.0", "jax>=0.6.1", "version = 2")
    monkeypatch.setenv("UV_FIND_LINKS", str(links))
    project.write({"floats.py": FLOATS, "cases/numbers/floating.py": NEEDS_VERSION})
    # What a requirement resolves to is cached by its text.
    wanted = f"mine>={0 if oldest == 'jax' else 1}"
    ending = project.run(
        "blame", target, "--good", "0.6.0", "--bad", "0.6.1", "--with", wanted, "--json", "-"
    )
    if (target, oldest) == ("floats.py", "jax"):
        assert (ending.code, "are alike: both end with ok" in ending.error) == (2, True)
        return
    assert ending.code == 0, ending.err
    culprits = {one["package"] for one in ending.json["culprits"]}
    assert culprits == ({"mine"} if oldest == "jax" else {"mine", "jax", "jaxlib"}), ending.json


@pytest.mark.long
def test_packages_that_move_together_are_blamed_together(project: Project) -> None:
    """The packages jax and jaxlib can only move together."""
    code = "import sys; from importlib.metadata import version; sys.exit(version('jax') > '0.6.0')"
    found = blame_json(project, f'python -c "{code}"')
    assert {one["package"] for one in found["culprits"]} == {"jax", "jaxlib"}


@pytest.mark.long
def test_pinned_package_of_a_cell_is_blamed(project: Project) -> None:
    """Only the pinned package differs between the two cells."""
    pinned = "jax0.6.0-py311-cpu1-numpy2.2.6"
    ending = project.run("blame", "report.py", "--good", "0.6.0", "--bad", pinned, "--json", "-")
    assert ending.code == 0, ending.err
    assert ending.json["culprits"] == [NUMPY]
    assert ending.json["packages"] == [NUMPY]


@pytest.mark.long
def test_path_environment_is_replaced_by_a_copy_and_not_changed(project: Project) -> None:
    """A new environment with the same versions is used in its place."""
    path = f"path:{python_of(planned_cell('0.6.0'))}"
    ending = project.run("blame", "report.py", "--good", path, "--bad", "0.6.1")
    assert ending.code == 0, ending.err
    assert "a new environment with the same versions, stands for it" in ending.out
    assert "to blame: numpy 2.2.4 -> 2.2.6" in ending.out
    own = path.removeprefix("path:").removesuffix("/bin/python")
    project.write({"own.py": f"import sys\nassert not sys.prefix.startswith({own!r})"})
    ending = project.run("blame", "own.py", "--good", path, "--bad", "0.6.1")
    assert ending.code == 2  # the new environment does not fail as the given one does
    assert "are alike" in ending.error
    deed = f"import numpy\nraise (KeyError if sys.prefix == {own!r} else ValueError)(1)"
    project.write({"own.py": f"import sys\n{deed} if numpy.__version__ < '2.2.5' else OSError"})
    ending = project.run("blame", "own.py", "--good", path, "--bad", "0.6.1", "--when", "ending")
    assert ending.code == 1
    assert "what makes the difference is no version of a package" in ending.error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("report.py", "--good", "0.6.0", "--bad", "0.6.0"),
            "no package differs, expected ends with other versions",
        ),
        (
            ("report.py", "--good", "0.6.0", "--bad", "0.6.1@cpu4"),
            "differ in devices, too, 1 and 4; expected ends",
        ),
        (("report.py", "--good", "0.6.0", "--bad", "0.5.99"), "unknown jax release '0.5.99'"),
        (
            ("report.py", "--good", "0.6.0", "--bad", "jax0.6.1-py311-cpu1-numpy99.0"),
            "cannot be an end: ",
        ),
        (("gone.py", "--good", "0.6.0", "--bad", "0.6.1"), "gone.py: no such file"),
        (
            ("report.py", "--good", "0.6.0", "--bad", "0.6.1", "--fact", "ops", "--when", "value"),
            "--fact ops: goes",
        ),
    ],
)
def test_blame_refuses_invalid_ends_before_any_trial(
    project: Project, arguments: tuple[str, ...], message: str
) -> None:
    """Equal ends, ends that differ in devices, unknown releases and targets."""
    ending = run_refused(project, *arguments)
    assert ending.code == 2
    assert message in ending.error


def test_blame_of_equal_ends_exits_2(project: Project) -> None:
    """The message names the common outcome."""
    project.write({"report.py": "print(1)"})
    ending = project.run("blame", "report.py", "--good", "0.6.0", "--bad", "0.6.1")
    assert ending.code == 2
    assert "are alike: both end with ok" in ending.error


def test_blame_with_unreachable_index_exits_4(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message asks to repeat the command."""
    monkeypatch.setenv("CONFORMANCE_INDEX_URL", "http://127.0.0.1:9/index/")
    ending = run_refused(
        project, "report.py", "--good", "0.6.2", "--bad", "jax0.6.2-py311-cpu1-numpy2.0.1"
    )
    assert ending.code == 4
    assert "the same command goes on where it was" in ending.error


@pytest.mark.cell
def test_interrupted_blame_says_how_to_continue(project: Project) -> None:
    """The exit status is 130."""
    note = project.path / "note"
    slow = f"import pathlib, time\npathlib.Path({str(note)!r}).touch()\ntime.sleep(60)\n"
    project.write({"report.py": slow})
    with project.start("blame", "report.py", "--good", "0.6.0", "--bad", "0.6.1") as search:
        while not note.exists():
            assert search.poll() is None
            time.sleep(0.05)
        search.send_signal(signal.SIGINT)
        _, errors = search.communicate()
    assert search.returncode == 130
    assert "interrupted; the same command goes on where it was" in errors
