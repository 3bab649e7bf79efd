"""The file `evidence.json` of a run directory: what was found out about its root causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from conformance.engine.rundir import CorruptRunError
from conformance.files import MALFORMED, read_regular, readable_json, said_by, write_atomically
from conformance.model.evidence import EVIDENCE, Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.rundir import RunDirectory


def read_evidence(directory: RunDirectory) -> dict[str, Evidence]:
    """Return what was found out about the root causes of a run; nothing where nobody looked.

    Args:
        directory: The run's.

    Raises:
        CorruptRunError: If the file is there and cannot be read.
    """
    path = directory.path / EVIDENCE
    try:
        found = msgspec.json.decode(read_regular(path), type=tuple[Evidence, ...])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CorruptRunError(f"{path}: cannot be read: {said_by(error)}") from None
    except MALFORMED as error:
        raise CorruptRunError(
            f"{path}: expected what was found out: {str(error).lower()}; "
            f"conformance triage --fresh {directory.path} makes it anew"
        ) from None
    return {one.cause: one for one in found}


def write_evidence(directory: RunDirectory, found: Mapping[str, Evidence]) -> None:
    """Write what was found out, whole or not at all.

    Args:
        directory: The run's.
        found: By id of the root cause.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    text = readable_json(tuple(found.values()))
    write_atomically(directory.path / EVIDENCE, text + b"\n")


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
