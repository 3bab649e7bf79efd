"""Reading a script, or a report with one, from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from conformance.errors import UsageError
from conformance.files import describe_os_error

LARGEST: Final = 1 << 20
"""Characters of a script that is read."""
STDIN: Final = "-"
"""What names standard input."""


def read_report(script: str) -> tuple[str, str]:
    """Return the text of a script or a report, and what it is called in messages.

    Args:
        script: Its file, or `-` for standard input.

    Raises:
        UsageError: If it cannot be read, or is no text.
    """
    if script == STDIN:
        return _as_text(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    try:
        with Path(script).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{script}: cannot be read: {describe_os_error(error)}; expected a script"
        ) from None
    return _as_text(data, script)


def _as_text(data: bytes, name: str) -> tuple[str, str]:
    if len(data) > LARGEST:
        raise UsageError(f"{name}: is larger than {LARGEST >> 20} MiB, expected a script")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: is no UTF-8 text, expected a Python script") from None
    if "\0" in text:
        raise UsageError(f"{name}: is no text, expected a Python script")
    return text.replace("\r\n", "\n"), name
