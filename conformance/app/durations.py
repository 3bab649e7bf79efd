"""The durations of jobs in a project: read, and learned from runs."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from conformance.app.output_files import print_note
from conformance.engine.durations import (
    FILE_NAME,
    Durations,
    decode_durations,
    update_durations,
)
from conformance.engine.runs.loader import find_runs, load_run
from conformance.errors import UsageError
from conformance.files import describe_os_error, write_atomically
from conformance.locking import lock_folders

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.app.context import ProjectContext


def find_durations_file(context: ProjectContext) -> Path:
    """Return the file with the durations of jobs in a project."""
    return context.project.matrices / FILE_NAME


def load_durations(context: ProjectContext) -> Durations:
    """Return the known durations of jobs, none if the project has no file."""
    file = find_durations_file(context)
    try:
        return decode_durations(file.read_bytes(), str(file))
    except FileNotFoundError:
        # A project without durations splits runs by defaults, which only balances them worse.
        return Durations()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def learn_durations(context: ProjectContext, folders: Iterable[Path]) -> Durations:
    """Add the durations of jobs in runs to those of the project, and return all durations.

    Args:
        context: The project.
        folders: Directories of runs, or folders of such.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    runs = chain.from_iterable(map(find_runs, folders))
    # Read before the lock, which another process may wait for.
    records = tuple(chain.from_iterable(load_run(run).records for run in runs))
    file = find_durations_file(context)
    with lock_folders({file.parent}, print_note):
        # Loaded under the lock, so that durations another process has just added are kept.
        durations = update_durations(records, load_durations(context))
        write_atomically(file, durations.encode())
    return durations
