"""Which package a change of an upgrade may be due to, and which it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.model.run_files import CulpritCommit
from conformance.report.upgrade.file import make_upgrade_file
from conformance.report.upgrade.result import UpgradeCaseStep, add_culprits, find_unclear
from conformance.report.upgrade.text import render_upgrade, render_upgrade_markdown
from conformance.search.axes import PackageMove
from conformance.triage.upgrade.comparison import Culprits
from conformance.triage.upgrade.effect import BREAKING, Effect
from tests.report.upgrades import AXIS, OK, RAISED, compared, told

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.upgrade.result import UpgradeResult

LATER = (OK, OK, RAISED, RAISED)
"""Done in 0.6.1, with which numpy and flax moved."""
NUMPY = PackageMove("numpy", "2.2.0", "2.3.0")
FLAX = PackageMove("flax", "0.2.2.0", "0.2.3.0")
JAX = (PackageMove("jax", "0.6.0", "0.6.1"), PackageMove("jaxlib", "0.6.0", "0.6.1"))
COMMAND = "conformance blame f/b --good jax0.6.0-py311-cpu8 --bad jax0.6.1-py311-cpu8"


def searched(folder: Path, **more: object) -> UpgradeResult:
    """Return an upgrade of four cases; of those that two broke alike, one was searched."""
    cases = {"f/a": (OK, RAISED, RAISED, RAISED), "f/b": LATER, "f/c": LATER, "f/d": (OK,) * 4}
    upgraded = told(*(compared(folder, name, *seen) for name, seen in cases.items()))
    ((one, step),) = find_unclear(upgraded, BREAKING)
    assert one.case.id == "f/b"
    return add_culprits(upgraded, {id(step): Culprits(case="f/b", **more)})  # type: ignore[arg-type]


def lines(upgraded: UpgradeResult) -> list[str]:
    """Return what is said of it, without indents."""
    return [line.strip() for line in render_upgrade(upgraded)]


def test_one_change_of_each_group_is_searched(tmp_path: Path) -> None:
    """Where another package than jax's own moved, and the upgrade does what is asked about."""
    upgraded = told(*(compared(tmp_path, name, *LATER) for name in ("f/b", "f/c")))
    assert [one.case.id for one, _ in find_unclear(upgraded, {Effect.BROKEN})] == ["f/b"]
    assert list(find_unclear(upgraded, {Effect.FACTS})) == []
    assert f"with numpy 2.2.0 -> 2.3.0: {COMMAND}" in lines(upgraded)
    unsearched = "packages: the culprit of 1 change was not searched for; "
    assert f"{unsearched}--blame searches for 1, --blame-all for all" in lines(upgraded)
    assert "| jax or numpy |" in render_upgrade_markdown(upgraded)


def test_commit_of_jax_holds_for_its_whole_group(tmp_path: Path) -> None:
    """In words, tables and data."""
    commit = CulpritCommit(
        package="jax", hash="0123456789abcdef", date="2025-01-02", title="change it",
        references=("#7",), url="https://example.org/c",
    )  # fmt: skip
    jax = PackageMove("jax", "0.6.0", "0.6.1")
    upgraded = searched(tmp_path, guilty=((jax,),), commits=(commit,), remarks=("a remark",))
    line = "commit: jax 0123456789ab 2025-01-02 change it #7 https://example.org/c"
    assert line in lines(upgraded)
    assert "a remark" in lines(upgraded)
    assert "jax 0.6.0 -> 0.6.1, commit 0123456789ab" in render_upgrade_markdown(upgraded)
    transitions = msgspec.to_builtins(make_upgrade_file(upgraded))["transitions"]
    found = {one["case"]: one["searched"] for one in transitions}
    assert found["f/c"]["commits"][0]["hash"] == "0123456789abcdef"
    assert found["f/a"] is None


def test_commits_are_searched_for_where_only_jax_can_be_the_cause(tmp_path: Path) -> None:
    """The package needs no search there."""
    cases = {"f/a": (OK, RAISED, RAISED, RAISED), "f/b": LATER}
    upgraded = told(*(compared(tmp_path, name, *seen) for name, seen in cases.items()))
    found = list(find_unclear(upgraded, {Effect.BROKEN}, of_jax=True))
    assert [change.compared.case.id for change in found] == ["f/a", "f/b"]
    assert not found[0].other_suspects


