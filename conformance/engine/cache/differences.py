"""The cache of IR differences: the difference of two texts never changes."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE, hash_code
from conformance.engine.cache.blobs import BlobStore, CorruptBlobError
from conformance.engine.process_pool import map_in_processes
from conformance.files import MALFORMED
from conformance.ir.change import Change
from conformance.ir.graph import IrSyntaxError, kind_of_artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from conformance.engine.runs.stored_job import StoredJob

LARGEST: Final = 4 * 2**20
"""Bytes of two texts above which a report does not compare them, because it takes too long."""
_CHUNK: Final = 16
"""Pairs that a process gets at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IrPair:
    """Two texts of one IR, by hash, with the folders of their blobs.

    Attributes:
        ir: The artifact, e.g. `hlo` or `stablehlo-tpu`.
        before: Hash of the first.
        after: Hash of the second.
        folders: Folder of the blobs of each.
    """

    ir: str
    before: str
    after: str
    folders: tuple[Path, Path]

    @property
    def key(self) -> str:
        """Cache key of the difference."""
        # By kind: the StableHLO for a platform is compared as that of the cell is.
        facts = (kind_of_artifact(self.ir), self.before, self.after, _hash_comparing_code())
        return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


class CachedDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cached difference, as a report shows it.

    Attributes:
        changes: The changes, the most severe first.
        problem: Why the texts cannot be compared, empty if they can.
        final: Whether the next report would find the same: False if a text was missing.
    """

    changes: tuple[Change, ...] = ()
    problem: str = ""
    final: bool = True


def make_ir_pair(before: StoredJob, after: StoredJob, ir: str) -> IrPair:
    """Return the texts of one IR of two jobs that both have it."""
    return IrPair(
        ir=ir,
        before=before.record.artifacts[ir],
        after=after.record.artifacts[ir],
        folders=(before.blobs.folder, after.blobs.folder),
    )


class DiffCache:
    """Differences by pair, below the cache folder.

    Args:
        folder: Cache folder.
        processes: Number of processes that compute missing differences.
    """

    def __init__(self, folder: Path, processes: int = 1) -> None:
        self._entries = CacheFolder(folder / "diffs")
        self._processes = processes
        self._known: dict[str, CachedDiff] = {}
        self._coming: Iterator[tuple[str, CachedDiff]] = iter(())

    @contextmanager
    def prepare(self, pairs: Iterable[IrPair]) -> Iterator[None]:
        """Compute the differences of many pairs in other processes, while the caller continues.

        Args:
            pairs: The pairs, possibly repeated; the caller should get them in this order.
        """
        unique = {pair.key: pair for pair in pairs}
        missing = {key: pair for key, pair in unique.items() if self._load(key) is None}
        texts: dict[Path, set[str]] = {}
        for pair in missing.values():
            for folder, name in zip(pair.folders, (pair.before, pair.after), strict=True):
                texts.setdefault(folder, set()).add(name)
        for folder, names in texts.items():
            BlobStore(folder).fetch_missing(names)
        # An interrupted report must not wait for differences that nothing will show.
        with map_in_processes(
            make_diff, list(missing.values()), processes=self._processes, new=len(missing),
            chunk=_CHUNK,
        ) as made:  # fmt: skip
            self._coming = zip(missing, made, strict=True)
            try:
                yield
            finally:
                self._coming = iter(())

    def get(self, pair: IrPair) -> CachedDiff:
        """Return a difference: from the cache, from another process, or computed now."""
        diff = self._load(pair.key) or self._wait_for(pair.key)
        if diff is None:
            diff = make_diff(pair)
            self._store(pair.key, diff)
        return diff

    def _wait_for(self, wanted: str) -> CachedDiff | None:
        """Wait for a difference from another process, and store those that arrive before it."""
        for key, diff in self._coming:
            self._store(key, diff)
            if key == wanted:
                return diff
        return None

    def _path(self, key: str) -> Path:
        return self._entries.folder / key[:2] / key

    def _load(self, key: str) -> CachedDiff | None:
        if key not in self._known:
            data = self._entries.read(self._path(key))
            if data is None:
                return None
            try:
                self._known[key] = msgspec.msgpack.decode(data, type=CachedDiff)
            except MALFORMED:  # written by another version
                return None
        return self._known[key]

    def _store(self, key: str, diff: CachedDiff) -> None:
        self._known[key] = diff
        if diff.final:
            self._entries.write(self._path(key), msgspec.msgpack.encode(diff))


def make_diff(pair: IrPair) -> CachedDiff:
    """Compare two texts; a failure is reported as the problem of the result."""
    # Most differences are cached, or computed in another process, which imports the parsers itself.
    from conformance.ir.text_diff import IrText, diff_texts  # noqa: PLC0415

    texts = []
    try:
        for folder, name in zip(pair.folders, (pair.before, pair.after), strict=True):
            texts.append(BlobStore(folder).get(name))
        if sum(map(len, texts)) > LARGEST:
            return CachedDiff(problem="too large to be compared for a report")
        kind = kind_of_artifact(pair.ir)
        a, b = (IrText(text.decode("utf-8", "surrogatepass"), kind) for text in texts)
        return CachedDiff(changes=diff_texts(a, b).changes)
    except CorruptBlobError as error:
        # A shared cache that does not answer now may answer later.
        return CachedDiff(problem=str(error), final=False)
    except IrSyntaxError as error:
        return CachedDiff(problem=f"not understood: {error}")


@cache
def _hash_comparing_code() -> str:
    """Return the hash of the code that compares: another version may find another difference."""
    return hash_code(sorted((PACKAGE / "ir").rglob("*.py")))
