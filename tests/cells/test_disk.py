"""Disk usage of environments: hard links count once, and for the folders that have all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from conformance.cells.cell import Cell
from conformance.cells.disk import (
    count_disk_bytes,
    count_own_bytes,
    estimate_size,
    find_room_problem,
    format_bytes,
    get_environment_kind,
    measure_usage,
)
from conformance.cells.environment_locks import hold_environment
from conformance.cells.stored_environments import EnvironmentFacts, list_environments, store_facts

if TYPE_CHECKING:
    from pathlib import Path

CPU = Cell(release="0.6.0", python="3.11")
TPU = Cell(release="0.6.0", python="3.11", platform="tpu:v5e:2x2")


def environment(cache: Path, name: str, size: int = 0, lock: str = "l") -> Path:
    """Store the facts of an environment of some size."""
    folder = cache / "envs" / name
    facts = EnvironmentFacts(
        lock=lock, python="3.11.7", interpreter="", interpreter_size=0, interpreter_mtime_ns=0,
        dist_infos=(), bytes=size,
    )  # fmt: skip
    store_facts(folder, facts)
    return folder


def file(path: Path, kib: int) -> Path:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(kib << 10))
    return path


def link(source: Path, path: Path) -> None:
    """Give a file a second name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, path)


def test_files_linked_from_the_package_cache_are_not_own(tmp_path: Path) -> None:
    """The package cache has 64 KiB of 72; two names within the folder are its own."""
    cached = file(tmp_path / "packages" / "big", 64)
    link(cached, tmp_path / "one" / "lib" / "big")
    link(file(tmp_path / "one" / "small", 8), tmp_path / "one" / "again")
    usage = measure_usage(tmp_path / "one")
    assert usage.apparent == 80 << 10
    assert usage.own == 8 << 10


def test_shared_files_are_freed_only_with_all_environments(tmp_path: Path) -> None:
    """Removing one of two environments does not free the file."""
    link(file(tmp_path / "one" / "big", 64), tmp_path / "two" / "big")
    file(tmp_path / "two" / "more", 4)
    both = [measure_usage(tmp_path / name) for name in ("one", "two")]
    assert [usage.own for usage in both] == [0, 4 << 10]
    assert count_own_bytes(both) == count_disk_bytes(both) == 68 << 10


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """`lib64` of a virtual environment is such a link."""
    file(tmp_path / "one" / "lib" / "a", 4)
    (tmp_path / "one" / "lib64").symlink_to("lib")
    assert measure_usage(tmp_path / "one").own == 4 << 10


def test_missing_folder_has_no_usage(tmp_path: Path) -> None:
    """For example the results of a new cache."""
    assert measure_usage(tmp_path / "none").apparent == 0


def test_listed_environments_have_lock_and_last_use(tmp_path: Path) -> None:
    """An environment without facts is unfinished; other files are ignored."""
    assert list_environments(tmp_path) == []
    one = environment(tmp_path, "jax0.6.0-py311-abc", lock="hash")
    (tmp_path / "envs" / "jax0.5.3-py311-def").mkdir()
    os.utime(one / "conformance.json", (1000, 1000))
    unfinished, finished = list_environments(tmp_path)
    assert (unfinished.env_id, unfinished.lock) == ("jax0.5.3-py311", "")
    assert (finished.env_id, finished.lock, finished.used) == ("jax0.6.0-py311", "hash", 1000)
    with hold_environment(one):
        pass
    assert list_environments(tmp_path)[1].used > 1e9


@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("jax0.6.0-py311", ""),
        ("jax0.6.0-py311-latest-numpy2.0.2", ""),
        ("jax0.6.0-py311-tpu", "tpu"),
        ("jax0.6.0-py311-cuda-latest", "cuda"),
        ("jax0.6.0-py312-gpu", "gpu"),
    ],
)
def test_kind_of_an_environment_is_read_from_its_name(env_id: str, kind: str) -> None:
    """The packages of its platform."""
    assert get_environment_kind(env_id) == kind


def test_estimate_is_the_largest_environment_of_the_kind(tmp_path: Path) -> None:
    """A guess until one exists; other kinds do not matter."""
    assert estimate_size(CPU, tmp_path) == 600_000_000
    assert estimate_size(TPU, tmp_path) == 1_300_000_000
    environment(tmp_path, "jax0.5.3-py311-abc", 500)
    environment(tmp_path, "jax0.5.3-py311-tpu-abc", 2000)
    environment(tmp_path, "jax0.8.3-py311-tpu-abc", 3000)
    assert (estimate_size(CPU, tmp_path), estimate_size(TPU, tmp_path)) == (500, 3000)


def test_missing_disk_space_is_one_line(tmp_path: Path) -> None:
    """The needed and the free space, and what to do."""
    environment(tmp_path, "jax0.5.3-py311-abc", 500_000_000)
    assert find_room_problem(CPU, tmp_path, free=500_000_000) == ""
    assert find_room_problem(CPU, tmp_path, free=20_000_000) == (
        f"jax0.6.0-py311-cpu8: its environment takes up to 0.5 GB, {tmp_path} has 20.0 MB free; "
        "free some with: conformance cache prune, or set CONFORMANCE_CACHE to a folder with "
        "more room"
    )


def test_bytes_are_formatted_in_mb_or_gb() -> None:
    """GB from a tenth of a gigabyte."""
    assert [format_bytes(n) for n in (0, 99_000_000, 1_234_000_000)] == [
        "0.0 MB",
        "99.0 MB",
        "1.2 GB",
    ]
