"""Edits of the deviations in a case file; the rest of the file stays unchanged."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import libcst as cst
import msgspec

from conformance.corpus.discovery import KINDS
from conformance.corpus.metadata import (
    DeviationMetadata,
    Metadata,
    MetadataError,
    normalize_specifier,
    read_metadata,
    read_shared_metadata,
    select_deviations,
)
from conformance.corpus.python_source import render_string_literal
from conformance.corpus.rewriting import (
    INDENT,
    BracketedItems,
    add_import,
    parse_source,
    remove_import,
    replace_node,
)
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.model.case import Deviation
    from conformance.review.proposals import DeviationEdit

KIT: Final = "conformance.kit"
NAME: Final = "deviation"
KEYWORD: Final = "deviations"
_ITEMS: Final = 2 * len(INDENT)
"""Column of an item of a decorator's list."""
_FIELDS: Final = ("params", "outcome", "error", "match", "platform", "packages", "reason", "issue")
"""Keywords of a deviation in the order in which they are written."""
_MIN_PIECE: Final = 20
"""Minimum columns of a piece of a long text, also in narrow lines."""


def rewrite_case(data: bytes, edit: DeviationEdit, width: int) -> bytes:
    """Return a case file with a deviation of a case added, narrowed or removed.

    Args:
        data: The case file.
        edit: The new deviation, or a declared deviation with the remaining part of its range.
        width: Maximum line length of the formatter.

    Raises:
        UsageError: If the case or the deviation is missing, or the result has another meaning.
    """
    module = parse_source(data, str(edit.file))
    call, before = _read(module, edit.function)
    if edit.deviation is not None:
        module, expected = _add_deviation(module, call, before, edit, width)
    else:
        module, expected = _end_deviation(module, call, before, edit, width)
    _check(module.bytes, edit.function, before, expected)
    return module.bytes


def _find_decorator(module: cst.Module, function: str) -> cst.Call:
    """Return the call that declares a case.

    Raises:
        UsageError: If there is none.
    """
    for node in module.body:
        if isinstance(node, cst.FunctionDef) and node.name.value == function:
            for decorator in node.decorators:
                if isinstance(decorator.decorator, cst.Call) and _get_kind(decorator.decorator):
                    return decorator.decorator
    raise UsageError(f"there is no case {function}, expected one with its decorator")


def _get_kind(call: cst.Call) -> str | None:
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return next((kind for kind in KINDS if getattr(name, "value", None) == kind), None)


def _read(module: cst.Module, function: str) -> tuple[cst.Call, Metadata]:
    call = _find_decorator(module, function)
    tree: Any = ast.parse(module.code_for_node(call), mode="eval").body
    try:
        # The keywords may name constants of the module, so the decorator alone is not enough.
        shared = read_shared_metadata(ast.parse(module.bytes))
        return call, read_metadata(tree, str(_get_kind(call)), shared)
    except MetadataError as error:
        raise UsageError(f"{function}: {error}") from None


def _find_list(call: cst.Call) -> tuple[int, cst.List | cst.Tuple] | None:
    """Return the position of the argument with the deviations, and its list; None if absent."""
    for number, argument in enumerate(call.args):
        named = argument.keyword is not None and argument.keyword.value == KEYWORD
        if named and isinstance(argument.value, cst.List | cst.Tuple):
            return number, argument.value
    return None


