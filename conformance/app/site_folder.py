"""Writing the site into a folder, and removing the files of an older one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from conformance.app.notes import print_note
from conformance.cells.secret_masking import Masker
from conformance.files import write_atomically
from conformance.garbage_collection import pause_garbage_collection
from conformance.locking import lock_folders

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MANIFEST: Final = "files.txt"
"""What the site consists of, a path a line: what a later one does not have is removed."""


def write_site(files: Iterable[tuple[str, bytes]], folder: Path) -> None:
    """Write the files of a site.

    Args:
        files: Path below the folder, and content, of each.
        folder: Where to; made if need be. Files that are not of a site are left alone.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    # Of two at once, each would remove pages of the other that it does not have itself.
    with lock_folders({folder}, print_note):
        before = _files(folder)
        written, masker = [], Masker(os.environ)
        with pause_garbage_collection():
            for path, content in files:
                write_atomically(folder / path, masker.content(content))
                written.append(path)
        text = "".join(f"{path}\n" for path in sorted(written))
        write_atomically(folder / MANIFEST, text.encode())
        for path in before.difference(written):
            (folder / path).unlink(missing_ok=True)


def _files(folder: Path) -> set[str]:
    """Return what an earlier site consists of; only what lies within the folder is believed."""
    try:
        lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    root = folder.resolve()
    return {line for line in lines if (folder / line).resolve().is_relative_to(root)}
