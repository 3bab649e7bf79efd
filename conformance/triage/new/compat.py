"""Replaces JAX functions that only some releases have by `env` and `env.compat`. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

from conformance.triage.new.script_source import resolve_callee, resolve_cst_path, resolve_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.script_source import ScriptSource

SHARD_MAPS: Final = frozenset({"jax.shard_map", "jax.experimental.shard_map.shard_map"})
COMPAT: Final = "env.compat."
PARTIAL: Final = "functools.partial"
_POSITIONS: Final = ("mesh", "in_specs", "out_specs")
"""Names of the positional arguments of shard_map after the function."""
_KEYWORDS: Final = {
    "mesh": "mesh", "in_specs": "in_specs", "out_specs": "out_specs", "check_rep": "check",
    "check_vma": "check", "axis_names": "axis_names",
}  # fmt: skip
"""Keywords of `env.compat.shard_map` by the keywords of all releases of shard_map."""
_FUNCTIONS: Final = {
    "jax.lax.pvary": "pvary", "jax.lax.axis_size": "axis_size", "jax.typeof": "typeof",
}  # fmt: skip
_CONTEXTS: Final = {
    "jax.set_mesh": "set_mesh", "jax.sharding.use_mesh": "set_mesh",
    "jax.sharding.set_mesh": "set_mesh", "jax.enable_x64": "enable_x64",
    "jax.experimental.enable_x64": "enable_x64",
}  # fmt: skip
"""Replaced only in a `with`: as a plain call some of them set the whole process."""
_ARRAY: Final = frozenset({"numpy.array", "numpy.asarray"})
_MESH: Final = frozenset({"jax.sharding.Mesh", "jax.interpreters.pxla.Mesh"})
_DEVICES: Final = "jax.devices"
_ALL: Final = "len(env.devices)"
_EQUAL: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def use_compat(source: ScriptSource) -> tuple[ScriptSource, tuple[str, ...]]:
    """Return a script that uses `env.compat` for functions that only some releases have.

    Args:
        source: The script.

    Returns:
        The script, and the names of `env.compat` that it uses.
    """
    names = source.names
    # One call that `env.compat.shard_map` cannot express keeps all of them: a script with both
    # would fail on old releases all the same.
    shard_maps = SHARD_MAPS if _can_replace_shard_maps(source) else frozenset()

    def replace_call(_: cst.CSTNode, node: cst.CSTNode) -> Any:
        match node:
            case cst.WithItem(item=cst.Call() as call) if (
                path := resolve_cst_path(call, names)
            ) in _CONTEXTS and not _has_keywords(call):
                function = cst.parse_expression(COMPAT + _CONTEXTS[path])
                return node.with_changes(item=call.with_changes(func=function))
            case cst.Call() if (path := resolve_cst_path(node, names)) in _FUNCTIONS and (
                not _has_keywords(node)
            ):
                return node.with_changes(func=cst.parse_expression(COMPAT + _FUNCTIONS[path]))
            case cst.Call(args=[first, *more]) if resolve_cst_path(node, names) in shard_maps:
                renamed = map(_rename_argument, more, _POSITIONS + ("",) * len(more))
                function = cst.parse_expression(f"{COMPAT}shard_map")
                return node.with_changes(func=function, args=[first, *renamed])
            case cst.Call(args=[first, *more]) if (
                resolve_cst_path(node, names) == PARTIAL
                and resolve_cst_path(first.value, names) in shard_maps
            ):
                function = cst.parse_expression(f"{COMPAT}shard_map")
                args = [first.with_changes(value=function), *map(_rename_argument, more)]
                return node.with_changes(args=args)
            case _:
                return node

    replaced = source.transform(replace_call)
    paths = (resolve_path(node, {}) for node in ast.walk(replaced.tree))
    used = (path.removeprefix(COMPAT) for path in paths if path.startswith(COMPAT))
    return replaced, tuple(dict.fromkeys(used))


def _has_keywords(call: cst.Call) -> bool:
    return any(argument.keyword is not None or argument.star == "**" for argument in call.args)


def _rename_argument(argument: cst.Arg, position: str = "") -> cst.Arg:
    """Return an argument under its name in `env.compat.shard_map`."""
    if argument.keyword is not None:
        return argument.with_changes(keyword=cst.Name(_KEYWORDS[argument.keyword.value]))
    return argument.with_changes(keyword=cst.Name(position), equal=_EQUAL) if position else argument


def _can_replace_shard_maps(source: ScriptSource) -> bool:
    """Return whether `env.compat.shard_map` can express every use of shard_map in a script."""
    nodes = [*ast.walk(source.tree)]
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and _calls_shard_map(node, source.names)
    ]
    uses = sum(resolve_path(node, source.names) in SHARD_MAPS for node in nodes)
    return uses == len(calls) and all(map(_has_known_arguments, calls))


def _calls_shard_map(call: ast.Call, names: Mapping[str, str]) -> bool:
    """Return whether a call is one of shard_map, or of `partial(shard_map, ...)`."""
    is_partial = resolve_callee(call, names) == PARTIAL and call.args
    return resolve_path(call.args[0] if is_partial else call.func, names) in SHARD_MAPS


def _has_known_arguments(call: ast.Call) -> bool:
    keywords = [keyword.arg for keyword in call.keywords]
    is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    has_mesh = "mesh" in keywords or len(call.args) > 1
    return has_mesh and not is_starred and all(name in _KEYWORDS for name in keywords)


def use_cell_devices(source: ScriptSource) -> ScriptSource:
    """Return a script that takes its devices, and meshes of the first devices, from the cell.

    Args:
        source: The script.
    """
    names = source.names

    def replace_devices(original: cst.CSTNode, node: cst.CSTNode) -> Any:
        match original, node:
            case cst.Call(args=[cst.Arg(value=devices), cst.Arg()]), cst.Call(args=[first, axes]):
                if resolve_cst_path(original, names) in _MESH and not _has_keywords(node):
                    # The original devices: those of `node` are rewritten already.
                    code = cst.Module([]).code_for_node(devices)
                    if shape := _mesh_shape(ast.parse(f"({code})", mode="eval").body, names):
                        args = [first.with_changes(value=cst.parse_expression(shape)), axes]
                        return node.with_changes(func=cst.parse_expression("env.mesh"), args=args)
            case cst.Call(args=[]), _ if resolve_cst_path(original, names) == _DEVICES:
                return cst.parse_expression("env.devices")
            case _:
                pass
        return node

    return source.transform(replace_devices)


def _mesh_shape(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the shape of an array of the first devices, empty for another expression."""
    match node:
        case ast.Call(args=[inner]) if resolve_callee(node, names) in _ARRAY:
            return _mesh_shape(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="reshape"), args=sizes, keywords=[]):
            texts = [*map(ast.unparse, sizes)]
            if not texts or any("-1" in text for text in texts) or not _mesh_shape(inner, names):
                return ""
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        case ast.Subscript(
            value=inner, slice=ast.Slice(lower=None, upper=ast.expr() as upper, step=None)
        ):
            return ast.unparse(upper) if _mesh_shape(inner, names) == _ALL else ""
        case ast.Call(args=[], keywords=[]) if resolve_callee(node, names) == _DEVICES:
            return _ALL
        case _:
            return ""
