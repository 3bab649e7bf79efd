"""Sweeping up golden folders: contents that nothing names any more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conformance.files import TEMPORARY
from conformance.golden.document import loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import CONTENT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ABANDONED_AFTER = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""


def remove_unreferenced(folder: Path) -> tuple[Path, ...]:
    """Remove contents of a topic that none of its TOML files names, and abandoned temporaries.

    Args:
        folder: A topic's golden folder; nothing outside it is looked at. A folder with a TOML
            file that cannot be read, or is of another format, is left alone.

    Returns:
        The files removed.
    """
    removed = [
        *unreferenced(folder),
        *(file for file in sorted(folder.iterdir()) if _is_abandoned(file)),
    ]
    for file in removed:
        file.unlink(missing_ok=True)
    return tuple(removed)


def unreferenced(folder: Path, planned: Mapping[Path, str] | None = None) -> tuple[Path, ...]:
    """Return the contents of a topic that none of its TOML files names.

    Args:
        folder: A topic's golden folder; of one with a TOML file that cannot be read, or is of
            another format, nothing is returned.
        planned: TOML files as they are to be, by path; the others are read.
    """
    texts = dict(planned or {})
    named: set[str] = set()
    try:
        for toml in folder.glob("*.toml"):
            if toml not in texts:
                texts[toml] = toml.read_text(encoding="utf-8")
        for toml, text in texts.items():
            document = loads(text, toml)
            if document.tainted:
                return ()
            named |= document.contents()
    except (GoldenError, UnicodeDecodeError):
        return ()
    if not folder.is_dir():
        return ()
    return tuple(
        file
        for file in sorted(folder.iterdir())
        if CONTENT_NAME.fullmatch(file.name) and file.name not in named
    )


def _is_abandoned(file: Path) -> bool:
    if not file.name.startswith(TEMPORARY):
        return False
    return time.time() - file.stat().st_mtime > _ABANDONED_AFTER
