"""Edits that cut Python code: parts that can be dropped or made smaller, for each reduction. Pure.

An edit maps nodes to their replacements; several edits of one tree may be applied together. Whether
the rest still shows the kept behavior is for a trial to find out.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.refactorings import (
    drop_parameter,
    drop_result,
    find_unused_parameters,
    inline_function,
    inline_name,
    list_result_lengths,
)
from conformance.triage.shrink.simplification import simplify, substitute
from conformance.triage.shrink.syntax import (
    SyntaxTree,
    count_nodes,
    find_undefined,
    list_parameters,
    parse_expression,
    replace_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.triage.shrink.syntax import Replacements

    FindEdits = Callable[[str, str], list["Edit"]]
    """Returns the edits of a text, given the name of the function that it is for."""

SIMPLEST: Final = frozenset({0, 1, 2.0, 0.5})
"""Numbers that cannot be made simpler."""
UNUSUAL_DTYPES: Final = frozenset({
    "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int8", "int16",
})  # fmt: skip
"""Dtypes that cost more than float32 and int32."""
MAX_MAGNITUDE: Final = 1 << 40
"""Larger numbers cost no more: a float like 1e300 would outweigh everything else."""
GENERATORS: Final = frozenset({
    "random", "normal", "standard_normal", "uniform", "integers", "linspace",
})  # fmt: skip
"""Names of functions that make arrays of some shape; an array of ones is simpler."""
SHAPED: Final = GENERATORS | {"arange", "ones", "zeros"}
RESULTS: Final = frozenset({"Program", "Observed"})
"""Functions whose result a case returns: without them it is no case."""
MAX_LINE: Final = 130
"""Maximum length of a statement into which a name is inlined."""
MIN_NODES: Final = 2
"""Minimum number of nodes of an expression that is replaced."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One edit.

    Attributes:
        tree: The code.
        changes: The replacements of its nodes.
        key: Identifies the edit after other edits of the code.
        gain: Roughly how much it removes: edits with a large gain are tried first.
    """

    tree: SyntaxTree
    changes: Replacements
    key: tuple[str, ...]
    gain: int = 0


def measure_cost(text: str) -> tuple[int, int, int]:
    """Return the size of a text: its nodes, the magnitude of its numbers, its characters."""
    nodes = magnitude = 0
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.expr_context() | ast.operator() | ast.arguments() | ast.Module():
                continue
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                magnitude += _magnitude(value)
            case ast.Attribute(attr=name):
                magnitude += (
                    (name in UNUSUAL_DTYPES) + (name == "arange") + 2 * (name in GENERATORS)
                )
            case ast.Tuple() | ast.FunctionDef():
                nodes += 1
            case _:
                pass
        nodes += 1
    return nodes, magnitude, len(text)


def _magnitude(value: float) -> int:
    if type(value) is float and (value in SIMPLEST or not math.isfinite(value)):
        return 0
    is_whole = value == value // 1
    return int(min(abs(value), MAX_MAGNITUDE)) if is_whole else len(repr(value))


def apply_edits(edits: Sequence[Edit]) -> str | None:
    """Return code with some edits applied, simplified.

    Args:
        edits: Edits of one tree, at least one.

    Returns:
        The new code; None if it is no smaller, or certainly cannot run.
    """
    tree = edits[0].tree
    changes: dict[ast.AST, Sequence[ast.AST]] = {}
    for edit in edits:
        changes |= edit.changes
    try:
        cut = ast.unparse(simplify(replace_nodes(tree.root, changes), tree.keep))
        missing = find_undefined(cut)
        # Edits put `np.ones` into code that may not import NumPy.
        if missing == {"np"}:
            cut = f"import numpy as np\n{cut}"
        elif missing:
            return None
    # An edit may leave what is no Python, e.g. a call as the target of an assignment.
    except (SyntaxError, ValueError, RecursionError):
        return None
    # Each edit must make the code smaller, so that the search ends.
    return cut if measure_cost(cut) < measure_cost(tree.text) else None


def _finds_edits(find: Callable[[SyntaxTree], Iterator[Edit]]) -> FindEdits:
    """Make a function that returns the edits of a text of one that yields those of a tree."""

    @wraps(find)
    def find_edits(text: str, keep: str) -> list[Edit]:
        return sorted(find(SyntaxTree(text, keep)), key=lambda edit: -edit.gain)

    return find_edits


def _drop(tree: SyntaxTree, *nodes: ast.AST) -> Edit:
    """Return the edit that drops some nodes; the first identifies it."""
    # By text: each cut makes new nodes, and positions move.
    key = ("drop", ast.unparse(nodes[0]))
    return Edit(tree, dict.fromkeys(nodes, ()), key, count_nodes(nodes[0]))


def _is_kept(tree: SyntaxTree, node: ast.AST) -> bool:
    return getattr(node, "name", "") == tree.keep


@_finds_edits
def drop_statements(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that drop a statement each; the kept function and last returns stay."""
    for node in tree.nodes:
        if isinstance(node, ast.stmt) and not isinstance(
            node, ast.Import | ast.ImportFrom | ast.Pass
        ):
            body = getattr(tree.get_parent(node), "body", None)
            # A function without its last `return` gives None, and can no longer be inlined.
            returns = isinstance(node, ast.Return) and isinstance(body, list) and body[-1] is node
            if not returns and not _is_kept(tree, node):
                yield _drop(tree, node)


