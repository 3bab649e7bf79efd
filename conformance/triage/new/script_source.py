"""A script to be rewritten: edits of its text at the positions of its syntax tree. Pure.

All that is not edited stays as written, comments and layout included. Positions of `ast` are
offsets in UTF-8, so texts are edited as bytes.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    TextEdit = tuple[int, int, str]
    """First and last offset of a span of bytes, and the new text."""

SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""Nodes whose bodies do not run where they are written."""
INDENT: Final = "    "
_SEMICOLON: Final = re.compile(rb"[ \t]*;[ \t]*")


class ScriptSource:
    """A script whose statements are on separate lines.

    Args:
        text: The script.

    Attributes:
        text: Its text.
        tree: Its syntax tree.
        names: Dotted path of each imported name.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.names = collect_imported_names(ast.walk(self.tree))
        self._data = text.encode()
        self._lines = _split_lines(text)
        self._starts = [0, *accumulate(len(line.encode()) for line in self._lines)]

    @classmethod
    def parse(cls, text: str) -> ScriptSource:
        """Return the source of a script.

        Args:
            text: Python.
        """
        source = cls(text)
        return source.edit(source._separate_statements())

    def find_span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return the first and the last offset of a node."""
        end = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self._starts[node.lineno - 1] + node.col_offset, end

    def segment(self, node: ast.expr) -> str:
        """Return the source text of an expression."""
        return self._data[slice(*self.find_span(node))].decode()

    def edit(self, edits: Iterable[TextEdit]) -> ScriptSource:
        """Return the source with other text in some spans.

        Args:
            edits: The edits, in any order. Of nested spans the outer one counts, and text is
                inserted before a span that begins at the same place.
        """
        parts: list[bytes] = []
        done = 0
        for start, end, text in sorted(edits, key=lambda e: (e[0], e[0] != e[1], -e[1])):
            # Edits are sorted: an edit that starts before `done` is within the last one.
            if start >= done:
                parts += self._data[done:start], text.encode()
                done = end
        return ScriptSource(b"".join((*parts, self._data[done:])).decode()) if parts else self

    def replace(self, changes: Mapping[ast.stmt, str]) -> ScriptSource:
        """Return the source with some statements replaced.

        Args:
            changes: Text of the new statements by the statement that they replace. The comments
                above and after it stay. An empty text removes a statement outside of blocks.
        """
        return self.edit(self._replace(node, text) for node, text in changes.items())

    def _replace(self, node: ast.stmt, text: str) -> TextEdit:
        # The line of a decorator: `lineno` of a function is that of its `def`.
        start, line = self._starts[_first_line(node) - 1], self._starts[node.end_lineno or 0]
        # Its line goes, too: an empty one would be left in the case.
        if not text:
            return start, line, ""
        # A comment after the last statement of a block is a part of the block.
        is_block = isinstance(getattr(node, "body", None), list)
        end = start + len(self._data[start:line].rstrip()) if is_block else self.find_span(node)[1]
        return start, end, _indent(text.strip("\n"), self._find_indentation(node))

    def insert(self, before: ast.stmt, text: str) -> ScriptSource:
        """Return the source with statements before another, below the comments above it."""
        start = self._starts[_first_line(before) - 1]
        return self.edit([(start, start, f"{_indent(text, self._find_indentation(before))}\n")])

    def render(self, nodes: Sequence[ast.stmt]) -> str:
        """Return statements as written, with the comments above, indented as in a module.

        Args:
            nodes: Consecutive statements.
        """
        lines, literal = self._lines.copy(), _find_literal_lines(self.text)
        indentation = self._find_indentation(nodes[0])
        first, last = _first_line(nodes[0]) - 1, nodes[-1].end_lineno or 0
        # Comments above a statement are about it, and move with it.
        while first and lines[first - 1].strip()[:1] in {"", "#"}:
            first -= 1
        # The lines of a string keep their indentation, which is its content.
        for number in range(first, last):
            if number + 1 not in literal:
                line = lines[number]
                lines[number] = line.removeprefix(indentation) if line.strip() else "\n"
        return "".join(lines[first:last]).rstrip("\n") + "\n"

    def _find_indentation(self, node: Any) -> str:
        # Taken from the text, since offsets do not distinguish tabs from spaces.
        line: str = self._lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def _separate_statements(self) -> Iterator[TextEdit]:
        """Yield edits that put each statement on separate lines."""
        # Replacements cover whole lines: a second statement of a line would be replaced with the
        # first.
        for parent in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(parent, name, None)
                if isinstance(block, list) and block:
                    yield from self._separate_block(parent, block)

    def _separate_block(self, parent: ast.AST, block: Sequence[ast.stmt]) -> Iterator[TextEdit]:
        start, _ = self.find_span(block[0])
        line = self._starts[block[0].lineno - 1]
        indentation = self._find_indentation(block[0])
        if self._data[line:start].strip():  # in the line of its header
            # A `case` has no position; its pattern has the line.
            indentation = self._find_indentation(getattr(parent, "pattern", parent)) + INDENT
            yield len(self._data[:start].rstrip()), start, f"\n{indentation}"
        for node, following in zip_longest(block, block[1:]):
            _, end = self.find_span(node)
            if semicolon := _SEMICOLON.match(self._data, end):
                is_last = following is None or following.lineno != node.end_lineno
                yield *semicolon.span(), "" if is_last else f"\n{indentation}"


