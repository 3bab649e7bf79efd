"""Rewriting of Python sources with libcst, which preserves formatting and comments.

The import of libcst takes a quarter of a second, and that of its matchers as long again: only
commands that rewrite sources import this module, and nothing imports the matchers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import libcst as cst
from libcst.helpers import get_full_name_for_node

from conformance.corpus.python_source import parse, sort_key_of_import
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INDENT: Final = "    "
_NOTHING: Final = cst.SimpleWhitespace("")


def parse_source(data: bytes, where: str) -> cst.Module:
    """Return the syntax tree of a source, with its encoding and line ends.

    Args:
        data: Content of the file.
        where: Name of the file, for messages.

    Raises:
        UsageError: If the content is not Python, or cannot be decoded.
    """
    try:
        parse(data)  # the parser of libcst would overflow the stack on deep nesting
        return cst.parse_module(data)
    except (SyntaxError, UnicodeDecodeError, cst.ParserSyntaxError) as error:
        line = getattr(error, "lineno", None) or getattr(error, "raw_line", 1)
        message = getattr(error, "msg", None) or str(error)
        raise UsageError(f"{where}: cannot be read: line {line}: {message}") from None


class BracketedItems:
    """The items of a call, a list or a tuple, and the whitespace around them.

    libcst stores whitespace in the bracket, the comma or the item before it, depending on the node.
    Here all of it is in `gaps`: `gaps[n]` is before item n, and the last gap before the
    closing bracket.

    Args:
        node: Call, list or tuple.

    Attributes:
        items: Items without commas.
        gaps: Whitespace between the items, with comments.
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
        """Put each item on a separate line.

        Args:
            column: Column of the items; the closing bracket is one indentation to the left.
        """
        columns = [column] * len(self.items) + [column - len(INDENT)]
        self.gaps = [
            gap if isinstance(gap, cst.ParenthesizedWhitespace) else make_new_line(at)
            for gap, at in zip(self.gaps, columns, strict=True)
        ]

    def append(self, item: cst.Arg | cst.Element, column: int) -> None:
        """Append an item, after the comments before the closing bracket."""
        self.gaps[-1] = make_new_line(column, self.gaps[-1])
        self.items.append(item)
        self.gaps.append(make_new_line(column - len(INDENT)))

    def insert_first(self, item: cst.Arg | cst.Element) -> None:
        """Insert an item before the others, on its own line if theirs are."""
        first = self.gaps[0]
        gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" " * bool(self.items))
        if isinstance(first, cst.ParenthesizedWhitespace):
            gap = first.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
        self.gaps.insert(1, gap)
        self.items.insert(0, item)

    def remove(self, number: int) -> None:
        """Remove an item with the comment after it; comments on separate lines are preserved."""
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
        """Return the node with the items, and a comma after the last before a new line."""
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
        start = _change_bracket(getattr(node, first), whitespace_after=opening)
        end = _change_bracket(getattr(node, last), whitespace_before=closing)
        return node.with_changes(elements=items, **{first: start, last: end})


def _change_bracket(bracket: Any, **changes: object) -> Any:
    """Return a bracket, or a sequence with a single bracket, with changes."""
    if isinstance(bracket, cst.CSTNode):
        return bracket.with_changes(**changes)
    return [node.with_changes(**changes) for node in bracket]


