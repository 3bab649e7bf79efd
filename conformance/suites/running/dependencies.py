"""Packages that a suite imports and its cell lacks: nothing that a release of jax did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.cells.standard_library import STANDARD_LIBRARY

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import Job
    from conformance.model.record import ErrorInfo

_MISSING: Final = re.compile(r"No module named '([A-Za-z_]\w*)'")
"""What Python says of a top-level module; a dotted name is missing from a package that is there."""


def missing_dependency(job: Job, error: ErrorInfo) -> str:
    """Return that a test needs a package which its cell lacks, empty if that is not why it failed.

    A module of the standard library, of a package that the cell has, or of the suite itself is
    another matter: there a release may be the reason.

    Args:
        job: The test.
        error: Why it failed.
    """
    found = _MISSING.match(error.message)
    if error.type != "ModuleNotFoundError" or found is None:
        return ""
    name = found[1]
    installed = str(canonicalize_name(name)) in job.planned.versions
    if installed or name in STANDARD_LIBRARY or _is_local(name, job.case.file):
        return ""
    return (
        f"the suite imports {name!r}, and the cell has no package of that name: name the package "
        f"that provides it, e.g. --with {name}"
    )


def _is_local(name: str, file: Path) -> bool:
    """Say whether a module of that name lies beside a test, or in a folder above it."""
    places = [place for folder in file.absolute().parents for place in (folder, folder / "src")]
    return any((place / name).is_dir() or (place / f"{name}.py").is_file() for place in places)
