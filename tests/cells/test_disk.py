"""What environments take of the disk: hard links count once, and belong to whoever has them all."""

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


def test_what_is_linked_elsewhere_is_not_an_environment_s_own(tmp_path: Path) -> None:
    """A package cache holds 64 KiB of 72; two names within the folder are still its own."""
    cached = file(tmp_path / "packages" / "big", 64)
    link(cached, tmp_path / "one" / "lib" / "big")
    link(file(tmp_path / "one" / "small", 8), tmp_path / "one" / "again")
    usage = measure_usage(tmp_path / "one")
    assert usage.apparent == 80 << 10
    assert usage.own == 8 << 10


def test_what_environments_share_is_counted_once_and_is_theirs_together(tmp_path: Path) -> None:
    """Neither alone keeps the file; both do."""
    link(file(tmp_path / "one" / "big", 64), tmp_path / "two" / "big")
    file(tmp_path / "two" / "more", 4)
    both = [measure_usage(tmp_path / name) for name in ("one", "two")]
    assert [usage.own for usage in both] == [0, 4 << 10]
    assert count_own_bytes(both) == count_disk_bytes(both) == 68 << 10


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """`lib64` of a virtual environment is one."""
    file(tmp_path / "one" / "lib" / "a", 4)
    (tmp_path / "one" / "lib64").symlink_to("lib")
    assert measure_usage(tmp_path / "one").own == 4 << 10


def test_a_folder_that_is_not_there_takes_nothing(tmp_path: Path) -> None:
    """As the results of a cache that is new."""
    assert measure_usage(tmp_path / "none").apparent == 0


def test_environments_know_their_lock_and_when_they_were_used(tmp_path: Path) -> None:
    """One without facts is not finished; files that lie beside them are none."""
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
def test_the_kind_of_an_environment_is_in_its_name(env_id: str, kind: str) -> None:
    """What is installed for a platform."""
    assert get_environment_kind(env_id) == kind


def test_the_estimate_is_the_largest_known_of_the_kind(tmp_path: Path) -> None:
    """A guess until there is one; other kinds do not matter."""
    assert estimate_size(CPU, tmp_path) == 600_000_000
    assert estimate_size(TPU, tmp_path) == 1_300_000_000
    environment(tmp_path, "jax0.5.3-py311-abc", 500)
    environment(tmp_path, "jax0.5.3-py311-tpu-abc", 2000)
    environment(tmp_path, "jax0.8.3-py311-tpu-abc", 3000)
    assert (estimate_size(CPU, tmp_path), estimate_size(TPU, tmp_path)) == (500, 3000)


def test_too_little_room_is_one_line(tmp_path: Path) -> None:
    """What is needed, what there is, and what to do."""
    environment(tmp_path, "jax0.5.3-py311-abc", 500_000_000)
    assert find_room_problem(CPU, tmp_path, free=500_000_000) == ""
    assert find_room_problem(CPU, tmp_path, free=20_000_000) == (
        f"jax0.6.0-py311-cpu8: its environment takes up to 0.5 GB, {tmp_path} has 20.0 MB free; "
        "free some with: conformance cache prune, or set CONFORMANCE_CACHE to a folder with "
        "more room"
    )


def test_small_numbers_are_in_megabytes() -> None:
    """A tenth of a gigabyte is where it turns."""
    assert [format_bytes(n) for n in (0, 99_000_000, 1_234_000_000)] == [
        "0.0 MB",
        "99.0 MB",
        "1.2 GB",
    ]
