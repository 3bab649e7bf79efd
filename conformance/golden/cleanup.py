"""Removal of goldens of cases that no longer exist, and of contents that no document names."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from conformance.files import TEMPORARY, disk_error
from conformance.golden.document import GoldenDocument, GoldenError, loads
from conformance.golden.layout import (
    DOCUMENT,
    LARGE_FOLDER,
    PENDING,
    get_golden_folder,
    is_file_name,
)

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
    wanted = {get_golden_folder(cases, case) for case in known}
    found = (file.parent for file in sorted(cases.glob(f"*/golden/*/*/{DOCUMENT}")))
    return tuple(folder for folder in found if folder not in wanted)


def remove_goldens(folders: Iterable[Path]) -> None:
    """Remove golden folders, large values that no other document names, and empty topics.

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
    # After the folders: a large value is unnamed only once the documents that name it are gone.
    for topic in sorted({folder.parent for folder in folders}):
        remove_files(_find_unnamed_large(topic, {}))
        for empty in (topic / LARGE_FOLDER, topic):
            if empty.is_dir() and not any(empty.iterdir()):
                empty.rmdir()


def remove_files(files: Iterable[Path]) -> None:
    """Remove files; missing files are ignored.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(file, error) from error


def find_unreferenced(documents: Mapping[Path, str]) -> tuple[Path, ...]:
    """Return the files of cases, and the large values of their topics, that no document names.

    Args:
        documents: Text of the documents of the cases by path, as written or about to be.

    Returns:
        The files. Large values of a topic are left out if one of its documents cannot be read or
        has another format, since it may name them.
    """
    found: list[Path] = []
    for file in documents:
        document = _load_document(file, documents)
        if document is not None and file.parent.is_dir():
            named = {DOCUMENT, *document.files.values()}
            found += (
                other
                for other in sorted(file.parent.iterdir())
                if other.name not in named
                # Other files, e.g. notes of a user, are not ours to remove.
                and (is_file_name(other.name.removesuffix(PENDING)) or _is_abandoned(other))
            )
    for topic in sorted({file.parent.parent for file in documents}):
        found += _find_unnamed_large(topic, documents)
    return tuple(found)


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


def _load_document(file: Path, planned: Mapping[Path, str]) -> GoldenDocument | None:
    """Return a document, None if it cannot be read or has another format."""
    try:
        # A planned document decides, as its file is replaced before this runs or is about to be.
        text = planned.get(file) or file.read_text(encoding="utf-8")
        document = loads(text, file)
    except (GoldenError, UnicodeDecodeError, OSError):
        return None
    return None if document.tainted else document


def _is_abandoned(file: Path) -> bool:
    if not file.name.startswith(TEMPORARY):
        return False
    return time.time() - file.stat().st_mtime > _ABANDONED_AFTER
