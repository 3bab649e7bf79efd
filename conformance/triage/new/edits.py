"""Edits of Python's text by its syntax tree, so that what is not edited stays as written. Pure."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Placed(Protocol):
    """A node that says where it stands."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Edits:
    """Replacements within a text, applied together.

    Args:
        text: Python.
    """

    def __init__(self, text: str) -> None:
        self._data = text.encode()
        lines = self._data.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
        self._edits: list[tuple[int, int, int, bytes]] = []

    def start(self, node: Placed) -> int:
        """Return where a node begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: Placed) -> int:
        """Return where a node ends."""
        assert node.end_lineno is not None  # noqa: S101 - every parsed node has an end
        assert node.end_col_offset is not None  # noqa: S101 - see above
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def text_of(self, node: Placed) -> str:
        """Return a node as it was written."""
        return self._data[self.start(node) : self.end(node)].decode()

    def replace(self, start: int, end: int, text: str) -> None:
        """Put a text in the place of what stands between two places; of one place, insert it."""
        self._edits.append((start, end, len(self._edits), text.encode()))

    def wrap(self, node: Placed, before: str, after: str) -> None:
        """Put texts around a node."""
        self.replace(self.start(node), self.start(node), before)
        self.replace(self.end(node), self.end(node), after)

    def drop(self, node: Placed) -> None:
        """Take out a statement; a decorated one with its decorators, and a comment behind it."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        assert node.end_lineno is not None  # noqa: S101 - every parsed node has an end
        self.replace(self._starts[first - 1], self._starts[node.end_lineno], "")

    def applied(self) -> str:
        """Return the text with all replacements."""
        parts: list[bytes] = []
        at = 0
        for start, end, _, text in sorted(self._edits, key=lambda edit: edit[:3]):
            if start < at:
                continue  # within what an earlier one took out
            parts += [self._data[at:start], text]
            at = end
        return b"".join([*parts, self._data[at:]]).decode()


def indented(text: str, by: str = "    ") -> str:
    """Return code with its lines indented, but for those within a text that spans lines.

    Args:
        text: Python.
        by: What is put before each line.
    """
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        spans = token.type == tokenize.STRING or token.type in _PARTS_OF_TEXTS
        if spans and token.end[0] > token.start[0]:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    lines = text.splitlines()
    return "\n".join(
        line if number in inside or not line.strip() else by + line
        for number, line in enumerate(lines, 1)
    )


_PARTS_OF_TEXTS = {
    getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)
}
"""What an f-string is made of, from Python 3.12 on."""


def body_text(text: str, body: Sequence[ast.stmt]) -> str:
    """Return the statements of a block as if they stood outside of it.

    Args:
        text: What the block stands in.
        body: Its statements.
    """
    assert body[-1].end_lineno is not None  # noqa: S101 - every parsed node has an end
    whole = text.splitlines()
    first = body[0].lineno - 1
    while first and whole[first - 1].lstrip().startswith("#"):
        first -= 1
    lines = whole[first : body[-1].end_lineno]
    written = textwrap.dedent("\n".join(lines))
    try:
        same = ast.dump(ast.parse(written)) == ast.dump(ast.Module(list(body), []))
    except SyntaxError:
        same = False
    return written if same else "\n".join(map(ast.unparse, body))
