"""Digests of runs that were made once, kept in a small file each."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.engine.compression import compress, decompress
from conformance.engine.digests import Digest, digest_of
from conformance.engine.process_pool import map_in_processes
from conformance.engine.run_directory import RESULTS, RUN, CorruptRunError
from conformance.files import MALFORMED, said_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

from conformance.engine.run_directory import RunDirectory

FORMAT: Final = 1
"""Version of the files; one of another version is made anew."""
_CHUNK: Final = 4


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A digest's file, with what says whether it still holds."""

    format: int
    key: tuple[int, ...]
    digest: Digest


class DigestStore:
    """Digests that were made once, kept.

    Args:
        folder: Where to.
        processes: How many processes make what is not kept yet.
    """

    def __init__(self, folder: Path, processes: int = 1) -> None:
        self._entries = CacheFolder(folder)
        self._processes = processes

    def get(self, directory: RunDirectory) -> Digest:
        """Return the digest of a run, made now if it is not kept or no longer holds.

        Args:
            directory: Where the run is.

        Raises:
            CorruptRunError: If it cannot be read, or is no run's directory.
        """
        # Before the run is read: one that is still growing is read again the next time.
        key = tuple(_stamps(directory))
        path = self._path(directory)
        kept = _decoded(self._entries.read(path))
        if kept is not None and (kept.format, kept.key) == (FORMAT, key):
            return kept.digest
        digest = digest_of(directory)
        kept = _Kept(format=FORMAT, key=key, digest=digest)
        self._entries.write(path, compress(msgspec.msgpack.encode(kept)))
        return digest

    def get_all(
        self, directories: Sequence[RunDirectory]
    ) -> tuple[dict[RunDirectory, Digest], list[str]]:
        """Return the digests of the runs that can be read, and what is wrong with the others.

        Args:
            directories: Where the runs are.

        Returns:
            The digest of each run, in the given order, and a sentence for each run that cannot
            be read.
        """
        new = sum(not self._path(directory).exists() for directory in directories)
        with map_in_processes(
            self._tried, directories, processes=self._processes, new=new, chunk=_CHUNK
        ) as tried:
            told = dict(zip(directories, tried, strict=True))
        digests = {run: found for run, found in told.items() if isinstance(found, Digest)}
        return digests, [problem for problem in told.values() if isinstance(problem, str)]

    def _tried(self, directory: RunDirectory) -> Digest | str:
        try:
            return self.get(directory)
        except CorruptRunError as error:
            return str(error)

    def _path(self, directory: RunDirectory) -> Path:
        # Runs of one name may lie in several folders.
        name = str(directory.path.resolve()).encode("utf-8", "surrogateescape")
        return self._entries.folder / f"{hashlib.sha256(name).hexdigest()[:32]}.digest"


def _decoded(content: bytes | None) -> _Kept | None:
    if content is None:
        return None
    try:
        return msgspec.msgpack.decode(decompress(content), type=_Kept)
    except MALFORMED:  # written by another version
        return None


def _stamps(directory: RunDirectory) -> Iterator[int]:
    """Yield size and time of the files a digest is made from."""
    for name in (RUN, RESULTS):
        try:
            found = (directory.path / name).stat()
        except FileNotFoundError:
            yield from (-1, 0)
        except OSError as error:
            raise CorruptRunError(
                f"{directory.path / name}: cannot be read: {said_by(error)}"
            ) from None
        else:
            yield from (found.st_size, found.st_mtime_ns)
