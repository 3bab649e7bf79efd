"""Statistics, pruning and verification of results in the local cache."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from conformance.app.cache.results import (
    LocalEntries,
    ResultCaches,
    measure_results,
    prune_results,
    render_pruned_results,
    render_results,
    render_verified,
    verify_results,
)
from conformance.cache_folder import CacheFolder
from conformance.engine.cache.blobs import BlobStore
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

DAYS = 86_400


@pytest.fixture
def store(tmp_path: Path) -> LocalEntries:
    """A cache with a new and an old record, which share an artifact, and an artifact of none."""
    blobs = BlobStore(tmp_path / "blobs")
    shared, old, none = (blobs.put(data) for data in (b"shared", b"old", b"none"))
    for path, names, days in (("results/new", [shared], 1), ("results/x/old", [shared, old], 40)):
        content = ",".join(f'"{n}": "{name}"' for n, name in enumerate(names))
        CacheFolder(tmp_path / "results").write(
            tmp_path / path, f'{{"artifacts": {{{content}}}}}'.encode()
        )
        _age(tmp_path / path, days)
    for name in (shared, old, none):
        _age(tmp_path / "blobs" / name, 50)
    return LocalEntries(tmp_path)


def _age(path: Path, days: int) -> None:
    then = time.time() - days * DAYS
    os.utime(path, (then, then))


def list_names(folder: Path) -> set[str]:
    """Return the names of the files below a folder."""
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_entries_are_counted(store: LocalEntries, tmp_path: Path) -> None:
    """By namespace, with their ages."""
    actions, contents = measure_results(ResultCaches(local=store, shared=None))
    assert (actions["entries"], actions["newest_days"], actions["oldest_days"]) == (2, 1.0, 40.0)
    assert (contents["entries"], contents["bytes"]) == (3, len(b"sharedoldnone"))
    assert list(render_results([actions, contents])) == [
        str(tmp_path),
        "  actions          2 entries    0.0 MB, 1 to 40 days old",
        "  content          3 entries    0.0 MB, 50 to 50 days old",
    ]


def test_old_records_go_with_their_artifacts(store: LocalEntries, tmp_path: Path) -> None:
    """The artifact that a remaining record names stays."""
    before = list_names(tmp_path)
    asked = prune_results(store, unused_days=30, max_gigabytes=None, dry_run=True)
    assert list_names(tmp_path) == before
    done = prune_results(store, unused_days=30, max_gigabytes=None, dry_run=False)
    assert done == {**asked, "dry_run": False}
    assert list_names(tmp_path / "results") == {"new"}
    assert len(list_names(tmp_path / "blobs")) == 1
    assert render_pruned_results(done).endswith("removed 1 action and 2 contents, freed 0.0 MB")


def test_a_limit_of_the_size_removes_the_oldest(store: LocalEntries, tmp_path: Path) -> None:
    """Down to nothing."""
    prune_results(store, unused_days=None, max_gigabytes=200e-9, dry_run=False)
    assert list_names(tmp_path / "results") == {"new"}
    prune_results(store, unused_days=None, max_gigabytes=0, dry_run=False)
    assert list_names(tmp_path) == set()


def test_damaged_entries_are_found_and_deleted(store: LocalEntries, tmp_path: Path) -> None:
    """Records by their digest, artifacts by their name."""
    assert verify_results(store, sample=None, delete=False)["damaged"] == {}
    (tmp_path / "results" / "new").write_bytes(b"damage")
    blob = next((tmp_path / "blobs").iterdir())
    blob.write_bytes(b"damage")
    data = verify_results(store, sample=None, delete=True)
    assert data["damaged"] == {
        f"blobs/{blob.name}": "differs from its name", "results/new": "differs from its digest",
    }  # fmt: skip
    assert list(render_verified(data))[-1] == f"{tmp_path}: 5 entries read, 2 damaged, deleted"
    assert verify_results(store, sample=2, delete=False)["read"] == 2
    assert verify_results(store, sample=None, delete=False)["damaged"] == {}


def test_a_shared_cache_must_be_configured(store: LocalEntries) -> None:
    """To be pruned."""
    with pytest.raises(UsageError, match="--shared: no shared cache"):
        ResultCaches(local=store, shared=None).select(shared=True)
