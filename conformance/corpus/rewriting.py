"""Rewriting of Python sources with libcst: formatting and comments of the rest stay as written.

libcst takes a third of a second to import: only commands that rewrite a source import this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import libcst as cst
from libcst import matchers
from libcst.helpers import get_full_name_for_node

from conformance.corpus.python_source import parse, sort_key_of_import
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

INDENT: Final = "    "
_NOTHING: Final = cst.SimpleWhitespace("")


def parse_source(data: bytes, where: str) -> cst.Module:
    """Return the syntax tree of a source, with its encoding and its line ends.

    Args:
        data: The source.
        where: Its name, for the message.

    Raises:
        UsageError: If it is no Python, or cannot be decoded.
    """
    try:
        parse(data)  # libcst's parser overflows the stack where it is nested too deeply
        return cst.parse_module(data)
    except (SyntaxError, UnicodeDecodeError, cst.ParserSyntaxError) as error:
        line = getattr(error, "lineno", None) or getattr(error, "raw_line", 1)
        message = getattr(error, "msg", None) or str(error)
        raise UsageError(f"{where}: cannot be read: line {line}: {message}") from None


def string_literal(text: str) -> str:
    r"""Return a text as a literal: in double quotes unless others save a backslash.

    Characters that do not print are escaped, so nothing in a text ends a line or hides in it.

    Args:
        text: Any text.
    """
    if '"' in text and "'" not in text:
        return repr(text)
    inner = repr(f'"{text}')[2:-1]  # in single quotes, for any text
    return '"' + inner.replace("\\'", "'").replace('"', '\\"') + '"'


class BracketedItems:
    """The items of a call, a list or a tuple, and the whitespace around them.

    libcst keeps whitespace in the bracket, the comma or the item before it, depending on the node.
    Here it is in `gaps`: `gaps[n]` is before item n, the last one before the closing bracket.

    Args:
        node: The call, list or tuple.

    Attributes:
        items: The items, without commas.
        gaps: The whitespace between them, with comments.
    """

    def __init__(self, node: cst.Call | cst.List | cst.Tuple) -> None:
        self._node = node
        given: Sequence[Any] = node.args if isinstance(node, cst.Call) else node.elements
        commas = [item.comma for item in given]
        self.items = [item.with_changes(comma=cst.MaybeSentinel.DEFAULT) for item in given]
        after = [c.whitespace_after for c in commas if isinstance(c, cst.Comma)]
        if isinstance(node, cst.Call):
            self.gaps = [node.whitespace_before_args, *after]
            if len(after) < len(given):
                self.gaps.append(given[-1].whitespace_after_arg)
                self.items[-1] = self.items[-1].with_changes(whitespace_after_arg=_NOTHING)
            return
        opening, closing = (
            (node.lbracket, node.rbracket)
            if isinstance(node, cst.List)
            else (node.lpar[-1], node.rpar[0])
        )
        between = after[: len(given) - 1]
        self.gaps = [opening.whitespace_after, *between]
        if given:
            self.gaps.append(closing.whitespace_before)

    def spread(self, column: int) -> None:
        """Put each item on lines of its own, unless it is already.

        Args:
            column: Where the items begin; the closing bracket is one indentation before.
        """
        columns = [column] * len(self.items) + [column - len(INDENT)]
        self.gaps = [
            gap if isinstance(gap, cst.ParenthesizedWhitespace) else new_line(at)
            for gap, at in zip(self.gaps, columns, strict=True)
        ]

    def append(self, item: cst.Arg | cst.Element, column: int) -> None:
        """Add an item at the end, behind the comments before the closing bracket."""
        self.gaps[-1] = new_line(column, self.gaps[-1])
        self.items.append(item)
        self.gaps.append(new_line(column - len(INDENT)))

    def insert_first(self, item: cst.Arg | cst.Element) -> None:
        """Add an item before the others: on a line of its own if they are."""
        first = self.gaps[0]
        gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" " * bool(self.items))
        if isinstance(first, cst.ParenthesizedWhitespace):
            gap = first.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
        self.gaps.insert(1, gap)
        self.items.insert(0, item)

    def remove(self, number: int) -> None:
        """Take out an item with the comment behind it; comments on lines of their own stay."""
        before, after = self.gaps[number : number + 2]
        left = before
        if isinstance(after, cst.ParenthesizedWhitespace):
            left = after
            if isinstance(before, cst.ParenthesizedWhitespace):
                lines = (*before.empty_lines, *after.empty_lines)
                left = before.with_changes(empty_lines=lines, last_line=after.last_line)
        elif number == len(self.items) - 1 and number:
            left = after
        self.gaps[number : number + 2] = [left]
        del self.items[number]

    def build(self) -> cst.Call | cst.List | cst.Tuple:
        """Return the node with these items; they end in a comma if the bracket has its own line."""
        node, (opening, *between) = self._node, self.gaps
        if not self.items:
            opening, between = _NOTHING, []
        items: list[Any] = [
            item.with_changes(comma=cst.Comma(whitespace_after=gap))
            for item, gap in zip(self.items, between, strict=True)
        ]
        closing = between[-1] if between else _NOTHING
        on_lines = isinstance(closing, cst.ParenthesizedWhitespace)
        if isinstance(node, cst.Call):
            if items and not on_lines:
                items[-1] = self.items[-1].with_changes(whitespace_after_arg=closing)
            return node.with_changes(whitespace_before_args=opening, args=items)
        if items:
            comma = cst.Comma() if on_lines else cst.MaybeSentinel.DEFAULT
            items[-1] = self.items[-1].with_changes(comma=comma)
        first, last = ("lbracket", "rbracket") if isinstance(node, cst.List) else ("lpar", "rpar")
        start = _changed(getattr(node, first), whitespace_after=opening)
        end = _changed(getattr(node, last), whitespace_before=closing)
        return node.with_changes(elements=items, **{first: start, last: end})


def _changed(bracket: Any, **changes: object) -> Any:
    """Return a bracket, or the only one of a tuple, with changes."""
    if isinstance(bracket, cst.CSTNode):
        return bracket.with_changes(**changes)
    return [one.with_changes(**changes) for one in bracket]


def replace_node(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    """Return a module with another node in the place of one below it."""
    return cast("cst.Module", module.deep_replace(old, new))


def new_line(
    column: int, comments: cst.BaseParenthesizableWhitespace | None = None
) -> cst.ParenthesizedWhitespace:
    """Return whitespace that ends a line within brackets.

    Args:
        column: Where the next line begins.
        comments: Whitespace whose comments are kept.
    """
    start = cst.SimpleWhitespace(" " * column)
    if isinstance(comments, cst.ParenthesizedWhitespace):
        return comments.with_changes(indent=True, last_line=start)
    return cst.ParenthesizedWhitespace(indent=True, last_line=start)


def add_import(module: cst.Module, package: str, name: str, width: int) -> cst.Module:
    """Return a module that imports a name, in an existing import or in a new one.

    Args:
        module: The module.
        package: Where the name is imported from.
        name: The name.
        width: Columns that the formatter admits.
    """
    found = [line for line in module.body if _import_of(line, package)]
    imports = [_import_of(line, package) for line in found]
    if any(alias == name for one in imports for alias in _names(one)):
        return module
    # An import with a comment is left alone: the comment may be about one of the names.
    plain = next((one for one in imports if not matchers.findall(one, matchers.Comment())), None)
    if plain is not None:
        return _with_names(module, plain, package, [*_names(plain), name], width)
    line = cst.parse_statement(f"from {package} import {name}", module.config_for_parsing)
    body: list[Any] = list(module.body)
    if found:
        body.insert(body.index(found[-1]) + 1, line)
        return module.with_changes(body=body)
    number = next(number for number, one in enumerate(body) if not _comes_first(one))
    body[number : number + 1] = [
        line.with_changes(leading_lines=body[number].leading_lines),
        body[number].with_changes(leading_lines=()),
    ]
    return module.with_changes(body=body)


def remove_import(module: cst.Module, package: str, name: str, width: int) -> cst.Module:
    """Return a module that does not import a name, unless it is used.

    Args:
        module: The module.
        package: Where the name is imported from.
        name: The name.
        width: Columns that the formatter admits.
    """
    uses = matchers.findall(module, matchers.Name(name))
    for number, line in enumerate(module.body):
        found = _import_of(line, package)
        if not found or name not in _names(found) or len(uses) > 1:
            continue
        if matchers.findall(found, matchers.Comment()):
            continue
        if left := [one for one in _names(found) if one != name]:
            return _with_names(module, found, package, left, width)
        following = list(module.body[number + 1 :])
        if following:  # it gets the blank lines and comments above the import
            above = (*line.leading_lines, *following[0].leading_lines)
            following[0] = following[0].with_changes(leading_lines=above)
        return module.with_changes(body=[*module.body[:number], *following])
    return module


def _import_of(line: cst.CSTNode, package: str) -> Any:
    """Return the import of names from a package that a line consists of, None if it is another."""
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        (found,) = line.body
        if isinstance(found, cst.ImportFrom) and not isinstance(found.names, cst.ImportStar):
            named = found.module is not None and get_full_name_for_node(found.module) == package
            return found if named and not found.relative else None
    return None


def _names(found: Any) -> list[str]:
    """Return the names of an import as they are written."""
    return [
        f"{one.evaluated_name} as {one.evaluated_alias}" if one.asname else one.evaluated_name
        for one in found.names
    ]


def _with_names(
    module: cst.Module, found: cst.ImportFrom, package: str, names: Sequence[str], width: int
) -> cst.Module:
    """Return a module with other names in an import: in isort's order, on a line if they fit."""
    ordered = sorted(names, key=sort_key_of_import)
    text = f"from {package} import {', '.join(ordered)}"
    if len(text) > width or "\n" in module.code_for_node(found):
        newline = module.default_newline
        inner = "".join(f"{INDENT}{name},{newline}" for name in ordered)
        text = f"from {package} import ({newline}{inner})"
    line: Any = cst.parse_statement(text, module.config_for_parsing)
    return replace_node(module, found, line.body[0])


def _comes_first(line: cst.CSTNode) -> bool:
    """Say whether a statement is before the imports: the docstring, or a `__future__` import."""
    docstring = matchers.SimpleStatementLine([matchers.Expr(matchers.SimpleString())])
    return matchers.matches(line, docstring) or bool(_import_of(line, "__future__"))
