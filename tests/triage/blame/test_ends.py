"""Ends of a blame, and the bytecode they lend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.cells.cell import Cell
from conformance.cells.lock import Lock
from conformance.cells.releases import load_releases
from conformance.cells.requirements import build_requirement
from conformance.engine.workers.preparation import plan_cell
from conformance.errors import UsageError
from conformance.triage.blame.ends import lend_bytecode, provide_mixture, unify_pythons
from tests.cli.packages import package_files

from .environments import end

LOCKS = Path(__file__).parents[3] / "matrix" / "locks"
RELEASES = load_releases(Path(__file__).parents[3] / "matrix")
OLD = Cell(release="0.6.0", python="3.11")


def test_both_ends_get_a_common_python() -> None:
    """That of the newer end, if both admit it."""
    new = Cell(release="0.12.0.1", python="3.12")
    assert [cell.python for cell in unify_pythons(OLD, new, RELEASES)] == ["3.12", "3.12"]
    assert [cell.python for cell in unify_pythons(new, OLD, RELEASES)] == ["3.12", "3.12"]
    same = (OLD, Cell(release="0.6.1", python="3.11"))
    assert unify_pythons(*same, RELEASES) == same


def test_ends_without_a_common_python_are_an_error() -> None:
    """The Python of an existing environment cannot be changed."""
    path = Cell(release="path:/env/bin/python", python="3.14")
    with pytest.raises(UsageError, match="no Python goes with both, so that it is part of what"):
        unify_pythons(OLD, path, RELEASES)


@pytest.mark.parametrize(
    "other",
    [
        {"x64": True},
        {"devices": 2},
        {"platform": "tpu:v5e:2x2"},
        {"config": (("jax_enable_x64", "true"),)},
        {"xla_flags": ("--xla_x=1",)},
    ],
)
def test_ends_that_differ_in_more_than_packages_are_an_error(other: dict[str, Any]) -> None:
    """The other difference might be the culprit."""
    with pytest.raises(UsageError, match=f"differ in {next(iter(other)).replace('_', ' ')}, too"):
        unify_pythons(OLD, Cell(release="0.6.1", python="3.11", **other), RELEASES)


@pytest.mark.cell
def test_a_mixture_that_excludes_a_requirement_is_not_created(tmp_path: Path) -> None:
    """The message names the requirement."""
    for name, text in package_files({"mine.py": ""}).items():
        (tmp_path / name).write_text(text)
    wanted = (build_requirement(str(tmp_path), tmp_path / "cache"),)
    file = LOCKS / "jax0.6.0-py311.txt"
    lock = Lock(text=file.read_text(), path=file)
    planned = plan_cell(OLD, lock)
    ends = (end({"jax": "0.6.0"}), end({"jax": "0.6.1"}))
    found = provide_mixture(planned, lock, ends=ends, cache=tmp_path / "cache", wanted=wanted)
    assert found.missing.startswith("does not go with mine: ")
    assert "jax>=0.6.1" in found.missing
    assert not (tmp_path / "cache" / "envs").exists()


def test_only_bytecode_of_the_same_source_is_linked(tmp_path: Path) -> None:
    """Python compiles the other modules on import."""
    one, other = (tmp_path / n / "lib" / "python3.11" / "site-packages" for n in "ab")
    for site in (one, other):
        (site / "pkg").mkdir(parents=True)
    cache = one / "pkg" / "__pycache__"
    cache.mkdir()
    for name in ("same", "changed", "gone"):
        (one / "pkg" / f"{name}.py").write_text("x = 1")
        (cache / f"{name}.cpython-311.pyc").write_text(name)
    (other / "pkg" / "same.py").hardlink_to(one / "pkg" / "same.py")
    (other / "pkg" / "changed.py").write_text("x = 1")
    lend_bytecode(tmp_path / "a", tmp_path / "b")
    lend_bytecode(tmp_path / "a", tmp_path / "b")
    lent = other / "pkg" / "__pycache__"
    assert [file.name for file in lent.iterdir()] == ["same.cpython-311.pyc"]
