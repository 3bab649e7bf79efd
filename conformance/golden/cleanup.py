"""Removing goldens: those of cases that no longer exist, and contents that nothing names."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from conformance.files import TEMPORARY, disk_error, sync_to_disk
from conformance.golden.document import GoldenDocument, loads
from conformance.golden.errors import GoldenError
from conformance.golden.layout import (
    DOCUMENT,
    LARGE_FOLDER,
    PENDING,
    content_file,
    golden_folder,
    is_file_name,
)
from conformance.golden.store import read_content

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.model.case import Case

_ABANDONED_AFTER = 3600.0
"""Seconds after which a temporary file belongs to a process that was killed."""


def find_orphans(cases: Path, known: Iterable[Case]) -> tuple[Path, ...]:
    """Return the golden folders of cases that no longer exist, renamed ones for instance.

    Args:
        cases: Folder that holds the families.
        known: All cases in it.
    """
    wanted = {golden_folder(cases, case) for case in known}
    found = (file.parent for file in sorted(cases.glob(f"*/golden/*/*/{DOCUMENT}")))
    return tuple(folder for folder in found if folder not in wanted)


def remove_goldens(folders: Iterable[Path]) -> None:
    """Remove golden folders, the large values that they alone name, and topics left empty.

    Args:
        folders: As `find_orphans` returns them.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    folders = tuple(folders)
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise disk_error(folder, error) from error
    for topic in sorted({folder.parent for folder in folders}):
        _remove_files(_find_unnamed_large(topic, {}))
        for empty in (topic / LARGE_FOLDER, topic):
            if empty.is_dir() and not any(empty.iterdir()):
                empty.rmdir()


def finish_write(folder: Path) -> None:
    """Rename pending contents of a case, and remove contents that its document does not name.

    Args:
        folder: Golden folder of a case. If its document cannot be read, or has another format,
            the folder is left alone.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    try:
        text = (folder / DOCUMENT).read_text(encoding="utf-8")
        document = loads(text, folder / DOCUMENT)
        for content, name in document.files.items():
            file = content_file(folder, name)
            pending = file.with_name(file.name + PENDING)
            if pending.exists() and read_content(file, content) == pending.read_bytes():
                pending.replace(file)
        sync_to_disk(folder)
    except (GoldenError, UnicodeDecodeError):
        return  # a file is damaged: leave all to the person who repairs it
    except OSError as error:
        raise disk_error(folder, error) from error
    _remove_files(find_unreferenced(folder))


def find_unreferenced(folder: Path, planned: Mapping[Path, str] | None = None) -> tuple[Path, ...]:
    """Return the files of a case, and the large values of its topic, that no document names.

    Args:
        folder: Golden folder of a case.
        planned: Documents that are about to be written, by path; the others are read.

    Returns:
        The files. None if a document of the topic cannot be read or has another format.
    """
    planned = planned or {}
    document = _load_document(folder / DOCUMENT, planned)
    if document is None or not folder.is_dir():
        return ()
    named = {DOCUMENT, *document.files.values()}
    unnamed = (
        file
        for file in sorted(folder.iterdir())
        if file.name not in named
        and (is_file_name(file.name.removesuffix(PENDING)) or _is_abandoned(file))
    )
    return (*unnamed, *_find_unnamed_large(folder.parent, planned))


def _find_unnamed_large(topic: Path, planned: Mapping[Path, str]) -> tuple[Path, ...]:
    large = topic / LARGE_FOLDER
    if not large.is_dir():
        return ()
    paths = {*topic.glob(f"*/{DOCUMENT}"), *(p for p in planned if p.parent.parent == topic)}
    documents = [_load_document(path, planned) for path in paths]
    named = {name for document in documents if document for name in document.files}
    if None in documents:
        return ()
    return tuple(file for file in sorted(large.iterdir()) if file.name not in named)


def _load_document(file: Path, planned: Mapping[Path, str] | None = None) -> GoldenDocument | None:
    """Return a document, None if it cannot be read or has another format."""
    try:
        text = (planned or {}).get(file) or file.read_text(encoding="utf-8")
        document = loads(text, file)
    except (GoldenError, UnicodeDecodeError, OSError):
        return None
    return None if document.tainted else document


def _remove_files(files: Iterable[Path]) -> None:
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(file, error) from error


def _is_abandoned(file: Path) -> bool:
    if not file.name.startswith(TEMPORARY):
        return False
    return time.time() - file.stat().st_mtime > _ABANDONED_AFTER
