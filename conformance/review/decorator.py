"""The decorator of a case as text: where its arguments stand, and how one comes or goes. Pure."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.corpus.discover import KINDS
from conformance.corpus.python_source import parse
from conformance.errors import UsageError
from conformance.review.literals import INDENT, literal
from conformance.triage.new.edits import Edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.case import Kind

_REST: Final = re.compile(rb"\s*,\s*(#[^\n]*)?\s*")
"""What may stand behind an item that has its lines to itself."""


class Site(NamedTuple):
    """Where a case is declared: its decorator, and which kind it says."""

    call: ast.Call
    kind: Kind


def find(text: str, function: str) -> Site:
    """Return the decorator of a case.

    Args:
        text: The case file.
        function: Name of the case.

    Raises:
        UsageError: If there is none, or the text is no Python.
    """
    try:
        body = parse(text).body
    except SyntaxError as error:
        raise UsageError(f"line {error.lineno}: syntax error: {error.msg}") from None
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and (kind := _kind(decorator)):
                    return Site(decorator, kind)
    raise UsageError(f"there is no case {function}, expected one with its decorator")


def _kind(call: ast.Call) -> Kind | None:
    named = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return next((kind for kind in KINDS if kind == named), None)


def prefix_of(call: ast.Call) -> str:
    """Return what a decorator's name is looked up in: `kit.` for `kit.program`, mostly nothing."""
    return f"{ast.unparse(call.func.value)}." if isinstance(call.func, ast.Attribute) else ""


def listed(call: ast.Call, keyword: str) -> Sequence[ast.expr] | None:
    """Return the items of an argument that is a list, None where there is no such argument."""
    value = _value(call, keyword)
    return None if value is None else value.elts


def _value(call: ast.Call, keyword: str) -> ast.List | ast.Tuple | None:
    for one in call.keywords:
        if one.arg == keyword and isinstance(one.value, ast.List | ast.Tuple):
            return one.value
    return None


def exploded(text: str, function: str) -> str:
    """Return a file in which the arguments of a decorator stand one a line, if it can be.

    With a comment among them they stay as they are.
    """
    call = find(text, function).call
    edits = Edits(text)
    if call.keywords and _crowded(call, call.keywords) and not _has_comment(edits.text_of(call)):
        inner = [f"{INDENT}{edits.text_of(item)}," for item in call.keywords]
        told = newline_of(text).join(["(", *inner, ")"])
        edits.replace(edits.end(call.func), edits.end(call), told)
    return edits.applied()


def _crowded(node: ast.expr, items: Sequence[ast.expr | ast.keyword]) -> bool:
    """Say whether two of some items, or one and a bracket, share a line."""
    rows = [node.lineno if isinstance(node, ast.List | ast.Tuple) else _open_row(node)]
    crowded = False
    for item in items:
        crowded |= item.lineno == rows[-1]
        rows.append(item.end_lineno or item.lineno)
    return crowded or rows[-1] == node.end_lineno


def _open_row(node: ast.expr) -> int:
    return (node.func.end_lineno if isinstance(node, ast.Call) else node.lineno) or node.lineno


def _has_comment(text: str) -> bool:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return any(token.type == tokenize.COMMENT for token in tokens)


def newline_of(text: str) -> str:
    """Return how the lines of a file end."""
    return "\r\n" if "\r\n" in text else "\n"


