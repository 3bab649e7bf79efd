"""Replaces JAX functions that only some releases have by `env` and `env.compat`. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.new.script_source import resolve_callee, resolve_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.triage.new.script_source import ScriptSource, TextEdit

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


def use_compat(source: ScriptSource) -> tuple[ScriptSource, tuple[str, ...]]:
    """Return a script that uses `env.compat` for functions that only some releases have.

    Args:
        source: The script.

    Returns:
        The script, and the names of `env.compat` that it uses.
    """
    names = source.names
    # One call that `env.compat.shard_map` cannot express keeps all of them: a script with both
    # would still fail on old releases.
    shard_maps = SHARD_MAPS if _can_replace_shard_maps(source) else frozenset()

    edits: list[TextEdit] = []
    for node in ast.walk(source.tree):
        match node:
            case ast.withitem(context_expr=ast.Call(func=function, keywords=[])) if (
                path := resolve_path(function, names)
            ) in _CONTEXTS:
                edits.append((*source.find_span(function), COMPAT + _CONTEXTS[path]))
            case ast.Call(func=function, keywords=[]) if (
                path := resolve_path(function, names)
            ) in _FUNCTIONS:
                edits.append((*source.find_span(function), COMPAT + _FUNCTIONS[path]))
            case ast.Call(func=function, args=[_, *more]) if (
                resolve_path(function, names) in shard_maps
            ):
                edits += _replace_shard_map(source, function, node.keywords)
                starts = (source.find_span(argument)[0] for argument in more)
                edits += ((s, s, f"{name}=") for s, name in zip(starts, _POSITIONS, strict=False))
            case ast.Call(args=[function, *_]) if (
                resolve_callee(node, names) == PARTIAL
                and resolve_path(function, names) in shard_maps
            ):
                edits += _replace_shard_map(source, function, node.keywords)
            case _:
                pass
    replaced = source.edit(edits)
    # Resolved without imports: `env` is a parameter.
    paths = (resolve_path(node, {}) for node in ast.walk(replaced.tree))
    used = (path.removeprefix(COMPAT) for path in paths if path.startswith(COMPAT))
    return replaced, tuple(dict.fromkeys(used))


def _replace_shard_map(
    source: ScriptSource, function: ast.expr, keywords: Sequence[ast.keyword]
) -> Iterator[TextEdit]:
    """Yield edits by which `env.compat.shard_map` is called with its own names of keywords."""
    yield *source.find_span(function), f"{COMPAT}shard_map"
    for keyword in keywords:
        start, _ = source.find_span(keyword)
        name = keyword.arg or ""
        yield start, start + len(name), _KEYWORDS[name]


def _can_replace_shard_maps(source: ScriptSource) -> bool:
    """Return whether `env.compat.shard_map` can express every use of shard_map in a script."""
    nodes = [*ast.walk(source.tree)]
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and _calls_shard_map(node, source.names)
    ]
    # A use that is no call, e.g. `g = jax.shard_map`, may get any arguments later.
    uses = sum(resolve_path(node, source.names) in SHARD_MAPS for node in nodes)
    return uses == len(calls) and all(map(_has_known_arguments, calls))


def _calls_shard_map(call: ast.Call, names: Mapping[str, str]) -> bool:
    """Return whether a call is one of shard_map, or of `partial(shard_map, ...)`."""
    is_partial = resolve_callee(call, names) == PARTIAL and call.args
    return resolve_path(call.args[0] if is_partial else call.func, names) in SHARD_MAPS


def _has_known_arguments(call: ast.Call) -> bool:
    keywords = [keyword.arg for keyword in call.keywords]
    # The names of starred arguments are unknown, and the function of `env.compat` takes only the
    # first argument by position.
    is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    # `jax.shard_map` may take the mesh from the context; `env.compat.shard_map` requires it.
    has_mesh = "mesh" in keywords or len(call.args) > 1
    return has_mesh and not is_starred and all(name in _KEYWORDS for name in keywords)


def use_cell_devices(source: ScriptSource) -> ScriptSource:
    """Return a script that takes its devices, and meshes of the first devices, from the cell.

    Args:
        source: The script.
    """
    names = source.names

    edits: list[TextEdit] = []
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=function, args=[devices, _], keywords=[]) if resolve_path(
                function, names
            ) in _MESH and (shape := _mesh_shape(devices, names)):
                edits.append((*source.find_span(function), "env.mesh"))
                edits.append((*source.find_span(devices), shape))
            case ast.Call(args=[], keywords=[]) if resolve_callee(node, names) == _DEVICES:
                edits.append((*source.find_span(node), "env.devices"))
            case _:
                pass
    return source.edit(edits)


def _mesh_shape(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the shape of an array of the first devices, empty for another expression."""
    match node:
        case ast.Call(args=[inner]) if resolve_callee(node, names) in _ARRAY:
            return _mesh_shape(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="reshape"), args=sizes, keywords=[]):
            texts = [*map(ast.unparse, sizes)]
            # `env.mesh` does not infer a size of -1 from the number of devices.
            if not texts or any("-1" in text for text in texts) or not _mesh_shape(inner, names):
                return ""
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        case ast.Subscript(
            value=inner, slice=ast.Slice(lower=None, upper=ast.expr() as upper, step=None)
        ):
            # Only of all devices: a part of a part is no shape of the first devices.
            return ast.unparse(upper) if _mesh_shape(inner, names) == _ALL else ""
        case ast.Call(args=[], keywords=[]) if resolve_callee(node, names) == _DEVICES:
            return _ALL
        case _:
            return ""
