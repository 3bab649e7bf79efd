"""Where Python code can be cut, one list of cuts for each way of cutting. Pure."""

from __future__ import annotations

import ast
from functools import wraps
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.bindings import parameters
from conformance.triage.shrink.constant_folding import filled
from conformance.triage.shrink.edits import MADE, PLAIN, Edit
from conformance.triage.shrink.inlining import inlined_function, inlined_name
from conformance.triage.shrink.signatures import (
    lengths_of_results,
    unused_parameters,
    without_parameter,
    without_result,
)
from conformance.triage.shrink.tree import Tree, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Sites = Callable[[str, str], list[Edit]]

RESULT: Final = frozenset({"Program", "Observed"})
"""Functions whose result a case returns: without them there is no case."""
LONGEST: Final = 130
"""Characters of a statement that a name may be put into."""
LEAST: Final = 2
"""Nodes from which an expression is worth a cut of its own."""
SHAPED: Final = MADE | {"arange", "ones", "zeros"}


def _cuts(find: Callable[[Tree, str], Iterator[Edit]]) -> Sites:
    """Make a list of what a function yields for the tree of a text, the largest cuts first."""

    @wraps(find)
    def found(text: str, keep: str) -> list[Edit]:
        return sorted(find(Tree(text), keep), key=lambda edit: -edit.gain)

    return found


def _drop(tree: Tree, node: ast.AST, *more: ast.AST) -> Edit:
    """Return the cut that drops a node."""
    return Edit(tree, dict.fromkeys((node, *more), ()), ("drop", ast.unparse(node)), size(node))


@_cuts
def statements(tree: Tree, keep: str) -> Iterator[Edit]:
    """Yield cuts that drop a statement each; the case and what functions return stay."""
    for node in tree.nodes:
        if isinstance(node, ast.stmt) and not isinstance(
            node, ast.Import | ast.ImportFrom | ast.Pass
        ):
            body = getattr(tree.parent(node), "body", None)
            returns = isinstance(node, ast.Return) and isinstance(body, list) and body[-1] is node
            if not returns and getattr(node, "name", "") != keep:
                yield _drop(tree, node)


@_cuts
def blocks(tree: Tree, keep: str) -> Iterator[Edit]:
    """Yield cuts that put the statements of a block in its place, or drop a decorator."""
    for node in tree.nodes:
        if isinstance(node, ast.If | ast.With | ast.For | ast.While | ast.Try):
            for part in ("body", "orelse"):
                if inner := getattr(node, part, []):
                    yield Edit(tree, {node: inner}, (part, ast.unparse(node)), size(node))
        elif tree.field(node) == "decorator_list" and keep != getattr(
            tree.parent(node), "name", ""
        ):
            yield _drop(tree, node)


@_cuts
def items(tree: Tree, keep: str) -> Iterator[Edit]:  # noqa: ARG001 - as the others
    """Yield cuts that drop a keyword, an argument, or an item of a display."""
    for node in tree.nodes:
        match tree.parent(node):
            case ast.Dict(keys=keys, values=values) if node in keys:
                yield _drop(tree, node, values[keys.index(node)])
            case ast.Call(args=[_, *_, last]) if last is node:
                yield _drop(tree, node)
            case _ if isinstance(node, ast.keyword) or tree.field(node) == "elts":
                yield _drop(tree, node)
            case _:
                pass


@_cuts
def functions(tree: Tree, keep: str) -> Iterator[Edit]:
    """Yield cuts that put a function in the place of its calls."""
    for node in tree.nodes:
        if getattr(node, "name", "") != keep and (changes := inlined_function(tree, node)):
            yield Edit(tree, changes, (ast.unparse(node),))


@_cuts
def names(tree: Tree, keep: str) -> Iterator[Edit]:  # noqa: ARG001 - as the others
    """Yield cuts that put what a name is bound to where it is read, if the line stays short."""
    for node in tree.nodes:
        if changes := inlined_name(tree, node):
            read, (value,) = next(iter(changes.items()))
            line = ast.unparse(tree.statement(read)).partition("\n")[0]
            if len(line) + len(ast.unparse(value)) <= LONGEST:
                yield Edit(tree, changes, (ast.unparse(node),))


@_cuts
def signatures(tree: Tree, keep: str) -> Iterator[Edit]:
    """Yield cuts that drop a parameter that is not read, or one of several results."""
    for node in tree.nodes:
        if getattr(node, "name", "") != keep:
            for number in unused_parameters(node):
                for tuples in (True, False):
                    changes = without_parameter(tree, node, number, tuples=tuples)
                    yield Edit(tree, changes, (f"{number} {tuples}", ast.unparse(node)))
    for count in lengths_of_results(tree):
        for number in reversed(range(count)):
            for where in ("*", "+", ""):
                changes = without_result(tree, count, number, where)
                yield Edit(tree, changes, (f"{count} {number} {where}", tree.text))


