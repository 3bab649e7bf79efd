"""Keeping secrets out of what is printed, written and run."""

from __future__ import annotations

import os
import re
from html.entities import codepoint2name
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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
_HEADER: Final = re.compile(r"authorization:\s*(?:\w+\s+)?(\S+)", re.IGNORECASE)
"""A header that git gets in `GIT_CONFIG_VALUE_0`, as checkouts in CI have it."""
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
_PLAIN: Final = re.compile("[A-Za-z0-9_-]+")
"""Characters that nothing escapes."""
_SHORTEST: Final = 6
"""Characters from which a value is masked wherever it stands; a shorter one may be any word."""


def is_secret(name: str, value: str) -> bool:
    """Say whether an environment variable holds a secret, by its name or by what it holds.

    Args:
        name: The variable.
        value: What it holds; a URL with a password is one, and a header with credentials.
    """
    named = _SECRET_NAME.search(name) is not None and name not in _NO_SECRETS
    return named or any(one.search(value) for one in (_USER_INFO, _HEADER))


class Masker:
    """Masks secrets in text and data.

    A secret is masked also where its text is escaped, as often as it may be: by Python, JSON, URLs
    and HTML. A value of fewer than six characters may be any word and stays.

    Args:
        environment: Variables whose secrets are known.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # A secret may contain another one.
        found = sorted(set(_secrets(environment)), key=lambda text: (-len(text), text))
        self._secrets = [(max(_PLAIN.findall(one), key=len), _pattern(one)) for one in found]
        # NumPy has strings of four bytes a character.
        self._wide = [one.encode("utf-32-le", "surrogatepass") for one in found]

    def text(self, text: str) -> str:
        """Return a text with `://user:password@` as `://***@`, and each secret as `***`.

        Args:
            text: Any text, e.g. the error output of a program.
        """
        if "://" in text:
            text = _USER_INFO.sub(f"{MASK}@", text)
        for part, pattern in self._secrets:
            if part in text:
                text = re.sub(pattern, MASK, text)
        return text

    def data(self, data: bytes) -> bytes:
        """Return data with each byte of a secret as `*`; offsets and lengths stay as they are.

        Args:
            data: Any data, e.g. the leaves of a value.
        """
        for wide in self._wide:
            data = data.replace(wide, b"*" * len(wide))
        for part, pattern in self._secrets:
            if part.encode() in data:
                data = re.sub(
                    pattern.encode("utf-8", "surrogateescape"),
                    lambda found: b"*" * len(found[0]),
                    data,
                )
        return data

    def content(self, content: bytes) -> bytes:
        """Return the content of a file or an artifact: UTF-8 as `text`, anything else as `data`.

        Args:
            content: The content.
        """
        try:
            return self.text(content.decode()).encode()
        except UnicodeError:
            return self.data(content)

    def tree(self, value: Any, words: Collection[str] = ()) -> Any:
        """Return plain data, as JSON has it, with `text` applied to its strings.

        Args:
            value: Strings, numbers, None, and lists and dictionaries of them.
            words: Keys whose values are words of a protocol, which stay.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                name: one if name in words else self.tree(one, words) for name, one in value.items()
            }
        if isinstance(value, list):
            return [self.tree(one, words) for one in value]
        return value


def mask_text(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a text with the secrets of an environment masked, as `Masker.text` does.

    Args:
        text: Any text, e.g. the error output of a program.
        environment: Variables whose secrets are known.
    """
    return Masker(environment).text(text)


def _pattern(secret: str) -> str:
    """Return a regular expression that matches a secret, and the same escaped."""
    # The last backslash of a secret may also be the first half of an escaped quote after it.
    return "".join(map(_character, secret.rstrip("\\")))


def _character(character: str) -> str:
    if _PLAIN.fullmatch(character):
        return character
    # Each time that a text is escaped doubles the backslashes.
    code, literal = ord(character), r"\\+" if character == "\\" else re.escape(character)
    raw = character.encode("utf-8", "surrogateescape")
    ways = {
        literal,
        "".join(f"%(?:25)*{byte:02X}" for byte in raw),
        "".join(rf"\\+x{byte:02x}" for byte in raw),  # the repr of bytes
        rf"\\+x{code:02x}",
        rf"\\+u{code:04x}",
        rf"\\+U{code:08x}",
        f"&(?:amp;)*(?:#0*{code}|#x0*{code:x}|{codepoint2name.get(code, code)});",
    }
    return rf"\\*(?:{'|'.join(sorted(ways))})"


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if "://" in value:
            for found in _USER_INFO.findall(value):
                user, *password = found[:-1].split(":", 1)
                yield from (part for part in password or [user] if _is_maskable(part))
        yield from filter(_is_maskable, _HEADER.findall(value))
        # The address of a webhook is a secret as a whole.
        if is_secret(name, "") and _is_maskable(value):
            yield value


def _is_maskable(secret: str) -> bool:
    return len(secret) >= _SHORTEST and _PLAIN.search(secret) is not None
