"""Programs on Explicit axes that a release began or ceased to accept: carries, branches, lanes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending, refusal

from ._helpers import format_spec, numbers, put, reshard

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6.1")


def start_from_zeros(x):
    """Return x added twice to zeros that are not sharded."""
    return lax.scan(lambda total, _: (total + x, None), jnp.zeros(8), None, length=2)[0]


def count_from_zeros(x):
    """Return x added twice to zeros that are not sharded, with a fori_loop."""
    return lax.fori_loop(0, 2, lambda _, total: total + x, jnp.zeros(8))


def zeros_or_self(x):
    """Return x, or zeros that are not sharded."""
    return lax.cond(x.sum() > 0, lambda x: 2 * x, lambda _: jnp.zeros(8), x)


PROGRAMS = {"scan": start_from_zeros, "fori_loop": count_from_zeros, "cond": zeros_or_self}
TYPES_MUST_AGREE = deviation(
    "jax>=0.8.2",
    error="TypeError",
    match="must (have )?equal (output )?types",
    reason="the types of carries and branches are compared with their shardings",
)


@probe(
    source="jax-ml/jax@ae9889952733",
    params=[*PROGRAMS],
    deviations=[TYPES_MUST_AGREE],
)
def unsharded_zeros(env, name):
    """Zeros that start a loop, or that a branch returns, need the sharding of the other values."""
    mesh, x = env.mesh(4, "x", explicit=True), numbers(8)
    with env.compat.set_mesh(mesh):
        out = jax.jit(PROGRAMS[name])(put(mesh, x, "x"))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": 2 * x})


AMBIGUOUS_SUM = deviation(
    "jax<0.10.1",
    outcome="raised",
    error="ShardingTypeError",
    reason="the gradient of an operand that is on no mesh had no sharding",
    issue="jax-ml/jax@837f78e592d5",
)


@probe(source="jax-ml/jax@837f78e592d5", deviations=[AMBIGUOUS_SUM])
def gradient_of_a_weight_on_no_mesh(env):
    """In the context of the mesh, the gradient of a replicated weight is summed over shards."""
    w, mesh, x = jnp.ones((4, 2)), env.mesh(4, "x", explicit=True), numbers(8, 4)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.grad(lambda w, x: (x @ w).sum()))(w, put(mesh, x, "x"))
    exact = np.repeat(x.sum(0)[:, None], 2, axis=1)
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "[]", "value": exact})


CONTEXT_MESH_TAKEN = deviation(
    "jax>=0.7.2,<0.8.2",
    error="ValueError",
    match="Resource axis: x of .* is not found in mesh",
    reason="the spec of the array was read with the other mesh",
    issue="jax-ml/jax@dba8a62f3244",
)


@probe(source="jax-ml/jax@dba8a62f3244", deviations=[CONTEXT_MESH_TAKEN])
def put_on_another_mesh(env):
    """In the context of a mesh, `device_put` moves its arrays to a mesh with other axes."""
    mesh, other = env.mesh((2, 2), ("x", "y"), explicit=True), env.mesh(4, "a", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.device_put(put(mesh, numbers(8, 2), "x", "y"), NamedSharding(other, P("a")))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "['a']", "value": numbers(8, 2)}
    )


NO_MESH = deviation(
    "jax<0.9.1",
    error="ValueError",
    match="cannot be empty",
    reason="a mesh was required",
    issue="jax-ml/jax@ad30807bb8ae",
)


@probe(source="jax-ml/jax@ad30807bb8ae", releases="jax>=0.7", deviations=[NO_MESH])
def auto_axes_without_a_mesh(env):
    """`jax.sharding.auto_axes` without a mesh calls the function as it is, from 0.9.1 on."""
    f = jax.sharding.auto_axes(lambda x: 2 * x, out_sharding=P())
    return Observed(jax.jit(f)(numbers(8)), 2 * numbers(8))


EXPLICIT_AXIS_DROPPED = deviation(
    "jax<0.7",
    outcome="ok",
    reason="the constraint replaced the sharding, Explicit axis included",
    issue="jax-ml/jax@b97ad423ec39",
)


@probe(source="jax-ml/jax@b97ad423ec39", deviations=[EXPLICIT_AXIS_DROPPED])
def constraint_on_the_automatic_axis(env):
    """On a mesh of both kinds of axes, a constraint over the Auto axis keeps the Explicit one."""
    types = (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto)
    devices = env.mesh((2, 2), ("x", "y")).devices
    mesh = jax.sharding.Mesh(devices, ("x", "y"), axis_types=types)
    with env.compat.set_mesh(mesh):
        f = jax.jit(lambda x: lax.with_sharding_constraint(x, P("y")))
        out = f(put(mesh, numbers(8, 2), "x"))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "[('x', 'y')]", "value": numbers(8, 2)}
    )


LANES_GATHERED = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="the axis of the lanes was dropped from the specs of the map",
)
LANES_GATHERED_AGAIN = deviation(
    "jax>=0.8.2,<0.9.1",
    params=["eager"],
    outcome="ok",
    reason="the axis of the lanes was dropped from the specs of the map",
    issue="jax-ml/jax@8504c16763b9",
)


@probe(
    source="jax-ml/jax@8504c16763b9",
    params={"jit": {"jit": True}, "eager": {"jit": False}},
    deviations=[LANES_GATHERED, LANES_GATHERED_AGAIN],
)
def lanes_of_a_map(env, jit):
    """`vmap` over a sharded axis, of a map over the other axis of the mesh."""
    mesh = env.mesh((2, 2), ("x", "y"), explicit=True)
    with env.compat.set_mesh(mesh):
        lanes = jax.vmap(jax.shard_map(jnp.negative, in_specs=P("y"), out_specs=P("y")))
        out = (jax.jit(lanes) if jit else lanes)(put(mesh, numbers(4, 4), "x", "y"))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "['x', 'y']", "value": -numbers(4, 4)}
    )


UNSHARDED = {
    "repeat": (lambda: jnp.repeat(jnp.arange(4), 2), (8,)),
    "rbg": (lambda: jax.random.uniform(jax.random.key(0, impl="rbg"), (8,)), (8,)),
    "hessian": (
        lambda: jax.hessian(lambda q: jnp.einsum("ij,kj->ik", q, q, out_sharding=P()).sum())(
            jnp.ones((2, 3))
        ),
        (2, 3, 2, 3),
    ),
}
REPEAT_REFUSED = deviation(
    "jax>=0.6.1,<0.9.1",
    params=["repeat"],
    error="ValueError",
    match="Please pass sharding to `jnp.repeat`",
    reason="the check for sharded operands ran before the array was flattened",
    issue="jax-ml/jax@51d6376a7bda",
)
NO_SHARDING_OF_BITS = deviation(
    "jax>=0.9.2,<0.10.2",
    params=["rbg"],
    error="AttributeError",
    match="'NoneType' object has no attribute 'update'",
    reason="the generator of bits had no sharding",
    issue="jax-ml/jax@0d099df3ed7a",
)
SPEC_TOO_SHORT = deviation(
    "jax<0.11",
    params=["hessian"],
    error="AssertionError",
    reason="a spec shorter than the rank got no entry for the lanes",
    issue="jax-ml/jax@20a7496329b6",
)


@probe(
    source="jax-ml/jax@0d099df3ed7a",
    params=[*UNSHARDED],
    deviations=[REPEAT_REFUSED, NO_SHARDING_OF_BITS, SPEC_TOO_SHORT],
)
def without_sharded_arrays(env, name):
    """In the context of an explicit mesh, programs of arrays that are not sharded run."""
    fn, shape = UNSHARDED[name]
    with env.compat.set_mesh(env.mesh(4, "x", explicit=True)):
        out = fn()
    return Observed({"spec": format_spec(out), "shape": out.shape}, {"spec": "[]", "shape": shape})


MESHES_COMPARED = deviation(
    "jax>=0.7.2,<0.8",
    error="AssertionError",
    reason="cotangents of two lanes were added without the mesh axis of the lanes",
    issue="jax-ml/jax#31879",
)


@probe(source="jax-ml/jax#31879", deviations=[MESHES_COMPARED])
def complex_gradients_of_lanes(env):
    """A pullback of a complex loss, mapped over sharded samples."""
    samples, w = numbers(4, 2) / 8, np.ones((2, 3), np.float32)

    def pull_back(w, x):
        def loss(w):
            y = jnp.dot(x, w)
            return jnp.sum(jnp.log1p(jnp.exp(-2 * y))) + 1j * jnp.sum(y)

        out, pullback = jax.vjp(loss, w)
        return pullback(jnp.ones_like(out))[0]

    mesh = env.mesh(4, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        f = jax.jit(jax.vmap(pull_back, in_axes=(None, 0)))
        out = f(put(mesh, w), put(mesh, samples, "x"))
    slopes = -2 / (1 + np.exp(2 * samples.astype(np.float64) @ w))
    exact = samples[:, :, None] * slopes[:, None, :]
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact})


BATCH_SHARDED_ONCE = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="batch axes are compared with their shardings",
    issue="jax-ml/jax@085710a88cfd",
)


NO_MESH_OF_THE_OTHER = deviation(
    "jax<0.7",
    outcome="ok",
    reason="an operand that is on no mesh was refused",
    issue="jax-ml/jax#29683",
)


@probe(source="jax-ml/jax@085710a88cfd", deviations=[NO_MESH_OF_THE_OTHER, BATCH_SHARDED_ONCE])
def product_with_an_unsharded_batch(env):
    """`a @ b` of batches of which only one is sharded: accepted up to 0.10.1, then refused."""
    mesh, a, b = env.mesh(2, "x", explicit=True), numbers(2, 3, 4), np.ones((2, 4, 5), np.float32)
    with env.compat.set_mesh(mesh):
        outcome = ending(lambda: put(mesh, a, "x") @ jnp.asarray(b), words=["Incompatible types"])
    return Observed(outcome, "accepted")


NO_TYPE_OF_SHAPES = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="eval_shape reported only shardings of jit",
    issue="jax-ml/jax@61a9bd2b3d58",
)


@probe(source="jax-ml/jax@61a9bd2b3d58", deviations=[NO_TYPE_OF_SHAPES])
def shape_of_a_sharded_result(env):
    """`jax.eval_shape` reports the sharding in the type of a result, from 0.6.2 on."""
    mesh = env.mesh(4, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        shape = jax.eval_shape(jnp.negative, put(mesh, numbers(8), "x"))
    spec = getattr(shape.sharding, "spec", None)
    return Observed("none" if spec is None else str([*spec]), "['x']")


GRADIENT_SHARDED = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="the transpose kept the sharding of the result",
)


@probe(source="jax-ml/jax@6940903c006b", deviations=[GRADIENT_SHARDED])
def gradient_of_a_resharding_broadcast(env):
    """A broadcast that only shards its operand: the gradient has the sharding of the operand."""

    def shard(x):
        return lax.broadcast_in_dim(x, (4, 2), (0, 1), out_sharding=P("x"))

    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        x = jnp.asarray(numbers(4, 2))
        out, gradient = jax.jit(shard)(x), jax.jit(jax.grad(lambda x: shard(x).sum()))(x)
        specs = [format_spec(out), format_spec(gradient)]
    return Observed(
        {"specs": specs, "value": out}, {"specs": ["['x']", "[]"], "value": numbers(4, 2)}
    )


BATCHES_MUST_AGREE = deviation(
    "jax>=0.11.1",
    params=["einsum"],
    error="ShardingTypeError",
    match="to have the same sharding",
    reason="a batch is no longer sharded like the batch that it is multiplied with",
    issue="jax-ml/jax@a8976b506998",
)
TYPES_MUST_AGREE_FOR_MATMUL = deviation(
    "jax>=0.10.2",
    params=["matmul"],
    error="ValueError",
    match="Incompatible types for matmul arguments",
    reason="the batches are not replicated alike",
    issue="jax-ml/jax@085710a88cfd",
)
BATCHED = {
    "einsum": lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
    "matmul": jnp.matmul,
}


@probe(
    source="jax-ml/jax@a8976b506998",
    params=[*BATCHED],
    deviations=[BATCHES_MUST_AGREE, TYPES_MUST_AGREE_FOR_MATMUL],
)
def batch_sharded_in_one_operand(env, name):
    """A product of two batches of matrices, one of them sharded over the batch, is refused."""
    mesh = env.mesh(4, "x", explicit=True)
    a, b = put(mesh, numbers(4, 2, 2), "x"), put(mesh, numbers(4, 2, 2))
    with env.compat.set_mesh(mesh):
        result = BATCHED[name](a, b)
    observed = {"value": np.asarray(result), "spec": format_spec(result)}
    expected = np.matmul(numbers(4, 2, 2), numbers(4, 2, 2), dtype=np.float64)
    return Observed(observed, {"value": expected, "spec": "['x']"})


CARRY_WITHOUT_SHARDING = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the types of the carry were compared without their shardings",
    issue="jax-ml/jax@ae9889952733",
)


@probe(source="jax-ml/jax@ae9889952733", releases="jax>=0.7", deviations=[CARRY_WITHOUT_SHARDING])
def carry_that_loses_its_sharding(env):
    """A `lax.scan` whose step gathers a sharded carry is refused."""
    mesh, x = env.mesh(4, "x", explicit=True), numbers(8)

    def step(carry, _):
        return reshard(carry, P()), None

    program = jax.jit(lambda x: lax.scan(step, x, None, length=1)[0])
    with env.compat.set_mesh(mesh):
        outcome = refusal(lambda: program(put(mesh, x, "x")), "must have equal types")
    return Observed(outcome, "TypeError: must have equal types")
