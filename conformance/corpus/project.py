"""A project: its folders in a checkout or in the installed package, and its settings."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import tomllib

from conformance.corpus.generated_cases import Function
from conformance.errors import UsageError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterable


PACKAGE = Path(__file__).resolve().parent.parent
FOR_CASES: Final = {
    f"conformance.kit.{name}": PACKAGE / "kit" / f"{name}.py"
    for name in ("endings", "equations", "laws", "tolerances")
}
"""Modules of the kit with functions for cases alone: cases depend on them as on their helpers."""


def list_modules(package: Path = PACKAGE) -> list[Path]:
    """Return the modules of a package, sorted, without the case files in its data.

    Cases are data of an installed package and separate files in a checkout. The code is the same.

    Args:
        package: Folder of the package.
    """
    data = package / "data"
    return sorted(file for file in package.rglob("*.py") if data not in file.parents)


def hash_code(files: Iterable[Path]) -> str:
    """Return a hash of modules, 12 digits, to invalidate results of other code.

    Args:
        files: Modules of this package.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders of a project.

    Attributes:
        root: Parent folder of the run directories.
        cases: Folder of the families.
        matrices: Folder of the matrix files, `releases.toml` and `locks/`.
        suites: Folder of the named suites, with a folder for each.
        ecosystem: Folder of the libraries, with a file for each, and their outcomes.
        writable: Whether goldens and locks may be written; False for installed data.
    """

    root: Path
    cases: Path
    matrices: Path
    suites: Path
    ecosystem: Path
    writable: bool


def find_project(start: Path) -> Project:
    """Return the checkout that contains a folder, otherwise the data installed with the package.

    Args:
        start: Folder from which to search upwards.

    Returns:
        The nearest ancestor with `matrix/releases.toml` and `cases/`, otherwise the checkout of
        this package, otherwise the installed data with `start` as root.
    """
    checkouts = filter(_is_checkout, (start, *start.parents, PACKAGE.parent))
    checkout = next(checkouts, None)
    data = PACKAGE / "data" if checkout is None else checkout
    return Project(
        root=checkout or start,
        cases=data / "cases",
        matrices=data / "matrix",
        suites=data / "suites",
        ecosystem=data / "ecosystem",
        writable=checkout is not None,
    )


def _is_checkout(folder: Path) -> bool:
    return (folder / "matrix" / "releases.toml").is_file() and (folder / "cases").is_dir()


def relative_to_project(text: str, case: str, *roots: str) -> str:
    """Return a text with paths in the project made relative to it.

    IRs and cached results contain the paths of the machine that ran the job.

    Args:
        text: Text with absolute paths.
        case: Case id; the folder of its file has the name of its family.
        roots: Known folders of the project.
    """
    for root in filter(None, roots):
        # Known folders first; the pattern is for results that came from another machine.
        text = text.replace(f"{root}/", "")
    return _match_outside(case.partition("/")[0]).sub("", text)


@lru_cache(maxsize=256)
def _match_outside(family: str) -> re.Pattern[str]:
    """Return a pattern of the path of the project before `cases/<family>/<topic>.py`."""
    return re.compile(rf"(?<!\S)/(?:\S*/)?(?=[^/\s]+/{re.escape(family)}/[^/\s]+\.py\b)")


SETTINGS_FILE = "pyproject.toml"


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a project: `[tool.conformance]` in its `pyproject.toml`.

    Attributes:
        nightly_index: URL of the index of nightlies, empty for the default.
        wanted: Additional packages of cells, unless `--with` is given: requirements, wheels,
            folders of packages. Paths are relative to the folder of the settings.
        pass_env: Further environment variables that are passed to cells: names, and patterns such
            as `MYLIB_*`.
        functions: Functions that are cases.
        cache: URL of the shared cache, empty for none.
        scheduler: Address of the Dask scheduler that `--executor dask` uses, empty for none.
        jax_repository: Path or URL of the repository of jax, empty for the public one.
    """

    nightly_index: str = msgspec.field(default="", name="nightly-index")
    wanted: tuple[str, ...] = msgspec.field(default=(), name="with")
    pass_env: tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")], ...] = (
        msgspec.field(default=(), name="pass-env")
    )
    functions: tuple[Function, ...] = ()
    cache: str = ""
    scheduler: str = ""
    jax_repository: str = msgspec.field(default="", name="jax-repo")


def find_settings_file(start: Path) -> Path | None:
    """Return the nearest `pyproject.toml` with settings, None if there is none.

    Args:
        start: Folder from which to search upwards.

    Raises:
        UsageError: If a file on the way is not valid TOML.
    """
    files = (folder / SETTINGS_FILE for folder in (start, *start.parents))
    return next((file for file in files if _read_table(file) is not None), None)


def find_settings(start: Path) -> ProjectSettings:
    """Return the settings of the nearest `pyproject.toml` with settings, otherwise the defaults.

    Args:
        start: Folder from which to search upwards.

    Raises:
        UsageError: If a file on the way is not valid TOML, or a setting is unknown or of the wrong
            type.
    """
    file = find_settings_file(start)
    return ProjectSettings() if file is None else _parse_settings(_read_table(file), file)


def _read_table(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        tool = tomllib.loads(text).get("tool")
        # A pyproject.toml without the table is skipped: that of a workspace may be further up.
        return tool.get("conformance") if isinstance(tool, dict) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, *MALFORMED) as error:
        raise UsageError(f"{file}: cannot read the settings: {error}") from error


def _parse_settings(table: Any, file: Path) -> ProjectSettings:
    try:
        found = msgspec.convert(table, ProjectSettings)
        # A requirement that starts with a dot is a path.
        wanted = (
            str(file.parent / text) if text.startswith(".") else text for text in found.wanted
        )
        return msgspec.structs.replace(found, wanted=tuple(wanted))
    except msgspec.ValidationError as error:
        problem = str(error)
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(ProjectSettings))
        raise UsageError(
            f"{file}: [tool.conformance]: {problem[:1].lower()}{problem[1:]}; known are {known}"
        ) from error
