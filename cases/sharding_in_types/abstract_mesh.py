"""AbstractMesh: a mesh of sizes and names without devices, whose arguments were rearranged.

Libraries use it to plan shardings before there are devices. Its signature changed in 0.5.3 without
a deprecation, and its equality in 0.7.1.
"""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, numbers

defaults(platforms=("cpu",))


def make_abstract_mesh():
    """Return an AbstractMesh of one axis `x` of four, in the spelling of the release."""
    kind = jax.sharding.AbstractMesh
    try:
        return kind((4,), ("x",))
    except TypeError:
        return kind((("x", 4),))


PAIRS_REMOVED = deviation(
    "jax>=0.5.3",
    params=["pairs"],
    error="TypeError",
    match="missing 1 required positional argument: 'axis_names'",
    reason="sizes and names are separate arguments, as for Mesh",
    issue="jax-ml/jax@a4ca0dbc6ca9",
)
PAIRS_REQUIRED = deviation(
    "jax<0.5.3",
    params=["sizes_and_names"],
    error="TypeError",
    match="takes 2 positional arguments but 3 were given",
    reason="the constructor took pairs of name and size",
    issue="jax-ml/jax@a4ca0dbc6ca9",
)


@probe(
    source="jax-ml/jax@a4ca0dbc6ca9",
    releases="jax>=0.4.38",
    params={"pairs": {"pairs": True}, "sizes_and_names": {"pairs": False}},
    deviations=[PAIRS_REMOVED, PAIRS_REQUIRED],
)
def constructor(env, pairs):
    """`AbstractMesh` takes `(("x", 4),)` up to 0.5.2, and `(4,), ("x",)` from 0.5.3."""
    kind = jax.sharding.AbstractMesh
    mesh = kind((("x", 4), ("y", 2))) if pairs else kind((4, 2), ("x", "y"))
    return Observed(
        {"shape": dict(mesh.shape), "size": mesh.size}, {"shape": {"x": 4, "y": 2}, "size": 8}
    )


ABSTRACT_AXES_WERE_AUTO = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the axes were Auto, although those of make_mesh are Explicit since 0.9.0",
    issue="jax-ml/jax@88f7a03bf892",
)


@probe(
    source="jax-ml/jax@88f7a03bf892", releases="jax>=0.5.3", deviations=[ABSTRACT_AXES_WERE_AUTO]
)
def axis_types_not_told(env):
    """An AbstractMesh without axis types has Explicit axes from 0.11.1, and Auto axes before."""
    return Observed([kind.name for kind in make_abstract_mesh().axis_types], ["Explicit"])


@probe(source="jax-ml/jax@afcb62ea20a2", releases="jax>=0.4.38")
def shard_shapes(env):
    """A NamedSharding over an AbstractMesh gives the shape of a shard, on every release."""
    sharding = NamedSharding(make_abstract_mesh(), P(None, "x"))
    return Observed(list(sharding.shard_shape((3, 8))), [3, 2])


NO_DEVICE_KIND = deviation(
    "jax<0.7.1",
    outcome="ok",
    reason="mesh.abstract_mesh did not hold the kind of its devices, so the meshes were equal",
    issue="jax-ml/jax@8be91cde4b7a",
)


@probe(
    source="jax-ml/jax@8be91cde4b7a", devices=4, releases="jax>=0.5.3", deviations=[NO_DEVICE_KIND]
)
def against_that_of_a_mesh(env):
    """`mesh.abstract_mesh == AbstractMesh(...)` is silently False from 0.7.1.

    The abstract mesh of a mesh includes the kind of its devices; an AbstractMesh made from sizes
    and names does not.
    """
    mesh = env.mesh(SHARDS, "x")
    return Observed(
        {
            "written_down": mesh.abstract_mesh == make_abstract_mesh(),
            "of_equal_mesh": mesh.abstract_mesh == env.mesh(SHARDS, "x").abstract_mesh,
            "names": mesh.abstract_mesh.axis_names == make_abstract_mesh().axis_names,
        },
        {"written_down": False, "of_equal_mesh": True, "names": True},
    )


NO_DEVICES_TO_PUT_ON = deviation(
    error="ValueError",
    match="(does not implement devices|not implemented for `jax.sharding.AbstractMesh`)",
    reason="an AbstractMesh has no devices to put an array on",
    issue="jax-ml/jax@afcb62ea20a2",
)


@probe(source="jax-ml/jax@afcb62ea20a2", releases="jax>=0.4.38", deviations=[NO_DEVICES_TO_PUT_ON])
def put_on_no_devices(env):
    """`device_put` to a sharding over an AbstractMesh is refused, on every release."""
    return Observed(
        jax.device_put(numbers(8), NamedSharding(make_abstract_mesh(), P("x"))), numbers(8)
    )


@probe(
    source="jax-ml/jax@c6dcbb6759f2",
    records="the printed form of a mesh is up to JAX",
    devices=4,
    params={"mesh": {"kind": "mesh"}, "abstract": {"kind": "abstract"}},
)
def printed(env, kind):
    """`repr` of a mesh appears in messages and logs.

    No reference: the words are the observation.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    if kind == "abstract" and not hasattr(mesh, "abstract_mesh"):
        env.unsupported("Mesh has no abstract_mesh in this release")
    return repr(mesh if kind == "mesh" else mesh.abstract_mesh)


CONSTRAINT_ON_A_CONSTANT_DROPPED = deviation(
    params=["constant"],
    outcome="ok",
    reason="the devices of a program are those of its arguments; this one uses none",
    issue="jax-ml/jax#23634",
)


@probe(
    source="jax-ml/jax#23634",
    deviations=[CONSTRAINT_ON_A_CONSTANT_DROPPED],
    devices=4,
    releases="jax>=0.4.38",
    params={
        "argument_on_the_mesh": {"used": True},
        "constant": {"used": False},
    },
)
def constraint_with_an_abstract_mesh(env, used):
    """`with_sharding_constraint` by an AbstractMesh splits its argument, also if it is a constant.

    Only an argument of the program tells it the devices.
    """
    mesh = env.mesh(SHARDS, "x")
    rows = NamedSharding(mesh.abstract_mesh, P("x"))
    x = jax.device_put(numbers(8), NamedSharding(mesh, P()))

    def f(x):
        return 2 * lax.with_sharding_constraint(x if used else jnp.ones(x.shape), rows)

    return Observed(len(jax.jit(f)(x).sharding.device_set), SHARDS)


MEMORY_LOST = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the kind of memory was restored as an attribute, which the property hides",
    issue="jax-ml/jax@02cdc7ba9670",
)


@probe(
    source="jax-ml/jax@02cdc7ba9670",
    devices=4,
    releases="jax>=0.4.35",
    deviations=[MEMORY_LOST],
)
def copied_with_its_memory(env):
    """A copy of a sharding over an AbstractMesh, or a pickled one, silently loses its memory kind.

    It keeps the kind from 0.6.2 on.
    """
    mesh = env.mesh(SHARDS, "x").abstract_mesh
    sharding = NamedSharding(mesh, P("x"), memory_kind="unpinned_host")
    back = pickle.loads(pickle.dumps(sharding))  # noqa: S301 - the bytes are made here
    kinds = [copy.copy(sharding).memory_kind, back.memory_kind]
    return Observed([str(kind) for kind in kinds], ["unpinned_host", "unpinned_host"])
