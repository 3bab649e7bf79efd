"""Output files of options, where - is standard output; notes on standard error."""

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
        text: The note, in one line.
    """
    # Not by click: the application layer works without the command line.
    sys.stderr.write(f"conformance: {text}\n")
    sys.stderr.flush()


FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a full disk, which are no mistake on the command line."""


def check_writable(option: str, file: Path) -> None:
    """Check that a file can be written, before the work that produces its content.

    Args:
        option: The option that names the file, for the message.
        file: The file; `-` is standard output.

    Raises:
        UsageError: If the file cannot be written.
        InfrastructureError: If the disk is full.
    """
    exists = str(file) == "-" or file.exists()
    # Opening to append keeps the content; permissions alone do not show a read-only disk.
    _write(option, file, "ab", b"")
    if not exists:
        # A command that fails later leaves no empty file.
        file.unlink(missing_ok=True)


def write_file(option: str, file: Path, content: bytes) -> None:
    """Write a file, with the secrets of this process masked and a final line break.

    Args:
        option: The option that names the file, for the message.
        file: The file; `-` is standard output.
        content: The content in UTF-8.

    Raises:
        UsageError: If the file cannot be written.
        InfrastructureError: If the disk is full.
    """
    content = Masker(os.environ).mask_content(content)
    _write(option, file, "wb", content if content.endswith(b"\n") else content + b"\n")


def _write(option: str, file: Path, mode: str, content: bytes) -> None:
    try:
        if str(file) == "-":
            # Text that is still buffered must not come after the bytes, nor notes before them.
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
            return
        # Not atomically: the file may be a pipe or a device, such as /dev/stdout.
        with file.open(mode) as out:
            out.write(content)
    except OSError as error:
        if error.errno in FULL:
            raise disk_error(file, error) from None
        raise UsageError(
            f"{option} {file}: cannot be written: {describe_os_error(error)}"
        ) from None
