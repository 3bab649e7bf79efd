"""Keeping secrets out of what is printed, written and run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MASK: Final = "***"
_USER_INFO: Final = re.compile(r"(?<=://)[^/\s'\"]+@")
# As words between underscores: AUTHOR is no AUTH, and KEYBOARD no KEY.
_SECRET_NAME: Final = re.compile(
    r"(^|_)(TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD|PAT|KEYS?|APIKEYS?|CREDENTIALS?"
    r"|CREDS|AUTH|AUTHORIZATION|COOKIES?|DSN|JWT|PGPASSFILE|PGSERVICEFILE|NETRC)(_|\d|$)"
    r"|PASSWORD|SECRET|WEBHOOK"
    # Written in one word: APITOKEN, DBPASS, but not BYPASS or COMPASS.
    r"|(TOKENS?|APIKEYS?|(?<!BY)(?<!COM)PASS)(_|$)",
    re.IGNORECASE,
)
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
_SHORTEST: Final = 6
"""Characters from which a value is masked wherever it stands; a shorter one may be any word."""


def is_secret(name: str, value: str) -> bool:
    """Say whether an environment variable holds a secret, by its name or by what it holds.

    Args:
        name: The variable.
        value: What it holds; a URL with a password is one.
    """
    return (bool(_SECRET_NAME.search(name)) and name not in _NO_SECRETS) or bool(
        _USER_INFO.search(value)
    )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without its secrets.

    Args:
        environment: Variables by name.
    """
    return {name: value for name, value in environment.items() if not is_secret(name, value)}


def masked(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a text with the user names and passwords of its URLs masked, and known secrets.

    Args:
        text: Any text, e.g. the error output of a program.
        environment: Variables whose secrets are known.

    Returns:
        The text with `://user:password@` as `://***@`, and each secret of the environment as `***`.
    """
    text = _USER_INFO.sub(f"{MASK}@", text)
    for secret in sorted(_secrets(environment), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if "://" in value:
            for found in _USER_INFO.findall(value):
                user, *password = found[:-1].split(":", 1)
                yield from (part for part in password or [user] if len(part) >= _SHORTEST)
        elif len(value) >= _SHORTEST and is_secret(name, value):
            yield value