@_cuts
def numbers(tree: Tree, keep: str) -> Iterator[Edit]:  # noqa: ARG001 - as the others
    """Yield cuts that make a number smaller, first everywhere, then at each place."""
    places: dict[tuple[type, float], list[ast.AST]] = {}
    for node in tree.nodes:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                places.setdefault((type(value), value), []).append(node)
            case _:
                pass
    single = []
    for (_, value), nodes in sorted(places.items(), key=lambda one: -abs(one[0][1])):
        for smaller in _smaller(value):
            yield _replaced(tree, dict.fromkeys(nodes, smaller), f"*{smaller!r}")
            if len(nodes) > 1:
                single += [_replaced(tree, {node: smaller}, repr(smaller)) for node in nodes]
    # A size, a number of devices and their product only get smaller together.
    for by in sorted({int(value) for _, value in places if value > 1 and value == int(value)}):
        divided = {
            node: kind(value / by)
            for (kind, value), nodes in places.items()
            if value and value % by == 0
            for node in nodes
        }
        yield _replaced(tree, divided, f"/{by} {tree.text}")
    yield from single


def _smaller(value: float) -> list[float]:
    if isinstance(value, int):
        return [n for n in dict.fromkeys((1, 2, value // 2)) if 0 < n < value]
    if value in PLAIN:
        return []
    shorter = (2.0, value // 2) if value == value // 1 else ()
    return [1.0, *(n for n in shorter if 1 < n < value)]


def _replaced(tree: Tree, values: dict[ast.AST, float], what: str) -> Edit:
    """Return the cut that puts numbers in the place of others."""
    where = ast.unparse(tree.statement(next(iter(values))))
    return Edit(
        tree, {node: [ast.Constant(value=new)] for node, new in values.items()}, (what, where)
    )


@_cuts
def expressions(tree: Tree, keep: str) -> Iterator[Edit]:  # noqa: ARG001 - as the others
    """Yield cuts that replace an expression by a part of it, by a parameter, or by a number."""
    for node in tree.nodes:
        if isinstance(node, ast.expr) and _is_worth(tree, node):
            before = ast.unparse(node)
            seen = {before}
            for other in _others(tree, node):
                after = ast.unparse(other)
                whole = not isinstance(other, ast.Slice)
                if whole and after not in seen and size(other) <= size(node):
                    seen.add(after)
                    yield Edit(tree, {node: [other]}, (after, before))


def _is_worth(tree: Tree, node: ast.expr) -> bool:
    """Say whether an expression may be another one: not in a decorator, nor part of a name."""
    if size(node) < LEAST or isinstance(node, ast.Starred | ast.Slice) or _is_dotted(node):
        return False
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    if any(tree.field(one) == "decorator_list" for one in (node, *tree.above(node))):
        return False
    parent = tree.parent(node)
    if isinstance(parent, ast.keyword) and parent.arg == "args":
        return not isinstance(node, ast.Tuple)
    return not (isinstance(node, ast.Call) and _called(node) in RESULT)


def _others(tree: Tree, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression may become, the simplest first."""
    match node:
        case ast.Lambda(body=ast.Call(func=func, args=args, keywords=[])):
            # A function that does nothing but call another one with what it is handed.
            if [getattr(one, "id", "") for one in args] == [one.arg for one in parameters(node)]:
                yield func
            return
        case ast.Lambda():
            return
        case _:
            pass
    around = (parameters(one) for one in tree.above(node))
    known = {one.arg for given in around for one in given} - {"env"}
    read = (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in known)
    yield from {one.id: one for one in read}.values()
    yield from _parts(node)
    yield from _ones(node)
    yield ast.Constant(value=1.0)
    if isinstance(node, ast.Compare | ast.BoolOp):
        yield ast.Constant(value=False)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            yield from (one for one in args if not isinstance(one, ast.Starred))
            yield from (one.value for one in keywords)
            yield from (item for one in args if isinstance(one, ast.List) for item in one.elts)
            if isinstance(func, ast.Attribute) and not _is_dotted(func.value):
                yield func.value
            elif isinstance(func, ast.Call):
                yield func
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            yield value
        case ast.ListComp(elt=elt, generators=[ast.comprehension(target=ast.Name(id=name))]):
            first = filled(elt, {name: ast.Constant(value=0)})
            yield ast.List(elts=[first], ctx=ast.Load())
        case ast.ListComp() | ast.GeneratorExp() | ast.Dict() | ast.JoinedStr():
            pass
        case _:
            yield from (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))


def _ones(node: ast.expr) -> Iterator[ast.expr]:
    """Yield arrays of ones, of the shapes of the arrays that an expression makes."""
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Attribute(attr=name), args=args, keywords=keywords) if (
                name in SHAPED
            ):
                shapes = [k.value for k in keywords if k.arg in {"size", "shape"}] + args
                for shape in shapes[-1:] if name == "linspace" else shapes[:1]:
                    text = ast.unparse(shape)
                    yield _parsed(f"np.ones({text})")
                    if text.isdecimal():
                        yield _parsed(f"np.arange({text}.0)")
            case _:
                pass


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_dotted(node: ast.AST) -> bool:
    """Say whether an expression is a name, or a name of a module's: `jnp.float32`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
