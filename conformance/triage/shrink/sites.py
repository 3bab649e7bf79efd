"""Where a Python text can be cut, one list of cuts for each way of cutting. Pure."""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.edits import MADE, PLAIN, Edit
from conformance.triage.shrink.fold import filled
from conformance.triage.shrink.signatures import results, unused_parameters
from conformance.triage.shrink.tree import Tree, parameters, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.triage.shrink.edits import Kind

    Sites = Callable[[str, str], list[Edit]]

KIT: Final = frozenset({"program", "probe"})
RESULT: Final = frozenset({"Program", "Observed"})
"""What a case returns: left as it is, for without it there is no case."""
LONGEST: Final = 130
"""Characters of a statement that a name may be put into."""
LEAST: Final = 2
"""Nodes from which an expression is worth a cut of its own."""
UNWRAPPED: Final = ("body", "orelse")


def statements(text: str, keep: str) -> list[Edit]:
    """Return cuts that drop a statement each; the case and what functions return stay."""
    tree = Tree(text)
    left = (ast.Import, ast.ImportFrom, ast.Pass)
    found = []
    for number, node in enumerate(tree.nodes):
        if not isinstance(node, ast.stmt) or isinstance(node, left):
            continue
        body = getattr(tree.parent(node), "body", None)
        returns = isinstance(node, ast.Return) and isinstance(body, list) and body[-1] is node
        if not returns and getattr(node, "name", "") != keep:
            found.append(_edit("drop", number, node))
    return _largest(found)


def blocks(text: str, keep: str) -> list[Edit]:
    """Return cuts that put the statements of a block in its place, or drop a decorator."""
    tree = Tree(text)
    found = []
    for number, node in enumerate(tree.nodes):
        decorates = tree.field(node) == "decorator_list"
        if isinstance(node, ast.If | ast.With | ast.For | ast.While | ast.Try):
            parts = [part for part in UNWRAPPED if getattr(node, part, [])]
            found += [_edit("unwrap", number, node, part) for part in parts]
        elif decorates and getattr(tree.parent(node), "name", "") != keep:
            found.append(_edit("item", number, node))
    return _largest(found)


def numbers(text: str, keep: str) -> list[Edit]:  # noqa: ARG001 - as the others
    """Return cuts that make a number smaller, wherever it stands and then one by one."""
    tree = Tree(text)
    places: dict[tuple[type, float], list[int]] = {}
    for number, node in enumerate(tree.nodes):
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                places.setdefault((type(value), value), []).append(number)
            case _:
                pass
    joint, single = [], []
    for (_, value), where in sorted(places.items(), key=lambda one: -abs(one[0][1])):
        for smaller in _smaller(value):
            joint.append(_number(tree, where[0], f"*{smaller!r}", value))
            if len(where) > 1:
                single += [_number(tree, number, repr(smaller), value) for number in where]
    # A size, a number of devices and their product only get smaller together.
    whole = sorted({int(value) for _, value in places if value > 1 and value == int(value)})
    shared = [
        Edit(kind="number", node=0, arg=f"/{one}", gain=one, key=_outline(text)) for one in whole
    ]
    return [*joint, *shared, *single]


