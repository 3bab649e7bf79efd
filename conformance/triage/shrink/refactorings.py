"""Cuts that change several places at once: inlined functions, dropped parameters and results. Pure.

A function replaces its calls: its statements come before the statement of the call, and the value
that it returns replaces the call. Functions that map, differentiate or run another function take
tuples with an item per parameter or result, e.g. specifications: an item is dropped from all.
"""

from __future__ import annotations

import ast
import copy
import itertools
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.syntax import count_loads, count_stores, list_parameters, walk_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.triage.shrink.syntax import Replacements, SyntaxTree

DEFERRED: Final = (
    ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp | ast.IfExp
)
"""Expressions whose parts are evaluated later, repeatedly, or never."""
LEAVING: Final = ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal
PAIR: Final = 2
"""A pair without one of its items is the other item, not a tuple."""


def inline_name(tree: SyntaxTree, node: ast.AST) -> Replacements | None:
    """Return the changes that put a value in the only place where its name is read.

    Args:
        tree: The code.
        node: The assignment `name = value`.

    Returns:
        The changes; None for another node, or if the name is read or bound elsewhere.
    """
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return None
    kinds = ast.FunctionDef | ast.Module | ast.ClassDef
    scope = next(outer for outer in tree.walk_ancestors(node) if isinstance(outer, kinds))
    reads = [read for read in tree.find_loads(name) if scope in tree.walk_ancestors(read)]
    # Of a name that is bound twice, the value at the read is unknown; `x = f(x)` reads the earlier
    # one.
    if len(reads) != 1 or count_stores(scope)[name] != 1 or node is tree.find_statement(reads[0]):
        return None
    return {reads[0]: [value], node: []}


def inline_function(tree: SyntaxTree, node: ast.AST) -> Replacements | None:
    """Return the changes that replace all calls of a function by its body.

    Args:
        tree: The code.
        node: Its definition.

    Returns:
        The changes; None unless every use is a call, and its only `return` is its last statement.
    """
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _returns_last(node):
        return None
    uses = tree.find_loads(node.name)
    parents = [tree.get_parent(use) for use in uses if tree.get_field(use) == "func"]
    calls = [parent for parent in parents if isinstance(parent, ast.Call)]
    # A function that is passed on, e.g. to `jax.jit`, has to stay a function.
    is_only_called = len(calls) == len(uses) and count_stores(tree.root)[node.name] == 1
    # A body of several statements would be repeated for each call, which is no cut.
    if not calls or not is_only_called or (len(node.body) > 1 and len(calls) > 1):
        return None
    changes: dict[ast.AST, list[ast.AST]] = {node: []}
    for call in calls:
        values = _bind_arguments(node, call)
        if values is None or not _inline_call(tree, node, call, values, changes):
            return None
    return changes


def _returns_last(function: ast.FunctionDef) -> bool:
    *body, last = function.body
    inner = walk_scope(ast.Module(body=body, type_ignores=[]))
    return (
        isinstance(last, ast.Return)
        and last.value is not None
        and not (function.args.vararg or function.args.kwarg)
        and not any(isinstance(node, LEAVING) for node in inner)
    )


def _inline_call(
    tree: SyntaxTree,
    function: ast.FunctionDef,
    call: ast.Call,
    values: dict[str, ast.expr],
    changes: dict[ast.AST, list[ast.AST]],
) -> bool:
    """Add the changes for one call; return whether that is possible."""
    # Copied for each call: names are changed in place.
    copied = copy.deepcopy(function)
    *body, last = copied.body
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    reads = count_loads(copied)
    rebound = count_stores(ast.Module(body=copied.body, type_ignores=[]))
    # An argument may replace its parameter if that neither repeats nor reorders its evaluation.
    substituted = {
        name
        for name, value in values.items()
        if name not in rebound
        and (isinstance(value, ast.Name | ast.Constant) or (not body and reads[name] <= 1))
    }
    ancestors = tree.walk_ancestors(call)
    caller = next((outer for outer in ancestors if isinstance(outer, ast.FunctionDef)), tree.root)
    # Names that the arguments read must not be hidden by locals of the function.
    free = {name for value in values.values() for name in count_loads(value)}
    own = set(count_stores(copied)) - {function.name} - substituted
    taken = {*count_stores(caller), *free}
    # Locals of the function must not overwrite those of its caller.
    renamed = {name: _unused_name(name, taken | own) for name in own & taken}
    for node in ast.walk(copied):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in substituted:
                changes[node] = [values[name]]
            case ast.Name(id=name):
                node.id = renamed.get(name, name)
            case ast.arg(arg=name):
                node.arg = renamed.get(name, name)
            case ast.FunctionDef(name=name):
                node.name = renamed.get(name, name)
            case _:
                pass
    bound = [
        ast.Assign(targets=[ast.Name(id=renamed.get(name, name), ctx=ast.Store())], value=value)
        for name, value in values.items()
        if name not in substituted
    ]
    changes[call] = [last.value]
    statement = tree.find_statement(call)
    if before := [*bound, *body]:
        # Earlier changes are kept: two calls may be in one statement.
        changes[statement] = [*before, *changes.get(statement, [statement])]
    return not before or not _is_deferred(tree, call, statement)


