"""The settings of a project: `[tool.conformance]` in its `pyproject.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import tomllib

from conformance.corpus.function_cases import Function  # noqa: TC001 - msgspec reads the annotations
from conformance.errors import UsageError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "pyproject.toml"


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a project.

    Attributes:
        nightly_index: URL of the index with nightlies of jax, empty for none.
        wanted: What cells have beside their own packages where no `--with` says it: requirements,
            wheels, folders of packages; a path is one from the folder of the settings.
        pass_env: Environment variables that cells get from the caller in addition to the usual
            ones: names, and patterns such as `MYLIB_*`.
        functions: Functions that are cases as they are.
    """

    nightly_index: str = msgspec.field(default="", name="nightly-index")
    wanted: tuple[str, ...] = msgspec.field(default=(), name="with")
    pass_env: tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")], ...] = (
        msgspec.field(default=(), name="pass-env")
    )
    functions: tuple[Function, ...] = ()


def settings_file(start: Path) -> Path | None:
    """Return the `pyproject.toml` whose settings hold in a folder, None where none has any.

    Args:
        start: Folder to look from, upwards.

    Raises:
        UsageError: If a file on the way is no TOML.
    """
    files = (folder / FILE_NAME for folder in (start, *start.parents))
    return next((file for file in files if _table(file) is not None), None)


def find_settings(start: Path) -> ProjectSettings:
    """Return the settings that hold in a folder.

    Args:
        start: Folder to look from, upwards.

    Returns:
        Those of the nearest `pyproject.toml` that has any, else the defaults.

    Raises:
        UsageError: If a file on the way is no TOML, or a setting is unknown or of a wrong type.
    """
    file = settings_file(start)
    return ProjectSettings() if file is None else _read(_table(file), file)


def _table(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
        tool = tomllib.loads(text).get("tool")
        return tool.get("conformance") if isinstance(tool, dict) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, *MALFORMED) as error:
        raise UsageError(f"{file}: cannot read the settings: {error}") from error


def _read(table: Any, file: Path) -> ProjectSettings:
    try:
        found = msgspec.convert(table, ProjectSettings)
        wanted = (_from(file.parent, text) for text in found.wanted)
        return msgspec.structs.replace(found, wanted=tuple(wanted))
    except msgspec.ValidationError as error:
        said = str(error)
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(ProjectSettings))
        raise UsageError(
            f"{file}: [tool.conformance]: {said[:1].lower()}{said[1:]}; known are {known}"
        ) from error


def _from(folder: Path, text: str) -> str:
    """Return what is wanted with a path that means the same from anywhere."""
    return str(folder / text) if text.startswith(".") else text
