"""Functions of the user, listed in `pyproject.toml`, run and are upgraded as cases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from .packages import package_files

if TYPE_CHECKING:
    from tests.projects import Project

    from .conftest import MakeProject

MINE = """\
import jax
import jax.numpy as jnp


def inputs():
    return jnp.arange(4.0), 2.0


def scaled(x, by):
    return x * (by + (jax.__version__ >= "0.6.2"))


def norm(x):
    return jnp.sqrt((x * x).sum())


def described(x):
    return {"type": type(x).__name__, "shape": str(x.shape)}
"""
LATE = """\
import jax

if jax.__version__ >= "0.6.2":
    raise ImportError("no such thing in this jax")


def f(x):
    return x
"""
LISTED = """
[tool.conformance]
with = ["."]

[[tool.conformance.functions]]
function = "mine:scaled"
arguments = "mine:inputs"

[[tool.conformance.functions]]
function = "mine:norm"
arguments = [[3.0, 4.0]]

[[tool.conformance.functions]]
function = "mine:described"
arguments = [[3.0, 4.0]]
jit = false

[[tool.conformance.functions]]
function = "late:f"
arguments = [1.0]
"""


pytestmark = pytest.mark.project(package_files({"mine.py": MINE, "late.py": LATE}, more=LISTED))


@pytest.fixture
def project(project: Project) -> Project:
    """A package with a list of its functions, and no cases."""
    (project.path / "cases").rmdir()
    return project


def describe_transitions(answer: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Return kind, value before and value after of each changed case."""
    return {
        one["case"]: (one["kind"], one["before"], one["after"]) for one in answer["transitions"]
    }


@pytest.mark.cell
def test_upgrade_compares_listed_functions(project: Project) -> None:
    """A module that fails to import on one release counts as broken."""
    ending = project.run("upgrade", "0.6.1", "0.6.2", "--json", "-")
    assert ending.code == 1, ending.err
    assert describe_transitions(ending.json) == {
        "mine/scaled": ("value", "out[3] = 6.0", "out[3] = 9.0"),
        "late/f": ("broken", "ok", "ImportError: no such thing in this jax"),
    }
    unchanged = {one["case"] for one in ending.json["cases"] if one["kind"] == "unchanged"}
    assert unchanged == {"mine/norm", "mine/described"}


@pytest.mark.long
@pytest.mark.cell
def test_function_is_selected_by_its_name_or_its_case_id(project: Project) -> None:
    """`mine:norm` and `mine/norm` are the same job."""
    for select in ("mine:norm", "mine/norm"):
        ending = project.run("run", select, "--cell", "0.6.2", "--json", "-")
        (record,) = ending.json["results"]
        assert (record["case"], record["outcome"]) == ("mine/norm", "ok")


@pytest.mark.cell
def test_upgrade_refuses_an_end_that_the_package_excludes(project: Project) -> None:
    """The message quotes the requirement."""
    ending = project.run("upgrade", "0.6.0", "0.6.2")
    assert ending.code == 2
    assert "0.6.0: cannot be an end: does not go with mine: " in ending.error
    assert "jax>=0.6.1" in ending.error


NOT_THERE = """\
import jax

if jax.__version__ == "0.6.1":
    raise RuntimeError("not on this one")


def f(x):
    return x * 2
"""
F_LISTED = """
[tool.conformance]
with = ["."]

[[tool.conformance.functions]]
function = "mine:f"
arguments = [1.0]
"""


@pytest.mark.long
@pytest.mark.cell
def test_upgrade_leaves_out_releases_that_the_package_excludes(new_project: MakeProject) -> None:
    """A release on which the module fails to import is not left out, but broken."""
    files = package_files({"mine.py": NOT_THERE}, more=F_LISTED, wants="jax!=0.6.1")
    project = new_project(files)
    (project.path / "cases").rmdir()
    ending = project.run("upgrade", "0.6.0", "0.6.2", "--thorough", "--json", "-")
    (left_out,) = ending.json["left_out"]
    assert (ending.code, left_out["cell"]) == (0, "jax0.6.1-py311-cpu8")
    assert left_out["reason"].startswith("does not go with mine: mine==1.0 depends on ")
    project.write(package_files({"mine.py": NOT_THERE}, more=F_LISTED, wants="jax>=0.6"))
    found = describe_transitions(project.run("upgrade", "0.6.0", "0.6.1", "--json", "-").json)
    assert found == {"mine/f": ("broken", "ok", "RuntimeError: not on this one")}
    ending = project.run("upgrade", "0.6.0", "0.6.2", "--thorough", "--json", "-")
    assert [(one["changed_in"], one["kind"]) for one in ending.json["transitions"]] == [
        ("0.6.1", "broken"), ("0.6.2", "fixed"),
    ]  # fmt: skip
    assert ending.code == 0


