"""Calls of a form that a fix replaces, rewritten with libcst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from conformance.corpus.rewriting import BracketedItems
from conformance.scan.fixes import DROPPED
from conformance.scan.signatures import CallShape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.scan.fixes import CodeFix, FormParameter

_EQUAL: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_SIMPLE_CALLS: Final = frozenset({"devices", "local_devices"})
"""Functions of jax without effects: their calls may be repeated."""


def rewrite_arguments(call: cst.Call, fix: CodeFix, *, skipped: int = 0) -> cst.Call | None:
    """Return a call with the arguments of the form after a fix, None if that cannot be told.

    Args:
        call: The call; its callee is not changed.
        fix: The fix, one with parameters.
        skipped: Arguments at the beginning that are not those of the form, 1 for
            `functools.partial`.
    """
    arguments = call.args[skipped:]
    targets = _match_parameters(arguments, fix)
    if targets is None:
        return None
    rewritten = [
        _rewrite_argument(one, target) for one, target in zip(arguments, targets, strict=True)
    ]
    if _has_position_after_keyword(rewritten):
        return None
    if all(one is before for one, before in zip(rewritten, arguments, strict=True)):
        changed = call
    else:
        changed = call.with_changes(args=[*call.args[:skipped], *rewritten])
    dropped = [
        number for number, one in enumerate(targets) if one is not None and one.name == DROPPED
    ]
    if not dropped:
        return changed
    items = BracketedItems(changed)
    for number in reversed(dropped):
        items.remove(number + skipped)
    built = items.build()
    return built if isinstance(built, cst.Call) else None


def _has_position_after_keyword(arguments: Sequence[cst.Arg]) -> bool:
    keywords = [number for number, one in enumerate(arguments) if one.keyword is not None]
    return bool(keywords) and any(
        one.keyword is None and not one.star for one in arguments[keywords[0] :]
    )


def _match_parameters(
    arguments: Sequence[cst.Arg], fix: CodeFix
) -> list[FormParameter | None] | None:
    """Return the parameter after the fix of each argument, None for one that the form has not.

    Returns:
        None if the parameter of an argument is unknown.
    """
    after = dict(zip((one.name for one in fix.parameters), fix.renamed, strict=True))
    by_position = [after[one.name] for one in fix.parameters if one.by_position]
    moves = any(not one.by_position or not one.by_keyword for one in by_position)
    found: list[FormParameter | None] = []
    for number, argument in enumerate(arguments):
        if argument.star and (moves or argument.star == "**"):
            return None
        if argument.star:
            found.append(None)
        elif argument.keyword is None:
            found.append(by_position[number] if number < len(by_position) else None)
        else:
            found.append(after.get(argument.keyword.value))
            # A parameter that is by position only would have to move.
            target = found[-1]
            if target and not target.by_keyword and fix.renamed.index(target) != number:
                return None
    return found


def _rewrite_argument(argument: cst.Arg, target: FormParameter | None) -> cst.Arg:
    if target is None or target.name == DROPPED:
        return argument
    if argument.keyword is None and target.by_position:
        return argument
    if not target.by_keyword:
        return argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if argument.keyword is None:
        return argument.with_changes(keyword=cst.Name(target.name), equal=_EQUAL)
    if argument.keyword.value == target.name:
        return argument
    return argument.with_changes(keyword=cst.Name(target.name))


def describe_shape(call: cst.Call, *, skipped: int = 0) -> CallShape:
    """Return the arguments of a call, as signatures are compared with.

    Args:
        call: The call.
        skipped: Arguments at the beginning that do not count.
    """
    arguments = call.args[skipped:]
    return CallShape(
        positions=sum(one.keyword is None and not one.star for one in arguments),
        keywords=frozenset(one.keyword.value for one in arguments if one.keyword is not None),
        more_positions=any(one.star == "*" for one in arguments),
        more_keywords=any(one.star == "**" for one in arguments),
        partial=skipped > 0,
    )


def replace_call(
    call: cst.Call, fix: CodeFix, spell: Callable[[str], str | None]
) -> cst.BaseExpression | None:
    """Return the expression of a fix in place of a call, None if it would not mean the same.

    Args:
        call: The call.
        fix: The fix, one with `code`.
        spell: Returns how the module writes a dotted name, None if it cannot.
    """
    given = _bind(call, fix.parameters)
    if given is None or any(isinstance(one, cst.Comment) for one in _walk_around(call)):
        return None
    expression = cst.parse_expression(fix.code)
    counts = dict.fromkeys(given, 0)
    for node in _walk(expression):
        if isinstance(node, cst.Arg | cst.Element) and _name_of(node.value) in counts:
            counts[_name_of(node.value)] += 1
    if any(counts[name] > 1 and not _is_simple(value) for name, value in given.items()):
        return None
    names = {one.name for one in fix.parameters}
    filler = _TemplateFiller(given, names - given.keys(), spell)
    filled = expression.visit(filler)
    if filler.failed or not isinstance(filled, cst.BaseExpression):
        return None
    return filled.with_changes(lpar=call.lpar, rpar=call.rpar) if call.lpar else filled


def _bind(
    call: cst.Call, parameters: Sequence[FormParameter]
) -> dict[str, cst.BaseExpression] | None:
    """Return the arguments of a call by parameter, None if it has others."""
    found = {one.name: cst.parse_expression(one.default) for one in parameters if one.default}
    names = [one.name for one in parameters]
    for number, argument in enumerate(call.args):
        value = argument.value
        bare = isinstance(value, cst.GeneratorExp) and not value.lpar
        if argument.star or bare:
            return None
        if argument.keyword is not None:
            name = argument.keyword.value
        elif number < len(names):
            name = names[number]
        else:
            return None
        if name not in names:
            return None
        found[name] = value
    return found


class _TemplateFiller(cst.CSTTransformer):
    """Puts the arguments of a call into an expression.

    Args:
        given: Arguments by parameter.
        missing: Parameters without argument; the arguments in which they are passed on go.
        spell: Returns how the module writes a dotted name.
    """

    def __init__(
        self,
        given: Mapping[str, cst.BaseExpression],
        missing: set[str],
        spell: Callable[[str], str | None],
    ) -> None:
        self._given, self._missing, self._spell = given, missing, spell
        self.failed = False

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
        return dotted_name(node) is None

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        name = dotted_name(original_node)
        if name is None:
            return updated_node
        spelled = self._spell(name)
        if spelled is None:
            self.failed = True
            return updated_node
        return cst.parse_expression(spelled)

    def leave_Call(  # noqa: N802
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.BaseExpression:
        kept = [
            one
            for one, before in zip(updated_node.args, original_node.args, strict=True)
            if not (isinstance(before.value, cst.Name) and before.value.value in self._missing)
        ]
        if len(kept) < len(updated_node.args) and kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(args=kept)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        value = self._given.get(_name_of(original_node.value))
        return updated_node if value is None else updated_node.with_changes(value=value)

    def leave_Element(  # noqa: N802
        self, original_node: cst.Element, updated_node: cst.Element
    ) -> cst.Element:
        value = self._given.get(_name_of(original_node.value))
        return updated_node if value is None else updated_node.with_changes(value=value)


def _name_of(node: cst.BaseExpression) -> str:
    return node.value if isinstance(node, cst.Name) else ""


def dotted_name(node: cst.BaseExpression) -> str | None:
    """Return the dotted name that an expression consists of, None for another one.

    Args:
        node: The expression.
    """
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted_name(node.value)
        return None if before is None else f"{before}.{node.attr.value}"
    return None


def _is_simple(node: cst.BaseExpression) -> bool:
    """Say whether an expression may be evaluated twice."""
    if isinstance(node, cst.Tuple | cst.List):
        return all(_is_simple(one.value) for one in node.elements)
    if isinstance(node, cst.Call) and not node.args:
        name = dotted_name(node.func) or ""
        return name.rpartition(".")[2] in _SIMPLE_CALLS
    return dotted_name(node) is not None


def _walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(inner for child in node.children for inner in _walk(child))]


def _walk_around(call: cst.Call) -> list[cst.CSTNode]:
    """Return the nodes of a call without those of its arguments."""
    around: list[cst.CSTNode] = [call.whitespace_before_args, call.whitespace_after_func]
    for one in call.args:
        around += (
            [one.comma, one.whitespace_after_arg]
            if isinstance(one.comma, cst.Comma)
            else [one.whitespace_after_arg]
        )
    return [inner for node in around for inner in _walk(node)]
