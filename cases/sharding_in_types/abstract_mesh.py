"""AbstractMesh: a mesh of sizes and names without devices, whose constructor was turned around.

Libraries use it to plan shardings where there are no devices yet. Its signature changed in 0.5.3
without a deprecation and what it is equal to in 0.7.1.
"""

from __future__ import annotations

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import SHARDS, numbers


def abstract():
    """Return an AbstractMesh of one axis `x` of four, in the spelling of the release."""
    kind = jax.sharding.AbstractMesh
    try:
        return kind((4,), ("x",))
    except TypeError:
        return kind((("x", 4),))


@probe(
    source="jax-ml/jax@a4ca0dbc6ca9",
    platforms=("cpu",),
    releases="jax>=0.4.38",
    params={"pairs": {"pairs": True}, "sizes_and_names": {"pairs": False}},
    deviations=[
        deviation(
            "jax>=0.5.3",
            params=["pairs"],
            error="TypeError",
            match="missing 1 required positional argument: 'axis_names'",
            reason="sizes and names are two arguments now, as for Mesh",
            issue="jax-ml/jax@a4ca0dbc6ca9",
        ),
        deviation(
            "jax<0.5.3",
            params=["sizes_and_names"],
            error="TypeError",
            match="takes 2 positional arguments but 3 were given",
            reason="it took pairs of name and size",
            issue="jax-ml/jax@a4ca0dbc6ca9",
        ),
    ],
)
def constructor(env, pairs):
    """`AbstractMesh((("x", 4),))` up to 0.5.2, `AbstractMesh((4,), ("x",))` from 0.5.3."""
    kind = jax.sharding.AbstractMesh
    mesh = kind((("x", 4), ("y", 2))) if pairs else kind((4, 2), ("x", "y"))
    return Observed(
        {"shape": dict(mesh.shape), "size": mesh.size}, {"shape": {"x": 4, "y": 2}, "size": 8}
    )


@probe(
    source="jax-ml/jax@88f7a03bf892",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="Auto, though those of make_mesh are Explicit since 0.9.0",
            issue="jax-ml/jax@88f7a03bf892",
        )
    ],
)
def axis_types_not_told(env):
    """Axes of an AbstractMesh that is not told of types: Explicit from 0.11.1, Auto before."""
    return Observed([kind.name for kind in abstract().axis_types], ["Explicit"])


@probe(source="jax-ml/jax@afcb62ea20a2", platforms=("cpu",), releases="jax>=0.4.38")
def shard_shapes(env):
    """A NamedSharding over an AbstractMesh knows the shape of a shard, on every release."""
    sharding = NamedSharding(abstract(), P(None, "x"))
    return Observed(list(sharding.shard_shape((3, 8))), [3, 2])


@probe(
    source="jax-ml/jax@8be91cde4b7a",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax<0.7.1",
            outcome="ok",
            reason="it knew nothing of devices, so they were equal",
            issue="jax-ml/jax@8be91cde4b7a",
        )
    ],
)
def against_that_of_a_mesh(env):
    """`mesh.abstract_mesh == AbstractMesh(...)` is silently False from 0.7.1.

    A mesh of devices hands on which kind of device they are; one written down does not know.
    """
    mesh = env.mesh(SHARDS, "x")
    return Observed(
        {
            "written_down": mesh.abstract_mesh == abstract(),
            "of_equal_mesh": mesh.abstract_mesh == env.mesh(SHARDS, "x").abstract_mesh,
            "names": mesh.abstract_mesh.axis_names == abstract().axis_names,
        },
        {"written_down": False, "of_equal_mesh": True, "names": True},
    )


@probe(
    source="jax-ml/jax@afcb62ea20a2",
    platforms=("cpu",),
    releases="jax>=0.4.38",
    deviations=[
        deviation(
            error="ValueError",
            match="(does not implement devices|not implemented for `jax.sharding.AbstractMesh`)",
            reason="there are no devices to put anything on",
            issue="jax-ml/jax@afcb62ea20a2",
        )
    ],
)
def put_on_no_devices(env):
    """`device_put` to a sharding over an AbstractMesh is refused, on every release."""
    return Observed(jax.device_put(numbers(8), NamedSharding(abstract(), P("x"))), numbers(8))


@probe(
    source="jax-ml/jax@c6dcbb6759f2",
    records="how a mesh is printed is up to jax",
    devices=4,
    platforms=("cpu",),
    params={"mesh": {"kind": "mesh"}, "abstract": {"kind": "abstract"}},
)
def printed(env, kind):
    """`repr` of a mesh, which ends up in messages and logs.

    No reference: the words are the observation.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    if kind == "abstract" and not hasattr(mesh, "abstract_mesh"):
        env.unsupported("a mesh has no abstract mesh here")
    return repr(mesh if kind == "mesh" else mesh.abstract_mesh)
