"""Linen modules and optax updates: functional libraries, in which changes of jax itself show.

Neither library holds state between calls, so changes of jax affect the random stream, the types in
shard_map, and names.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import data, exact_adam, exact_gradient

defaults(platforms=("cpu",))


class Dense(nn.Module):
    """`tanh(x @ kernel)`, with parameters by Linen."""

    @nn.compact
    def __call__(self, x):  # noqa: D102 - see the class
        return jnp.tanh(nn.Dense(2, use_bias=False)(x))


def loss(kernel, x, y):
    """Return the mean squared error of the Linen layer."""
    out = Dense().apply({"params": {"Dense_0": {"kernel": kernel}}}, x)
    return jnp.mean((out - y) ** 2)


@program(source="google/flax#4289", requires=["flax>=0.8.4"])
def linen_gradient(env):
    """The gradient through a Linen module is right with and without rematerialisation."""
    gradients = {"plain": jax.grad(loss), "remat": jax.grad(jax.checkpoint(loss))}
    return Program(
        lambda *args: {name: gradient(*args) for name, gradient in gradients.items()},
        args=data(env),
        reference=lambda *args: dict.fromkeys(gradients, exact_gradient(*args)),
    )


@program(source="google/flax#4289", requires=["flax>=0.8.4"])
def linen_scan(env):
    """`nn.scan` applies a stack of layers whose parameters have a leading axis."""

    class Step(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return jnp.tanh(nn.Dense(3, use_bias=False)(x)), None

    stack = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)

    def exact(kernels, x):
        for kernel in kernels.astype(np.float64):
            x = np.tanh(x @ kernel)
        return x

    kernels = env.rng(5).normal(size=(3, 3, 3)).astype(np.float32)
    fn = lambda k, x: stack().apply({"params": {"Dense_0": {"kernel": k}}}, x, None)[0]  # noqa: E731
    return Program(fn, args=(kernels, data(env)[1]), reference=exact)


@probe(
    source="jax-ml/jax#18480",
    records="no standard defines a stream of random numbers",
    requires=["flax>=0.8.4"],
)
def linen_random_stream(env):
    """Initial parameters and dropout of Linen for a seed change with jax 0.5.0.

    A new run cannot be checked against an old checkpoint any more.
    `jax_threefry_partitionable=False` restores the old stream. Only earlier releases are a
    reference for the values.
    """

    @jax.jit
    def drawn():
        variables = nn.Dense(3, use_bias=False).init(jax.random.key(0), np.ones((1, 2), np.float32))
        layer, ones = nn.Dropout(0.5, deterministic=False), np.ones(16, np.float32)
        out = layer.apply({}, ones, rngs={"dropout": jax.random.key(1)})
        return variables["params"]["kernel"], out

    kernel, out = drawn()
    return {"kernel": kernel, "kept": "".join(str(int(v > 0)) for v in np.asarray(out))}


@program(source="jax-ml/jax#4834", requires=["optax>=0.2.2"], rtol=1e-3)
def steps_of_adam(env):
    """Three steps of `optax.adam`, unrolled and in a scan, are equal to Adam in NumPy."""
    adam = optax.adam(0.1)

    def fn(kernel, x, y):
        def step(carry, _):
            kernel, opt_state = carry
            change, opt_state = adam.update(jax.grad(loss)(kernel, x, y), opt_state, kernel)
            return (optax.apply_updates(kernel, change), opt_state), None

        start = carry = (kernel, adam.init(kernel))
        for _ in range(3):
            carry, _ = step(carry, None)
        return {"unrolled": carry[0], "scanned": lax.scan(step, start, None, length=3)[0][0]}

    def exact(kernel, x, y):
        trained = exact_adam(kernel, [lambda k: exact_gradient(k, x, y)] * 3)
        return {"unrolled": trained, "scanned": trained}

    return Program(fn, args=data(env), reference=exact)


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=("sgd_check_on", "adam_check_on", "sgd_varying"),
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
GRADIENT_SUMMED_ALREADY = deviation(
    "jax>=0.6.1",
    params=("sgd_check_on",),
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    requires=["optax>=0.2.2"],
    devices=4,
    params={
        "sgd_check_on": {"rule": "sgd", "check": True},
        "sgd_check_off": {"rule": "sgd", "check": False},
        "adam_check_on": {"rule": "adam", "check": True},
        "sgd_varying": {"rule": "sgd", "check": True, "varying": True},
    },
    deviations=[REPLICATED_COTANGENT, GRADIENT_SUMMED_ALREADY],
)
def update_within_shard_map(env, rule, check, varying=False):
    """An optax step in shard_map: SGD moves N times too far with the check on, Adam hides it.

    Adam divides by the size of the gradient, so training with Adam does not show a factor; weight
    decay, clipping and SGD do. To apply `pvary` to the parameters first is right on every release
    except 0.6.0, which refuses `grad` of a varying loss under the check.
    """
    optimizer = {"sgd": optax.sgd, "adam": optax.adam}[rule](0.1)

    def step(kernel, x, y):
        point = env.compat.pvary(kernel, "x") if varying else kernel
        slope = lax.pmean(jax.grad(loss)(point, x, y), "x")
        change, _ = optimizer.update(slope, optimizer.init(kernel), kernel)
        return optax.apply_updates(kernel, change)

    def exact(kernel, x, y):
        if rule == "adam":
            return exact_adam(kernel, [lambda k: exact_gradient(k, x, y)])
        return kernel - 0.1 * exact_gradient(kernel, x, y)

    specs = (P(), P("x"), P("x"))
    fn = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=specs, out_specs=P(), check=check
    )
    return Program(fn, args=data(env), reference=exact)


@probe(source="google-deepmind/optax#1714", requires=["optax>=0.2.2"], devices=4)
def memory_of_a_sharded_parameter(env):
    """Under jit, Adam's moments of a sharded parameter have its sharding without annotations."""
    sharding = NamedSharding(env.mesh(4, "x"), P("x"))
    weights = jax.device_put(np.arange(8, dtype=np.float32), sharding)
    adam = optax.adam(0.1)
    change, opt_state = jax.jit(adam.update)(weights, jax.jit(adam.init)(weights), weights)
    moments = [leaf for leaf in jax.tree_util.tree_leaves(opt_state) if np.ndim(leaf)]
    shapes = [leaf.sharding.shard_shape(leaf.shape) for leaf in (change, *moments)]
    exact = -0.1 * np.sign(np.arange(8.0))
    expected = {"shards": [[2], [2], [2]], "change": exact}
    return Observed({"shards": [list(s) for s in shapes], "change": np.asarray(change)}, expected)


