"""Locks of other tools: which version of each package a project of the user's has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from packaging.utils import canonicalize_name

from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PIN: Final = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*===?\s*([^\s;#\\,]+)", re.MULTILINE
)
_TABLES: Final = ("packages", "package")
"""What the table of packages is called: in a pylock.toml; in a uv.lock or a poetry.lock."""


def read_foreign_pins(file: Path) -> Mapping[str, str]:
    """Return the version of each package that a lock names, by normalised name.

    Args:
        file: Requirements that are pinned, as `uv pip compile` and `pip freeze` write them, with
            hashes or without; a `pylock.toml`, a `uv.lock` or a `poetry.lock`.

    Raises:
        UsageError: If it cannot be read, or pins nothing.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else "no text"
        raise UsageError(f"{file}: cannot be read: {said}; expected a lock") from None
    is_toml = file.suffix == ".toml" or file.name in {"uv.lock", "poetry.lock"}
    pins = _of_toml(file, text) if is_toml else dict(_PIN.findall(text))
    if not pins:
        raise UsageError(f"{file}: pins no package, expected lines like jax==0.6.2")
    return {str(canonicalize_name(name)): version for name, version in pins.items()}


def _of_toml(file: Path, text: str) -> dict[str, str]:
    try:
        data: dict[str, Any] = msgspec.toml.decode(text)
    except MALFORMED as error:
        raise UsageError(f"{file}: expected TOML: {str(error).lower()}") from None
    entries: list[Any] = next(
        (data[name] for name in _TABLES if isinstance(data.get(name), list)), []
    )
    return {
        entry["name"]: entry["version"]
        for entry in entries
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("version"), str)
    }
