"""A case whose function is its own jaxpr, written as code: each operation is a statement. Pure.

So what a library does on the way can be cut as well, and dropping a statement is dropping an
equation.
"""

from __future__ import annotations

import ast

from conformance.ir.graph import IrSyntaxError
from conformance.triage.jaxpr_code.code import code_of
from conformance.triage.jaxpr_code.literals import IMPORTS
from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from conformance.triage.shrink.bindings import stores, undefined
from conformance.triage.shrink.cleanup import tidy
from conformance.triage.shrink.source import function_of


def inlined(text: str, name: str, document: bytes, release: str) -> str | None:
    """Return a case that runs its jaxpr.

    Args:
        text: The case; it returns `Program(function, ...)`.
        name: Name of its function.
        document: Its jaxpr.
        release: The release that traced it.

    Returns:
        The case; None where its jaxpr has no code, or it takes more than its arguments.
    """
    tree = ast.parse(text)
    case = function_of(tree, name)
    match case.body[-1]:
        case ast.Return(value=ast.Call(func=ast.Name(id="Program"), args=[_, *_]) as call):
            pass
        case _:
            return None
    if any(one.arg in {"kwargs", "jit"} for one in call.keywords):
        return None
    try:
        called = "fn" if "fn" not in stores(tree) else "steps"
        code = code_of(document, release=release, name=called)
    except (UnsupportedJaxprError, IrSyntaxError):
        return None
    if not code.parameters:
        call.keywords = [one for one in call.keywords if one.arg != "args"]
    call.args[0] = ast.Name(id=code.name, ctx=ast.Load())
    case.body[-1:-1] = ast.parse("\n".join(code.statements)).body
    known = {ast.unparse(one) for one in tree.body}
    imports = [line for line in IMPORTS.values() if line not in known]
    tree.body[:0] = ast.parse("\n".join(imports)).body
    written = ast.unparse(tidy(tree, name))
    return None if undefined(written) else written
