"""The index of parsed case files: a file that has not changed is not parsed again."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE, hash_code
from conformance.files import MALFORMED
from conformance.model.case import Case  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = "cases"
"""Folder of the cache that keeps the index."""
PARSER: Final = (
    "corpus/claims.py", "corpus/discovery.py", "corpus/metadata.py", "corpus/python_source.py",
    "model/case.py",
)  # fmt: skip
"""Modules that decide what is read from a case file."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    parser: str
    content_hash: str
    cases: tuple[Case, ...]


class CaseIndex:
    """Cases of files as they were parsed before, an entry per file.

    Args:
        cache: Cache folder, which need not exist.
    """

    def __init__(self, cache: Path) -> None:
        self._entries = CacheFolder(cache / FOLDER)

    def get(self, file: Path, content_hash: str) -> tuple[Case, ...] | None:
        """Return the cases of a file, None if they are not known.

        Args:
            file: The case file.
            content_hash: Hash of its content and of the helpers beside it.
        """
        content = self._entries.read(self._path(file))
        if content is None:
            return None
        try:
            entry = _DECODER.decode(content)
        except MALFORMED:  # written by another version
            return None
        current = entry.parser == parser_hash() and entry.content_hash == content_hash
        return entry.cases if current else None

    def put(self, file: Path, content_hash: str, cases: Sequence[Case]) -> None:
        """Keep the cases of a file.

        Cases that do not survive encoding, e.g. with a tuple among their parameters, are not kept:
        they are parsed each time.

        Args:
            file: The case file.
            content_hash: Hash of its content and of the helpers beside it.
            cases: Its cases.
        """
        try:
            content = _ENCODER.encode(_Entry(parser_hash(), content_hash, tuple(cases)))
            same = _DECODER.decode(content).cases == tuple(cases)
        except (TypeError, *MALFORMED):
            return
        if same:
            self._entries.write(self._path(file), content)

    def _path(self, file: Path) -> Path:
        digest = hashlib.sha256(str(file).encode("utf-8", "surrogateescape"))
        return self._entries.folder / digest.hexdigest()[:32]


@cache
def parser_hash() -> str:
    """Return the hash of the code that parses case files: another parser may read other cases."""
    return hash_code(PACKAGE / name for name in PARSER)


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not kept")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_text)
_DECODER: Final = msgspec.msgpack.Decoder(_Entry, dec_hook=lambda kind, value: kind(value))