def inserted(text: str, function: str, keyword: str, lines: Sequence[str]) -> str:
    """Return a file in which an item is added at the end of an argument that is a list.

    Args:
        text: The file, its decorator exploded.
        function: Name of the case.
        keyword: The argument; where it is missing it comes last.
        lines: Lines of the item.
    """
    call = find(text, function).call
    edits = Edits(text)
    value = _value(call, keyword)
    if value is None or not value.elts:
        block = [f"{keyword}=[", *(f"{INDENT}{line}" for line in lines), "],"]
        block[-2] += ","
        if value is not None:
            owner = next(one for one in call.keywords if one.arg == keyword)
            told = newline_of(text).join([block[0], *(f"{INDENT}{ln}" for ln in block[1:])])
            edits.replace(edits.start(owner), edits.end(owner), told.removesuffix(","))
        else:
            _append(edits, text, call, call.keywords, block)
        return edits.applied()
    item = [*lines[:-1], f"{lines[-1]},"]
    if _crowded(value, value.elts) and not _has_comment(edits.text_of(value)):
        items = [edits.text_of(one) for one in value.elts]
        whole = ["[", *(f"{INDENT}{one}," for one in items), *(f"{INDENT}{ln}" for ln in item), "]"]
        told = newline_of(text).join([whole[0], *(f"{INDENT}{line}" for line in whole[1:])])
        edits.replace(edits.start(value), edits.end(value), told)
    else:
        _append(edits, text, value, value.elts, item)
    return edits.applied()


def _append(
    edits: Edits,
    text: str,
    node: ast.expr,
    items: Sequence[ast.expr | ast.keyword],
    lines: Sequence[str],
) -> None:
    """Put lines before the closing bracket of a node, and a comma behind its last item."""
    indent = "" if isinstance(node, ast.Call) else INDENT
    newline = newline_of(text)
    data = text.encode()
    close = edits.end(node) - 1
    told = newline.join(f"{indent}{INDENT}{line}" for line in lines) + newline
    after = edits.end(items[-1]) if items else close
    between = data[after:close].decode()
    comma = "" if not items or "," in _code(between) else ","
    line_start = data.rfind(b"\n", 0, close) + 1
    if data[line_start:close].strip():
        # The bracket shares its line with something: it gets one of its own.
        edits.replace(close, close, f"{comma}{newline}{told}{indent}")
        return
    if comma:
        edits.replace(after, after, comma)
    edits.replace(line_start, line_start, told)


def _code(text: str) -> str:
    """Return a text between two arguments without its comments."""
    return "\n".join(line.partition("#")[0] for line in text.splitlines())


def set_range(edits: Edits, item: ast.expr, releases: str) -> None:
    """Give the call of a deviation another range of releases.

    Args:
        edits: Edits of the file.
        item: The call.
        releases: The range, as it is to stand there; empty for every release.
    """
    assert isinstance(item, ast.Call)  # noqa: S101 - it was read as one
    named = next((one for one in item.keywords if one.arg == "releases"), None)
    told = named.value if named is not None else item.args[0] if item.args else None
    if told is not None:
        edits.replace(edits.start(told), edits.end(told), literal(releases))
    elif releases:
        start = edits.end(item.func) + 1
        first = item.keywords[0] if item.keywords else None
        if first is not None:
            gap = "\n" if first.lineno > item.lineno else " "
            indent = " " * first.col_offset if gap == "\n" else ""
            edits.replace(
                edits.start(first), edits.start(first), f"{literal(releases)},{gap}{indent}"
            )
        else:
            edits.replace(start, start, literal(releases))


def cut_item(edits: Edits, text: str, items: Sequence[ast.expr | ast.keyword], number: int) -> None:
    """Take one of several items out of a list: its lines, where nothing else stands in them."""
    start, end = edits.start(items[number]), edits.end(items[number])
    data = text.encode()
    line_start = data.rfind(b"\n", 0, start) + 1
    line_end = data.find(b"\n", end) + 1
    alone = not data[line_start:start].strip() and _REST.fullmatch(data[end:line_end])
    if alone and line_end:
        edits.replace(line_start, line_end, "")
    elif number:
        edits.replace(edits.end(items[number - 1]), end, "")
    else:
        edits.replace(start, edits.start(items[1]), "")


def cut_keyword(edits: Edits, text: str, call: ast.Call, keyword: str) -> None:
    """Take an argument out of a call."""
    number = next(n for n, one in enumerate(call.keywords) if one.arg == keyword)
    if len(call.keywords) > 1:
        cut_item(edits, text, call.keywords, number)
    else:
        edits.replace(edits.end(call.func), edits.end(call), "()")