def _add_deviation(
    module: cst.Module, call: cst.Call, before: Metadata, edit: DeviationEdit, width: int
) -> tuple[cst.Module, tuple[DeviationMetadata, ...]]:
    """Return the module with a new deviation after the others, and the deviations it declares."""
    new = msgspec.convert(edit.deviation, DeviationMetadata, from_attributes=True)
    releases = f"jax{new.releases}" if new.releases else ""
    new = msgspec.structs.replace(new, releases=releases, params=tuple(edit.params))
    prefix = ""
    if isinstance(call.func, cst.Attribute):
        prefix = f"{module.code_for_node(call.func.value)}."
    text = _format_call(f"{prefix}{NAME}", new, width).replace("\n", module.default_newline)
    # Parsed with the settings of the module, which may be indented by tabs.
    item = cst.Element(cst.parse_expression(text, module.config_for_parsing))
    declared_list = _find_list(call)
    items = BracketedItems(declared_list[1] if declared_list else cst.List([]))
    items.spread(_ITEMS)
    items.append(item, _ITEMS)
    arguments = BracketedItems(call)
    arguments.spread(len(INDENT))
    if declared_list:
        number = declared_list[0]
        arguments.items[number] = arguments.items[number].with_changes(value=items.build())
    else:
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        new_argument = cst.Arg(items.build(), cst.Name(KEYWORD), equal)
        arguments.append(new_argument, len(INDENT))
    module = replace_node(module, call, arguments.build())
    # With a prefix, e.g. `kit.`, the module itself is imported already.
    if not prefix:
        module = add_import(module, KIT, NAME, width)
    return module, (*before.deviations, new)


def _end_deviation(
    module: cst.Module, call: cst.Call, before: Metadata, edit: DeviationEdit, width: int
) -> tuple[cst.Module, tuple[DeviationMetadata, ...]]:
    """Return the module with a deviation narrowed or removed, and the remaining deviations."""
    declared_list = _find_list(call)
    known = enumerate(before.deviations)
    number = next((number for number, one in known if _is_same(one, edit.ends)), None)
    if number is None or declared_list is None:
        releases = edit.ends.releases if edit.ends else ""
        raise UsageError(f"{edit.function}: declares no such deviation (jax{releases})")
    # A `*NAME` in the list holds several deviations, so positions do not correspond.
    if len(declared_list[1].elements) != len(before.deviations):
        raise _make_error(edit.function, "a part of its list is a constant")
    remaining = list(before.deviations)
    item: Any = declared_list[1].elements[number].value
    named = _find_constant(module, item)
    is_shared = named is not None and _count_uses(module, named.name) > 1
    if edit.releases is not None:
        expected = f"jax{edit.releases}" if edit.releases else ""
        remaining[number] = msgspec.structs.replace(remaining[number], releases=expected)
        declared: Any = item if named is None else named.value.deep_clone()
        # Other cases keep a constant that they share: this one gets its own deviation.
        target = item if named is None or is_shared else named.value
        return replace_node(module, target, _set_range(declared, expected)), tuple(remaining)
    del remaining[number]
    items = BracketedItems(declared_list[1] if remaining else call)
    items.remove(number if remaining else declared_list[0])
    module = replace_node(module, declared_list[1] if remaining else call, items.build())
    if named is not None and not is_shared:
        module = module.with_changes(
            # A deviation that no case uses would look as if it still held.
            body=[line for line in module.body if _get_constant_name(line) != named.name]
        )
    return (module if remaining else remove_import(module, KIT, NAME, width)), tuple(remaining)


class _Constant(NamedTuple):
    """A module constant with a deviation."""

    name: str
    value: cst.BaseExpression


def _find_constant(module: cst.Module, item: cst.BaseExpression) -> _Constant | None:
    """Return the constant that an element of a list refers to, None for any other element."""
    if not isinstance(item, cst.Name):
        return None
    for line in module.body:
        if _get_constant_name(line) == item.value:
            statement: Any = line
            return _Constant(item.value, statement.body[0].value)
    return None


