"""`vmap` and collectives: inside the shards, around the map, and over an axis of `vmap`.

A batched collective is one collective of the whole batch. An axis that `vmap` names can be summed
over together with an axis of the mesh: some collectives support this, others raise an error.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import (
    COLLECTIVES,
    SHARDS,
    compute_shards,
    map_collective,
    map_shards,
    numbers,
    shards_of,
    square_mesh,
)

NO_RULE_FOR_PMAX = deviation(
    "jax<0.4.34",
    params=["pmax"],
    error="NotImplementedError",
    match="No replication rule for pmax",
    reason="the replication check had no rule for pmax; switch it off in these releases",
    issue="jax-ml/jax#20335",
)
GROUPS_PASSED_TO_CHECKED_SUMS = deviation(
    "jax>=0.8.1,<0.9",
    params=["sums"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the batching rule passed an argument that the checked psum no longer has",
    issue="jax-ml/jax#34249",
)


@probe(
    source="jax-ml/jax#34249",
    devices=4,
    params={
        "pmax": {"ops": ["pmax"]},
        "sums": {"ops": ["psum", "pmean"]},
        "exchanges": {"ops": ["all_gather", "psum_scatter", "ppermute", "all_to_all"]},
    },
    deviations=[NO_RULE_FOR_PMAX, GROUPS_PASSED_TO_CHECKED_SUMS],
)
def within_shards(env, ops):
    """`vmap` over columns, inside the map, gives one collective for all columns."""
    x = numbers(env, 16, 3)

    def body(x):
        return {op: jax.vmap(COLLECTIVES[op], in_axes=1, out_axes=1)(x) for op in ops}

    fn = map_shards(env, body, P("x"), P("x"))
    return Observed(jax.jit(fn)(x), reference={op: compute_shards(op, x) for op in ops})


GROUPS_PASSED_TO_CHECKED_PSUM = deviation(
    "jax>=0.8.1,<0.9",
    params=["psum"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the batching rule passed an argument that the checked psum no longer has",
    issue="jax-ml/jax#34249",
)


@probe(
    source="jax-ml/jax#34249",
    devices=4,
    params={
        "psum": {"ops": ["psum"]},
        "exchanges": {"ops": ["psum_scatter", "all_to_all"]},
    },
    deviations=[GROUPS_PASSED_TO_CHECKED_PSUM],
)
def around_the_map(env, ops):
    """`vmap` of the mapped function, along another axis than the shards, as in the report."""
    x = numbers(env, 16, 3)
    fns = {op: jax.vmap(map_collective(env, op), in_axes=1, out_axes=1) for op in ops}
    observed = jax.jit(lambda x: {op: fn(x) for op, fn in fns.items()})(x)
    return Observed(observed, reference={op: compute_shards(op, x) for op in ops})


@program(source="jax-ml/jax#4141", devices=4, facts={"collectives": {"all-to-all": 1}})
def one_exchange_for_a_batch(env):
    """Three matrices transposed under `vmap` need one all-to-all for all of them."""

    def body(x):
        return jax.vmap(lambda m: lax.all_to_all(m, "x", 1, 0, tiled=True))(x)

    fn = map_shards(env, body, P(None, "x", None), P(None, None, "x"))
    return Program(fn, args=(numbers(env, 3, 8, 8),), reference=lambda x: x.astype(np.float64))


OVER_BOTH = {
    "psum": lambda v: lax.psum(v, ("i", "x")),
    "pmax": lambda v: lax.pmax(v, ("i", "x")),
    "ppermute": lambda v: lax.ppermute(v, ("i", "x"), [(0, 1)]),
    "all_to_all": lambda v: lax.all_to_all(v, ("i", "x"), 0, 0, tiled=True),
    "axis_index": lambda v: v + lax.axis_index(("i", "x")),
    "all_gather": lambda v: lax.all_gather(v, ("i", "x"), tiled=True),
}


def compute_over_both(op, x):
    """Return the results of eight members (columns by shards) of a collective, by column."""
    members = np.concatenate([shards_of(x[:, 0]), shards_of(x[:, 1])])
    after = {
        "psum": lambda: np.stack([members.sum(0)] * 8),
        "pmax": lambda: np.stack([members.max(0)] * 8),
        "ppermute": lambda: np.outer(np.arange(8) == 1, members[0]),
        "all_to_all": lambda: members.T,
        "axis_index": lambda: members + np.arange(8.0)[:, None],
        "all_gather": lambda: np.stack([members.ravel()] * 8),
    }[op]()
    return after.reshape(2, -1).T


NO_RULE_FOR_VMAP_AXIS = deviation(
    "jax<0.4.36",
    params=["ppermute"],
    error="NotImplementedError",
    match="only supports a single axis",
    reason="ppermute had no rule for an axis of vmap together with a mesh axis",
)
VMAP_AXIS_DROPPED = deviation(
    "jax>=0.4.36",
    params=["ppermute"],
    outcome="ok",
    reason="ppermute dropped the axis of vmap and handed on all columns",
    issue="jax-ml/jax@c36e1f7c1ad4",
)
NO_GATHER_OVER_VMAP_AXIS = deviation(
    params=["all_gather"],
    error="AssertionError",
    match="axis size",
    reason="all_gather has no rule for an axis of vmap together with a mesh axis",
)


@probe(
    source="jax-ml/jax#19601",
    devices=4,
    params={
        "ppermute": {"ops": ["ppermute"]},
        "all_gather": {"ops": ["all_gather"]},
        "others": {"ops": ["psum", "pmax", "all_to_all", "axis_index"]},
    },
    deviations=[NO_RULE_FOR_VMAP_AXIS, VMAP_AXIS_DROPPED, NO_GATHER_OVER_VMAP_AXIS],
)
def with_an_axis_of_vmap(env, ops):
    """Collectives over `("i", "x")`, an axis of vmap and one of the mesh, without the check."""
    x = numbers(env, 32, 2)

    def body(x):
        vmap_options = {"in_axes": 1, "out_axes": 1, "axis_name": "i"}
        return {op: jax.vmap(OVER_BOTH[op], **vmap_options)(x) for op in ops}

    fn = map_shards(env, body, P("x"), P("x"), check=False)
    return Observed(jax.jit(fn)(x), reference={op: compute_over_both(op, x) for op in ops})


VMAP_AXIS_DROPPED_UP_TO_0_5 = deviation(
    "jax>=0.4.36,<0.6",
    params=["ppermute"],
    outcome="ok",
    reason="ppermute dropped the axis of vmap and handed on all columns",
    issue="jax-ml/jax@c36e1f7c1ad4",
)
AXIS_LOOKED_UP_IN_MESH = deviation(
    "jax==0.6.0",
    error="KeyError",
    match="i",
    reason="the types of 0.6.0 looked up the axis in the mesh",
)
REDUCTION_AXIS_LOOKED_UP_IN_MESH = deviation(
    "jax==0.6.1",
    params=["psum", "pmax"],
    error="KeyError",
    match="i",
    reason="the types of 0.6.0 looked up the axis in the mesh",
)
VMAP_AXIS_DROPPED_FROM_0_6_1 = deviation(
    "jax>=0.6.1,<0.8.2",
    params=["ppermute"],
    outcome="ok",
    reason="ppermute dropped the axis of vmap and handed on all columns",
    issue="jax-ml/jax@c36e1f7c1ad4",
)
GROUPS_PASSED_IN_0_8_1 = deviation(
    "jax==0.8.1",
    params=["psum"],
    error="TypeError",
    match="axis_index_groups",
    reason="the batching rule passed an argument that the checked psum no longer has",
    issue="jax-ml/jax#34249",
)
PSUM_AXIS_WITHOUT_STATE = deviation(
    "jax>=0.8.2",
    params=["psum"],
    error="ValueError",
    match="can only accept axis_name",
    reason="an axis outside the mesh has no state",
)
PMAX_AXIS_ASSERTION = deviation(
    "jax>=0.8.2,<0.11.1",
    params=["pmax"],
    error="AssertionError",
    reason="an axis outside the mesh has no state",
)
PMAX_AXIS_WITHOUT_STATE = deviation(
    "jax>=0.11.1",
    params=["pmax"],
    error="ValueError",
    match="can only accept axis_name",
    reason="an axis outside the mesh has no state",
)
EXCHANGE_AXIS_ASSERTION = deviation(
    "jax>=0.8.2",
    params=["ppermute", "all_to_all"],
    error="AssertionError",
    reason="an axis outside the mesh has no state",
)


@probe(
    source="jax-ml/jax#19601",
    devices=4,
    params={
        "psum": {"op": "psum"},
        "pmax": {"op": "pmax"},
        "ppermute": {"op": "ppermute"},
        "all_to_all": {"op": "all_to_all"},
    },
    deviations=[
        NO_RULE_FOR_PMAX,
        NO_RULE_FOR_VMAP_AXIS,
        VMAP_AXIS_DROPPED_UP_TO_0_5,
        AXIS_LOOKED_UP_IN_MESH,
        REDUCTION_AXIS_LOOKED_UP_IN_MESH,
        VMAP_AXIS_DROPPED_FROM_0_6_1,
        GROUPS_PASSED_IN_0_8_1,
        PSUM_AXIS_WITHOUT_STATE,
        PMAX_AXIS_ASSERTION,
        PMAX_AXIS_WITHOUT_STATE,
        EXCHANGE_AXIS_ASSERTION,
    ],
)
def checked_with_an_axis_of_vmap(env, op):
    """Collectives over `("i", "x")` with the check on, which knows only axes of the mesh."""
    x = numbers(env, 32, 2)

    def body(x):
        return jax.vmap(OVER_BOTH[op], in_axes=1, out_axes=1, axis_name="i")(x)

    fn = map_shards(env, body, P("x"), P("x"))
    return Observed(jax.jit(fn)(x), reference=compute_over_both(op, x))


SHARED_ARGUMENT_REFUSED = deviation(
    "jax<0.10",
    params=["check_on"],
    outcome="ok",
    reason="refused: the shared argument varies over fewer axes than the batch",
    issue="jax-ml/jax@a9e948ef1ce1",
)


@probe(
    source="jax-ml/jax@a9e948ef1ce1",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[SHARED_ARGUMENT_REFUSED],
)
def batch_on_an_axis_of_the_mesh(env, check):
    """`vmap(..., spmd_axis_name="a")` lays the batch over a mesh axis and shares an argument.

    With the check on the shared argument is not typed as varying over `a`, and was refused.
    """
    x = numbers(env, 8, 2)
    body = map_shards(
        env,
        lambda x, y: lax.psum(x * y, "b"),
        (P("b"), P()),
        P(),
        check=check,
        mesh=square_mesh(env),
    )
    fn = jax.jit(jax.vmap(body, in_axes=(1, None), out_axes=1, spmd_axis_name="a"))
    outcome = ending(fn, x, np.float32(3), words=("types to match", "manual axes to match"))
    if outcome != "accepted":
        return Observed(outcome, reference="accepted")
    return Observed(fn(x, np.float32(3)), reference=3 * shards_of(x, 2).sum(0))


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=["check_on"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@probe(
    source="jax-ml/jax#7965",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[REPLICATED_COTANGENT],
)
def gradients_of_a_batch(env, check):
    """Gradients by example, taken inside the map through an `all_gather`, keep columns separate."""
    x = numbers(env, 8, 3)

    def body(x):
        def local(v):
            return (lax.all_gather(v, "x", tiled=True) ** 2).sum()

        return jax.vmap(jax.grad(local), in_axes=1, out_axes=1)(x)

    fn = map_shards(env, body, P("x"), P("x"), check=check)
    return Observed(jax.jit(fn)(x), reference=2 * SHARDS * x.astype(np.float64))


@probe(source="jax-ml/jax#8601")
def over_the_axis_of_vmap(env):
    """Collectives over an axis that only `vmap` names are reshapes and sums, without any mesh.

    The axis has three members, because with two members a permutation is its own inverse.
    """
    x = numbers(env, 3, 4)
    ring = [(i, (i + 1) % 3) for i in range(3)]
    square = x[:, :3]

    def body(v):
        return {
            "psum": lax.psum(v, "i"),
            "pmean": lax.pmean(v, "i"),
            "pmax": lax.pmax(v, "i"),
            "pmin": lax.pmin(v, "i"),
            "ppermute": lax.ppermute(v, "i", ring),
            "axis_index": lax.axis_index("i"),
            "all_gather": lax.all_gather(v, "i", axis=1),
            "all_gather_tiled": lax.all_gather(v, "i", tiled=True),
            "psum_scatter": lax.psum_scatter(v[:3], "i"),
            "all_to_all": lax.all_to_all(v[:3], "i", 0, 0),
        }

    reference = {
        "psum": np.stack([x.sum(0)] * 3),
        "pmean": np.stack([np.float64(x).mean(0)] * 3),
        "pmax": np.stack([x.max(0)] * 3),
        "pmin": np.stack([x.min(0)] * 3),
        "ppermute": np.roll(x, 1, axis=0),
        "axis_index": np.arange(3, dtype=np.int32),
        "all_gather": np.stack([x.T] * 3),
        "all_gather_tiled": np.stack([x.ravel()] * 3),
        "psum_scatter": square.sum(0),
        "all_to_all": square.T,
    }
    return Observed(jax.jit(jax.vmap(body, axis_name="i"))(x), reference=reference)


@probe(source="jax-ml/jax@49d9affce016", devices=4)
def tiled_gather_of_a_batch(env):
    """A tiled `all_gather` under `vmap`, along the first axis of each row, keeps rows apart."""
    x = numbers(env, 8, 3)

    def body(x):
        return jax.vmap(lambda row: lax.all_gather(row, "x", tiled=True))(x)

    observed = jax.jit(map_shards(env, body, P("x"), P("x")))(x)
    rows = x.reshape(4, 2, 3).transpose(1, 0, 2).reshape(2, 12)
    return Observed(observed, reference=np.tile(rows, (4, 1)))


BATCH_OF_A_BATCH = deviation(
    params=["closed_over"],
    outcome="ok",
    reason="the specs of what is closed over get the name, but it is not split by it",
    issue="jax-ml/jax#17874",
)


@probe(
    source="jax-ml/jax#17874",
    devices=4,
    deviations=[BATCH_OF_A_BATCH],
    params={
        "argument": {"closed_over": False, "spmd": True},
        "closed_over": {"closed_over": True, "spmd": True},
        "without_spmd_axis_name": {"closed_over": True, "spmd": False},
    },
)
def batch_that_is_closed_over(env, closed_over, spmd):
    """`vmap(..., spmd_axis_name="x")` of a map that closes over the batch keeps its size."""
    x = numbers(env, 4)

    def f(x):
        if closed_over:
            return map_shards(env, lambda: x, (), P())()
        return map_shards(env, lambda x: x, P(), P())(x)

    return Observed(jax.vmap(f, spmd_axis_name="x" if spmd else None)(x), reference=x)


NUMBER_OF_THE_OUTER_VMAP_REFUSED = deviation(
    params=["named"],
    outcome="raised",
    reason="what is closed over has the whole batch, what is given has its part",
    issue="jax-ml/jax#23476",
)


@probe(
    source="jax-ml/jax#23476",
    devices=4,
    deviations=[NUMBER_OF_THE_OUTER_VMAP_REFUSED],
    params={"named": {"spmd": "a"}, "unnamed": {"spmd": None}},
)
def vmap_inside_and_around(env, spmd):
    """`vmap` around a map and inside of it, which closes over a number of the outer `vmap`."""
    x, y = numbers(env, 2, 4), numbers(env, 2, seed=1)

    def f(x, y):
        body = jax.vmap(lambda element: element + y)
        return map_shards(env, body, P("b"), P("b"), mesh=square_mesh(env))(x)

    return Observed(jax.vmap(f, spmd_axis_name=spmd)(x, y), reference=x + y[:, None])
