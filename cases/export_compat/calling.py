"""Calls that an exported program refuses, and programs that can be called.

A loaded export has the shapes, platforms, devices and mesh that it was exported for. A call that
does not fit must be refused before it runs, with a message that names the mismatch.
"""

from __future__ import annotations

import collections

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax._src import core
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.compat import shard_map
from conformance.kit.endings import refusal

from ._calls import check_refusal, describe_refusal, export_and_load

defaults(platforms=("cpu",))

SHARDS = 4


EXPECTED_REFUSAL = {"error": "ValueError", "named": True}


def rows(axis):
    """Return numbers, split over four devices along a mesh axis of the given name."""
    mesh = Mesh(np.array(jax.devices()[:SHARDS]), (axis,))
    return jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P(axis)))


@probe(source="jax-ml/jax#21976")
def other_shape(env):
    """A call with a shape other than that of the export is refused."""
    loaded = export_and_load(jnp.sin, np.ones(3, np.float32))
    return Observed(
        check_refusal(lambda: loaded.call(np.ones(4, np.float32)), r"float32\[4\]|shape"),
        EXPECTED_REFUSAL,
    )


@probe(source="jax-ml/jax#21976")
def other_dtype(env):
    """A call with another dtype is refused: nothing is converted silently."""
    loaded = export_and_load(jnp.sin, np.ones(3, np.float32))
    return Observed(
        check_refusal(lambda: loaded.call(np.ones(3, np.int32)), r"int32|dtype"), EXPECTED_REFUSAL
    )


@probe(source="jax-ml/jax#21976")
def other_platform(env):
    """A program that is exported for a TPU alone is refused on a CPU."""
    loaded = export_and_load(jnp.sin, np.ones(3, np.float32), platforms=("tpu",))
    return Observed(
        check_refusal(lambda: loaded.call(np.ones(3, np.float32)), r"platform"), EXPECTED_REFUSAL
    )


@probe(source="jax-ml/jax#21976")
def no_gradient(env):
    """A gradient that was not exported is refused; an exported gradient is right."""
    x = np.array([0.5, 1.0], np.float32)
    plain = export_and_load(lambda y: y @ y, x)
    with_gradient = export_and_load(lambda y: y @ y, x, vjp_order=1)
    error = describe_refusal(lambda: jax.make_jaxpr(jax.grad(plain.call))(x)).partition(":")[0]
    return Observed(
        {"without": error, "with": jax.jit(jax.grad(with_gradient.call))(x)},
        reference={"without": "ValueError", "with": 2.0 * x.astype(np.float64)},
    )


@probe(source="jax-ml/jax#21976")
def symbolic_constraint(env):
    """A dimension of `2*half` accepts even sizes, and refuses an odd size."""
    spec = jax.ShapeDtypeStruct(export.symbolic_shape("2*half"), np.float32)
    loaded = export_and_load(lambda x: x.reshape(2, -1).sum(0), spec)
    outcome = describe_refusal(lambda: loaded.call(np.ones(5, np.float32)))
    even = loaded.call(np.arange(4, dtype=np.float32))
    return Observed(
        {"even": even, "odd": outcome.partition(":")[0]},
        {"even": np.array([2.0, 4.0]), "odd": "ValueError"},
    )


EXPORTER_NAMES_THE_AXES = deviation(
    "jax>=0.9",
    params=["explicit"],
    outcome="ok",
    match="other",
    reason="the exporter's mesh is part of the export, and names the axes of the result",
    issue="jax-ml/jax#33597",
)


@probe(
    source="jax-ml/jax#33597",
    devices=4,
    releases="jax>=0.7",
    params={"auto": {"explicit": False}, "explicit": {"explicit": True}},
    deviations=[EXPORTER_NAMES_THE_AXES],
)
def mesh_of_another_name(env, explicit):
    """A program that is exported for a mesh axis `x` accepts arrays on an axis `y`.

    The changelog of 0.9.0 states that the names must match. Other names are not refused: with
    Explicit axes the result silently has the exporter's axis `x` from 0.9.0; before, it had the
    caller's.
    """

    def call_on_axis(name):
        mesh = env.mesh(SHARDS, name, explicit=explicit)
        x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P(name)))
        return str(jax.typeof(loaded.call(x)))

    mesh = env.mesh(SHARDS, "x", explicit=explicit)
    x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    loaded = export_and_load(lambda y: y * 2, x)
    expected = "float32[8@{}]" if explicit else "float32[8]"
    return Observed(
        {"same": call_on_axis("x"), "other": call_on_axis("y")},
        reference={"same": expected.format("x"), "other": expected.format("y")},
    )


@probe(source="jax-ml/jax#21976", devices=4)
def other_number_of_devices(env):
    """A program that is exported for four devices is refused on one device."""
    loaded = export_and_load(lambda x: x * 2, rows("x"))
    unsharded = np.arange(8, dtype=np.float32)
    return Observed(check_refusal(lambda: loaded.call(unsharded), "4 devices"), EXPECTED_REFUSAL)


