"""Shardings that jit and its stages report, and names of static arguments."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(devices=4, platforms=("cpu",))

NAMES_COMPARED_BY_IDENTITY = deviation(
    "jax>=0.4.31,<0.4.36",
    error="RuntimeError",
    match="generator raised StopIteration",
    reason="the name was compared by identity with that of the call, which Python interns",
    issue="jax-ml/jax#24857",
)


@probe(source="jax-ml/jax#24857", deviations=[NAMES_COMPARED_BY_IDENTITY])
def static_name_from_a_file(env):
    """`static_argnames` works for a name that was read from JSON."""
    (name,) = json.loads('["power"]')
    f = jax.jit(lambda x, power: x**power, static_argnames=[name])
    return Observed(float(f(3.0, power=2)), 9.0)


INTERNAL_SHARDING = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="the compiler's sharding was not converted",
    issue="jax-ml/jax@6fe7b1713a5c",
)


@probe(source="jax-ml/jax@6fe7b1713a5c", devices=1, deviations=[INTERNAL_SHARDING])
def argument_on_one_device(env):
    """`input_shardings` of a program for one device is a SingleDeviceSharding, from 0.4.36 on."""
    compiled = jax.jit(jnp.sin).lower(np.ones(3, np.float32)).compile()
    return Observed(type(compiled.input_shardings[0][0]).__name__, "SingleDeviceSharding")


SHARDING_NOT_REPORTED = deviation(
    "jax<0.7",
    outcome="ok",
    reason="eval_shape traced the jitted function and lost its out_shardings",
    issue="jax-ml/jax@74fdb41422a4",
)


@probe(source="jax-ml/jax@74fdb41422a4", deviations=[SHARDING_NOT_REPORTED])
def sharding_of_a_shape(env):
    """`jax.eval_shape` of a jitted function reports its `out_shardings`, from 0.7.0 on."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    shape = jax.eval_shape(jax.jit(jnp.sin, out_shardings=rows), np.ones(8, np.float32))
    return Observed(str(getattr(shape.sharding, "spec", None)), str(rows.spec))


ONE_WITHOUT_A_MESH = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the mesh was taken from arguments and the context, not from other results",
    issue="jax-ml/jax@6b253b2f7545",
)


@probe(source="jax-ml/jax@6b253b2f7545", deviations=[ONE_WITHOUT_A_MESH])
def some_results_with_a_sharding(env):
    """A result without a sharding has the mesh of the results whose `out_shardings` name one."""
    whole = NamedSharding(env.mesh(4, "x"), P())
    out = jax.jit(lambda: (jnp.zeros(1), jnp.ones(1)), out_shardings=(None, whole))()
    return Observed([type(x.sharding).__name__ for x in out], ["NamedSharding"] * 2)


GATHERED = deviation(
    "jax>=0.5.3,<0.7",
    outcome="ok",
    reason="None meant P() in the context of a mesh",
    issue="jax-ml/jax@44ef14da8f15",
)


@probe(source="jax-ml/jax@44ef14da8f15", releases="jax>=0.5", deviations=[GATHERED])
def no_sharding_in_a_context(env):
    """`out_shardings=None` leaves the sharding to the compiler, also in the context of a mesh."""
    mesh = env.mesh(4, "x")
    x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    with env.compat.set_mesh(mesh):
        out = jax.jit(jnp.negative, out_shardings=None)(x)
    return Observed(list(out.sharding.shard_shape(out.shape)), [2])


SPECS_REFUSED = deviation(
    "jax<0.6.1",
    outcome="raised",
    match="sharding should be an instance of",
    reason="only shardings were accepted",
    issue="jax-ml/jax@eef1f6cf9af4",
)


@probe(source="jax-ml/jax@eef1f6cf9af4", releases="jax>=0.5", deviations=[SPECS_REFUSED])
def spec_of_a_shape(env):
    """`jax.ShapeDtypeStruct` takes a PartitionSpec in the context of a mesh, from 0.6.1 on."""
    with env.compat.set_mesh(env.mesh(4, "x")):
        shape = jax.ShapeDtypeStruct((8,), np.float32, sharding=P("x"))
        shard = list(shape.sharding.shard_shape((8,)))
    return Observed(shard, [2])


NO_DEVICES = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the devices of the two meshes were compared, and an abstract mesh has none",
    issue="jax-ml/jax@3f1d12f3cbd3",
)


