"""Patterns of error messages that match for every example that a test may draw."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 160
"""Maximum length of a pattern: the rest of a message varies, or does not matter."""
REASON: Final = 200
"""Maximum length of a reason."""
ELLIPSIS: Final = "…"
_MARK: Final = "\0"
"""Placeholder of a value in a message."""
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
_ADJACENT: Final = re.compile(rf"{_MARK}(?:[^\w\n]*{_MARK})+")
"""Values with no word between them."""
_BARE_ASSERT: Final = re.compile(r"assert (?:not )?(?:True|False|None|\W+)")
"""An assertion without an expression: the next line says more."""
_SPECIAL: Final = re.compile(r"([\\.^$*+?{}\[\]|()])")


def make_pattern(message: str) -> str:
    """Return a regular expression that finds errors of the same cause by their messages.

    Values that a test draws, and those that JAX computes from them, are left out: numbers, dtypes,
    shapes, quoted texts, addresses. The kind of assertion stays, with the function in it.

    Args:
        message: Message of an error.

    Returns:
        A pattern, searched in messages; empty if the message consists of values only.
    """
    text = _mask_lines(message)
    first, *rest = text.split(_MARK)
    # Between two values, only a word is characteristic; the last part is anchored by its value.
    parts = [first, *(part for part in rest[:-1] if re.search(r"\w", part)), *rest[-1:]]
    return _join_parts(parts) if re.search(r"\w", text.replace(_MARK, "")) else ""


def mask_values(message: str) -> str:
    """Return the part of a message that is the same for every example of one cause.

    Args:
        message: Message of an error.

    Returns:
        Its first line, or two, with an ellipsis for each value; the whole message if nothing else
        is left of it.
    """
    text = _ADJACENT.sub(_MARK, _mask_lines(message))
    bare = _BARE_ASSERT.sub("", text)
    return text.replace(_MARK, ELLIPSIS) if re.search(r"\w{2}", bare) else message


def make_reason(message: str, type_: str) -> str:
    """Return the beginning of an error, as the provisional reason of a deviation.

    Args:
        message: Message of the error.
        type_: Type of the error.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    bare = lines and _BARE_ASSERT.fullmatch(_mask_line(lines[0]))
    text = " ".join(lines[: 2 if bare else 1])
    return f"{text[:REASON].rstrip()}..." if len(text) > REASON else text or type_


def _mask_lines(message: str) -> str:
    """Return the lines of a message that identify its cause, with a mark for each value."""
    lines = message.lstrip("\n").split("\n")
    text = _mask_line(lines[0])
    if _BARE_ASSERT.fullmatch(text) and len(lines) > 1:
        text = f"{text}\n{_mask_line(lines[1])}"
    return text.rstrip()


def _mask_line(line: str) -> str:
    line = _QUOTED.sub(_mask_quoted, line)
    for values in _VALUES:
        line = values.sub(_MARK, line)
    return line


def _mask_quoted(quoted: re.Match[str]) -> str:
    """Return a quoted name unmasked: `argument 'device'` is another cause than `argument 'x2'`."""
    inner = quoted[0][1:-1]
    return quoted[0] if _NAME.fullmatch(inner) and not _DTYPE.fullmatch(inner) else _MARK


def _join_parts(parts: list[str]) -> str:
    pattern = "^" if parts[0] else ""
    for number, part in enumerate(parts):
        more = f"{'.*' if number and (pattern or part) else ''}{_escape(part)}"
        if number and len(pattern) + len(more) > LONGEST:
            break
        pattern += more
    if len(pattern) > LONGEST:  # one long text without any value
        pattern = f"^{_escape(parts[0][: LONGEST // 2])}"
    return pattern.removeprefix(".*").removesuffix(".*")


def _escape(text: str) -> str:
    # `re.escape` would also escape spaces and hyphens, which makes the file harder to read.
    return _SPECIAL.sub(r"\\\1", text).replace("\n", r"\n").replace("\t", r"\t")
