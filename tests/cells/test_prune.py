"""Pruning: unneeded environments are removed, and those in use stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from conformance.cells.disk import collect_lock_hashes, find_unneeded, prune
from conformance.cells.environment_locks import hold_environment, read_last_use
from conformance.cells.lock import Lock, store_lock
from conformance.cells.provision import get_environment_folder, is_provisioned, provision
from conformance.cells.stored_environments import list_environments

from .builders import make_lock, make_wheel
from .test_disk import environment, file
from .test_provision import CELL

if TYPE_CHECKING:
    from pathlib import Path

WANTED = frozenset({"jax0.6.0-py311"})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with a lock of the one environment that is wanted, and four environments."""
    cache = tmp_path / "cache"
    text = "# jax-conformance lock 1\n# environment: {}\njax==0.6.0\n"
    hashes = {}
    for env_id in ("jax0.6.0-py311", "jax0.5.3-py311"):
        lock = store_lock(Lock(text=text.format(env_id), path=tmp_path), cache / "locks")
        hashes[env_id] = lock.hash
    environment(cache, "jax0.6.0-py311-aaa", lock=hashes["jax0.6.0-py311"])
    environment(cache, "jax0.6.0-py311-bbb", lock="of another day")
    environment(cache, "jax0.5.3-py311-ccc", lock=hashes["jax0.5.3-py311"])
    file(cache / "envs" / "jax0.5.2-py311-ddd" / "lib" / "half", 16)
    return cache


def list_names(cache: Path) -> list[str]:
    """Return the names of the environments in a cache."""
    return [stored.folder.name for stored in list_environments(cache)]


def test_unneeded_environments_are_removed(cache: Path) -> None:
    """Unfinished ones, and those without a lock or a matrix; with the reason."""
    found = find_unneeded(cache, locks=collect_lock_hashes([], cache), wanted=WANTED)
    assert {one.environment.folder.name[-3:]: one.reason for one in found} == {
        "bbb": "its lock no longer exists",
        "ccc": "no matrix has a cell of it",
        "ddd": "it is not finished",
    }
    pruned = prune(found)
    assert list_names(cache) == ["jax0.6.0-py311-aaa"]
    assert pruned.freed >= 16 << 10
    assert [path.name for path in (cache / "envs").iterdir()] == ["jax0.6.0-py311-aaa"]


def test_environment_of_a_committed_lock_stays(cache: Path, tmp_path: Path) -> None:
    """Locks of matrix folders count like those of the cache."""
    text = "# jax-conformance lock 1\n# environment: jax0.6.0-py311\njax==0.6.0rc1\n"
    lock = store_lock(Lock(text=text, path=tmp_path), tmp_path / "matrix" / "locks")
    environment(cache, "jax0.6.0-py311-eee", lock=lock.hash)
    locks = collect_lock_hashes([tmp_path / "matrix"], cache)
    names = [c.environment.folder.name for c in find_unneeded(cache, locks=locks, wanted=WANTED)]
    assert "jax0.6.0-py311-eee" not in names


def test_dry_run_removes_nothing(cache: Path) -> None:
    """It reports the same removals."""
    before = list_names(cache)
    found = find_unneeded(cache, locks=collect_lock_hashes([], cache), wanted=WANTED)
    dry = prune(found, dry_run=True)
    assert list_names(cache) == before
    assert dry == prune(found)


def test_unused_environments_are_removed_on_request(cache: Path) -> None:
    """An environment is used when it is provided, not when it is created."""
    folder = cache / "envs" / "jax0.6.0-py311-aaa"
    with hold_environment(folder):
        pass
    locks = collect_lock_hashes([], cache)

    def asked(days: float) -> list[str]:
        found = find_unneeded(cache, locks=locks, wanted=WANTED, unused_days=days)
        return [one.reason for one in found if one.environment.folder == folder]

    assert asked(30) == []
    os.utime(f"{folder}.used", (time.time() - 40 * 86400,) * 2)
    assert asked(30) == ["not used for 40 days"]
    assert asked(50) == []


def test_environment_in_use_stays(cache: Path) -> None:
    """While another process holds it; pruning itself is no use."""
    found = find_unneeded(cache, locks=collect_lock_hashes([], cache), wanted=WANTED)
    folder = cache / "envs" / "jax0.6.0-py311-bbb"
    with hold_environment(folder) as descriptor:
        holder = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[descriptor]
        )
    os.utime(f"{folder}.used", (5, 5))
    problems = [removal.problem for removal in prune(found).removals]
    assert problems == ["", "", "in use"]
    assert list_names(cache) == ["jax0.6.0-py311-aaa", "jax0.6.0-py311-bbb"]
    assert read_last_use(folder) == 5
    holder.communicate(b"\n")
    prune(found[-1:])
    assert list_names(cache) == ["jax0.6.0-py311-aaa"]


def test_removed_environment_is_created_again(wheels: Path, tmp_path: Path) -> None:
    """A real one; files in the package cache are not counted as freed."""
    lock = make_lock(CELL, {"jax": ("0.6.0", make_wheel(wheels, "jax", "0.6.0"))})
    cache = tmp_path / "cache"
    provision(CELL, lock=lock, cache=cache)
    found = find_unneeded(cache, locks={}, wanted=())
    pruned = prune(found)
    assert not get_environment_folder(CELL, lock, cache).exists()
    assert pruned.freed > 0
    provision(CELL, lock=lock, cache=cache)
    assert is_provisioned(CELL, lock, cache)
