"""Whether a script is one file by itself, so that it can be cut down or sent upstream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.engine.input_files import READ_FILES, decode_inputs
from conformance.errors import UsageError
from conformance.search.failures import SILENT, ending

if TYPE_CHECKING:
    from conformance.engine.blobs import BlobStore
    from conformance.model.record import Record
    from conformance.triage.programs.program import ProgramTarget


def refuse_other_files(record: Record, blobs: BlobStore, script: ProgramTarget) -> None:
    """Refuse a script that cannot be one file by itself.

    Args:
        record: What came of it.
        blobs: Its blobs.
        script: The script.

    Raises:
        UsageError: If it did not run, or reads other files of the user's own.
    """
    if record.outcome in SILENT:
        raise UsageError(f"{record.cell}: {ending(record)}")
    own = Path(script.text).resolve()
    read = decode_inputs(blobs.get(record.artifacts[READ_FILES]))
    others = [path for path, content in read.items() if content and Path(path) != own]
    if others:
        raise UsageError(
            f"{own.name}: reads {', '.join(others)}, expected a script of one file; "
            "put what it needs of them into the script"
        )