@probe(source="jax-ml/jax#21976")
def callback(env):
    """A program with a callback is refused when it is exported."""
    shape, x = jax.ShapeDtypeStruct((3,), np.float32), np.ones(3, np.float32)
    outcome = check_refusal(
        lambda: export_and_load(lambda y: jax.pure_callback(np.sin, shape, y), x), "callback"
    )
    return Observed(outcome, {"error": "NotImplementedError", "named": True})


@probe(source="jax-ml/jax#21976")
def named_tuple(env):
    """A named tuple can be exported only if both sides register a name for it."""
    Pair = collections.namedtuple("Pair", "one two")  # noqa: PYI024 - as users write it
    args = (Pair(np.float32(1), np.float32(2)),)
    before = describe_refusal(lambda: export_and_load(lambda p: p.one + p.two, *args))
    register = getattr(export, "register_namedtuple_serialization", None)
    if register is None:
        env.unsupported("this jax.export cannot register named tuples")
    register(Pair, serialized_name="conformance.Pair")
    loaded = export_and_load(lambda p: Pair(p.two, p.one), *args)
    return Observed(
        {"before": before.partition(":")[0], "swapped": tuple(loaded.call(*args))},
        reference={"before": "ValueError", "swapped": (2.0, 1.0)},
    )


@probe(source="jax-ml/jax#21976")
def under_vmap(env):
    """An exported program cannot be batched, because only its code is known."""
    loaded = export_and_load(jnp.sin, np.ones(3, np.float32))
    outcome = check_refusal(
        lambda: jax.vmap(loaded.call)(np.ones((2, 3), np.float32)), "Batching rule"
    )
    return Observed(outcome, {"error": "NotImplementedError", "named": True})


@probe(source="jax-ml/jax#21976")
def unused_arguments(env):
    """An unused argument is dropped from the module, and may still be passed."""
    exported = export.export(jax.jit(lambda x, _: x + 1))(np.float32(1), np.ones(1000))
    loaded = export.deserialize(bytearray(exported.serialize()))
    return Observed(
        {
            "kept": list(exported.module_kept_var_idx),
            "value": loaded.call(np.float32(1), np.ones(1000)),
        },
        reference={"kept": [0], "value": 2.0},
    )


@probe(source="jax-ml/jax#21828", records="jax decides the versions of the format")
def calling_convention(env):
    """The version of the calling convention that is written, and the versions that are read."""
    exported = export.export(jax.jit(jnp.sin))(np.float32(1))
    return {
        "writes": exported.calling_convention_version,
        "reads_from": export.minimum_supported_calling_convention_version,
        "reads_to": export.maximum_supported_calling_convention_version,
    }


@probe(source="jax-ml/jax#21828", records="jax decides which names are public")
def old_names(env):
    """Names from the time of `jax.experimental.export`, and whether they still exist."""
    exported = export.export(jax.jit(jnp.sin))(np.float32(1))
    names = ("lowering_platforms", "mlir_module_serialization_version", "uses_shape_polymorphism")
    found = {name: hasattr(exported, name) for name in names}
    return {
        **found,
        "experimental": "works" in describe_refusal(lambda: __import__("jax.experimental.export")),
    }


TARGET_NOT_STABLE = deviation(
    "jax<0.7",
    error="ValueError",
    match="custom calls whose targets have no compatibility guarantees",
    reason="within shard_map, `erf` and `top_k` were lowered to calls of MHLO",
    issue="jax-ml/jax#21976",
)


@probe(
    source="jax-ml/jax#21976",
    devices=SHARDS,
    params={"erf": {"name": "erf"}, "top_k": {"name": "top_k"}},
    deviations=[TARGET_NOT_STABLE],
)
def exported_within_shard_map(env, name):
    """A function with `erf` or `top_k` can be exported while `shard_map` is traced, from 0.7.0 on.

    Before, only outside of `shard_map`.
    """
    fn = {"erf": jax.lax.erf, "top_k": lambda x: jax.lax.top_k(x, 2)[0]}[name]
    mesh = Mesh(np.array(jax.devices()[:SHARDS]), ("x",))
    call = lambda x: export_and_load(fn, x).call(x)  # noqa: E731 - short
    mapped = shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False)
    x = np.zeros(8, np.float32)
    return Observed(jax.jit(mapped)(x), reference=x)


NO_SYMBOLIC_DIVISION = [
    deviation(
        "jax>=0.4.31,<0.8",
        error="NotImplementedError",
        match="dim_as_value",
        reason="`pl.cdiv` converted its operands to arrays",
        issue="jax-ml/jax@15dedfe958cf",
    ),
    deviation(
        "jax>=0.8,<0.9.1",
        error="ValueError",
        match="__jax_array__",
        reason="`pl.cdiv` converted its operands to arrays",
        issue="jax-ml/jax@15dedfe958cf",
    ),
]