def test_culprits_hold_for_their_whole_group(tmp_path: Path) -> None:
    """In words, tables and data; what only jax can have done stays as it is."""
    upgraded = searched(tmp_path, guilty=((NUMPY,),))
    first, second, third, _ = upgraded.compared
    assert [UpgradeCaseStep(one, one.steps[0]).culprit for one in (first, second, third)] == [
        "jax", "numpy", "numpy",
    ]  # fmt: skip
    said = lines(upgraded)
    assert "to blame: numpy 2.2.0 -> 2.3.0" in said
    assert not any("not searched for" in line or COMMAND in line for line in said)
    assert "| numpy 2.2.0 -> 2.3.0 |" in render_upgrade_markdown(upgraded)
    changes = {
        one["case"]: one for one in msgspec.to_builtins(make_upgrade_file(upgraded))["transitions"]
    }
    assert changes["f/a"]["searched"] is None
    assert changes["f/c"]["culprit"] == "numpy"
    assert changes["f/c"]["searched"] == {
        "case": "f/b", "beside": (), "untold": "", "commits": (), "remarks": (), "layer": "",
        "guilty": (({"package": "numpy", "from": "2.2.0", "to": "2.3.0"},),),
    }  # fmt: skip
    assert list(find_unclear(upgraded, frozenset(Effect))) == []


@pytest.mark.parametrize(
    ("guilty", "called"),
    [
        ((JAX,), "jax"),
        ((JAX[1:],), "jaxlib"),
        (((NUMPY, *JAX),), "numpy, jax, jaxlib"),
        (((NUMPY,), (FLAX,)), "numpy or flax"),
    ],
)
def test_the_culprit_names_packages_and_their_alternatives(
    tmp_path: Path, guilty: tuple[tuple[PackageMove, ...], ...], called: str
) -> None:
    """Jax is what is released with it; each of several sets is enough."""
    upgraded = searched(tmp_path, guilty=guilty)
    assert UpgradeCaseStep(upgraded.compared[1], upgraded.compared[1].steps[0]).culprit == called
    as_well = "also sufficient alone: flax 0.2.2.0 -> 0.2.3.0"
    assert (as_well in lines(upgraded)) == (len(guilty) > 1)


def test_a_search_without_a_culprit_gives_its_reason(tmp_path: Path) -> None:
    """It says why, and the command that says more."""
    upgraded = searched(tmp_path, doubts="no Python goes with both")
    assert UpgradeCaseStep(upgraded.compared[1], upgraded.compared[1].steps[0]).culprit == ""
    said = f"the package was not found: no Python goes with both; {COMMAND}"
    assert said in lines(upgraded)
    assert "| not found: no Python goes with both |" in render_upgrade_markdown(upgraded)
    apart = searched(tmp_path / "a", guilty=((NUMPY, FLAX),), doubts="not separated: without flax")
    assert "to blame: numpy 2.2.0 -> 2.3.0, flax 0.2.2.0 -> 0.2.3.0" in lines(apart)
    assert f"not separated: without flax; {COMMAND}" in lines(apart)


def test_tests_and_overlays_have_any_package_as_a_suspect(tmp_path: Path) -> None:
    """A package of the user's own, or a test, does not say what it imports."""
    one = compared(tmp_path, "f/a", *LATER)
    cells = tuple(replace(planned, overlay="folder") for planned in AXIS.cells)
    beside = replace(one, axis=replace(AXIS, cells=cells))
    assert UpgradeCaseStep(one, one.steps[0]).suspects.keys() == {"jax", "jaxlib", "numpy"}
    test = replace(one, case=replace(one.case, kind="test"))
    for any_ in (beside, test):
        assert UpgradeCaseStep(any_, one.steps[0]).suspects.keys() == {
            "jax",
            "jaxlib",
            "numpy",
            "flax",
        }
