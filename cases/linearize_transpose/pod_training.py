"""Training steps over a slice of sixteen devices: what transposing makes of the communication.

Gradients of sharded programs communicate where their programs do not: the transpose of an
all-gather is a reduce-scatter, that of a broadcast a sum. On `tpu:v5e:4x4` and
`cuda:h100:1x2x8` that is compiled without them; on `cpu16` it is computed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

BATCH, WIDTH, HIDDEN, LAYERS = 64, 128, 512, 4


def _weights(env, *shape, seed):
    scale = np.sqrt(shape[-2])
    return (env.rng(seed).standard_normal(shape) / scale).astype(np.float32)


def _mlp_step(up, down, x):
    """Return the weights of a two-layer perceptron after one step, in NumPy float64."""
    up, down, x = (a.astype(np.float64) for a in (up, down, x))
    hidden = np.tanh(x @ up)
    error = (hidden @ down - x) / x.size
    back = (2 * error @ down.T) * (1 - hidden**2)
    return up - 0.1 * x.T @ back, down - 0.1 * hidden.T @ (2 * error)


@program(
    source="jax-ml/jax#7351",
    devices=16,
    facts={"collectives": {"all-reduce": 2}},
    deviations=[
        deviation(
            "jax<0.7",
            platform="cpu",
            outcome="ok",
            match="collectives",
            reason="the gradients of the two weights were summed one by one",
        )
    ],
)
def data_and_model(env):
    """A perceptron on a 4 by 4 mesh, batch over one axis, hidden units over the other.

    jit is told where everything lies and no more: one reduction over the model in the forward
    pass, one over the data for the gradients of both weights.
    """
    mesh = env.mesh((4, 4), ("data", "model"))
    places = [NamedSharding(mesh, spec) for spec in (P(None, "model"), P("model"), P("data"))]

    def loss(weights, x):
        up, down = weights
        return jnp.mean((jnp.tanh(x @ up) @ down - x) ** 2)

    def step(up, down, x):
        grads = jax.grad(loss)((up, down), x)
        return up - 0.1 * grads[0], down - 0.1 * grads[1]

    arrays = (
        _weights(env, WIDTH, HIDDEN, seed=1),
        _weights(env, HIDDEN, WIDTH, seed=2),
        _weights(env, BATCH, WIDTH, seed=3),
    )
    return Program(
        step,
        args=[env.put(array, place) for array, place in zip(arrays, places, strict=True)],
        jit={"donate_argnums": (0, 1), "out_shardings": (places[0], places[1])},
        reference=_mlp_step,
    )


@program(
    source="jax-ml/jax#7351",
    devices=16,
    facts={"collectives": {"all-gather": 2, "reduce-scatter": 1}},
    deviations=[
        deviation(
            platform="tpu:v5e",
            outcome="ok",
            match="collectives",
            reason="over all devices of a 4x4 slice XLA sums everything, and keeps a part of it",
        ),
        deviation(
            platform="cuda",
            outcome="ok",
            match="collectives",
            reason="XLA for GPUs takes an iteration out of the loop: the operations stand twice",
        ),
    ],
)
def fully_sharded(env):
    """Weights of each layer gathered when they are needed, their gradients scattered.

    A scan over layers inside shard_map. The transpose of `all_gather` is `psum_scatter`: no
    device has to hold the gradient of a whole layer summed over the batch.
    """
    mesh = env.mesh(16, "x")

    def layer(h, w):
        return jnp.tanh(h @ lax.all_gather(w, "x", axis=0, tiled=True)), None

    def loss(ws, x):
        return (lax.scan(jax.checkpoint(layer), x, ws)[0] ** 2).sum()

    def by_hand(ws, x):
        ws = ws.astype(np.float64)
        kept = [x.astype(np.float64)]
        for w in ws:
            kept.append(np.tanh(kept[-1] @ w))
        back, grads = 2 * kept[-1], []
        for w, before, after in zip(ws[::-1], kept[-2::-1], kept[:0:-1], strict=True):
            back = back * (1 - after**2)
            grads.append(before.T @ back)
            back = back @ w.T
        return np.stack(grads[::-1])

    mapped = env.compat.shard_map(
        jax.grad(loss),
        mesh=mesh,
        in_specs=(P(None, "x"), P("x")),
        out_specs=P(None, "x"),
        check=False,
    )
    return Program(
        mapped,
        args=(_weights(env, LAYERS, WIDTH, WIDTH, seed=4), _weights(env, BATCH, WIDTH, seed=5)),
        reference=by_hand,
    )


def _data_parallel(env, sum_up, out_specs):
    """Return the gradient of sixteen replicas of a layer, each with its part of the batch."""

    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).sum()

    def shard(w, x):
        return sum_up(jax.grad(loss)(env.compat.pvary(w, "x"), x))

    def by_hand(w, x):
        w, x = w.astype(np.float64), x.astype(np.float64)
        out = np.tanh(x @ w)
        return x.T @ (2 * out * (1 - out**2))

    mapped = env.compat.shard_map(
        shard, mesh=env.mesh(16, "x"), in_specs=(P(), P("x")), out_specs=out_specs
    )
    return Program(
        mapped,
        args=(_weights(env, WIDTH, WIDTH, seed=6), _weights(env, BATCH, WIDTH, seed=7)),
        reference=by_hand,
    )


@program(
    source="jax-ml/jax#6992",
    devices=16,
    facts={"collectives": {"all-reduce": 1}},
    deviations=[
        deviation(
            "jax>=0.6.0,<0.6.1",
            error="ValueError",
            match="unexpected JAX type",
            reason="the cotangent of a sum of shards was not typed as varying",
        ),
    ],
)
def summed_gradient(env):
    """A gradient summed over sixteen replicas, whole on each of them."""
    return _data_parallel(env, lambda grad: lax.psum(grad, "x"), P())


@program(
    source="jax-ml/jax#6992",
    devices=16,
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[
        deviation(
            "jax>=0.6.0,<0.6.1",
            error="ValueError",
            match="unexpected JAX type",
            reason="the cotangent of a sum of shards was not typed as varying",
        ),
        deviation(
            platform="tpu:v5e",
            outcome="ok",
            match="collectives",
            reason="over all devices of a 4x4 slice XLA sums everything, and keeps a part of it",
        ),
    ],
)
def scattered_gradient(env):
    """The same, of which each replica keeps a part: half of what an all-reduce moves."""
    return _data_parallel(
        env, lambda grad: lax.psum_scatter(grad, "x", scatter_dimension=0, tiled=True), P("x")
    )