@probe(
    source="jax-ml/jax@15dedfe958cf",
    deviations=NO_SYMBOLIC_DIVISION,
    records="the text of a symbolic size is up to JAX",
)
def rounded_up_size(env):
    """`pl.cdiv` of a symbolic size is a symbolic size in 0.4.30 and again from 0.9.1."""
    (size,) = export.symbolic_shape("n")
    return str(pl.cdiv(size, 2))


NO_EFFECTS = deviation(
    "jax<0.4.34",
    error="NotImplementedError",
    reason="a program with effects could not be exported, even if they end in it",
    issue="jax-ml/jax@80f963c003f9",
)


@probe(source="jax-ml/jax@80f963c003f9", deviations=[NO_EFFECTS])
def reference_in_a_program(env):
    """A function that makes a reference for its own use can be exported, from 0.4.34."""
    make = next(
        getattr(place, name)
        for place, name in (
            (jax, "new_ref"),
            (jax, "array_ref"),
            (jax.experimental, "mutable_array"),
            (core, "mutable_array"),
        )
        if hasattr(place, name)
    )

    def sums(x):
        total = make(jnp.zeros((), x.dtype))

        def step(carry, element):
            total[...] += element
            return carry, total[...]

        return jax.lax.scan(step, 0, x)[1]

    x = np.arange(4, dtype=np.float32)
    return Observed(export_and_load(sums, x).call(x), np.cumsum(x, dtype=np.float64))


@probe(source="jax-ml/jax#21976")
def second_derivative(env):
    """With `vjp_order=2`, `jax.hessian` and `jax.jacrev` are refused, `jax.grad` twice is right.

    An export has neither a derivative in forward mode nor a batching rule.
    """
    loaded = export_and_load(lambda x: (x**3).sum(), np.ones(2, np.float32), vjp_order=2)
    x, v = np.float32([1, 2]), np.float32([1, -1])
    gradient = jax.grad(loaded.call)
    product = jax.grad(lambda x: gradient(x) @ v)(x)
    observed = {
        "hessian": check_refusal(lambda: jax.hessian(loaded.call)(x), "forward-mode"),
        "jacrev": check_refusal(lambda: jax.jacrev(gradient)(x), "Batching rule"),
    }
    expected = {
        "hessian": {"error": "TypeError", "named": True},
        "jacrev": {"error": "NotImplementedError", "named": True},
    }
    return Observed((observed, product), (expected, 6.0 * x * v))


MORE_DEVICES_REFUSED = deviation(
    "jax<0.7",
    outcome="ok",
    match="ValueError: non-replicated",
    reason="a constraint that names an axis counted as sharded, on one device, too",
    issue="jax-ml/jax@67bf78a64b08",
)


@probe(source="jax-ml/jax@67bf78a64b08", devices=SHARDS, deviations=[MORE_DEVICES_REFUSED])
def constraint_on_one_device(env):
    """A program with a constraint, exported for one device, can be called with more devices."""
    split = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("x",)), P("x"))
    double = jax.jit(lambda x: 2 * jax.lax.with_sharding_constraint(x, split))
    exported = export.export(double)(jax.ShapeDtypeStruct((8,), np.float32))
    outcome = refusal(lambda: jax.jit(exported.call)(rows("x")), "non-replicated")
    return Observed(outcome, reference="ran")


ONE_MESH = deviation(
    "jax>=0.7,<0.7.2",
    error="AttributeError",
    match="no attribute '_aval'",
    reason="one mesh was required, and the message about it failed itself",
    issue="jax-ml/jax@6b9a8b9b1e36",
)


FIRST_MESH_TAKEN = deviation(
    "jax>=0.7.2,<0.9",
    error="AssertionError",
    reason="the first mesh was taken for all",
    issue="jax-ml/jax@6b9a8b9b1e36",
)


@probe(source="jax-ml/jax@6b9a8b9b1e36", devices=SHARDS, deviations=[ONE_MESH, FIRST_MESH_TAKEN])
def two_meshes(env):
    """A program whose argument and result are sharded over meshes of other shapes is exported."""
    devices = np.array(jax.devices()[:SHARDS])
    grid = NamedSharding(Mesh(devices.reshape(2, 2), ("a", "b")), P("b"))
    double = jax.jit(lambda x: 2 * x, in_shardings=rows("x").sharding, out_shardings=grid)
    exported = export.export(double)(jax.ShapeDtypeStruct((8,), np.float32))
    result = jax.jit(exported.call)(rows("x"))
    shape = result.sharding.shard_shape(result.shape)
    return Observed((result, shape), (2 * np.arange(8, dtype=np.float32), (4,)))
