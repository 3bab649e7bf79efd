"""The location of the shared cache: a URL without credentials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from conformance.cache_folder import SHARED_URL, SHARED_WRITE
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE: Final = "none"
"""Value of the option and the setting for no shared cache."""
SCHEMES: Final = ("s3", "gs", "az", "file", "memory")
_PATH: Final = re.compile(r"(/[A-Za-z0-9_.=@+-]+)*/?")
"""Object keys of all providers, and paths of files, may have these characters unescaped."""


class CacheLocation(NamedTuple):
    """The shared cache of a command, which a process on another machine can open as well.

    Attributes:
        url: URL of the cache, without credentials and without a final slash.
        write: Whether the command adds entries.
    """

    url: str
    write: bool = False


def find_location(setting: str, environment: Mapping[str, str]) -> CacheLocation | None:
    """Return the shared cache of a command, None for none.

    Args:
        setting: URL in the settings of the project, empty for none.
        environment: Environment of the command; its variables have precedence.

    Raises:
        UsageError: If the URL is malformed or contains credentials, or results are to be written
            and there is no URL.
    """
    url = environment.get(SHARED_URL, "").strip()
    origin = SHARED_URL if url else "`cache` in pyproject.toml"
    url = url or setting
    write = environment.get(SHARED_WRITE, "") not in {"", "0"}
    if write and not url:
        raise UsageError(
            f"--cache-write: no shared cache to write to; give --cache URL, {SHARED_URL}, or "
            "`cache` in [tool.conformance] of pyproject.toml"
        )
    if url in {"", NONE}:
        return None
    return CacheLocation(parse_cache_url(url, f"shared cache ({origin})"), write)


def parse_cache_url(text: str, origin: str) -> str:
    """Return the URL of a cache, without a final slash.

    Args:
        text: `s3://BUCKET/PREFIX`, `gs://`, `az://CONTAINER/PREFIX`, `file:///FOLDER` or
            `memory://NAME`.
        origin: The option, variable or setting with the URL, for the message.

    Raises:
        UsageError: If it is malformed, has an unknown scheme, or contains credentials.
    """
    expected = "expected s3://BUCKET/PREFIX, gs://, az://, file:///FOLDER, or none"
    try:
        parts = urlsplit(text)
    except ValueError:  # `s3://[`
        raise UsageError(f"{origin}: is no URL, {expected}") from None
    # Checked first, and without the text: a message must not show a password either.
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{origin}: the URL contains credentials or parameters, {expected}; credentials come "
            "from the environment, e.g. AWS_ACCESS_KEY_ID"
        )
    if parts.scheme not in SCHEMES:
        raise UsageError(f"{origin} {text!r}: unknown scheme {parts.scheme!r}, {expected}")
    is_file = parts.scheme == "file"
    if is_file == bool(parts.netloc) or (is_file and not parts.path.strip("/")):
        raise UsageError(f"{origin} {text!r}: names no {'folder' if is_file else 'bucket'}")
    if not _PATH.fullmatch(parts.path) or not re.fullmatch(r"[A-Za-z0-9._-]*", parts.netloc):
        raise UsageError(f"{origin} {text!r}: has a character that needs escaping, {expected}")
    if ".." in parts.path.split("/"):
        raise UsageError(f"{origin} {text!r}: contains `..`, {expected}")
    return text.rstrip("/")
