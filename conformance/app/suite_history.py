"""The committed history of a suite: its file, and reading it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.files import said_by
from conformance.report.conformance_data import decoded

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.report.conformance_history import Conformance

FOLDER: Final = "reports"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


def history_file(context: ProjectContext, title: str) -> Path:
    """Return the default file of the history of a suite.

    Args:
        context: The project.
        title: The suite's title.
    """
    name = _NOT_IN_NAMES.sub("-", title.lower()).strip("-") or "suite"
    return context.project.root / FOLDER / f"{name}.json"


def read_history(file: Path) -> Conformance | None:
    """Return the history in a file, None if there is no file.

    Args:
        file: The file.

    Raises:
        UsageError: If it cannot be read.
    """
    try:
        return decoded(file.read_bytes(), str(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {said_by(error)}") from None


def committed(context: ProjectContext, title: str) -> Conformance | None:
    """Return the committed history of a suite, None where there is none.

    Args:
        context: The project.
        title: The suite's title.

    Raises:
        UsageError: If it cannot be read.
    """
    return read_history(history_file(context, title)) if title else None
