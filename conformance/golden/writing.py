"""Atomic writes of goldens: a killed writer leaves a case with either its old or new goldens."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.files import disk_error, sync_to_disk, write_atomically
from conformance.golden.cleanup import find_unreferenced, remove_files
from conformance.golden.document import GoldenError, loads
from conformance.golden.layout import LARGE_FOLDER, PENDING, get_content_file
from conformance.golden.store import read_content

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def refuse_in_ci(env: Mapping[str, str] = os.environ) -> None:
    """Refuse to write goldens in CI, where no person reviews them.

    Args:
        env: Environment variables.

    Raises:
        UsageError: If the variable CI is set.
    """
    # GitHub, GitLab and most others set CI=true; a developer may set CI=0.
    if env.get("CI", "").lower() not in {"", "0", "false"}:
        raise UsageError("goldens are never written in CI (CI is set); accept them locally")


def write_goldens(contents: Mapping[Path, bytes], documents: Mapping[Path, str]) -> None:
    """Write the goldens of some cases, one case after the other.

    Contents keep their names when they change, so they are first written to pending files.
    Replacing the document is the step that commits, after which the pending files are renamed. A
    reader accepts a pending file with the recorded hash, and the next write of the case completes
    the renaming. At the end, contents that no document names any more are removed.

    Args:
        contents: Content files by path; large values among them.
        documents: Documents by path.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    files: dict[Path, dict[Path, bytes]] = defaultdict(dict)
    for file, data in contents.items():
        files[file.parent][file] = data
    # A large value is named after its hash: written first, it changes no golden.
    large = (found for folder, found in files.items() if folder.name == LARGE_FOLDER)
    for file, data in chain.from_iterable(found.items() for found in large):
        write_atomically(file, data, durable=True)
    for document, text in documents.items():
        for file, data in files[document.parent].items():
            write_atomically(file.with_name(file.name + PENDING), data, durable=True)
        write_atomically(document, text.encode(), durable=True)
        _rename_pending(document, text)
    # Last: until all documents are replaced, a former one may name any of these files.
    remove_files(find_unreferenced(documents))


def _rename_pending(document: Path, text: str) -> None:
    folder = document.parent
    try:
        for content, name in loads(text, document).files.items():
            file = get_content_file(folder, name)
            pending = file.with_name(file.name + PENDING)
            # A pending file of an earlier write that never committed may have another content.
            if pending.exists() and _has_content(file, content, pending.read_bytes()):
                pending.replace(file)
        sync_to_disk(folder)
    except OSError as error:
        raise disk_error(folder, error) from error


def _has_content(file: Path, content: str, data: bytes) -> bool:
    """Return whether a pending file has the content that the document records."""
    try:
        return read_content(file, content) == data
    except GoldenError:  # neither has it: the person who repairs the file decides
        return False