@probe(source="jax-ml/jax@3f1d12f3cbd3", releases="jax>=0.4.33", deviations=[NO_DEVICES])
def equivalent_on_an_abstract_mesh(env):
    """`is_equivalent_to` compares shardings on abstract meshes, from 0.10.0 on."""
    mesh = env.mesh(4, "x").abstract_mesh
    rows = NamedSharding(mesh, P("x"))
    outcome = []

    def compare():
        outcome.append(rows.is_equivalent_to(NamedSharding(mesh, P("x", None)), 2))
        outcome.append(rows.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2))

    end = ending(compare)
    return Observed(
        {"end": end, "equivalent": outcome}, {"end": "accepted", "equivalent": [True, False]}
    )


DEVICES_STORED = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the executable for the given devices was stored as that of the program",
    issue="jax-ml/jax@7a5431c57997",
)


@probe(source="jax-ml/jax@7a5431c57997", releases="jax>=0.7", deviations=[DEVICES_STORED])
def compiled_without_devices(env):
    """A program lowered for an abstract mesh needs devices, also after it was compiled for some."""
    mesh = env.mesh(4, "x")
    rows = NamedSharding(mesh.abstract_mesh, P("x"))
    argument = jax.ShapeDtypeStruct((8,), np.float32, sharding=rows)
    lowered = jax.jit(jnp.sin).trace(argument).lower(lowering_platforms=("cpu",))
    lowered.compile(device_assignment=tuple(mesh.devices.flat))
    outcome = ending(lambda: (lowered.compile(), 0)[1], words=["device_assignment"])
    return Observed(outcome, "RuntimeError: device_assignment")


EQUAL_BUT_SEVERAL = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="each call of the constructor made an object",
    issue="jax-ml/jax@7da762c97f54",
)


@probe(source="jax-ml/jax@7da762c97f54", deviations=[EQUAL_BUT_SEVERAL])
def equal_specs(env):
    """`P(("x",))` is equal to `P("x")`; PartitionSpecs that are equal are one object."""
    observed = {"equal": P(("x",)) == P("x"), "one object": P("x") is P("x")}
    return Observed(observed, {"equal": True, "one object": True})


def describe_mismatch(shardings, *args):
    """Return how many mismatches the error for `in_shardings` has, and the words about jit."""
    try:
        jax.jit(lambda *args: args, in_shardings=shardings)(*args)
    except ValueError as error:
        text = str(error)
        return [text.count("different types"), "`pjit`-decorated" in text]
    return "accepted"


FIRST_MISMATCH_ALONE = deviation(
    "jax<0.9.2",
    outcome="ok",
    reason="the message stated the first mismatch alone, and up to 0.7.0 named pjit",
    issue="jax-ml/jax@50476ee1fa90",
)


@probe(source="jax-ml/jax@50476ee1fa90", deviations=[FIRST_MISMATCH_ALONE])
def shardings_of_another_tree(env):
    """The error for `in_shardings` of another structure lists every mismatch, not the first."""
    whole = NamedSharding(env.mesh(4, "x"), P())
    pair = {"a": np.ones(2), "b": np.ones(2)}
    tree = describe_mismatch(({"a": [whole], "b": (whole,)},), pair)
    return Observed((tree, describe_mismatch([whole], 1, 2)), ([2, False], [0, False]))


CONSTRAINT_WITHOUT_A_SPEC = deviation(
    "jax<0.4.31",
    params=["jit"],
    outcome="ok",
    reason="the result of a program had a sharding without a mesh and without a spec",
)
AXIS_LEFT_UNCONSTRAINED = deviation(
    "jax<0.5",
    params=["eager"],
    outcome="ok",
    reason="the spec of the result named the mapped axis UNCONSTRAINED",
)


@probe(
    source="jax-ml/jax@0426388d31fb",
    devices=4,
    params={"jit": {"jit": True}, "eager": {"jit": False}},
    deviations=[CONSTRAINT_WITHOUT_A_SPEC, AXIS_LEFT_UNCONSTRAINED],
)
def constraint_under_vmap(env, jit):
    """A constraint under `vmap` gives an array whose sharding has a spec that can be used again."""
    along_x = NamedSharding(env.mesh(4, "x"), P("x"))
    mapped = jax.vmap(lambda x: jax.lax.with_sharding_constraint(x, along_x))
    out = (jax.jit(mapped) if jit else mapped)(np.ones((3, 4), np.float32))
    sharding = out.sharding
    return Observed(
        {"class": type(sharding).__name__, "spec": str([*getattr(sharding, "spec", "none")])},
        {"class": "NamedSharding", "spec": "[None, 'x']"},
    )
