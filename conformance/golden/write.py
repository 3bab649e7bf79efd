"""Writing golden files so that nothing is ever half-written, and sweeping up after."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from conformance.golden.document import loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import CONTENT_NAME

if TYPE_CHECKING:
    from pathlib import Path

_TEMPORARY = ".writing-"
_ABANDONED_AFTER = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""


def write_atomically(file: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Args:
        file: Where to; its folder is made.
        data: Its content.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{_TEMPORARY}{os.getpid()}-{file.name}")
    try:
        temporary.write_bytes(data)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def remove_unreferenced(folder: Path) -> tuple[Path, ...]:
    """Remove contents of a topic that none of its TOML files names, and abandoned temporaries.

    Args:
        folder: A topic's golden folder; nothing outside it is looked at. A folder with a TOML
            file that cannot be read, or is of another format, is left alone.

    Returns:
        The files removed.
    """
    named: set[str] = set()
    for toml in folder.glob("*.toml"):
        try:
            document = loads(toml.read_text(encoding="utf-8"), toml)
        except (GoldenError, UnicodeDecodeError):
            return ()
        if document.tainted:
            return ()
        named |= {span.content for spans in document.variants.values() for span in spans}
    removed = [
        file
        for file in sorted(folder.iterdir())
        if (CONTENT_NAME.fullmatch(file.name) and file.name not in named) or _is_abandoned(file)
    ]
    for file in removed:
        file.unlink(missing_ok=True)
    return tuple(removed)


def _is_abandoned(file: Path) -> bool:
    if not file.name.startswith(_TEMPORARY):
        return False
    return time.time() - file.stat().st_mtime > _ABANDONED_AFTER