def replace_node(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    """Return a module with a node replaced."""
    return cast("cst.Module", module.deep_replace(old, new))


def make_new_line(
    column: int, comments: cst.BaseParenthesizableWhitespace | None = None
) -> cst.ParenthesizedWhitespace:
    """Return whitespace that ends a line within brackets.

    Args:
        column: Column in which the next line begins.
        comments: Whitespace whose comments are preserved.
    """
    start = cst.SimpleWhitespace(" " * column)
    if isinstance(comments, cst.ParenthesizedWhitespace):
        return comments.with_changes(indent=True, last_line=start)
    return cst.ParenthesizedWhitespace(indent=True, last_line=start)


def add_import(module: cst.Module, package: str, name: str, width: int) -> cst.Module:
    """Return a module that imports a name, in an existing or a new import.

    Args:
        module: Module to change.
        package: Module that the name is imported from.
        name: Name to import.
        width: Maximum line length.
    """
    found = [line for line in module.body if _find_import(line, package)]
    imports = [_find_import(line, package) for line in found]
    if any(alias == name for one in imports for alias in _list_names(one)):
        return module
    # An import with a comment is not changed: the comment may be about one of the names.
    plain = next((one for one in imports if not _has_comment(one)), None)
    if plain is not None:
        return _replace_names(module, plain, package, [*_list_names(plain), name], width)
    line = cst.parse_statement(f"from {package} import {name}", module.config_for_parsing)
    body: list[Any] = list(module.body)
    if found:
        body.insert(body.index(found[-1]) + 1, line)
        return module.with_changes(body=body)
    number = next(number for number, one in enumerate(body) if not precedes_imports(one))
    body[number : number + 1] = [
        line.with_changes(leading_lines=body[number].leading_lines),
        body[number].with_changes(leading_lines=()),
    ]
    return module.with_changes(body=body)


def remove_import(module: cst.Module, package: str, name: str, width: int) -> cst.Module:
    """Return a module without the import of a name, unless the name is used.

    Args:
        module: Module to change.
        package: Module that the name is imported from.
        name: Imported name.
        width: Maximum line length.
    """
    uses = [one for one in _walk(module) if isinstance(one, cst.Name) and one.value == name]
    for number, line in enumerate(module.body):
        found = _find_import(line, package)
        if not found or name not in _list_names(found) or len(uses) > 1:
            continue
        if _has_comment(found):
            continue
        if left := [one for one in _list_names(found) if one != name]:
            return _replace_names(module, found, package, left, width)
        following = list(module.body[number + 1 :])
        if following:  # it gets the blank lines and comments above the import
            above = (*line.leading_lines, *following[0].leading_lines)
            following[0] = following[0].with_changes(leading_lines=above)
        return module.with_changes(body=[*module.body[:number], *following])
    return module


def _find_import(line: cst.CSTNode, package: str) -> Any:
    """Return the import from a package that a line consists of, None for another line."""
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        (found,) = line.body
        if isinstance(found, cst.ImportFrom) and not isinstance(found.names, cst.ImportStar):
            named = found.module is not None and get_full_name_for_node(found.module) == package
            return found if named and not found.relative else None
    return None


def _list_names(found: Any) -> list[str]:
    """Return the names of an import as they are written."""
    return [
        f"{one.evaluated_name} as {one.evaluated_alias}" if one.asname else one.evaluated_name
        for one in found.names
    ]


def _replace_names(
    module: cst.Module, found: cst.ImportFrom, package: str, names: Sequence[str], width: int
) -> cst.Module:
    """Return a module with other names in an import, in the order of isort."""
    ordered = sorted(names, key=sort_key_of_import)
    text = f"from {package} import {', '.join(ordered)}"
    if len(text) > width or "\n" in module.code_for_node(found):
        newline = module.default_newline
        inner = "".join(f"{INDENT}{name},{newline}" for name in ordered)
        text = f"from {package} import ({newline}{inner})"
    line: Any = cst.parse_statement(text, module.config_for_parsing)
    return replace_node(module, found, line.body[0])


def precedes_imports(line: cst.CSTNode) -> bool:
    """Say whether a statement precedes the imports: the docstring, or a `__future__` import.

    Args:
        line: A statement of a module.
    """
    is_docstring = (
        isinstance(line, cst.SimpleStatementLine)
        and len(line.body) == 1
        and isinstance(line.body[0], cst.Expr)
        and isinstance(line.body[0].value, cst.SimpleString)
    )
    return is_docstring or bool(_find_import(line, "__future__"))


def _has_comment(node: cst.CSTNode) -> bool:
    return any(isinstance(one, cst.Comment) for one in _walk(node))


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all nodes below it."""
    yield node
    for child in node.children:
        yield from _walk(child)
