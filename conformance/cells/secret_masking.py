"""Masking of secrets in output, files and child processes."""

from __future__ import annotations

import os
import re
from html.entities import codepoint2name
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MASK: Final = "***"
_USER_INFO: Final = re.compile(r"(?<=://)[^/\s'\"]+@")
# Words between underscores: AUTHOR does not match AUTH, KEYBOARD does not match KEY.
_SECRET_NAME: Final = re.compile(
    r"(^|_)(TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD|PAT|KEYS?|APIKEYS?|CREDENTIALS?"
    r"|CREDS|AUTH|AUTHORIZATION|COOKIES?|DSN|JWT|PGPASSFILE|PGSERVICEFILE|NETRC)(_|\d|$)"
    r"|PASSWORD|SECRET|WEBHOOK"
    # The end of a compound: APITOKEN, DBPASS, but not BYPASS or COMPASS.
    r"|(TOKENS?|APIKEYS?|(?<!BY)(?<!COM)PASS)(_|$)",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"authorization:\s*(?:\w+\s+)?(\S+)", re.IGNORECASE)
"""An HTTP header, which CI checkouts pass to git in `GIT_CONFIG_VALUE_0`."""
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
_PLAIN: Final = re.compile("[A-Za-z0-9_-]+")
"""Characters that no encoding escapes."""
_MIN_LENGTH: Final = 6
"""Minimum length of a secret to mask: a shorter value may be part of any text."""


def is_secret(name: str, value: str) -> bool:
    """Say whether an environment variable contains a secret, by its name or its value.

    Args:
        name: Name of the variable.
        value: Value: a URL with a password is a secret, and so is a header with credentials.
    """
    has_secret_name = _SECRET_NAME.search(name) is not None and name not in _NO_SECRETS
    return has_secret_name or any(pattern.search(value) for pattern in (_USER_INFO, _HEADER))


class Masker:
    """Masks secrets in text and data.

    A secret is also masked if it was escaped, once or several times, by Python, JSON, URLs or HTML.
    A value of fewer than six characters is not masked: it may be part of any text.

    Args:
        environment: Environment variables with the secrets.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # The longest first: a secret may contain another one.
        found = sorted(set(_find_secrets(environment)), key=lambda text: (-len(text), text))
        self._secrets = [(max(_PLAIN.findall(s), key=len), _make_pattern(s)) for s in found]
        # NumPy stores strings with four bytes per character.
        self._wide = [secret.encode("utf-32-le", "surrogatepass") for secret in found]

    def mask_text(self, text: str) -> str:
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

    def mask_data(self, data: bytes) -> bytes:
        """Return data with each byte of a secret replaced by `*`, so that offsets do not change.

        Args:
            data: Binary data, e.g. the leaves of a value.
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

    def mask_content(self, content: bytes) -> bytes:
        """Return the masked content of a file or an artifact, as text if it is UTF-8, else as data.

        Args:
            content: Content of the file or artifact.
        """
        try:
            return self.mask_text(content.decode()).encode()
        except UnicodeError:
            return self.mask_data(content)

    def mask_tree(self, value: Any, words: Collection[str] = ()) -> Any:
        """Return JSON data with `mask_text` applied to its strings.

        Args:
            value: Strings, numbers, None, and lists and dictionaries of them.
            words: Keys whose values are keywords of a protocol, which are not masked.
        """
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, dict):
            return {
                key: item if key in words else self.mask_tree(item, words)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.mask_tree(item, words) for item in value]
        return value


def mask_text(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a text with the secrets of an environment masked, as `Masker.mask_text` does.

    Args:
        text: Any text, e.g. the error output of a program.
        environment: Environment variables with the secrets.
    """
    return Masker(environment).mask_text(text)


def _make_pattern(secret: str) -> str:
    """Return a regular expression that matches a secret, escaped or not."""
    # The last backslash of a secret may also be the first half of an escaped quote after it.
    return "".join(map(_make_character_pattern, secret.rstrip("\\")))


def _make_character_pattern(character: str) -> str:
    if _PLAIN.fullmatch(character):
        return character
    # Each further escaping doubles the backslashes.
    code, literal = ord(character), r"\\+" if character == "\\" else re.escape(character)
    raw = character.encode("utf-8", "surrogateescape")
    spellings = {
        literal,
        "".join(f"%(?:25)*{byte:02X}" for byte in raw),
        "".join(rf"\\+x{byte:02x}" for byte in raw),  # the repr of bytes
        rf"\\+x{code:02x}",
        rf"\\+u{code:04x}",
        rf"\\+U{code:08x}",
        f"&(?:amp;)*(?:#0*{code}|#x0*{code:x}|{codepoint2name.get(code, code)});",
    }
    return rf"\\*(?:{'|'.join(sorted(spellings))})"


def _find_secrets(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if "://" in value:
            for found in _USER_INFO.findall(value):
                user, *password = found[:-1].split(":", 1)
                yield from (part for part in password or [user] if _is_maskable(part))
        yield from filter(_is_maskable, _HEADER.findall(value))
        # Not only the password: the URL of a webhook is a secret as a whole.
        if is_secret(name, "") and _is_maskable(value):
            yield value


def _is_maskable(secret: str) -> bool:
    return len(secret) >= _MIN_LENGTH and _PLAIN.search(secret) is not None
