"""What an exported program refuses when it is called, and what became callable.

What is loaded knows the shapes, platforms, devices and mesh that it was exported for. A call that
does not fit must be refused before it runs, with a message that names what does not.
"""

from __future__ import annotations

import collections

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._calls import refusal, refused, reloaded

SHARDS = 4


REFUSED = {"error": "ValueError", "named": True}


def rows(axis):
    """Return numbers split over four devices along a mesh axis of that name."""
    mesh = Mesh(np.array(jax.devices()[:SHARDS]), (axis,))
    return jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P(axis)))


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def other_shape(env):
    """A call with another shape than it was exported for is refused."""
    loaded = reloaded(jnp.sin, np.ones(3, np.float32))
    return Observed(
        refused(lambda: loaded.call(np.ones(4, np.float32)), r"float32\[4\]|shape"), REFUSED
    )


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def other_dtype(env):
    """A call with another dtype is refused: nothing is converted behind one's back."""
    loaded = reloaded(jnp.sin, np.ones(3, np.float32))
    return Observed(refused(lambda: loaded.call(np.ones(3, np.int32)), r"int32|dtype"), REFUSED)


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def other_platform(env):
    """What was exported for a TPU alone is refused on a CPU."""
    loaded = reloaded(jnp.sin, np.ones(3, np.float32), platforms=("tpu",))
    return Observed(refused(lambda: loaded.call(np.ones(3, np.float32)), r"platform"), REFUSED)


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def no_gradient(env):
    """A gradient that was not exported cannot be had; one that was is right."""
    x = np.array([0.5, 1.0], np.float32)
    plain = reloaded(lambda y: y @ y, x)
    with_gradient = reloaded(lambda y: y @ y, x, vjp_order=1)
    said = refusal(lambda: jax.make_jaxpr(jax.grad(plain.call))(x)).partition(":")[0]
    return Observed(
        {"without": said, "with": jax.jit(jax.grad(with_gradient.call))(x)},
        reference={"without": "ValueError", "with": 2.0 * x.astype(np.float64)},
    )


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def symbolic_constraint(env):
    """A dimension of `2*half` takes even sizes, and refuses an odd one."""
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("2*half"), np.float32)
    loaded = reloaded(lambda x: x.reshape(2, -1).sum(0), spec)
    said = refusal(lambda: loaded.call(np.ones(5, np.float32)))
    even = loaded.call(np.arange(4, dtype=np.float32))
    return Observed(
        {"even": even, "odd": said.partition(":")[0]},
        {"even": np.array([2.0, 4.0]), "odd": "ValueError"},
    )


@probe(
    source="jax-ml/jax#33597",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.7",
    params={"auto": {"explicit": False}, "explicit": {"explicit": True}},
    deviations=[
        deviation(
            "jax>=0.9",
            params=["explicit"],
            outcome="ok",
            match="other",
            reason="the exporter's mesh travels, and names the axes of the result",
            issue="jax-ml/jax#33597",
        )
    ],
)
def mesh_of_another_name(env, explicit):
    """Exported for a mesh axis `x`, called with arrays on an axis `y`.

    The changelog of 0.9.0 says that the names must match. They are not refused: with Explicit axes
    the result silently has the exporter's axis `x` since then, where it had the caller's before.
    """

    def called(name):
        mesh = env.mesh(SHARDS, name, explicit=explicit)
        x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P(name)))
        return str(jax.typeof(loaded.call(x)))

    mesh = env.mesh(SHARDS, "x", explicit=explicit)
    x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    loaded = reloaded(lambda y: y * 2, x)
    wanted = "float32[8@{}]" if explicit else "float32[8]"
    return Observed(
        {"same": called("x"), "other": called("y")},
        reference={"same": wanted.format("x"), "other": wanted.format("y")},
    )


@probe(source="jax-ml/jax#21976", devices=4, platforms=("cpu",))
def other_number_of_devices(env):
    """What was exported for four devices is refused on one."""
    loaded = reloaded(lambda x: x * 2, rows("x"))
    alone = np.arange(8, dtype=np.float32)
    return Observed(refused(lambda: loaded.call(alone), "4 devices"), REFUSED)


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def callback(env):
    """A callback cannot travel: a program with one is refused when it is exported."""
    shape, x = jax.ShapeDtypeStruct((3,), np.float32), np.ones(3, np.float32)
    found = refused(lambda: reloaded(lambda y: jax.pure_callback(np.sin, shape, y), x), "callback")
    return Observed(found, {"error": "NotImplementedError", "named": True})


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def named_tuple(env):
    """A named tuple travels only where both sides register a name for it."""
    Pair = collections.namedtuple("Pair", "one two")  # noqa: PYI024 - what users have
    args = (Pair(np.float32(1), np.float32(2)),)
    before = refusal(lambda: reloaded(lambda p: p.one + p.two, *args))
    register = getattr(export, "register_namedtuple_serialization", None)
    if register is None:
        env.unsupported("jax.export cannot register named tuples here")
    register(Pair, serialized_name="conformance.Pair")
    loaded = reloaded(lambda p: Pair(p.two, p.one), *args)
    return Observed(
        {"before": before.partition(":")[0], "swapped": tuple(loaded.call(*args))},
        reference={"before": "ValueError", "swapped": (2.0, 1.0)},
    )


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def under_vmap(env):
    """An exported program cannot be batched: only its code is known."""
    loaded = reloaded(jnp.sin, np.ones(3, np.float32))
    found = refused(lambda: jax.vmap(loaded.call)(np.ones((2, 3), np.float32)), "Batching rule")
    return Observed(found, {"error": "NotImplementedError", "named": True})


@probe(source="jax-ml/jax#21976", platforms=("cpu",))
def unused_arguments(env):
    """An argument that is not used is dropped from the module, and may still be passed."""
    exported = export.export(jax.jit(lambda x, _: x + 1))(np.float32(1), np.ones(1000))
    loaded = export.deserialize(bytearray(exported.serialize()))
    return Observed(
        {
            "kept": list(exported.module_kept_var_idx),
            "value": loaded.call(np.float32(1), np.ones(1000)),
        },
        reference={"kept": [0], "value": 2.0},
    )


@probe(
    source="jax-ml/jax#21828",
    records="the versions of the format are up to jax",
    platforms=("cpu",),
)
def calling_convention(env):
    """The calling convention that is written, and those that are read."""
    exported = export.export(jax.jit(jnp.sin))(np.float32(1))
    return {
        "writes": exported.calling_convention_version,
        "reads_from": export.minimum_supported_calling_convention_version,
        "reads_to": export.maximum_supported_calling_convention_version,
    }


@probe(source="jax-ml/jax#21828", records="which names are public is up to jax", platforms=("cpu",))
def old_names(env):
    """Names of the days of `jax.experimental.export`."""
    exported = export.export(jax.jit(jnp.sin))(np.float32(1))
    names = ("lowering_platforms", "mlir_module_serialization_version", "uses_shape_polymorphism")
    found = {name: hasattr(exported, name) for name in names}
    return {
        **found,
        "experimental": "works" in refusal(lambda: __import__("jax.experimental.export")),
    }