def _smaller(value: float) -> list[float]:
    if isinstance(value, int):
        return [n for n in dict.fromkeys((1, 2, value // 2)) if 0 < n < value]
    if value in PLAIN:
        return []
    shorter = (2.0, value // 2) if value == value // 1 else ()
    return [1.0, *(n for n in shorter if 1 < n < value)]


def _number(tree: Tree, number: int, arg: str, value: float) -> Edit:
    where = ast.unparse(tree.statement(tree.nodes[number]))
    return Edit(kind="number", node=number, arg=arg, gain=int(min(value, 1e9)), key=where)


def functions(text: str, keep: str) -> list[Edit]:
    """Return cuts that put a function in the place of its calls."""
    return [
        _edit("function", number, node)
        for number, node in enumerate(Tree(text).nodes)
        if isinstance(node, ast.FunctionDef) and node.name != keep
    ]


def names(text: str, keep: str) -> list[Edit]:  # noqa: ARG001 - as the others
    """Return cuts that put what a name is bound to where it is read, if the line stays short."""
    tree = Tree(text)
    found = []
    for number, node in enumerate(tree.nodes):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            reads = [
                one
                for one in tree.nodes
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            ]
            lines = [ast.unparse(tree.statement(one)).partition("\n")[0] for one in reads]
            long = len(ast.unparse(node.value))
            if len(reads) == 1 and len(lines[0]) + long <= LONGEST:
                found.append(_edit("name", number, node))
    return found


def signatures(text: str, keep: str) -> list[Edit]:
    """Return cuts that drop a parameter that is not read, or one of several results."""
    tree = Tree(text)
    found = []
    for number, node in enumerate(tree.nodes):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and getattr(node, "name", "") != keep:
            unread = unused_parameters(node)
            found += [
                _edit("parameter", number, node, f"{tuples}{one}")
                for one in unread
                for tuples in ("*", "")
            ]
    for count in results(tree):
        for one in reversed(range(count)):
            for where in ("*", "+", ""):
                arg = f"{count} {one} {where}"
                found.append(Edit(kind="output", node=0, arg=arg, gain=1, key=_outline(text)))
    return found


def _outline(text: str) -> str:
    """Return what tells one text from another, where a cut is about all of it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def items(text: str, keep: str) -> list[Edit]:  # noqa: ARG001 - as the others
    """Return cuts that drop a keyword, an argument, or an item of a display."""
    tree = Tree(text)
    found = []
    for number, node in enumerate(tree.nodes):
        parent, field = tree.parent(node), tree.field(node)
        in_display = field in {"elts", "keys"} and isinstance(node, ast.expr)
        is_last = isinstance(parent, ast.Call) and parent.args[1:] and parent.args[-1] is node
        if isinstance(node, ast.keyword) or in_display or is_last:
            found.append(_edit("item", number, node))
    return _largest(found)


def expressions(text: str, keep: str) -> list[Edit]:  # noqa: ARG001 - as the others
    """Return cuts that replace an expression by a part of it, by a parameter, or by a number."""
    tree = Tree(text)
    found = []
    for number, node in enumerate(tree.nodes):
        if isinstance(node, ast.expr) and _is_worth(tree, node):
            seen = {ast.unparse(node)}
            for other in _others(tree, node):
                told = ast.unparse(other)
                whole = not isinstance(other, ast.Slice)
                if whole and told not in seen and size(other) <= size(node):
                    seen.add(told)
                    found.append(_edit("become", number, node, told))
    return found


def _is_worth(tree: Tree, node: ast.expr) -> bool:
    """Say whether an expression may be another one: not in a decorator, nor part of a name."""
    if size(node) < LEAST or isinstance(node, ast.Starred | ast.Slice) or _dotted(node):
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
    if isinstance(node, ast.Lambda):
        if isinstance(node.body, ast.Call) and _hands_on(node, node.body):
            yield node.body.func
        return
    yield from _parameters_in(tree, node)
    yield from _parts(node)
    yield from _ones(node)
    yield ast.Constant(value=1.0)
    if isinstance(node, ast.Compare | ast.BoolOp):
        yield ast.Constant(value=False)


def _hands_on(function: ast.Lambda, call: ast.Call) -> bool:
    """Say whether a function does nothing but call another one with what it is handed."""
    names = [one.id for one in call.args if isinstance(one, ast.Name)]
    plain = not call.keywords and len(names) == len(call.args)
    return plain and names == [one.arg for one in parameters(function)]


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            yield from (one for one in args if not isinstance(one, ast.Starred))
            yield from (one.value for one in keywords)
            yield from (item for one in args if isinstance(one, ast.List) for item in one.elts)
            if isinstance(func, ast.Attribute) and not _dotted(func.value):
                yield func.value
            elif isinstance(func, ast.Call):
                yield func
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            yield from elts
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
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            named = [k.value for k in one.keywords if k.arg in {"size", "shape"}]
            if one.func.attr in MADE | {"arange", "ones", "zeros"} and (
                shape := [*named, *one.args]
            ):
                last = one.func.attr == "linspace"
                told = ast.unparse(shape[-1 if last else 0])
                yield _parsed(f"np.ones({told})")
                if told.isdecimal():
                    yield _parsed(f"np.arange({told}.0)")


def _parameters_in(tree: Tree, node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parameters, of the functions around it, that an expression reads."""
    around = [one for one in tree.above(node) if isinstance(one, ast.FunctionDef | ast.Lambda)]
    known = {one.arg for function in around for one in parameters(function)}
    read = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    yield from (_parsed(name) for name in dict.fromkeys(read) if name in known and name != "env")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _dotted(node: ast.AST) -> bool:
    """Say whether an expression is a name, or a name of a module's: `jnp.float32`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _edit(kind: Kind, number: int, node: ast.AST, arg: str = "") -> Edit:
    return Edit(kind=kind, node=number, arg=arg, gain=size(node), key=ast.unparse(node))


def _largest(found: list[Edit]) -> list[Edit]:
    return sorted(found, key=lambda edit: -edit.gain)