def _first_line(node: ast.stmt) -> int:
    """Return the number of the first line of a statement, that of its decorators included."""
    nodes: list[ast.expr | ast.stmt] = [*getattr(node, "decorator_list", []), node]
    return nodes[0].lineno


def _split_lines(text: str) -> list[str]:
    """Return lines as `ast` counts them: `str.splitlines` also splits at form feeds."""
    return [line.decode() for line in text.encode().splitlines(keepends=True)]


def _find_literal_lines(text: str) -> set[int]:
    """Return the numbers of lines that begin within a string, whose indentation is its content."""
    # No other token spans lines.
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {n for token in tokens for n in range(token.start[0] + 1, token.end[0] + 1)}


def _indent(text: str, indentation: str) -> str:
    """Return statements with more indentation, except within strings."""
    literal = _find_literal_lines(text)
    return "".join(
        line if number in literal or not line.strip() else indentation + line
        for number, line in enumerate(_split_lines(text), 1)
    )


def render_function(head: str, body: str) -> str:
    """Return a function as text.

    Args:
        head: Everything above its body: decorators, `def` and a docstring.
        body: Its statements, not indented.
    """
    return f"{head}{_indent(body, INDENT)}".rstrip() + "\n"


def find_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports outside of blocks."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def collect_imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the dotted path of each imported name: `jax.numpy` for `jnp`.

    Args:
        nodes: All nodes of a script or a case file.
    """
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                # `import jax.numpy` binds `jax`.
                names[alias.asname or root] = alias.name if alias.asname else root
        # A relative import names no module that a cell has.
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def resolve_path(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of an expression, empty if it has none.

    Args:
        node: An expression, e.g. `jnp.ones`.
        names: Dotted path of each imported name; another name is its own path.
    """
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=inner, attr=name):
            parent = resolve_path(inner, names)
            return parent and f"{parent}.{name}"
        case _:
            return ""


def resolve_callee(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of the function that a call calls, empty for any other node.

    Args:
        node: A node.
        names: Dotted path of each imported name.
    """
    return resolve_path(node.func, names) if isinstance(node, ast.Call) else ""


def walk_own_nodes(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and those below them, except functions and classes: they do not run there.

    Args:
        nodes: Statements or expressions.
    """
    for node in nodes:
        if not isinstance(node, SCOPES):
            yield node
            yield from walk_own_nodes(list(ast.iter_child_nodes(node)))
