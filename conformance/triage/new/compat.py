"""Spellings of `env`, which goes with every release, in the place of a script's own. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

from conformance.triage.new.source import called, dotted, qualified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.source import ScriptSource

SHARD_MAPS: Final = frozenset({"jax.shard_map", "jax.experimental.shard_map.shard_map"})
COMPAT: Final = "env.compat."
_POSITIONS: Final = ("mesh", "in_specs", "out_specs")
"""Names of the positional arguments behind the function."""
_KEYWORDS: Final = {
    "mesh": "mesh", "in_specs": "in_specs", "out_specs": "out_specs", "check_rep": "check",
    "check_vma": "check", "axis_names": "axis_names",
}  # fmt: skip
"""Keywords of every spelling of shard_map that `env.compat.shard_map` has, as it calls them."""
_PLAIN: Final = {
    "jax.lax.pvary": "pvary", "jax.lax.axis_size": "axis_size", "jax.typeof": "typeof",
}  # fmt: skip
_CONTEXTS: Final = {
    "jax.set_mesh": "set_mesh", "jax.sharding.use_mesh": "set_mesh",
    "jax.sharding.set_mesh": "set_mesh", "jax.enable_x64": "enable_x64",
    "jax.experimental.enable_x64": "enable_x64",
}  # fmt: skip
_PARTIAL: Final = "functools.partial"
_ARRAY: Final = frozenset({"numpy.array", "numpy.asarray"})
_MESH: Final = frozenset({"jax.sharding.Mesh", "jax.interpreters.pxla.Mesh"})
_DEVICES: Final = "jax.devices"
_ALL: Final = "len(env.devices)"
_EQUAL: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def use_compat(source: ScriptSource) -> tuple[ScriptSource, tuple[str, ...]]:
    """Return a script with the spellings of `env.compat` for those that not every release has.

    Args:
        source: The script.

    Returns:
        The script, and the names of `env.compat` that it uses.
    """
    names = source.names
    maps = SHARD_MAPS if _has_plain_maps(source) else frozenset()

    def spell(_: cst.CSTNode, node: cst.CSTNode) -> Any:
        match node:
            case cst.WithItem(item=cst.Call() as call) if (
                path := qualified(call, names)
            ) in _CONTEXTS and not _has_keywords(call):
                return node.with_changes(item=call.with_changes(func=_compat(_CONTEXTS[path])))
            case cst.Call() if (path := qualified(node, names)) in _PLAIN and (
                not _has_keywords(node)
            ):
                return node.with_changes(func=_compat(_PLAIN[path]))
            case cst.Call(args=[first, *more]) if qualified(node, names) in maps:
                renamed = [first, *map(_renamed, more, _POSITIONS + ("",) * len(more))]
                return node.with_changes(func=_compat("shard_map"), args=renamed)
            case cst.Call(args=[first, *more]) if (
                qualified(node, names) == _PARTIAL and qualified(first.value, names) in maps
            ):
                args = [first.with_changes(value=_compat("shard_map")), *map(_renamed, more)]
                return node.with_changes(args=args)
            case _:
                return node

    spelled = source.transform(spell)
    paths = (dotted(node, {}) for node in ast.walk(spelled.tree))
    found = [path.removeprefix(COMPAT) for path in paths if path.startswith(COMPAT)]
    return spelled, tuple(dict.fromkeys(found))


def _compat(name: str) -> cst.BaseExpression:
    return cst.parse_expression(f"{COMPAT}{name}")


def _has_keywords(call: cst.Call) -> bool:
    return any(one.keyword is not None or one.star == "**" for one in call.args)


def _renamed(argument: cst.Arg, position: str = "") -> cst.Arg:
    """Return an argument under the name that `env.compat.shard_map` has for it."""
    if argument.keyword is not None:
        return argument.with_changes(keyword=cst.Name(_KEYWORDS[argument.keyword.value]))
    return argument.with_changes(keyword=cst.Name(position), equal=_EQUAL) if position else argument


def _has_plain_maps(source: ScriptSource) -> bool:
    """Say whether `env.compat.shard_map` can do all that a script does with shard_map."""
    nodes = [*ast.walk(source.tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and _maps(node, source.names)]
    loads = sum(dotted(node, source.names) in SHARD_MAPS for node in nodes)
    return loads == len(calls) and all(map(_is_plain, calls))


def _maps(call: ast.Call, names: Mapping[str, str]) -> bool:
    """Say whether a call makes a mapping: of shard_map, or of a part of it."""
    partial = called(call, names) == _PARTIAL and call.args
    return dotted(call.args[0] if partial else call.func, names) in SHARD_MAPS


def _is_plain(node: ast.Call) -> bool:
    given = [keyword.arg for keyword in node.keywords]
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    has_mesh = "mesh" in given or len(node.args) > 1
    return has_mesh and not starred and all(name in _KEYWORDS for name in given)


def use_cell_devices(source: ScriptSource) -> ScriptSource:
    """Return a script that takes devices, and meshes of the first of them, from the cell.

    Args:
        source: The script.
    """
    names = source.names

    def place(original: cst.CSTNode, node: cst.CSTNode) -> Any:
        match original, node:
            case cst.Call(args=[cst.Arg(value=devices), cst.Arg()]), cst.Call(args=[first, axes]):
                is_mesh = qualified(original, names) in _MESH
                code = cst.Module([]).code_for_node(devices)
                shape = _shape(ast.parse(f"({code})", mode="eval").body, names) if is_mesh else ""
                if shape and not _has_keywords(node):
                    args = [first.with_changes(value=cst.parse_expression(shape)), axes]
                    return node.with_changes(func=cst.parse_expression("env.mesh"), args=args)
            case cst.Call(args=[]), _ if qualified(original, names) == _DEVICES:
                return cst.parse_expression("env.devices")
            case _:
                pass
        return node

    return source.transform(place)


def _shape(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the shape of a mesh that is made of the first devices, empty where it is not."""
    match node:
        case ast.Call(args=[inner]) if called(node, names) in _ARRAY:
            return _shape(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="reshape"), args=sizes, keywords=[]):
            texts = [*map(ast.unparse, sizes)]
            if not texts or any("-1" in text for text in texts) or not _shape(inner, names):
                return ""
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        case ast.Subscript(
            value=inner, slice=ast.Slice(lower=None, upper=ast.expr() as upper, step=None)
        ):
            return ast.unparse(upper) if _shape(inner, names) == _ALL else ""
        case ast.Call(args=[], keywords=[]) if called(node, names) == _DEVICES:
            return _ALL
        case _:
            return ""