NO_RULE_FOR_COND = deviation(
    "jax<0.4.36",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the check had no rule for cond",
    issue="jax-ml/jax#23693",
)
BRANCHES_MUST_BE_ALIKE = deviation(
    "jax>=0.4.36,<0.6",
    params=("check_on",),
    error="Exception",
    match="branches of cond produced mismatched replication types",
    reason="the rule for cond requires branches of equal replication types",
    issue="jax-ml/jax#23693",
)


@program(
    source="jax-ml/jax#23693",
    requires=["optax>=0.2.2"],
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_COND, BRANCHES_MUST_BE_ALIKE],
)
def accumulated_steps(env, check):
    """`optax.MultiSteps` runs in shard_map, where the check had no replication rule for its cond.

    The gradient is averaged over two calls, and the parameters move at the second call.
    """
    optimizer = optax.MultiSteps(optax.sgd(0.1), every_k_schedule=2)

    def step(kernel, slope):
        slope = lax.pmean(slope, "x")[0]
        opt_state = optimizer.init(kernel)
        for _ in range(2):
            change, opt_state = optimizer.update(slope, opt_state, kernel)
        return optax.apply_updates(kernel, change)

    fn = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=(P(), P("x")), out_specs=P(), check=check
    )
    slopes = env.rng(9).normal(size=(4, 3)).astype(np.float32)
    exact = lambda kernel, slopes: kernel - 0.1 * slopes.astype(np.float64).mean(0)  # noqa: E731
    return Program(fn, args=(np.ones(3, np.float32), slopes), reference=exact)
