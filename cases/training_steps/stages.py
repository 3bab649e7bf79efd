"""Training steps in shard_map that state their collectives: scans of layers, stages, rings.

The programs also compile for a slice of TPUs and for four GPUs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from . import _tape as tape
from ._helpers import attend, draw

defaults(devices=4, xla_flags=["--xla_backend_optimization_level=0"])

NO_RULE_FOR_NAME = deviation(
    "jax<0.6",
    params=["check_on"],
    error="NotImplementedError",
    match="No replication rule for name",
    reason="the replication check had no rule for checkpoint_name",
)
TPU_USES_ALL_REDUCE = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="for small arrays XLA for TPUs uses an all-reduce and keeps a part of it",
)
CUDA_PEELS_LOOP = deviation(
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs peels an iteration off the loop, or combines operations",
)

REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=["check_on"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
RING_NOT_COMPILED = deviation(
    "jax>=0.6.1,<0.7.2",
    platform="cuda",
    outcome="crashed",
    reason="the compilation for GPUs ends the process",
)
RING_PEELED = deviation(
    "jax==0.6.0",
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs peels an iteration off the loop",
)
RING_PEELED_AGAIN = deviation(
    "jax>=0.7.2",
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs peels an iteration off the loop",
)

BATCH, WIDTH, LAYERS = 8, 16, 3
CHECKS = {"check_on": {"check": True}, "check_off": {"check": False}}


def _deep_loss(ws, x):
    """Return the loss of a stack of layers on the tape."""
    for i in range(ws.shape[0]):
        x = tape.tanh(x @ ws[i])
    return (x**2).sum()


def _exact_gradient(ws, x):
    """Return the gradient of the weights of all layers."""
    return tape.vjp(_deep_loss, ws, x)[1][0]


def _stack(env):
    """Return the weights of a stack of layers, and a batch."""
    return draw(env, LAYERS, WIDTH, WIDTH, scale=0.5), draw(env, BATCH, WIDTH, seed=1)


def _scan_loss(policy, ws, x):
    """Return the loss of a shard: a scan over layers whose weights are gathered one by one."""

    def layer(h, w):
        return jnp.tanh(h @ checkpoint_name(lax.all_gather(w, "x", axis=0, tiled=True), "w")), None

    return (lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0] ** 2).sum()


def _scanned(env, check, policy):
    """Return the gradient of a scan over layers whose weights are gathered one by one."""
    specs = P(None, "x"), P("x")
    mesh = env.mesh(4, "x")
    losses = env.compat.shard_map(
        lambda ws, x: _scan_loss(policy, ws, x)[None],
        mesh=mesh,
        in_specs=specs,
        out_specs=P("x"),
        check=check,
    )
    fn = jax.grad(lambda ws, x: losses(ws, x).sum())
    return Program(fn, args=_stack(env), reference=_exact_gradient)


@program(
    source="jax-ml/jax#25010",
    params=CHECKS,
    facts={"collectives": {"all-gather": 2, "reduce-scatter": 1}},
    deviations=[NO_RULE_FOR_NAME, TPU_USES_ALL_REDUCE, CUDA_PEELS_LOOP],
)
def nothing_saveable(env, check):
    """Without residuals, each layer gathers its weight again in the backward pass."""
    return _scanned(env, check, jax.checkpoint_policies.nothing_saveable)


@program(
    source="jax-ml/jax#25010",
    facts={"collectives": {"all-gather": 1, "reduce-scatter": 1}},
    deviations=[TPU_USES_ALL_REDUCE, CUDA_PEELS_LOOP],
)
def saved_by_name(env):
    """A policy that saves the gathered weight by its name gathers it once."""
    return _scanned(env, False, jax.checkpoint_policies.save_only_these_names("w"))


@program(source="jax-ml/jax#15982", facts={"collectives": {"collective-permute": 2}})
def pipeline(env):
    """Four stages, one weight each: activations move one way, their cotangents the other.

    A row of the batch enters with each tick, and moves on by a device.
    """
    ws, x = draw(env, 4, WIDTH, WIDTH, scale=0.5), draw(env, BATCH, WIDTH, seed=1)

    def stage(w, x):
        first, last = (lax.axis_index("x") == i for i in (0, 3))

        def tick(h, t):
            h = jnp.where(first, x[jnp.minimum(t, BATCH - 1)], h)
            h = jnp.tanh(h @ w[0])
            out = jnp.where(last & (t >= 3), (h**2).sum(), 0.0)
            return lax.ppermute(h, "x", [(i, (i + 1) % 4) for i in range(4)]), out

        start = env.compat.pvary(jnp.zeros(WIDTH), "x")
        return lax.scan(tick, start, jnp.arange(BATCH + 3))[1]

    losses = env.compat.shard_map(
        stage, mesh=env.mesh(4, "x"), in_specs=(P("x"), P()), out_specs=P("x")
    )
    fn = jax.grad(lambda ws, x: losses(ws, x).sum())
    return Program(fn, args=(ws, x), reference=_exact_gradient)


def _ring(axis, q, k, v):
    """Return attention of local queries to all keys, which travel around the ring."""
    scale = q.shape[-1] ** -0.5

    def hop(carry, _):
        k, v, total, weight = carry
        weights = jnp.exp(jnp.einsum("btnh,bsnh->bnts", q, k) * scale)
        total = total + jnp.einsum("bnts,bsnh->btnh", weights, v)
        weight = weight + weights.sum(-1).swapaxes(1, 2)[..., None]
        k, v = (lax.ppermute(a, axis, [(i, (i + 1) % 4) for i in range(4)]) for a in (k, v))
        return (k, v, total, weight), None

    start = (k, v, 0 * q, 0 * q[..., :1])
    _, _, total, weight = lax.scan(hop, start, None, length=4)[0]
    return total / weight


@program(
    source="jax-ml/jax#15982",
    facts={"collectives": {"collective-permute": 4}},
    deviations=[RING_NOT_COMPILED, RING_PEELED, RING_PEELED_AGAIN],
)
def ring_attention(env):
    """Keys and values travel around four devices, and so do their cotangents."""
    q, k, v = (draw(env, 2, 8, 2, 4, seed=seed) for seed in range(3))
    spec = P(None, "x")
    mapped = env.compat.shard_map(
        lambda *a: _ring("x", *a),
        mesh=env.mesh(4, "x"),
        in_specs=(spec,) * 3,
        out_specs=spec,
    )
    fn = jax.grad(lambda *a: (mapped(*a) ** 2).sum(), (0, 1, 2))
    exact = lambda *a: tape.vjp(lambda *n: (attend(*n) ** 2).sum(), *a)[1]  # noqa: E731 - short
    return Program(fn, args=(q, k, v), reference=exact)


@program(
    source="openxla/xla#49143",
    params=CHECKS,
    facts={"collectives": {"all-reduce": 1}},
    deviations=[REPLICATED_COTANGENT],
)
def gradient_accumulation(env, check):
    """Gradients of four parts of a batch are added on each device, and summed over devices once."""
    ws, x = _stack(env)

    def shard(ws, x):
        local = env.compat.pvary(ws, "x")

        def loss(ws, x):
            return (lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0] ** 2).sum()

        add = lambda total, part: (total + jax.grad(loss)(local, part[None]), None)  # noqa: E731
        return lax.psum(lax.scan(add, 0 * local, x)[0], "x")

    fn = env.compat.shard_map(
        shard, mesh=env.mesh(4, "x"), in_specs=(P(), P("x")), out_specs=P(), check=check
    )
    return Program(fn, args=(ws, x), reference=_exact_gradient)


@probe(source="jax-ml/jax#23831", platforms=("cpu",))
def memory_of_gathered_weights(env):
    """A policy that saves gathered weights holds all of them; recomputation holds few.

    Temporary memory of each device in multiples of one gathered weight.
    """
    ws, x = draw(env, 8, 128, 128, scale=0.125), draw(env, 8, 128, seed=1)
    policies = jax.checkpoint_policies

    def measure(policy):
        mesh, specs = env.mesh(4, "x"), (P(None, "x"), P("x"))
        losses = env.compat.shard_map(
            lambda ws, x: _scan_loss(policy, ws, x)[None],
            mesh=mesh,
            in_specs=specs,
            out_specs=P("x"),
            check=False,
        )
        fn = jax.jit(jax.grad(lambda ws, x: losses(ws, x).sum()))
        return fn.lower(ws, x).compile().memory_analysis().temp_size_in_bytes / (4 * 128**2)

    kept, recomputed = (
        measure(p) for p in (policies.save_only_these_names("w"), policies.nothing_saveable)
    )
    return Observed([8 <= kept < 16, recomputed < 8], [True, True])
