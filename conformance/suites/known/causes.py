"""What of an error is its cause: a pattern that holds whatever example a test has drawn."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 160
"""Characters of a pattern: what comes after is of one example, or does not matter."""
REASON: Final = 200
ELLIPSIS: Final = "…"
_MARK: Final = "\0"
_NUMBER: Final = r"(?:0x[0-9a-f]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?π?|infinity|inf|nan|π)j?"
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_NAME: Final = re.compile(r"[A-Za-z_][\w.]*")
_DTYPE: Final = re.compile(r"\b(?:u?int\d+|b?float\d+|complex\d+|bool)\b")
_VALUES: Final = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"https?://\S+", 0),
        (_DTYPE.pattern, 0),
        # A value that has a name: `x1=(nan+0j)`, `shape=(0, 3)`.
        (r"(?<=\w=)(?:\([^()\n]*\)|\[[^\[\]\n]*\]|[^\s,;()\[\]]+)", 0),
        (rf"(?<![\w.])[-+±]?{_NUMBER}(?!\w)", re.IGNORECASE),
        (r"(?<= )j(?!\w)", 0),
        # A shape, a tuple, a list, but not the arguments of a function, nor a function's name.
        (r"(?<![\w\]])\((?![^()\n]*\w\()[^()\n]*\)", 0),
        (r"(?<![\w\]])\[(?![^\[\]\n]*\w\()[^\[\]\n]*\]", 0),
    )
)
_SEVERAL: Final = re.compile(rf"{_MARK}(?:[^\w\n]*{_MARK})+")
"""Values with no word between them."""
_BARE: Final = re.compile(r"assert (?:not )?(?:True|False|None|\W+)")
"""A first line that says nothing, but for what stands in the next."""
_SPECIAL: Final = re.compile(r"([\\.^$*+?{}\[\]|()])")


def pattern_of(message: str) -> str:
    """Return a regular expression that finds errors of the same cause by their messages.

    What a test draws, and what JAX makes of it, goes: numbers, dtypes, shapes, quoted texts,
    addresses. The kind of assertion stays, with the function that it is about.

    Args:
        message: Message of an error.

    Returns:
        A pattern, searched in messages; empty where nothing of the message is left.
    """
    text = _telling(message)
    parts = text.split(_MARK)
    # Of two values only what is said between them tells anything.
    kept = [parts[0], *(part for part in parts[1:-1] if re.search(r"\w", part)), *parts[1:][-1:]]
    if not re.search(r"\w", text.replace(_MARK, "")):
        return ""
    return _joined(kept)


def without_values(message: str) -> str:
    """Return what of a message is the same for every example of one cause.

    Args:
        message: Message of an error.

    Returns:
        Its telling lines, an ellipsis for each value; the message where nothing is left of it.
    """
    text = _SEVERAL.sub(_MARK, _telling(message))
    return text.replace(_MARK, ELLIPSIS) if re.search(r"\w{2}", _BARE.sub("", text)) else message


def reason_of(message: str, type_: str) -> str:
    """Return the beginning of an error, which stands for a reason until somebody knows it.

    Args:
        message: Its message.
        type_: Its type.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    bare = lines and _BARE.fullmatch(_without_values(lines[0]))
    text = " ".join(lines[: 2 if bare else 1])
    return f"{text[:REASON].rstrip()}..." if len(text) > REASON else text or type_


def _telling(message: str) -> str:
    """Return the lines of a message that tell its cause, with a mark for each value."""
    lines = message.lstrip("\n").split("\n")
    text = _without_values(lines[0])
    if _BARE.fullmatch(text) and len(lines) > 1:
        text = f"{text}\n{_without_values(lines[1])}"
    return text.rstrip()


def _without_values(line: str) -> str:
    line = _QUOTED.sub(_name_or_value, line)
    for values in _VALUES:
        line = values.sub(_MARK, line)
    return line


def _name_or_value(quoted: re.Match[str]) -> str:
    """Return a quoted name as it is: `argument 'device'` is another cause than `argument 'x2'`."""
    inner = quoted[0][1:-1]
    return quoted[0] if _NAME.fullmatch(inner) and not _DTYPE.fullmatch(inner) else _MARK


def _joined(parts: list[str]) -> str:
    pattern = "^" if parts[0] else ""
    for number, part in enumerate(parts):
        more = f"{'.*' if number and (pattern or part) else ''}{_escaped(part)}"
        if number and len(pattern) + len(more) > LONGEST:
            break
        pattern += more
    if len(pattern) > LONGEST:  # one long text without any value
        pattern = f"^{_escaped(parts[0][: LONGEST // 2])}"
    return pattern.removeprefix(".*").removesuffix(".*")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("\n", r"\n").replace("\t", r"\t")
