"""Writing files whole or not at all, JSON for people, and the one error for a disk that refuses."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEMPORARY = ".writing-"
"""Beginning of the names of files that are not whole yet."""


def readable_json(data: Any) -> bytes:
    """Return data as JSON that a person can read; its last line has no end.

    Args:
        data: Whatever msgspec encodes.
    """
    return msgspec.json.format(msgspec.json.encode(data), indent=1)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Args:
        path: Where to; its folder is made if need be.
        data: Its content.

    Raises:
        InfrastructureError: If the disk refuses; the file is then as it was before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _written_nameless(path, data):
            with _temporary(path) as temporary:
                temporary.write_bytes(data)
    except OSError as error:
        raise disk_error(path, error) from error


def _written_nameless(path: Path, data: bytes) -> bool:
    """Write a file that has no name until it is whole: who is killed meanwhile leaves nothing.

    Returns:
        Whether the system and the file system can do that.

    Raises:
        OSError: If the disk refuses the content.
    """
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):  # what else is wrong, the other way will say
        return False
    with open(descriptor, "wb") as file:  # noqa: PTH123 - it has no path
        file.write(data)
        file.flush()
        try:
            _name(descriptor, path)
        except FileExistsError:
            with _temporary(path) as temporary:
                _name(descriptor, temporary)
        except OSError:
            return False
    return True


def _name(descriptor: int, path: Path) -> None:
    # A folder's descriptor makes it the call that follows links, though none is needed.
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Give a name for a file that takes the place of another in the end."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def said_by(error: OSError) -> str:
    """Return the words of the system for an error, in our spelling."""
    return (error.strerror or str(error)).lower()


def disk_error(path: Path, error: OSError) -> InfrastructureError:
    """Return the user's error for a disk that refused to write a file."""
    said = said_by(error)
    hint = "free some space" if error.errno == errno.ENOSPC else "check the permissions"
    return InfrastructureError(f"{path}: cannot be written: {said}; {hint} and try again")