def _get_constant_name(line: cst.CSTNode) -> str | None:
    """Return the name that a statement assigns a value to, None for any other statement."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])
                | cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression())
            ]
        ):
            return name
        case _:
            return None


def _count_uses(module: cst.Module, name: str) -> int:
    """Return how often a module reads a constant."""
    tree = ast.walk(ast.parse(module.bytes))
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in tree
    )


def _is_same(one: DeviationMetadata, deviation: Deviation | None) -> bool:
    """Say whether a declaration in a file is a deviation of a case."""
    param = one.params[0] if one.params else ""
    return select_deviations(Metadata(deviations=(one,)), param) == (deviation,)


def _set_range(item: cst.Call, releases: str) -> cst.Call:
    """Return the call of a deviation with another range of releases, empty for every release."""
    value = cst.SimpleString(render_string_literal(releases))
    named = next((a for a in item.args if a.keyword and a.keyword.value == "releases"), None)
    given = named or next((a for a in item.args if a.keyword is None), None)
    if given is not None:
        return cast("cst.Call", item.deep_replace(given, given.with_changes(value=value)))
    arguments = BracketedItems(item)
    arguments.insert_first(cst.Arg(value))
    return cast("cst.Call", arguments.build())


def _format_call(name: str, deviation: DeviationMetadata, width: int) -> str:
    """Return the call that declares a deviation, an argument a line; defaults are left out."""
    inner = " " * _ITEMS + INDENT
    defaults = DeviationMetadata()
    lines = [f"{name}("]
    if deviation.releases:
        lines.append(f"{inner}{render_string_literal(deviation.releases)},")
    for field in _FIELDS:
        value = getattr(deviation, field)
        if value and value != getattr(defaults, field):
            lines += _format_keyword(f"{inner}{field}=", value, width)
    return "\n".join([*lines, f"{' ' * _ITEMS})"])


def _format_keyword(start: str, value: Any, width: int) -> Iterator[str]:
    """Yield the lines of an argument: a single line if it fits, else a line for each part."""
    indent = " " * (_ITEMS + len(INDENT))
    if isinstance(value, dict):
        pairs = (
            f"{render_string_literal(k)}: {render_string_literal(v)}" for k, v in value.items()
        )
        yield f"{start}{{{', '.join(pairs)}}},"
        return
    if isinstance(value, str):
        whole = f"{start}{render_string_literal(value)},"
        parts, end = [render_string_literal(piece) for piece in _split_text(value, width)], ""
    else:
        parts, end = list(map(render_string_literal, value)), ","
        whole = f"{start}({', '.join(parts)}{',' * (len(parts) == 1)}),"
    if len(whole) <= width or (len(parts) == 1 and not end):
        yield whole
        return
    yield f"{start}("
    yield from (f"{indent}{INDENT}{part}{end}" for part in parts)
    yield f"{indent}),"


def _split_text(text: str, width: int) -> Sequence[str]:
    """Return a text in pieces that fit on a line each, cut after spaces."""
    room = max(_MIN_PIECE, width - _ITEMS - 2 * len(INDENT))
    # Pieces are joined by Python without a separator, so each keeps its trailing spaces.
    pieces = [""]
    for word in re.findall("[^ ]+ *| +", text):
        if pieces[-1] and len(render_string_literal(pieces[-1] + word)) > room:
            pieces.append("")
        pieces[-1] += word
    return pieces


def _check(
    data: bytes, function: str, before: Metadata, expected: Sequence[DeviationMetadata]
) -> None:
    """Check that the file declares the expected deviations, and nothing else of the case changed.

    Raises:
        UsageError: If it does not.
    """
    try:
        _, after = _read(parse_source(data, function), function)
    except UsageError as error:
        raise _make_error(function, str(error)) from None
    # The edit is syntactic: only reading the file back shows its meaning.
    if msgspec.structs.replace(after, deviations=before.deviations) != before:
        raise _make_error(function, "something else in it would change")
    if list(map(_normalize, after.deviations)) != list(map(_normalize, expected)):
        raise _make_error(function, "the written deviation would be read differently")


def _make_error(function: str, why: str) -> UsageError:
    return UsageError(
        f"{function}: its decorator cannot be edited here: {why}; declare the deviation by hand"
    )


def _normalize(one: DeviationMetadata) -> DeviationMetadata:
    return msgspec.structs.replace(one, releases=normalize_specifier(one.releases))
