"""Spellings that `env` has one of for every release, put in the place of a script's own. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.new.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.edits import Edits

_SHARD_MAPS: Final = frozenset({"jax.shard_map", "jax.experimental.shard_map.shard_map"})
_POSITIONS: Final = ("mesh", "in_specs", "out_specs")
"""What the positional arguments behind the function are called."""
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


def bridge(tree: ast.Module, names: Mapping[str, str], edits: Edits) -> tuple[str, ...]:
    """Put the spellings of `env.compat` in the place of those that not every release has.

    Args:
        tree: The script.
        names: What imported names stand for.
        edits: Gets the edits.

    Returns:
        The names of `env.compat` that are used.
    """
    found: list[str] = []
    contexts = {id(item.context_expr) for node in ast.walk(tree) for item in _items(node)}
    mapped = _shard_map_calls(tree, names)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        path = called(node, names)
        if node in mapped:
            _bridge_shard_map(node, edits, partial=path == _PARTIAL)
            found.append("shard_map")
        elif path in _PLAIN and not node.keywords:
            edits.replace(
                edits.start(node.func), edits.end(node.func), f"env.compat.{_PLAIN[path]}"
            )
            found.append(_PLAIN[path])
        elif path in _CONTEXTS and id(node) in contexts and not node.keywords:
            other = _CONTEXTS[path]
            edits.replace(edits.start(node.func), edits.end(node.func), f"env.compat.{other}")
            found.append(other)
    return tuple(dict.fromkeys(found))


def _items(node: ast.AST) -> list[ast.withitem]:
    return node.items if isinstance(node, ast.With) else []


def _shard_map_calls(tree: ast.Module, names: Mapping[str, str]) -> list[ast.Call]:
    """Return the calls that make a mapping; none, where one of them says more than ours can."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    mapped = [
        node
        for node in calls
        if called(node, names) in _SHARD_MAPS
        or (called(node, names) == _PARTIAL and node.args and _is_mapping(node.args[0], names))
    ]
    loads = sum(_is_mapping(node, names) for node in ast.walk(tree))
    return mapped if loads == len(mapped) and all(map(_is_plain, mapped)) else []


def _is_mapping(node: ast.AST, names: Mapping[str, str]) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and dotted(node, names) in _SHARD_MAPS


def _is_plain(node: ast.Call) -> bool:
    given = [keyword.arg for keyword in node.keywords]
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    has_mesh = "mesh" in given or len(node.args) > 1
    return has_mesh and not starred and all(name in _KEYWORDS for name in given)


def _bridge_shard_map(node: ast.Call, edits: Edits, *, partial: bool) -> None:
    name = node.args[0] if partial else node.func
    edits.replace(edits.start(name), edits.end(name), "env.compat.shard_map")
    if not partial:
        for argument, name_of_it in zip(node.args[1:], _POSITIONS, strict=False):
            edits.replace(edits.start(argument), edits.start(argument), f"{name_of_it}=")
    for keyword in node.keywords:
        assert keyword.arg is not None  # noqa: S101 - see _is_plain
        at = edits.start(keyword)
        edits.replace(at, at + len(keyword.arg.encode()), _KEYWORDS[keyword.arg])


def place_on_cell(tree: ast.Module, names: Mapping[str, str], edits: Edits) -> bool:
    """Take devices, and meshes that are made of them, from the cell.

    Args:
        tree: The script.
        names: What imported names stand for.
        edits: Gets the edits.

    Returns:
        Whether anything was.
    """
    done: set[int] = set()
    for node in ast.walk(tree):
        if called(node, names) in _MESH and isinstance(node, ast.Call):
            shape = _shape(node.args[0], names) if len(node.args) == 2 else ""  # noqa: PLR2004 - devices and names
            if shape and not node.keywords:
                axes = node.args[1]
                edits.replace(edits.start(node), edits.start(axes), f"env.mesh({shape}, ")
                done |= {id(inner) for inner in ast.walk(node.args[0])}
        is_all = called(node, names) == "jax.devices"
        if is_all and isinstance(node, ast.Call) and not (node.args or node.keywords):
            done.add(id(node))
            edits.replace(edits.start(node), edits.end(node), "env.devices")
    return bool(done)


def _shape(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the shape of a mesh that is made of the first devices, empty where it is not."""
    match node:
        case ast.Call(args=[inner]) if called(node, names) in _ARRAY:
            return _shape(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="reshape"), args=sizes, keywords=[]):
            whole = _shape(inner, names)
            texts = [ast.unparse(size) for size in sizes]
            if not whole or not texts or any("-1" in text for text in texts):
                return ""
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=upper, step=None)):
            return ast.unparse(upper) if upper is not None and _is_all(inner, names) else ""
        case _ if _is_all(node, names):
            return "len(env.devices)"
        case _:
            return ""


def _is_all(node: ast.expr, names: Mapping[str, str]) -> bool:
    """Say whether an expression is all devices there are."""
    match node:
        case ast.Call(args=[], keywords=[]):
            return called(node, names) == "jax.devices"
        case ast.Call(args=[inner]) if called(node, names) in _ARRAY:
            return _is_all(inner, names)
        case _:
            return False
