"""The format of an entry of the shared cache.

An entry is a line that names its schema, its namespace, its key, the size of its content and a
digest, followed by the content as a zstd frame. The digest is of everything else in the entry, so
that no byte of it can change unnoticed. An entry that was copied to another key, or that another
schema version wrote, is not this entry.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Final

from conformance.compression import DecompressionError, compress, decompress

SCHEMA: Final = 1
"""Version of the format, part of every path: versions do not see each other's entries."""
LARGEST_STORED: Final = 2**26
"""Bytes of an entry. Larger ones are neither stored nor read: running their job is faster."""
LARGEST_CONTENT: Final = 2**28
"""Bytes of the content of an entry."""
_MAGIC: Final = b"conformance-cache"
_LONGEST_LINE: Final = 512
_KEY: Final = re.compile(r"[a-z0-9-]{1,80}(/[a-z0-9-]{1,80}){0,3}")
_NAME: Final = re.compile(r"[0-9a-f]{32,64}")


class Namespace(StrEnum):
    """A part of the cache."""

    ACTIONS = "actions"
    """Records, by a key of everything that they depend on."""
    CONTENT = "content"
    """Artifacts, by their digest."""


class DamagedEntryError(Exception):
    """An entry whose bytes are not those that were stored under its key."""


class OversizedEntryError(Exception):
    """A content that is too large for the cache."""


def make_path(namespace: Namespace, key: str) -> str:
    """Return the path of an entry below the URL of the cache.

    Args:
        namespace: Its namespace.
        key: Its key: of a content 32 to 64 hexadecimal digits of its SHA-256.

    Raises:
        ValueError: If the key is malformed; records, which are untrusted input, name contents.
    """
    pattern = _NAME if namespace is Namespace.CONTENT else _KEY
    if not pattern.fullmatch(key):
        raise ValueError(f"got {key[:80]!r} as a key of {namespace}")
    folder, _, name = key.rpartition("/")
    # A local folder with 100,000 files is slow; a bucket splits its load by prefix.
    return "/".join(filter(None, (f"v{SCHEMA}", namespace, folder, name[:2], name)))


def parse_path(path: str) -> tuple[Namespace, str] | None:
    """Return the namespace and the key of a path, None if it is no path of this schema."""
    head, *parts = path.split("/")
    try:
        namespace, *folders, _, name = parts
        key = "/".join((*folders, name))
        found = Namespace(namespace), key
        is_same = head == f"v{SCHEMA}" and make_path(*found) == path
    except ValueError:
        return None
    return found if is_same else None


def encode_entry(namespace: Namespace, key: str, content: bytes) -> bytes:
    """Return the bytes of an entry.

    Args:
        namespace: Its namespace.
        key: Its key.
        content: Its content.

    Raises:
        OversizedEntryError: If it is too large for the cache.
    """
    if len(content) > LARGEST_CONTENT:
        raise OversizedEntryError(f"{len(content)} bytes, expected at most {LARGEST_CONTENT}")
    frame = compress(content)
    entry = _make_line(namespace, key, len(content), frame) + frame
    if len(entry) > LARGEST_STORED:
        raise OversizedEntryError(f"{len(entry)} bytes, expected at most {LARGEST_STORED}")
    return entry


def decode_entry(namespace: Namespace, key: str, entry: bytes) -> bytes:
    """Return the content of an entry, verified.

    Args:
        namespace: Its namespace.
        key: Its key.
        entry: Its bytes, which are untrusted.

    Raises:
        DamagedEntryError: If it is not the entry that was stored under this key.
    """
    line, found, frame = entry[:_LONGEST_LINE].partition(b"\n")
    if not found:
        raise DamagedEntryError("is no entry of the cache")
    fields = line.split(b" ")
    if fields[0] != _MAGIC or len(fields) != 6:  # noqa: PLR2004 - as `_make_line` writes them
        raise DamagedEntryError("is no entry of the cache")
    if fields[1] != b"%d" % SCHEMA:
        raise DamagedEntryError("has another schema version")
    frame = entry[len(line) + 1 :]
    size = int(fields[4]) if re.fullmatch(rb"[0-9]{1,10}", fields[4]) else -1
    # Built again and compared as a whole: there is no part that is not compared.
    if not 0 <= size <= LARGEST_CONTENT or line + b"\n" != _make_line(namespace, key, size, frame):
        raise DamagedEntryError("differs from its digest")
    try:
        content = decompress(frame, size)
    except DecompressionError as error:
        raise DamagedEntryError(f"cannot be decompressed: {error}") from None
    if len(content) != size:
        raise DamagedEntryError(f"has {len(content)} bytes, expected {size}")
    # The digest of the line is no secret: a writer may have stored other bytes under this name.
    if namespace is Namespace.CONTENT and not _has_name(content, key):
        raise DamagedEntryError("has a content of another name")
    return content


def _has_name(content: bytes, name: str) -> bool:
    return hashlib.sha256(content).hexdigest().startswith(name)


def _make_line(namespace: Namespace, key: str, size: int, frame: bytes) -> bytes:
    facts = f"{_MAGIC.decode()} {SCHEMA} {namespace} {key} {size}".encode()
    return facts + b" " + hashlib.sha256(facts + b"\n" + frame).hexdigest().encode() + b"\n"
