"""Transformations on Explicit axes: gradients and vmap of programs whose arrays are sharded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import format_spec, numbers, put, reshard

defaults(devices=4, platforms=("cpu",), releases="jax>=0.7.2")


MATRIX_NOT_BATCHED = deviation(
    "jax<0.10.2",
    error="ShardingTypeError",
    match="Input 1 to triangular_solve must be unsharded",
    reason="the lanes became columns of the right-hand side, which must not be sharded",
    issue="jax-ml/jax@66061f280ffb",
)


@probe(source="jax-ml/jax@66061f280ffb", deviations=[MATRIX_NOT_BATCHED])
def one_system_for_sharded_vectors(env):
    """`vmap` of `jnp.linalg.solve` over sharded vectors runs with one matrix for all lanes."""
    mesh, b = env.mesh(4, "x", explicit=True), numbers(8, 2)
    solve = jax.jit(jax.vmap(jnp.linalg.solve, in_axes=(None, 0)))
    with env.compat.set_mesh(mesh):
        out = solve(reshard(2 * np.eye(2, dtype=np.float32), P()), put(mesh, b, "x"))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": b / 2})


SHARDED_BEYOND_THE_LANES = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the sharding of the conversion was applied with the lanes in the wrong place",
    issue="jax-ml/jax@b26a9b42f88b",
)
COTANGENT_REFUSED = deviation(
    "jax>=0.8.2,<0.10.2",
    error="ValueError",
    match="(?i)expected cotangent type",
    reason="the sharding of the conversion was applied with the lanes in the wrong place",
    issue="jax-ml/jax@b26a9b42f88b",
)


@probe(source="jax-ml/jax@b26a9b42f88b", deviations=[SHARDED_BEYOND_THE_LANES, COTANGENT_REFUSED])
def gradient_of_a_conversion_in_lanes(env):
    """`vmap` over weights of the gradient of a product of a sharded bfloat16 array, as float32."""
    mesh = env.mesh(4, "x", explicit=True)

    def loss(x, w):
        return jnp.sum(x.astype(jnp.float32) @ w)

    x = jnp.asarray(numbers(4, 4, 2), jnp.bfloat16)
    with env.compat.set_mesh(mesh):
        w = reshard(numbers(2, 2, 1), P())
        slopes = jax.vmap(jax.grad(loss), in_axes=(None, 0))
        out = jax.jit(slopes)(reshard(x, P("x")), w)
    exact = np.broadcast_to(numbers(2, 1, 1, 2), (2, 4, 4, 2))
    observed = {"spec": format_spec(out), "value": np.asarray(out, np.float32)}
    return Observed(observed, {"spec": "[None, 'x']", "value": exact})


@jax.custom_vjp
def ignored(x):
    """Return x; the backward pass returns nothing for it."""
    return x


ignored.defvjp(lambda x: (x, None), lambda *_: (None,))


NOTHING_TO_RESHARD = deviation(
    "jax>=0.8.1,<0.9",
    params=["reshard"],
    error="TypeError",
    match="not a valid JAX type",
    reason="the transpose of reshard did not expect a symbolic zero",
    issue="jax-ml/jax@caaad6e0012e",
)
NOTHING_TO_UNSHARD = deviation(
    "jax>=0.8.1,<0.9",
    params=["shard_map"],
    outcome="raised",
    reason="the transpose of shard_map gave a symbolic zero the wrong sharding",
    issue="jax-ml/jax@bf11cd8abdee",
)


@probe(
    source="jax-ml/jax@caaad6e0012e",
    params=["reshard", "shard_map"],
    deviations=[NOTHING_TO_RESHARD, NOTHING_TO_UNSHARD],
)
def backward_pass_without_a_gradient(env, name):
    """A backward pass of `custom_vjp` that returns None behind a `reshard` or in a `shard_map`."""
    mesh, x = env.mesh(4, "x", explicit=True), numbers(8)
    shards = env.compat.shard_map(
        ignored, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False
    )
    calls = {"reshard": lambda x: ignored(reshard(x, P("x"))), "shard_map": shards}
    with env.compat.set_mesh(mesh):
        out = jax.grad(lambda x: calls[name](x).sum())(put(mesh, x, "x"))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": 0 * x})


NAME_AND_SHARDING = deviation(
    "jax<0.8.2",
    error="ValueError",
    match="Only one of spmd_axis_name or arrays sharded on",
    reason="the two were refused together, even where they agree",
    issue="jax-ml/jax@f2a50525668b",
)


@probe(source="jax-ml/jax@f2a50525668b", deviations=[NAME_AND_SHARDING])
def lanes_with_the_name_of_their_axis(env):
    """`vmap` over a sharded Explicit axis accepts the name of that axis as `spmd_axis_name`."""
    mesh, x = env.mesh((2, 2), ("rows", "columns"), explicit=True), numbers(8, 2)
    with env.compat.set_mesh(mesh):
        doubled = jax.jit(jax.vmap(lambda x: 2 * x, spmd_axis_name="rows"))
        out = doubled(put(mesh, x, "rows", "columns"))
    expected = {"spec": "['rows', 'columns']", "value": 2 * x}
    return Observed({"spec": format_spec(out), "value": out}, expected)


ONES_IN_BETWEEN = deviation(
    "jax<0.10",
    error="ShardingTypeError",
    match="on more than 1 axis is not supported",
    reason="dimensions of length 1 counted as split or merged",
    issue="jax-ml/jax@41220ca5886c",
)


@probe(
    source="jax-ml/jax@41220ca5886c",
    params={
        "split": {"shapes": ((4, 1, 8, 1, 4), (4, 1, 2, 4, 1, 4))},
        "merge": {"shapes": ((4, 1, 2, 4, 1, 4), (4, 1, 8, 1, 4))},
    },
    deviations=[ONES_IN_BETWEEN],
)
def reshape_between_ones(env, shapes):
    """A reshape splits or merges unsharded dimensions between dimensions of length 1."""
    mesh, (before, after) = env.mesh(4, "x", explicit=True), shapes
    out = jax.jit(lambda x: x.reshape(after))(put(mesh, numbers(*before), "x"))
    expected = {"spec": "['x']", "value": numbers(*after)}
    return Observed({"spec": format_spec(out), "value": out}, expected)


INDEX_BY_GATHER = deviation(
    "jax<0.8",
    error="ShardingTypeError",
    match="out_sharding",
    reason="without jit, the results on each device were joined by an indexing that was refused",
    issue="jax-ml/jax@9855a2ee6211",
)


@probe(source="jax-ml/jax@9855a2ee6211", deviations=[INDEX_BY_GATHER])
def unchecked_map_with_replicated_results(env):
    """Without `jit`, an unchecked shard_map on Explicit axes returns replicated axis numbers."""
    mesh = env.mesh((2, 2), ("x", "y"), explicit=True)
    with env.compat.set_mesh(mesh):
        out = env.compat.shard_map(
            lambda: 0 * jnp.array([lax.axis_index("x"), lax.axis_index("y")]),
            mesh=mesh,
            in_specs=(),
            out_specs=P(),
            check=False,
        )()
    return Observed(np.asarray(out), np.zeros(2, np.int32))


OTHER_AXIS_FORGOTTEN = deviation(
    "jax>=0.7,<0.7.2",
    outcome="ok",
    reason="the result was sharded over the manual axis alone",
    issue="jax-ml/jax@670a0642e435",
)
NOT_WITHOUT_JIT = deviation(
    "jax<0.7",
    error="NotImplementedError",
    reason="without jit, every axis had to be manual",
    issue="jax-ml/jax@3a8ba5698ff3",
)


@probe(
    source="jax-ml/jax@670a0642e435",
    releases="jax>=0.6.1",
    params={"explicit": {"explicit": True}, "auto": {"explicit": False}},
    deviations=[NOT_WITHOUT_JIT, OTHER_AXIS_FORGOTTEN],
)
def map_over_one_axis_without_jit(env, explicit):
    """Without `jit`, a shard_map over one axis keeps the sharding over the other axis."""
    mesh, x = env.mesh((2, 2), ("x", "y"), explicit=explicit), numbers(8, 2)
    with env.compat.set_mesh(mesh):
        doubled = env.compat.shard_map(
            lambda x: 2 * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
        )
        out = doubled(put(mesh, x, "x", "y"))
    expected = {"spec": "['x', 'y']", "value": 2 * x}
    return Observed({"spec": format_spec(out), "value": out}, expected)


LETTERS_OF_THE_NAME = deviation(
    "jax>=0.6.2,<0.7",
    error="KeyError",
    match="'r'",
    reason="the name of the axis of the lanes was taken for a list of letters",
    issue="jax-ml/jax@e8ea81072e74",
)
LANES_GATHERED = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the lanes were gathered",
    issue="jax-ml/jax@e8ea81072e74",
)


@probe(
    source="jax-ml/jax@e8ea81072e74",
    releases="jax>=0.6.1",
    deviations=[LANES_GATHERED, LETTERS_OF_THE_NAME],
)
def lanes_of_an_axis_with_a_long_name(env):
    """In 0.6.2 alone, `vmap` of a shard_map over lanes that an axis named `rows` shards fails."""
    mesh, x = env.mesh((2, 2), ("rows", "columns"), explicit=True), numbers(4, 4)
    with env.compat.set_mesh(mesh):
        doubled = env.compat.shard_map(
            lambda x: 2 * x, mesh=mesh, in_specs=P("columns"), out_specs=P("columns")
        )
        out = jax.jit(jax.vmap(doubled))(put(mesh, x, "rows", "columns"))
    expected = {"spec": "['rows', 'columns']", "value": 2 * x}
    return Observed({"spec": format_spec(out), "value": out}, expected)


LANES_DROPPED = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the sharding of the lanes was dropped, and that of a row applied to them",
    issue="jax-ml/jax@80d1fbac4292",
)


@probe(source="jax-ml/jax@80d1fbac4292", releases="jax>=0.6", deviations=[LANES_DROPPED])
def conversion_in_lanes(env):
    """`vmap` of `jnp.asarray(x, dtype)` over a sharded Explicit axis keeps the sharding."""
    mesh, x = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(8, 2)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.vmap(lambda x: jnp.asarray(x, jnp.bfloat16)))(put(mesh, x, "x", "y"))
    observed = {"spec": format_spec(out), "value": np.asarray(out, np.float32)}
    return Observed(observed, {"spec": "['x', 'y']", "value": x})
