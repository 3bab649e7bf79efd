"""Where cases and matrices are: a checkout, or the data that travels with the wheel."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = Path(__file__).resolve().parent.parent
FOR_CASES: Final = {
    f"conformance.kit.{name}": PACKAGE / "kit" / f"{name}.py" for name in ("endings", "equations")
}
"""Modules of the kit that hold nothing but functions for cases: they are read like helpers."""


def hash_code(files: Iterable[Path]) -> str:
    """Return the hash of some modules of the package, 12 digits: other code, other results.

    Args:
        files: The modules.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders of a project.

    Attributes:
        root: Folder that run directories are written below.
        cases: Folder of the families.
        matrices: Folder of the matrix files, `releases.toml` and `locks/`.
        suites: Folder of the named suites, each in a folder of its own.
        writable: Whether goldens and locks may be written here; False for installed data.
    """

    root: Path
    cases: Path
    matrices: Path
    suites: Path
    writable: bool


def find_project(start: Path) -> Project:
    """Return the checkout that holds `start`, else the data installed with the package.

    Args:
        start: Folder to look from, upwards.

    Returns:
        The nearest ancestor that has `matrix/releases.toml` and `cases/`; failing that, the
        checkout the package itself is run from, or the installed data with `start` as root.
    """
    for folder in (start, *start.parents):
        if _is_checkout(folder):
            return _project(folder, folder, writable=True)
    if _is_checkout(PACKAGE.parent):
        return _project(PACKAGE.parent, PACKAGE.parent, writable=True)
    return _project(start, PACKAGE / "data", writable=False)


def _is_checkout(folder: Path) -> bool:
    return (folder / "matrix" / "releases.toml").is_file() and (folder / "cases").is_dir()


def _project(root: Path, data: Path, *, writable: bool) -> Project:
    return Project(
        root=root,
        cases=data / "cases",
        matrices=data / "matrix",
        suites=data / "suites",
        writable=writable,
    )


def relative_to_project(text: str, case: str, *roots: str) -> str:
    """Return a text in which files of a case's project are named as seen from its folder.

    Results that are used again, and IRs, name files as they were where the job was run.

    Args:
        text: A text that names files by absolute paths.
        case: Case id; its file lies in a folder that is called like its family.
        roots: Folders of the project, where they are known.
    """
    for root in filter(None, roots):
        text = text.replace(f"{root}/", "")
    return _outside(case.partition("/")[0]).sub("", text)


@lru_cache(maxsize=256)
def _outside(family: str) -> re.Pattern[str]:
    """Return what comes before `cases/<family>/<topic>.py` in an absolute path."""
    return re.compile(rf"(?<!\S)/(?:\S*/)?(?=[^/\s]+/{re.escape(family)}/[^/\s]+\.py\b)")
