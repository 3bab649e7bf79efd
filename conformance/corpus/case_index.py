"""The index of parsed case files, so that unchanged files are not parsed again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE, hash_code
from conformance.files import MALFORMED
from conformance.model.case import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = "cases"
"""Folder of the cache with the index."""
# Named one by one: a hash of the whole package would empty the index with every edit.
PARSER: Final = (
    "corpus/claims.py", "corpus/constants.py", "corpus/discovery.py", "corpus/metadata.py",
    "corpus/python_source.py", "model/case.py",
)  # fmt: skip
"""Modules that decide which cases a file has: if one of them changes, the index is invalid."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    parser: str
    content_hash: str
    cases: tuple[Case, ...]


class CaseIndex:
    """An index of the cases in files, with an entry per file.

    Args:
        cache: Cache folder, which need not exist.
    """

    def __init__(self, cache: Path) -> None:
        self._entries = CacheFolder(cache / FOLDER)

    def get(self, file: Path, content_hash: str) -> tuple[Case, ...] | None:
        """Return the cases of a file, None if they are not in the index.

        Args:
            file: Case file.
            content_hash: Hash of its content and of the helpers in its folder.
        """
        content = self._entries.read(self._entry_path(file))
        if content is None:
            return None
        try:
            entry = _DECODER.decode(content)
        except MALFORMED:  # written by another version
            return None
        current = entry.parser == hash_parser() and entry.content_hash == content_hash
        return entry.cases if current else None

    def put(self, file: Path, content_hash: str, cases: Sequence[Case]) -> None:
        """Store the cases of a file.

        Cases that encoding would change, e.g. with a tuple among their parameters, are not stored:
        their files are parsed every time.

        Args:
            file: Case file.
            content_hash: Hash of its content and of the helpers in its folder.
            cases: Cases of the file.
        """
        try:
            content = _ENCODER.encode(_Entry(hash_parser(), content_hash, tuple(cases)))
            # A case read back must equal a parsed one: its hash, and so every cached result,
            # depends on it.
            same = _DECODER.decode(content).cases == tuple(cases)
        except (TypeError, *MALFORMED):
            return
        if same:
            self._entries.write(self._entry_path(file), content)

    def _entry_path(self, file: Path) -> Path:
        # Paths may hold characters that no file name has, and bytes that are no UTF-8.
        digest = hashlib.sha256(str(file).encode("utf-8", "surrogateescape"))
        return self._entries.folder / digest.hexdigest()[:32]


@cache
def hash_parser() -> str:
    """Return the hash of the code that parses case files."""
    return hash_code(PACKAGE / name for name in PARSER)


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not stored")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode_path)
_DECODER: Final = msgspec.msgpack.Decoder(_Entry, dec_hook=lambda kind, value: kind(value))
