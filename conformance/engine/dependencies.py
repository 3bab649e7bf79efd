"""Packages that a program imports and its cell lacks: nothing that a release of jax did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.corpus.python_source import STANDARD_LIBRARY

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from conformance.model.record import ErrorInfo

_MISSING: Final = re.compile(r"No module named '([A-Za-z_]\w*)'")
"""What Python says of a top-level module; a dotted name is missing from a package that is there."""


def missing_dependency(error: ErrorInfo, installed: Collection[str], file: Path, what: str) -> str:
    """Return that a program needs a package which its cell lacks, empty if it failed otherwise.

    A module of the standard library, of a package that the cell has, or one that lies beside the
    program or in a folder above it is another matter: there a release may be the reason.

    Args:
        error: Why it failed.
        installed: Packages of the cell.
        file: The program.
        what: What it is called, e.g. `the suite`.
    """
    found = _MISSING.match(error.message)
    if error.type != "ModuleNotFoundError" or found is None:
        return ""
    name = found[1]
    places = [place for folder in file.absolute().parents for place in (folder, folder / "src")]
    # A folder that merely has the name, e.g. a clone, provides nothing.
    modules = (f"{name}.py", f"{name}/__init__.py")
    is_local = any((place / module).is_file() for place in places for module in modules)
    if is_local or str(canonicalize_name(name)) in installed or name in STANDARD_LIBRARY:
        return ""
    return (
        f"{what} imports {name!r}, and the cell has no package of that name: name the package "
        f"that provides it, e.g. --with {name}"
    )