def test_unlisted_function_exits_3(project: Project) -> None:
    """The message shows how to list it."""
    ending = project.run("run", "mine:nrom")
    assert ending.code == 3
    assert "no function mine:nrom is listed (did you mean 'mine:norm'" in ending.error
    assert "list it in pyproject.toml: [[tool.conformance.functions]]" in ending.error


@pytest.mark.long
@pytest.mark.cell
def test_goldens_of_functions_survive_edits_of_list_and_package(project: Project) -> None:
    """They are stored next to the list."""
    assert project.run("run", "mine:norm", "--cell", "0.6.2", "--no-report").code == 1
    assert project.run("accept").code == 0
    assert (project.path / "goldens/mine/golden/functions/norm/spans.toml").is_file()
    listed = (project.path / "pyproject.toml").read_text()
    longer = f'{listed}\n[[tool.conformance.functions]]\nfunction = "mine:inputs"\njit = false\n'
    project.write(
        {"pyproject.toml": longer, "mine.py": MINE.replace("norm(x):", "norm(x):\n    x += 1")}
    )
    ending = project.run("run", "mine:norm", "--cell", "0.6.2", "--json", "-")
    (record,) = ending.json["results"]
    assert record["verdict"] == "changed"


NOISY = """\
import random, time
import jax
import numpy as np


def keyed():
    return jax.random.normal(jax.random.key(time.time_ns() % 2**31), (4,))


def drawn(x):
    return x + np.random.normal(size=2)


def given():
    return np.random.default_rng().normal(size=3)


def scaled(x):
    return x * 2


def stamped():
    return {"at": str(time.time_ns())}


def seeded():
    return jax.random.normal(jax.random.key(0), (4,))
"""
NOISY_LISTED = """
[tool.conformance]
with = ["."]
""" + "".join(
    f'\n[[tool.conformance.functions]]\nfunction = "noisy:{name}"\narguments = {arguments}\n'
    f"jit = {str(jit).lower()}\n"
    for name, arguments, jit in (
        ("keyed", "[]", True), ("drawn", "[[1.0, 2.0]]", True), ("stamped", "[]", False),
        ("scaled", '"noisy:given"', True), ("seeded", "[]", True),
    )
)  # fmt: skip


@pytest.mark.cell
@pytest.mark.long
def test_nondeterministic_functions_are_flaky_and_no_change(new_project: MakeProject) -> None:
    """The reason has the largest difference between two attempts."""
    project = new_project(package_files({"noisy.py": NOISY}, more=NOISY_LISTED))
    (project.path / "cases").rmdir()
    ending = project.run("upgrade", "0.6.1", "0.6.2", "--json", "-")
    assert ending.code == 0, ending.err
    data = ending.json
    assert (data["transitions"], [one["case"] for one in data["cases"]]) == ([], ["noisy/seeded"])
    spread = {one["case"].partition("/")[2]: one["reason"] for one in data["flaky"]}
    assert spread.keys() == {"keyed", "drawn", "scaled", "stamped"}
    apart = r"0\.6\.[12]: attempts disagree: out (\d) of \1 elements differ, worst at .* against "
    assert all(re.match(apart, spread[name]) for name in ("keyed", "drawn", "scaled"))
    assert re.search(r"attempts disagree: out\['at'\] is '\d+', then '\d+'", spread["stamped"])
    assert data["jobs"] == {"tried": 10, "of": 10}
    alone = project.run("upgrade", "0.6.1", "0.6.2", "noisy:keyed", "--json", "-")
    assert (alone.code, len(alone.json["flaky"])) == (3, 1)
    assert alone.json["verdict"] == (
        "From jax 0.6.1 to 0.6.2 on cpu8, nothing can be compared. "
        "1 case gave different results in two attempts and is not compared."
    )


RAISES = """\
import jax
import jax.numpy as jnp


def helper(x):
    return jnp.add(x, jnp.ones(5)) if jax.__version__ >= "0.6.2" else x


def f(x):
    return jax.jit(helper)(x)
"""


@pytest.mark.long
@pytest.mark.cell
def test_error_is_located_in_the_function(new_project: MakeProject) -> None:
    """Neither in the list nor in this harness, also if the result is cached."""
    files = package_files({"mine.py": RAISES}, more=F_LISTED.replace("1.0", "[1.0, 2.0]"))
    project = new_project(files)
    (project.path / "cases").rmdir()
    for cached in (False, True):
        ending = project.run("run", "mine/f", "--cell", "0.6.2", "--json", "-")
        (record,) = ending.json["results"]
        assert (record["error"]["where"], record["cached"]) == ("mine.py:6", cached)
    found = project.run("report", "--terminal").out
    lines = found[found.index("traceback") :].splitlines()
    assert lines[1].strip() == "mine.py:10 in f"
    assert lines[3].strip().endswith("frames in jax ...")
    assert lines[4].strip() == "mine.py:6 in helper"
    assert not [line for line in lines if "functions.py" in line or "conformance/worker" in line]
