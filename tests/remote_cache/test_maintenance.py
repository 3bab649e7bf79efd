"""Pruning: the oldest actions go, and no content that a remaining action names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.cache.blobs import hash_blob
from conformance.errors import InfrastructureError
from conformance.remote_cache.cache import RemoteCache
from conformance.remote_cache.entry import Namespace
from conformance.remote_cache.maintenance import (
    DAY,
    CacheEntry,
    SharedEntries,
    read_digests,
    select_unneeded,
)
from conformance.remote_cache.object_store import _open

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOW = 1000 * DAY
KEY = "jobs/kit-host/" + "a" * 32


@dataclass
class Entries:
    """Entries in memory: actions and contents by key, each with its age in days."""

    actions: dict[str, tuple[float, frozenset[str]]]
    contents: dict[str, float]
    name: str = "memory"
    deleted: list[str] = field(default_factory=list)

    def list_entries(self) -> list[CacheEntry]:
        """Return all entries, 10 bytes each."""
        ages = {key: age for key, (age, _) in self.actions.items()}
        return [
            CacheEntry(namespace, key, key, 10, NOW - age * DAY)
            for namespace, found in (
                (Namespace.ACTIONS, ages), (Namespace.CONTENT, self.contents),
            )
            for key, age in found.items()
        ]  # fmt: skip

    def read_names(
        self, actions: Sequence[CacheEntry]
    ) -> Iterator[tuple[CacheEntry, frozenset[str]]]:
        """Yield the actions with the contents that they name."""
        for one in actions:
            yield one, self.actions[one.key][1]

    def find_damaged(self, entries: Sequence[CacheEntry]) -> dict[str, str]:
        """Return nothing."""
        return {}

    def delete(self, paths: Sequence[str]) -> None:
        """Note the paths."""
        self.deleted += paths


names = st.sampled_from("abcdef")
ages = st.integers(0, 100).map(float)
stores = st.builds(
    Entries,
    st.dictionaries(st.integers(0, 30).map(str), st.tuples(ages, st.frozensets(names)), max_size=9),
    st.dictionaries(names, ages, max_size=6),
)


@given(stores, st.none() | ages, st.none() | st.integers(0, 150))
def test_remaining_actions_keep_their_contents(
    store: Entries, days: float | None, largest: int | None
) -> None:
    """The oldest actions go first, and the limits hold."""
    gone = {one.key for one in select_unneeded(store, now=NOW, unused_days=days, largest=largest)}
    kept = {key: value for key, value in store.actions.items() if key not in gone}
    needed = {name for _, found in kept.values() for name in found}
    assert needed.isdisjoint(gone)
    removed_ages = [age for key, (age, _) in store.actions.items() if key in gone]
    kept_ages = [age for age, _ in kept.values()]
    assert not removed_ages or not kept_ages or min(removed_ages) >= max(kept_ages)
    if days is not None:
        assert all(age <= days + 1e-6 for age in kept_ages)
    if largest is not None:
        assert 10 * len(kept) + 10 * len(needed & store.contents.keys()) <= largest
    if days is None and largest is None:
        assert len(kept) == len(store.actions)
    # A content may belong to an upload that is still running.
    assert all(store.contents[key] > 1 for key in gone if key in store.contents)


def test_the_digests_of_an_action_are_read() -> None:
    """Of each of its records; a malformed one names nothing."""
    lines = b'{"artifacts": {"value": "a", "hlo": "b"}, "case": "x"}\n{"artifacts": {"value": "c"}}'
    assert read_digests(lines) == {"a", "b", "c"}
    assert read_digests(b"{") == frozenset()


def test_the_entries_of_a_shared_cache(tmp_path: Path) -> None:
    """Listed, verified and deleted; other objects below its URL are left alone."""
    url = f"file://{tmp_path}/cache"
    writer = RemoteCache(url, write=True)
    name = hash_blob(b"text")
    writer.put_content(name, b"text")
    writer.put_action(KEY, b'{"artifacts": {"value": "%s"}}' % name.encode())
    raw = _open(url, write=True)
    obstore.put(raw, "readme", b"text")
    obstore.put(raw, "v1/content/other", b"text")
    store = SharedEntries(RemoteCache(url))
    entries = sorted(store.list_entries(), key=lambda one: one.namespace)
    assert [(one.namespace, one.key) for one in entries] == [
        (Namespace.ACTIONS, KEY), (Namespace.CONTENT, name),
    ]  # fmt: skip
    assert list(store.read_names(entries[:1])) == [(entries[0], frozenset({name}))]
    assert store.find_damaged(entries) == {}
    obstore.put(raw, entries[1].path, b"damage")
    assert store.find_damaged(entries) == {entries[1].path: "is no entry of the cache"}
    store.delete([one.path for one in entries])
    assert store.list_entries() == []
    assert (tmp_path / "cache" / "readme").exists()


def test_a_dead_cache_is_an_error(tmp_path: Path) -> None:
    """What cannot be read must not count as unneeded."""
    store = SharedEntries(RemoteCache(f"file://{tmp_path}/missing"))
    with pytest.raises(InfrastructureError, match="no such folder"):
        store.list_entries()
