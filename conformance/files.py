"""Whole-or-nothing writes, reads of untrusted files, and the error for a disk that refuses."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEMPORARY = ".writing-"
"""Beginning of the names of files that are not whole yet."""
MALFORMED = (ValueError, RecursionError)
"""Raised by a decoder for bytes that are not what it expects; deep nesting is a RecursionError."""


def read_regular(path: Path, largest: int | None = None) -> bytes:
    """Return the content of a regular file; follow no link, and wait for no pipe.

    Args:
        path: The file, which may come from elsewhere.
        largest: Bytes beyond which it is refused; None is no limit.

    Raises:
        OSError: If it cannot be read, is a symbolic link or no regular file, or is too large.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link, expected a regular file") from None
        raise
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):  # which `open` refuses in words of its own
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if largest is not None and found.st_size > largest:
            said = f"has {found.st_size} bytes, expected at most {largest}"
            raise OSError(errno.EFBIG, said)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def readable_json(data: Any) -> bytes:
    """Return data as JSON that a person can read; its last line has no end.

    Args:
        data: Whatever msgspec encodes.
    """
    return msgspec.json.format(msgspec.json.encode(data), indent=1)


def write_atomically(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all.

    Args:
        path: Where to; its folder is made if need be.
        data: Its content.
        durable: Whether the file survives a loss of power once this returns. It costs a wait for
            the disk: for what cannot be made again.

    Raises:
        InfrastructureError: If the disk refuses; the file is then as it was before.
    """
    try:
        new = _missing(path) if durable else ()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _written_nameless(path, data, durable=durable):
            with temporary_file(path) as temporary, temporary.open("wb") as file:
                _write(file, data, durable=durable)
        if durable:
            # Also of the folders that were made for it: without their names the file is lost.
            for folder in (path.parent, *(one.parent for one in new)):
                sync_to_disk(folder)
    except OSError as error:
        raise disk_error(path, error) from error


def _missing(path: Path) -> list[Path]:
    """Return the folders of a file that are not there, the innermost first."""
    return list(takewhile(lambda folder: not folder.exists(), path.parents))


def _written_nameless(path: Path, data: bytes, *, durable: bool) -> bool:
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
        _write(file, data, durable=durable)
        try:
            _name(descriptor, path)
        except FileExistsError:
            with temporary_file(path) as temporary:
                _name(descriptor, temporary)
        except OSError:
            return False
    return True


def _write(file: BinaryIO, data: bytes, *, durable: bool) -> None:
    file.write(data)
    file.flush()
    if durable:
        os.fsync(file.fileno())


def sync_to_disk(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk.

    Raises:
        OSError: If the disk refuses.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> None:
    """Wait until all that was written to the file system of a folder is on the disk.

    Raises:
        OSError: If the disk refuses.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Python has os.sync() alone, which waits for every disk and reports no error.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def _name(descriptor: int, path: Path) -> None:
    # A folder's descriptor makes it the call that follows links, though none is needed.
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield a name for a file that replaces another in the end, unless something is raised.

    Args:
        path: The file to replace.

    Raises:
        OSError: If the disk refuses; the file is then as it was before.
    """
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
