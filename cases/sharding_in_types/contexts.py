"""The mesh of the moment: `with mesh:`, `use_mesh`, `set_mesh`, and who takes a PartitionSpec then.

Three ways to say which mesh a bare PartitionSpec is about have followed each other. They are not
the same: functions took a spec under one and refused it under another, and the inside of `jit`
was open to the first alone.
"""

from __future__ import annotations

import inspect
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import SHARDS, numbers, put, spec_of


@probe(
    source="jax-ml/jax@93f7bd0c9290",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.5.0",
    deviations=[
        deviation(
            "jax>=0.7.1",
            error="AttributeError",
            match="use_mesh",
            reason="removed: jax.set_mesh is both a context and a setter",
            issue="jax-ml/jax@93f7bd0c9290",
        ),
        deviation(
            "jax>=0.5.0,<0.5.1",
            error="RuntimeError",
            match="requires a non-empty mesh",
            reason="a constraint did not look at the mesh in use",
            issue="jax-ml/jax@1079dc4477d4",
        ),
    ],
)
def use_mesh(env):
    """`with jax.sharding.use_mesh(mesh)`: there from 0.5.0 to 0.7.0, and gone within 0.7."""
    with jax.sharding.use_mesh(env.mesh(SHARDS, "x")):
        out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    return Observed({"spec": spec_of(out), "value": out}, {"spec": "['x']", "value": numbers(8)})