@_finds_edits
def unwrap_blocks(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that replace a block by its statements, or drop a decorator."""
    for node in tree.nodes:
        if isinstance(node, ast.If | ast.With | ast.For | ast.While | ast.Try):
            for part in ("body", "orelse"):
                if inner := getattr(node, part, []):
                    yield Edit(tree, {node: inner}, (part, ast.unparse(node)), count_nodes(node))
        elif tree.get_field(node) == "decorator_list" and not _is_kept(tree, tree.get_parent(node)):
            yield _drop(tree, node)


@_finds_edits
def drop_items(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that drop a keyword, an argument, or an item of a list, tuple, set or dict."""
    for node in tree.nodes:
        match tree.get_parent(node):
            case ast.Dict(keys=keys, values=values) if node in keys:
                yield _drop(tree, node, values[keys.index(node)])
            # Only the last argument: without another one the arguments after it would move.
            case ast.Call(args=[_, *_, last]) if last is node:
                yield _drop(tree, node)
            case _ if isinstance(node, ast.keyword) or tree.get_field(node) == "elts":
                yield _drop(tree, node)
            case _:
                pass


@_finds_edits
def inline_functions(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that replace the calls of a function by its body."""
    for node in tree.nodes:
        if not _is_kept(tree, node) and (changes := inline_function(tree, node)):
            yield Edit(tree, changes, (ast.unparse(node),))


@_finds_edits
def inline_names(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that replace a name by its value, if the line stays short."""
    for node in tree.nodes:
        if changes := inline_name(tree, node):
            read, (value,) = next(iter(changes.items()))
            line = ast.unparse(tree.find_statement(read)).partition("\n")[0]
            if len(line) + len(ast.unparse(value)) <= MAX_LINE:
                yield Edit(tree, changes, (ast.unparse(node),))


@_finds_edits
def drop_parameters_and_results(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that drop an unread parameter, or one of several results."""
    for node in tree.nodes:
        if not _is_kept(tree, node):
            for number in find_unused_parameters(node):
                for tuples in (True, False):
                    changes = drop_parameter(tree, node, number, tuples=tuples)
                    yield Edit(tree, changes, (f"{number} {tuples}", ast.unparse(node)))
    for count in list_result_lengths(tree):
        for number in reversed(range(count)):
            # The widest change first: a carry usually has to shrink wherever it occurs.
            for where in ("*", "+", ""):
                changes = drop_result(tree, count, number, where)
                yield Edit(tree, changes, (f"{count} {number} {where}", tree.text))


@_finds_edits
def reduce_numbers(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that make a number smaller, first everywhere, then at each place."""
    places: dict[tuple[type, float], list[ast.AST]] = {}
    for node in tree.nodes:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                # By type, too: 1 and 1.0 are equal, and the same key of a dict.
                places.setdefault((type(value), value), []).append(node)
            case _:
                pass
    single = []
    # Large numbers first: most are sizes, which cost time in each later trial.
    for (_, value), nodes in sorted(places.items(), key=lambda item: -abs(item[0][1])):
        for smaller in _list_smaller(value):
            yield _replace_numbers(tree, dict.fromkeys(nodes, smaller), f"*{smaller!r}")
            if len(nodes) > 1:
                single += [_replace_numbers(tree, {n: smaller}, repr(smaller)) for n in nodes]
    # A size, a number of devices and their product can only be reduced together.
    for by in sorted({int(value) for _, value in places if value > 1 and value == int(value)}):
        divided = {
            node: kind(value / by)
            for (kind, value), nodes in places.items()
            if value and value % by == 0
            for node in nodes
        }
        yield _replace_numbers(tree, divided, f"/{by} {tree.text}")
    yield from single


def _list_smaller(value: float) -> list[float]:
    if isinstance(value, int):
        return [n for n in dict.fromkeys((1, 2, value // 2)) if 0 < n < value]
    if value in SIMPLEST:
        return []
    shorter = (2.0, value // 2) if value == value // 1 else ()
    return [1.0, *(n for n in shorter if 1 < n < value)]


def _replace_numbers(tree: SyntaxTree, values: dict[ast.AST, float], label: str) -> Edit:
    where = ast.unparse(tree.find_statement(next(iter(values))))
    changes = {node: [ast.Constant(value=value)] for node, value in values.items()}
    return Edit(tree, changes, (label, where))


@_finds_edits
def reduce_expressions(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield edits that replace an expression by a part of it, by a parameter, or by a number."""
    for node in tree.nodes:
        if isinstance(node, ast.expr) and _is_reducible(tree, node):
            before = ast.unparse(node)
            seen = {before}
            for other in _list_alternatives(tree, node):
                after = ast.unparse(other)
                # A slice is no expression outside of a subscript.
                is_smaller = count_nodes(other) <= count_nodes(node)
                if not isinstance(other, ast.Slice) and after not in seen and is_smaller:
                    seen.add(after)
                    yield Edit(tree, {node: [other]}, (after, before))


def _is_reducible(tree: SyntaxTree, node: ast.expr) -> bool:
    """Return whether an expression may be replaced: not in a decorator, nor part of a name."""
    if count_nodes(node) < MIN_NODES or isinstance(node, ast.Starred | ast.Slice) or _is_name(node):
        return False
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    # The keywords of a case are literals, which discovery reads without running the file.
    if any(
        tree.get_field(outer) == "decorator_list" for outer in (node, *tree.walk_ancestors(node))
    ):
        return False
    parent = tree.get_parent(node)
    # `args=` has to stay a tuple; its items may be cut.
    if isinstance(parent, ast.keyword) and parent.arg == "args":
        return not isinstance(node, ast.Tuple)
    return not (isinstance(node, ast.Call) and _callee_name(node) in RESULTS)


def _list_alternatives(tree: SyntaxTree, node: ast.expr) -> Iterator[ast.expr]:
    """Yield possible replacements of an expression, the simplest first."""
    match node:
        case ast.Lambda(body=ast.Call(func=func, args=args, keywords=[])):
            # A function that only passes its parameters on to another function.
            names = [parameter.arg for parameter in list_parameters(node)]
            if [getattr(argument, "id", "") for argument in args] == names:
                yield func
            return
        case ast.Lambda():
            return
        case _:
            pass
    around = (list_parameters(outer) for outer in tree.walk_ancestors(node))
    # `env` is no value that an operation takes.
    known = {parameter.arg for parameters in around for parameter in parameters} - {"env"}
    reads = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in known)
    yield from {read.id: read for read in reads}.values()
    yield from _list_parts(node)
    yield from _list_plain_arrays(node)
    yield ast.Constant(value=1.0)
    if isinstance(node, ast.Compare | ast.BoolOp):
        yield ast.Constant(value=False)


def _list_parts(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            yield from (argument for argument in args if not isinstance(argument, ast.Starred))
            yield from (keyword.value for keyword in keywords)
            yield from (item for arg in args if isinstance(arg, ast.List) for item in arg.elts)
            if isinstance(func, ast.Attribute) and not _is_name(func.value):
                yield func.value
            elif isinstance(func, ast.Call):
                yield func
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            yield value
        case ast.ListComp(elt=item, generators=[ast.comprehension(target=ast.Name(id=name))]):
            # Not the item alone: a list has to stay a list.
            first = substitute(item, {name: ast.Constant(value=0)})
            yield ast.List(elts=[first], ctx=ast.Load())
        case ast.ListComp() | ast.GeneratorExp() | ast.Dict() | ast.JoinedStr():
            pass
        case _:
            yield from (
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
            )


def _list_plain_arrays(node: ast.expr) -> Iterator[ast.expr]:
    """Yield arrays of ones with the shapes of the arrays that an expression makes."""
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(attr=name), args=args, keywords=keywords) if (
                name in SHAPED
            ):
                shapes = [k.value for k in keywords if k.arg in {"size", "shape"}] + args
                for shape in shapes[-1:] if name == "linspace" else shapes[:1]:
                    text = ast.unparse(shape)
                    yield parse_expression(f"np.ones({text})")
                    if text.isdecimal():
                        yield parse_expression(f"np.arange({text}.0)")
            case _:
                pass


def _is_name(node: ast.AST) -> bool:
    """Return whether an expression is a name, or a dotted name: `jnp.float32`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _callee_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
