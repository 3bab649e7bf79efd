"""Files that options name for output, where - is standard output; notes on standard error."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final

from conformance.cells.secret_masking import Masker
from conformance.errors import UsageError
from conformance.files import describe_os_error, disk_error

if TYPE_CHECKING:
    from pathlib import Path


def print_note(text: str) -> None:
    """Print a note on standard error.

    Args:
        text: One line.
    """
    sys.stderr.write(f"conformance: {text}\n")
    sys.stderr.flush()


FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What says that a disk is full, which is nobody's mistake on the command line."""


def check_writable(option: str, file: Path) -> None:
    """Find out early that a file cannot be written.

    Args:
        option: The option that names it, for the message.
        file: The file.

    Raises:
        UsageError: If it cannot.
        InfrastructureError: If the disk is full.
    """
    there = str(file) == "-" or file.exists()
    _open(option, file, "ab", b"")
    if not there:
        file.unlink(missing_ok=True)  # what fails later leaves no empty file


def write_file(option: str, file: Path, content: bytes) -> None:
    """Write a file, with the secrets of this process masked; its last line has an end.

    Args:
        option: The option that names it, for the message.
        file: The file.
        content: What it is to hold.

    Raises:
        UsageError: If it cannot be written.
        InfrastructureError: If the disk is full.
    """
    content = Masker(os.environ).mask_content(content)
    _open(option, file, "wb", content if content.endswith(b"\n") else content + b"\n")


def _open(option: str, file: Path, mode: str, content: bytes) -> None:
    try:
        if str(file) == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.flush()  # notes on standard error come after it
            return
        with file.open(mode) as out:
            out.write(content)
    except OSError as error:
        if error.errno in FULL:
            raise disk_error(file, error) from None
        raise UsageError(
            f"{option} {file}: cannot be written: {describe_os_error(error)}"
        ) from None
