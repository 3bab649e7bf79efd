"""Functions that jax spells differently across releases.

They test for attributes, never for a version, so that nightlies work too. Each function names the
releases that it bridges. Cases reach them as `env.compat.shard_map(...)`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import jax
from jax import lax
from jax.experimental.compute_on import compute_on as _compute_on

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Sequence


def shard_map(
    f: Callable[..., Any],
    *,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check: bool = True,
    axis_names: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Map a function over shards.

    Bridges `jax.experimental.shard_map` (to 0.6.0) and `jax.shard_map` (from 0.6.1); `check_rep`
    and `check_vma`; `auto=` (axes left to the compiler) and `axis_names=` (axes made manual).

    Args:
        f: Function of the shards.
        mesh: Mesh to map over.
        in_specs: Pytree of PartitionSpecs, a prefix of the arguments.
        out_specs: Pytree of PartitionSpecs, a prefix of the result.
        check: Whether replication (variance) is checked.
        axis_names: Axes made manual; None is all of the mesh.

    Returns:
        The mapped function.
    """
    if hasattr(jax, "shard_map"):
        manual = {} if axis_names is None else {"axis_names": set(axis_names)}
        return jax.shard_map(
            f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check, **manual
        )
    from jax.experimental.shard_map import shard_map as experimental  # removed later

    auto = frozenset() if axis_names is None else frozenset(mesh.axis_names) - set(axis_names)
    return experimental(f, mesh, in_specs, out_specs, check_rep=check, auto=auto)


def pvary(x: Any, axes: str | Sequence[str]) -> Any:
    """Mark a replicated value as varying over axes.

    Bridges `pbroadcast` of `jax.experimental.shard_map` (to 0.5.3), `lax.pvary` (0.6.0 to 0.9)
    and `lax.pcast(..., to="varying")` (from 0.8.2).

    Args:
        x: Pytree of arrays inside shard_map.
        axes: Axis name or names.

    Returns:
        The same values, typed as varying.
    """
    names = (axes,) if isinstance(axes, str) else tuple(axes)
    if hasattr(lax, "pcast"):
        return jax.tree_util.tree_map(lambda leaf: lax.pcast(leaf, names, to="varying"), x)
    if hasattr(lax, "pvary"):
        return lax.pvary(x, names)
    from jax.experimental.shard_map import pbroadcast  # gone from 0.6.0

    return jax.tree_util.tree_map(lambda leaf: pbroadcast(leaf, names), x)


def axis_size(name: str) -> int:
    """Return the size of a named axis; `lax.axis_size` from 0.6.1, else psum of 1."""
    if hasattr(lax, "axis_size"):
        return int(lax.axis_size(name))
    # psum of a Python number is computed while tracing: no collective is left in the program.
    return int(lax.psum(1, name))


def typeof(x: Any) -> Any:
    """Return the abstract value of an array; `jax.typeof` from 0.5.3, else `core.get_aval`."""
    if hasattr(jax, "typeof"):
        return jax.typeof(x)
    return jax.core.get_aval(x)


def make_mesh(
    shape: Sequence[int], names: Sequence[str], *, devices: Any, explicit: bool = False
) -> Any:
    """Return a mesh whose axis types are stated.

    Bridges releases without `AxisType` (to 0.5.2), and the default that became Explicit in 0.9.0.

    Args:
        shape: Size of each axis.
        names: Name of each axis.
        devices: NumPy array of devices in the shape of the mesh.
        explicit: Whether shardings are part of the types; only for releases that support it.

    Returns:
        The mesh.

    Raises:
        NotImplementedError: If the release has no explicit axes.
    """
    # Not `jax.make_mesh`: it is missing up to 0.4.34, and may reorder the devices.
    mesh_type = jax.sharding.Mesh
    axis_type = getattr(jax.sharding, "AxisType", None)
    # The keyword came in 0.4.38, was removed in 0.5.1 and came back in 0.5.3.
    if axis_type is None or "axis_types" not in _mesh_keywords():
        if explicit:
            raise NotImplementedError(f"jax {jax.__version__} has no explicit mesh axes")
        return mesh_type(devices.reshape(tuple(shape)), tuple(names))
    kind = axis_type.Explicit if explicit else axis_type.Auto
    return mesh_type(
        devices.reshape(tuple(shape)), tuple(names), axis_types=(kind,) * len(tuple(names))
    )


def _mesh_keywords() -> tuple[str, ...]:
    return tuple(inspect.signature(jax.sharding.Mesh.__new__).parameters)


def set_mesh(mesh: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which a mesh is the current one.

    Bridges `with mesh:` (to 0.4.38), `jax.sharding.use_mesh` (0.5.0 to 0.7.0) and
    `jax.set_mesh` (from 0.7.1).
    """
    if hasattr(jax, "set_mesh"):
        return jax.set_mesh(mesh)
    if hasattr(jax.sharding, "use_mesh"):
        return jax.sharding.use_mesh(mesh)
    return mesh  # a mesh is itself a context manager


def enable_x64(value: bool = True) -> contextlib.AbstractContextManager[Any]:
    """Return a context with 64-bit types on or off; `jax.enable_x64` from 0.8.0."""
    if callable(getattr(jax, "enable_x64", None)):
        return jax.enable_x64(value)
    from jax.experimental import enable_x64 as experimental  # gone from 0.9.0

    return experimental(value)


def compute_on(f: Callable[..., Any], where: str = "device_host") -> Callable[..., Any]:
    """Return a function whose computation is placed, e.g. on the device's host.

    Bridges the decorator factory `compute_on(where)(f)` (to 0.11.0), under which results stay
    in the device's memory, and `compute_on(f, compute_type=where, out_memory_spaces=...)`
    (from 0.11.1), which requests the device's memory.

    Args:
        f: Function to place.
        where: Compute type.

    Returns:
        The placed function.
    """
    if "out_memory_spaces" in inspect.signature(_compute_on).parameters:
        return _compute_on(f, compute_type=where, out_memory_spaces=jax.memory.Space.Device)
    return _compute_on(where)(f)