def _is_deferred(tree: SyntaxTree, call: ast.Call, statement: ast.AST) -> bool:
    """Return whether a call is evaluated later than the start of its statement, or repeatedly."""
    around = itertools.takewhile(lambda outer: outer is not statement, tree.walk_ancestors(call))
    repeats = isinstance(statement, ast.While | ast.For | ast.FunctionDef)
    return repeats or any(isinstance(outer, DEFERRED) for outer in around)


def _bind_arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the value of each parameter in a call; None if it is unknown."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    arguments, positional = function.args, list_parameters(function)
    missing = [Parameter.empty] * (len(positional) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults]
    parameters = [
        Parameter(parameter.arg, Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for parameter, default in zip(positional, defaults, strict=True)
    ]
    parameters += [
        Parameter(parameter.arg, Parameter.KEYWORD_ONLY, default=default or Parameter.empty)
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
    try:
        # Python's own rules, instead of another copy of them.
        bound = Signature(parameters).bind(*call.args, **keywords)
    except TypeError:
        return None
    bound.apply_defaults()
    return bound.arguments


def _unused_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def find_unused_parameters(function: ast.AST) -> list[int]:
    """Return the positions of the parameters that a function does not read."""
    body = getattr(function, "body", [])
    nodes = body if isinstance(body, list) else [body]
    read = {name for node in nodes for name in count_loads(node)}
    return [n for n, parameter in enumerate(list_parameters(function)) if parameter.arg not in read]


def drop_parameter(
    tree: SyntaxTree, function: ast.AST, number: int, *, tuples: bool
) -> Replacements:
    """Return the changes that drop a parameter, its argument in calls, and its items in tuples.

    Args:
        tree: The code.
        function: A function that does not read the parameter.
        number: Position of the parameter.
        tuples: Whether an item is also dropped from tuples of that length, and a parameter from
            functions without a decorator that have as many.
    """
    count = len(list_parameters(function))
    functions = [
        node
        for node in tree.nodes
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and (node is function or (tuples and _is_similar(node, count, number)))
    ]
    names = {node.name for node in functions if isinstance(node, ast.FunctionDef)}
    changes: dict[ast.AST, list[ast.AST]] = {}
    for node in tree.nodes:
        match node:
            case ast.Tuple(elts=items, ctx=ast.Load()) if tuples and len(items) == count > 1:
                changes |= _drop_item(items, number)
            case ast.keyword(arg="args", value=ast.Tuple(elts=[item])) if tuples and count == 1:
                changes[item] = []
            case ast.Call(func=callee, args=arguments) if len(arguments) == count:
                inner = ast.walk(callee)
                if any(one in functions or getattr(one, "id", "") in names for one in inner):
                    changes |= _drop_item(arguments, number)
            case _:
                pass
    for changed in functions:
        changes[list_parameters(changed)[number]] = []
        # Defaults belong to the last parameters.
        if number >= (first_default := count - len(changed.args.defaults)):
            changes[changed.args.defaults[number - first_default]] = []
    return changes


def _is_similar(function: ast.FunctionDef | ast.Lambda, count: int, number: int) -> bool:
    """Return whether a function has as many parameters, and neither decorators nor that read."""
    decorators = getattr(function, "decorator_list", [])
    is_unread = number in find_unused_parameters(function)
    return not decorators and len(list_parameters(function)) == count and is_unread


def _drop_item(items: list[ast.expr], number: int) -> dict[ast.AST, list[ast.AST]]:
    # After a starred item, positions are unknown.
    return {} if any(isinstance(item, ast.Starred) for item in items) else {items[number]: []}


def list_result_lengths(tree: SyntaxTree) -> list[int]:
    """Return the lengths of the tuples that functions return, the longest first."""
    return sorted({len(result.elts) for result in _find_results(tree)}, reverse=True)


def _find_results(tree: SyntaxTree) -> Iterator[ast.Tuple]:
    for node in tree.nodes:
        match node:
            case (
                ast.Return(value=ast.Tuple() as value)
                | ast.Lambda(body=ast.Tuple() as value)
                | ast.keyword(arg="out_specs" | "reference", value=ast.Tuple() as value)
            ) if len(value.elts) > 1:
                yield value
            case _:
                pass


def drop_result(tree: SyntaxTree, count: int, number: int, where: str) -> Replacements:
    """Return the changes that drop one of several results from every function with as many.

    Args:
        tree: The code.
        count: The number of results.
        number: Position of the result.
        where: The tuples of that length that are cut: empty for those that are returned; `*` for
            all of them, e.g. the carry of a loop, which is made, unpacked and indexed; `+` for all
            but those given by keyword, e.g. specifications.
    """
    tuples: Iterable[ast.Tuple] = _find_results(tree)
    if where:
        tuples = (
            node for node in tree.nodes
            if isinstance(node, ast.Tuple)
            and (where == "*" or not isinstance(tree.get_parent(node), ast.keyword))
        )  # fmt: skip
    changes: dict[ast.AST, list[ast.AST]] = {}
    for found in tuples:
        if len(found.elts) == count and (dropped := _drop_item(found.elts, number)):
            changes |= {found: [found.elts[1 - number]]} if count == PAIR else dropped
    for node in tree.nodes if where else []:
        match node:
            case ast.Subscript(
                value=ast.Name() | ast.Call(), slice=ast.Constant(value=int(at)) as index
            ):
                if count == PAIR:
                    changes[node] = [node.value]
                # The items after the dropped item move forward.
                elif at > number:
                    changes[index] = [ast.Constant(value=at - 1)]
            case _:
                pass
    return changes
