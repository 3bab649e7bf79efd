"""What changed since the last night, in the directory of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from conformance.engine.run_directory import CorruptRunError
from conformance.files import MALFORMED, read_regular, said_by, write_atomically
from conformance.model.since import SINCE, Since

if TYPE_CHECKING:
    from conformance.engine.run_directory import RunDirectory


def write_since(directory: RunDirectory, since: Since) -> None:
    """Write what changed, whole or not at all.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    write_atomically(directory.path / SINCE, msgspec.json.encode(since) + b"\n")


def read_since(directory: RunDirectory) -> Since | None:
    """Return what changed; None of a run that was compared with none.

    Raises:
        CorruptRunError: If it cannot be read.
    """
    path = directory.path / SINCE
    try:
        return msgspec.json.decode(read_regular(path), type=Since)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CorruptRunError(f"{path}: cannot be read: {said_by(error)}") from None
    except MALFORMED as error:
        raise CorruptRunError(
            f"{path}: expected what changed since another run: {str(error).lower()}; delete it"
        ) from None