@probe(
    source="jax-ml/jax@b3362179c992",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.10.1",
            outcome="ok",
            reason="deprecated: `with jax.set_mesh(mesh):` instead",
            issue="jax-ml/jax@b3362179c992",
        )
    ],
)
def with_mesh(env):
    """`with mesh:` gives constraints their mesh on every release, and warns from 0.10.1 on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with env.mesh(SHARDS, "x"):
            out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    deprecated = any(issubclass(w.category, DeprecationWarning) for w in caught)
    return Observed(
        {"shard": list(out.sharding.shard_shape(out.shape)), "deprecated": deprecated},
        {"shard": [2], "deprecated": False},
    )


@probe(
    source="jax-ml/jax@76dec382861a",
    devices=4,
    platforms=("cpu",),
    params={"set_mesh": {"old": False}, "with_mesh": {"old": True}},
    deviations=[
        deviation(
            "jax<0.5.3",
            params=["set_mesh"],
            error="RuntimeError",
            match="jax.jit only supports `Sharding`s being passed to in_shardings",
            reason="jit took shardings only; pjit took specs",
            issue="jax-ml/jax@a67ab9fade34",
        ),
        deviation(
            "jax<0.7.1",
            params=["with_mesh"],
            error="RuntimeError",
            match="jax.jit only supports `Sharding`s being passed to in_shardings",
            reason="jit took shardings only; pjit took specs",
            issue="jax-ml/jax@a67ab9fade34",
        ),
        deviation(
            "jax>=0.7.1",
            params=["with_mesh"],
            error="RuntimeError",
            match="jit requires a non-empty mesh in context",
            reason="the old context is none for jit",
            issue="jax-ml/jax@93f7bd0c9290",
        ),
    ],
)
def jit_with_specs(env, old):
    """`jit(f, in_shardings=P("x"))` under a mesh: from 0.5.3, never under `with mesh:`."""
    mesh = env.mesh(SHARDS, "x")
    with mesh if old else env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: 2 * a, in_shardings=P("x"), out_shardings=P())(numbers(8))
    return Observed({"spec": spec_of(out), "value": out}, {"spec": "[]", "value": 2 * numbers(8)})


@probe(
    source="jax-ml/jax@549973dec67c",
    devices=4,
    platforms=("cpu",),
    params={"context": {"context": True}, "no_context": {"context": False}},
    deviations=[
        deviation(
            "jax<0.5.3",
            error="ValueError",
            match="`jax.device_put` only accepts",
            reason="device_put took shardings and devices only",
            issue="jax-ml/jax@549973dec67c",
        ),
        deviation(
            "jax>=0.5.3",
            params=["no_context"],
            error="ValueError",
            match="Please set a mesh via `jax.(sharding.use|set)_mesh`",
            reason="a spec says nothing without a mesh",
            issue="jax-ml/jax@549973dec67c",
        ),
    ],
)
def device_put_of_a_spec(env, context):
    """`device_put(x, P("x"))` uses the mesh of the context, from 0.5.3."""
    mesh = env.mesh(SHARDS, "x")
    if not context:
        return Observed(spec_of(jax.device_put(numbers(8), P("x"))), "['x']")
    with env.compat.set_mesh(mesh):
        return Observed(spec_of(jax.device_put(numbers(8), P("x"))), "['x']")


@probe(
    source="jax-ml/jax@133a885e3b7a",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax>=0.6",
            error="ValueError",
            match="`(use|set)_mesh` can only be used outside of `jax.jit`",
            reason="the mesh is part of what jit is traced for",
            issue="jax-ml/jax@133a885e3b7a",
        )
    ],
)
def mesh_entered_under_jit(env):
    """Entering a mesh inside of `jit`: refused from 0.6.0; enter it around the call."""
    mesh = env.mesh(SHARDS, "x")

    def step(x):
        with env.compat.set_mesh(mesh):
            return 2 * x

    return Observed(jax.jit(step)(numbers(8)), 2 * numbers(8))


@probe(
    source="jax-ml/jax@b92b9b0e2670",
    devices=4,
    platforms=("cpu",),
    params={
        "constraint": {"what": "constraint"},
        "jit": {"what": "jit"},
        "reshard": {"what": "reshard"},
    },
    releases="jax>=0.8.2",
    deviations=[
        deviation(
            params=["constraint"],
            error="RuntimeError",
            match="with_sharding_constraint requires a non-empty mesh in context",
            reason="a spec says nothing without a mesh",
            issue="jax-ml/jax@93f7bd0c9290",
        ),
        deviation(
            params=["jit"],
            error="RuntimeError",
            match="jit requires a non-empty mesh in context",
            reason="a spec says nothing without a mesh",
            issue="jax-ml/jax@93f7bd0c9290",
        ),
        deviation(
            params=["reshard"],
            error="ValueError",
            match="Using PartitionSpec when you are not under a mesh context is not allowed",
            reason="a spec says nothing without a mesh",
            issue="jax-ml/jax@15cd83ae00d8",
        ),
    ],
)
def spec_without_a_mesh(env, what):
    """A PartitionSpec where no mesh is set: three functions, three messages, one remedy."""
    x = put(env.mesh(SHARDS, "x", explicit=True), numbers(8), "x")
    call = {
        "constraint": lambda: lax.with_sharding_constraint(numbers(8), P("x")),
        "jit": lambda: jax.jit(jnp.sin, in_shardings=P("x"))(numbers(8)),
        "reshard": lambda: jax.reshard(x, P()),
    }[what]
    return Observed(call(), numbers(8))


@probe(
    source="jax-ml/jax@056cde493100",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.5.3",
)
def nested_contexts(env):
    """The inner mesh holds inside, the outer one after it, none after both; on every release."""

    def sizes():
        return dict(jax.sharding.get_abstract_mesh().shape)

    seen = [sizes()]
    with env.compat.set_mesh(env.mesh(4, "x")):
        seen.append(sizes())
        with env.compat.set_mesh(env.mesh((1, 2), ("x", "y"))):
            seen.append(sizes())
        seen.append(sizes())
    seen.append(sizes())
    return Observed(seen, [{}, {"x": 4}, {"x": 1, "y": 2}, {"x": 4}, {}])


@probe(source="jax-ml/jax@056cde493100", devices=4, platforms=("cpu",), releases="jax>=0.7.1")
def mesh_set_for_good(env):
    """`jax.set_mesh(mesh)` as a statement stays, and gives every later spec its mesh."""
    jax.set_mesh(env.mesh(SHARDS, "x"))
    out = jax.jit(lambda a: lax.with_sharding_constraint(a, P("x")))(numbers(8))
    return Observed(
        {"mesh": dict(jax.sharding.get_abstract_mesh().shape), "spec": spec_of(out)},
        {"mesh": {"x": 4}, "spec": "['x']"},
    )


@probe(source="jax-ml/jax@40024b14e97d", devices=4, platforms=("cpu",), releases="jax>=0.8.1")
def concrete_mesh(env):
    """`jax.sharding.get_mesh()`: the mesh with its devices, from 0.8.1; empty where none is set."""
    mesh = env.mesh(SHARDS, "x")
    before = jax.sharding.get_mesh()
    with jax.set_mesh(mesh):
        inside = jax.sharding.get_mesh()
    return Observed(
        {"before": before.empty, "same": inside == mesh}, {"before": True, "same": True}
    )


@probe(
    source="jax-ml/jax@6fc9e17a9e7d",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    params={"context": {"context": True}, "argument": {"context": False}},
    deviations=[
        deviation(
            params=["argument"],
            error="ValueError",
            match="The context mesh cannot be empty",
            reason="a mesh has to be given or set; that of an argument is not looked at",
            issue="jax-ml/jax@6fc9e17a9e7d",
        )
    ],
)
def shard_map_without_a_mesh(env, context):
    """`jax.shard_map` finds its mesh in the context from 0.6.1, never in its argument."""
    total = jax.shard_map(lambda u: lax.psum(u, "x"), in_specs=P("x"), out_specs=P())
    mesh = env.mesh(SHARDS, "x")
    if context:
        with env.compat.set_mesh(mesh):
            out = total(numbers(8))
    else:
        out = total(put(mesh, numbers(8), "x"))
    return Observed(out, numbers(4, 2).sum(0))


@probe(
    source="jax-ml/jax@d78c899e6115",
    records="the signature is up to jax",
    platforms=("cpu",),
    releases="jax>=0.4.35",
)
def signature_of_make_mesh(env):
    """Names of the parameters of `make_mesh`, which people pass by keyword.

    No reference: the names are the observation.
    """
    return [*inspect.signature(jax.make_mesh).parameters]


@probe(source="jax-ml/jax@a28803636255", devices=4, platforms=("cpu",))
def equality_of_shardings(env):
    """NamedShardings are equal by mesh and spec as written; equivalent by where shards lie."""
    mesh = env.mesh(SHARDS, "x")
    one, two = NamedSharding(mesh, P("x")), NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    padded = NamedSharding(mesh, P("x", None))
    turned = NamedSharding(jax.sharding.Mesh(np.array(env.devices[:4][::-1]), ("x",)), P("x"))
    return Observed(
        {
            "same": (one == two, hash(one) == hash(two)),
            "padded": (one == padded, one.is_equivalent_to(padded, 2)),
            "turned": (one == turned, one.is_equivalent_to(turned, 2)),
            "by_other_axis": one.is_equivalent_to(NamedSharding(mesh, P(None, "x")), 2),
        },
        {
            "same": (True, True),
            "padded": (False, True),
            "turned": (False, False),
            "by_other_axis": False,
        },
    )
