"""A case whose function is its own jaxpr, said as code: each operation is a statement. Pure.

So what a library does on the way can be cut as well, and dropping a statement is dropping an
equation. What releases spell in their own ways is said by `env.compat`, for the other cell.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import IrSyntaxError
from conformance.triage.jaxpr_code.code import NotSayableError, code_of
from conformance.triage.shrink.fold import stores
from conformance.triage.shrink.source import function_of
from conformance.triage.shrink.tidy import tidy, undefined

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code.code import Code

RESPELLED: Final = {"check_vma": "check", "check_rep": "check"}
"""Keywords of shard_map, as `env.compat` calls them."""
VARYING: Final = frozenset({"pvary", "pbroadcast", "pcast"})
"""What makes a value vary over an axis, as releases call it."""


def inlined(text: str, name: str, document: bytes, release: str) -> str | None:
    """Return a case that runs its jaxpr.

    Args:
        text: The case; it returns `Program(function, ...)`.
        name: Name of its function.
        document: Its jaxpr.
        release: The release that traced it.

    Returns:
        The case; None where its jaxpr cannot be said, or it takes more than its arguments.
    """
    called = "fn" if "fn" not in stores(ast.parse(text)) else "steps"
    try:
        code = code_of(document, release=release, name=called, dead=False)
    except (NotSayableError, IrSyntaxError):
        return None
    tree = ast.parse(text)
    case = function_of(tree, name)
    match case.body[-1]:
        case ast.Return(value=ast.Call(func=ast.Name(id="Program"), args=[_, *_]) as call):
            pass
        case _:
            return None
    if code.constants or any(one.arg in {"kwargs", "jit"} for one in call.keywords):
        return None
    if not code.arguments:
        call.keywords = [one for one in call.keywords if one.arg != "args"]
    call.args[0] = ast.Name(id=code.name, ctx=ast.Load())
    case.body[-1:-1] = _statements(code)
    known = {ast.unparse(one) for one in tree.body}
    more = [one for one in ast.parse("\n".join(code.imports)).body if ast.unparse(one) not in known]
    tree.body[:0] = more
    tree = _Respelled().visit(tree)
    told = ast.unparse(tidy(ast.fix_missing_locations(tree), name))
    return None if undefined(told) else told


def _statements(code: Code) -> list[ast.stmt]:
    meshes = [f"{name} = {_mesh(axes)}" for name, axes in code.meshes.items()]
    return ast.parse("\n".join([*meshes, *code.functions])).body


def _mesh(axes: tuple[tuple[str, int, str], ...]) -> str:
    sizes, names = tuple(axis[1] for axis in axes), tuple(axis[0] for axis in axes)
    explicit = ", explicit=True" if all(axis[2] == "Explicit" for axis in axes) else ""
    if len(axes) == 1:
        return f"env.mesh({sizes[0]}, {names[0]!r}{explicit})"
    return f"env.mesh({sizes!r}, {names!r}{explicit})"


class _Respelled(ast.NodeTransformer):
    """Says by `env.compat` what releases spell in their own ways."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        match node.func:
            case ast.Name(id=called) | ast.Attribute(value=ast.Name(id="jax" | "lax"), attr=called):
                pass
            case _:
                return node
        if called == "shard_map":
            node.func = _compat("shard_map")
            for keyword in node.keywords:
                keyword.arg = RESPELLED.get(keyword.arg or "", keyword.arg)
        elif called in VARYING:
            node.func = _compat("pvary")
            node.keywords = []
        return node


def _compat(name: str) -> ast.expr:
    return ast.parse(f"env.compat.{name}", mode="eval").body
