"""Sweeping up golden folders: goldens of cases that are gone, contents that nothing names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conformance.files import TEMPORARY, disk_error
from conformance.golden.document import loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import CONTENT_NAME, file_name, folder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.model.case import Case

_ABANDONED_AFTER = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""


def of_no_case(cases: Path, known: Iterable[Case]) -> tuple[Path, ...]:
    """Return the TOML files of cases that are no more, renamed ones for instance.

    Args:
        cases: Folder that holds the families.
        known: All cases in it.
    """
    wanted = {folder_of(cases, case) / file_name(case.id) for case in known}
    return tuple(file for file in sorted(cases.glob("*/golden/*/*.toml")) if file not in wanted)


def remove(files: Iterable[Path]) -> None:
    """Remove TOML files, the contents that they alone name, and folders that are empty then.

    Args:
        files: As `of_no_case` returns them.
    """
    files = tuple(files)
    for file in files:
        _unlink(file)
    for folder in sorted({file.parent for file in files}):
        remove_unreferenced(folder)
        if not any(folder.iterdir()):
            folder.rmdir()


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
        _unlink(file)
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


def _unlink(file: Path) -> None:
    """Remove a file if it is there.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(file, error) from error


def _is_abandoned(file: Path) -> bool:
    if not file.name.startswith(TEMPORARY):
        return False
    return time.time() - file.stat().st_mtime > _ABANDONED_AFTER
