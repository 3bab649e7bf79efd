"""What a script needs beside the packages of a cell, as it says itself, and as the user does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import tomllib
from packaging.utils import canonicalize_name

from conformance.cells.requirements import parse_requirement
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEADER: Final = re.compile(r"(?m)^# /// script\s*$\n((?:^#(?:| .*)$\n)*?)^# ///\s*$")
"""A script's own requirements, PEP 723."""


def requirements_of(script: str, wanted: Iterable[str], given: Iterable[str]) -> tuple[str, ...]:
    """Return what must be installed beside the packages of a cell.

    Args:
        script: Text of a script, whose own header counts too; what it says of packages that
            the cell has is what is searched, and does not count.
        wanted: Requirements that the user names.
        given: Packages of the cell.

    Raises:
        UsageError: If one is no requirement.
    """
    has = {canonicalize_name(name) for name in given}
    own = [
        text
        for text in _declared(script)
        if canonicalize_name(parse_requirement(text).name) not in has
    ]
    return tuple(sorted({str(parse_requirement(text)) for text in (*own, *wanted)}))


def without_header(script: str) -> str:
    """Return a script without its own requirements.

    Args:
        script: Its text.
    """
    return _HEADER.sub("", script)


def _declared(script: str) -> list[str]:
    match = _HEADER.search(script)
    if match is None:
        return []
    lines = (line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines())
    try:
        said = tomllib.loads("\n".join(lines)).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"header of the script: expected TOML: {str(error).lower()}") from None
    return [text for text in said if isinstance(text, str)] if isinstance(said, list) else []
