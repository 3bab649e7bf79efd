"""A case as one text that can be cut: the code it uses, its one parametrisation filled in. Pure.

The text is a case file again, with nothing in it but what the case needs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.repro.source import extract
from conformance.triage.shrink.cleanup import tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.case import Case
    from conformance.triage.repro.source import Read

DEFAULTS: Final = {
    "devices": 1, "platforms": (), "x64": False, "xla_flags": (), "config": {}, "facts": {},
    "timeout": 60.0, "memory": 4096, "observation_mb": 256, "rtol": None, "atol": None,
    "requires": (),
}  # fmt: skip
"""Keywords of a case that change what a job does or how it is judged, with their defaults."""


def draft_of(case: Case, read: Read) -> str:
    """Return the text of a case file that holds one case alone.

    Args:
        case: The case, one parametrisation of it.
        read: Returns the text of a file.

    Raises:
        NotStaticError: If a name it uses cannot be found by reading files.
    """
    source = extract(case.file, case.name, read)
    kit = sorted({*source.kit, case.kind})
    lines = [
        *(["from __future__ import annotations"] if source.future else []),
        *source.imports,
        f"from conformance.kit import {', '.join(kit)}",
        *source.definitions,
    ]
    tree = ast.parse("\n".join(lines))
    function = function_of(tree, case.name)
    if not any(_called(one) == case.kind for one in function.decorator_list):
        function.decorator_list.insert(0, decorator(case))
    _fill_in(function, case.params)
    return ast.unparse(tidy(ast.fix_missing_locations(tree), case.name))


def function_of(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Return the function of a case, of its file."""
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return next(found)


def decorator(case: Case) -> ast.Call:
    """Return the decorator that says of a case what changes its job."""
    given = {name: getattr(case, name) for name in DEFAULTS}
    keywords = [
        ast.keyword(arg=name, value=_literal(value))
        for name, value in given.items()
        if value != DEFAULTS[name]
    ]
    return ast.Call(func=ast.Name(id=case.kind, ctx=ast.Load()), args=[], keywords=keywords)


def _literal(value: Any) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _called(node: ast.expr) -> str:
    return getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""


def _fill_in(function: ast.FunctionDef, params: Mapping[str, Any]) -> None:
    """Put the values of a parametrisation in the place of its parameters."""
    given = function.args
    defaults = {
        **dict(zip(reversed(given.args), reversed(given.defaults), strict=False)),
        **dict(zip(given.kwonlyargs, given.kw_defaults, strict=True)),
    }
    filled = [one.arg for one in (*given.args, *given.kwonlyargs) if one.arg in params]
    given.args = [one for one in given.args if one.arg not in params]
    given.kwonlyargs = [one for one in given.kwonlyargs if one.arg not in params]
    given.defaults = [default for one in given.args if (default := defaults.get(one)) is not None]
    given.kw_defaults = [defaults[one] for one in given.kwonlyargs]
    function.body[:0] = [
        ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=_literal(params[name]))
        for name in filled
    ]
