"""Whether two jobs fail for one reason, however the message was worded since. Pure."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from conformance.judge.errors import cause_of

ALIKE: Final = 0.6
"""Share of words in common from which two messages are wordings of one."""
WORDS: Final = 60
"""Words of a message that are looked at: its beginning says why, its end where."""
_NAMED: Final = re.compile(
    r"(?:has no attribute|cannot import name|No module named|unexpected keyword argument"
    r"|missing \d+ required (?:positional|keyword-only) arguments?:|name) '([^']+)'"
)
"""The name of the thing that is missing or unknown, in a message."""
_WORD: Final = re.compile(r"[A-Za-z_]+|#|[^\w\s]")


def same_failure(one: str, other: str) -> bool:
    """Say whether two endings are the same failure: one type of error, and one message.

    Upstream words messages anew from release to release, appends advice, and names types
    otherwise: what counts is how much of the beginnings is alike, numbers left out.

    Args:
        one: An ending, `Type: message`, or an outcome.
        other: Another.
    """
    if one == other:
        return True
    (type_, _, message), (other_type, _, other_message) = one.partition(":"), other.partition(":")
    if type_ != other_type or not message or not other_message:
        return False
    words, other_words = _words(message), _words(other_message)
    if _names_differ(message, other_message):
        return False
    shorter = min(len(words), len(other_words))
    # Advice that was appended says nothing against what stands before it.
    heads = words[: shorter + shorter // 2], other_words[: shorter + shorter // 2]
    return SequenceMatcher(None, *heads, autojunk=False).ratio() >= ALIKE


def _names_differ(one: str, other: str) -> bool:
    """Say whether two messages name different things that are missing or unknown.

    Python words such errors alike whatever the name is, so that only the name tells them apart.
    """
    found, others = ({m[1] for m in _NAMED.finditer(cause_of(text))} for text in (one, other))
    return bool(found and others and not found & others)


def _words(message: str) -> list[str]:
    return _WORD.findall(cause_of(message))[:WORDS]


class Failures:
    """Endings that were seen, those of one failure as one."""

    def __init__(self, *known: str) -> None:
        self._known = list(known)

    def of(self, ending: str) -> str:
        """Return the first ending that was seen of the same failure."""
        found = next((one for one in self._known if same_failure(one, ending)), None)
        if found is None:
            self._known.append(ending)
        return found or ending
