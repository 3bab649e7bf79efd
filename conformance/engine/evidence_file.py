"""The file `evidence.json` of a run directory: what was found out about its root causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from conformance.engine.run_directory import CorruptRunError
from conformance.files import (
    MALFORMED,
    disk_error,
    read_regular,
    readable_json,
    write_atomically,
)
from conformance.locking import lock_file
from conformance.model.evidence import EVIDENCE, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.engine.run_directory import RunDirectory


def read_evidence(directory: RunDirectory) -> dict[str, Evidence]:
    """Return what was found out about the root causes of a run; nothing where nobody looked.

    Args:
        directory: The run's.

    Raises:
        CorruptRunError: If the file is there and cannot be read.
    """
    content = directory.read_file(EVIDENCE)
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content, type=tuple[Evidence, ...])
    except MALFORMED as error:
        raise CorruptRunError(
            f"{directory.path / EVIDENCE}: expected what was found out: {str(error).lower()}; "
            f"conformance triage --fresh --run {directory.path} makes it anew"
        ) from None
    return {one.cause: one for one in found}


def add_evidence(
    directory: RunDirectory, found: Evidence, causes: Iterable[str], inform: Callable[[str], None]
) -> None:
    """Add what was found out about a root cause to what is known of the run by then.

    Args:
        directory: The run's.
        found: What was found out; it replaces what was known of its cause.
        causes: Ids of the run's root causes, in order: what is known of others is dropped.
        inform: Receives one line if another process writes it at the moment.

    Raises:
        CorruptRunError: If the file is there and cannot be read.
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    with lock_file(file, inform):
        known = {**read_evidence(directory), found.cause: found}
        text = readable_json(tuple(known[cause] for cause in causes if cause in known))
        write_atomically(file, text + b"\n")


def forget_evidence(directory: RunDirectory) -> None:
    """Remove what was found out before, also where it cannot be read.

    Args:
        directory: The run's.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(file, error) from None


def read_reproduction(directory: RunDirectory, found: Evidence) -> str:
    """Return the file that shows a root cause, empty where there is none any more.

    Args:
        directory: The run's.
        found: What was found out about the cause.
    """
    if not found.repro:
        return ""
    path = directory.path / found.repro
    try:
        # The file may come from elsewhere: what it names must lie in the directory itself.
        if not path.resolve().is_relative_to(directory.path.resolve()):
            return ""
        return read_regular(path).decode("utf-8", "replace")
    except (OSError, ValueError):  # a null byte in its name
        return ""
