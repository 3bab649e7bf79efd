"""Writing files whole or not at all, and the one error for a disk that refuses."""

from __future__ import annotations

import errno
import os
import secrets
from typing import TYPE_CHECKING

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY = ".writing-"
"""Beginning of the names of files that are not whole yet."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Args:
        path: Where to; its folder is made if need be.
        data: Its content.

    Raises:
        InfrastructureError: If the disk refuses; the file is then as it was before.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(path, error) from error


def said_by(error: OSError) -> str:
    """Return the words of the system for an error, in our spelling."""
    return (error.strerror or str(error)).lower()


def disk_error(path: Path, error: OSError) -> InfrastructureError:
    """Return the user's error for a disk that refused to write a file."""
    said = said_by(error)
    hint = "free some space" if error.errno == errno.ENOSPC else "check the permissions"
    return InfrastructureError(f"{path}: cannot be written: {said}; {hint} and try again")
