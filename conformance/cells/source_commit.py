"""Commits of a repository, and the references in their messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SHORT: Final = 12
"""Hexadecimal digits of a commit in names and messages."""
_REFERENCE: Final = re.compile(r"(?:(?<![\w&])#|/(?:issues|pull)/)(\d+)\b")
_HASH: Final = re.compile(r"(?<![\w/])[0-9a-f]{10,40}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCommit:
    """A commit.

    Attributes:
        hash: The whole hash, 40 hexadecimal digits.
        date: Date of the commit, `YYYY-MM-DD`.
        title: First line of its message.
        message: The whole message.
    """

    hash: str
    date: str
    title: str
    message: str

    @property
    def short(self) -> str:
        """The first digits of the hash."""
        return self.hash[:SHORT]

    @property
    def references(self) -> tuple[str, ...]:
        """The issues and pull requests in its message, `#NUMBER`, each once."""
        found = _REFERENCE.findall(self.message)
        return tuple(dict.fromkeys(f"#{number}" for number in found))

    @property
    def mentioned(self) -> tuple[str, ...]:
        """The hashes in its message, such as that of a commit that it reverts."""
        return tuple(dict.fromkeys(_HASH.findall(self.message)))
