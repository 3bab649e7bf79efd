"""Training steps on a slice of sixteen devices: how transposition changes the communication.

Gradients of sharded programs communicate where their programs do not: the transpose of an
all-gather is a reduce-scatter, that of a broadcast is a sum. Cells of `tpu:v5e:4x4` and
`cuda:h100:1x2x8` compile the programs without these devices; `cpu16` computes them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

defaults(devices=16)

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


GRADIENTS_SUMMED_SEPARATELY = deviation(
    "jax<0.7",
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="the gradients of the two weights were summed separately",
)


@program(
    source="jax-ml/jax#7351",
    facts={"collectives": {"all-reduce": 2}},
    deviations=[GRADIENTS_SUMMED_SEPARATELY],
)
def data_and_model(env):
    """A step of a perceptron on a 4 by 4 mesh needs two reductions.

    The batch is sharded over one axis, the hidden units over the other. jit gets only the
    shardings. It reduces once over the model in the forward pass, and once over the data for the
    gradients of both weights.
    """
    mesh = env.mesh((4, 4), ("data", "model"))
    shardings = [NamedSharding(mesh, spec) for spec in (P(None, "model"), P("model"), P("data"))]

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
        args=[env.put(array, sharding) for array, sharding in zip(arrays, shardings, strict=True)],
        jit={"donate_argnums": (0, 1), "out_shardings": (shardings[0], shardings[1])},
        reference=_mlp_step,
    )


TPU_USES_ALL_REDUCE = deviation(
    platform="tpu:v5e",
    outcome="ok",
    match="collectives",
    reason="over all devices of a 4x4 slice XLA uses an all-reduce and keeps a part of it",
)
CUDA_PEELS_LOOP = deviation(
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs peels an iteration off the loop, so the operations occur twice",
)


@program(
    source="jax-ml/jax#7351",
    facts={"collectives": {"all-gather": 2, "reduce-scatter": 1}},
    deviations=[TPU_USES_ALL_REDUCE, CUDA_PEELS_LOOP],
)
def fully_sharded(env):
    """Weights of each layer are gathered when they are needed, and their gradients scattered.

    The program is a scan over layers inside shard_map. The transpose of `all_gather` is
    `psum_scatter`: no device has to hold the gradient of a whole layer summed over the batch.
    """
    mesh = env.mesh(16, "x")

    def layer(h, w):
        return jnp.tanh(h @ lax.all_gather(w, "x", axis=0, tiled=True)), None

    def loss(ws, x):
        return (lax.scan(jax.checkpoint(layer), x, ws)[0] ** 2).sum()

    def exact(ws, x):
        ws = ws.astype(np.float64)
        activations = [x.astype(np.float64)]
        for w in ws:
            activations.append(np.tanh(activations[-1] @ w))
        back, grads = 2 * activations[-1], []
        for w, before, after in zip(ws[::-1], activations[-2::-1], activations[:0:-1], strict=True):
            back = back * (1 - after**2)
            grads.append(before.T @ back)
            back = back @ w.T
        return np.stack(grads[::-1])

    fn = env.compat.shard_map(
        jax.grad(loss),
        mesh=mesh,
        in_specs=(P(None, "x"), P("x")),
        out_specs=P(None, "x"),
        check=False,
    )
    return Program(
        fn,
        args=(_weights(env, LAYERS, WIDTH, WIDTH, seed=4), _weights(env, BATCH, WIDTH, seed=5)),
        reference=exact,
    )


def _data_parallel(env, sum_up, out_specs):
    """Return the gradient of sixteen replicas of a layer, each with its part of the batch."""

    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).sum()

    def shard(w, x):
        return sum_up(jax.grad(loss)(env.compat.pvary(w, "x"), x))

    def exact(w, x):
        w, x = w.astype(np.float64), x.astype(np.float64)
        out = np.tanh(x @ w)
        return x.T @ (2 * out * (1 - out**2))

    fn = env.compat.shard_map(
        shard, mesh=env.mesh(16, "x"), in_specs=(P(), P("x")), out_specs=out_specs
    )
    return Program(
        fn,
        args=(_weights(env, WIDTH, WIDTH, seed=6), _weights(env, BATCH, WIDTH, seed=7)),
        reference=exact,
    )


COTANGENT_NOT_VARYING = deviation(
    "jax>=0.6.0,<0.6.1",
    error="ValueError",
    match="unexpected JAX type",
    reason="the cotangent of a sum of shards was not typed as varying",
)


@program(
    source="jax-ml/jax#6992",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[COTANGENT_NOT_VARYING],
)
def summed_gradient(env):
    """The gradient is summed over sixteen replicas, and each of them gets all of it."""
    return _data_parallel(env, lambda grad: lax.psum(grad, "x"), P())


@program(
    source="jax-ml/jax#6992",
    facts={"collectives": {"reduce-scatter": 1}},
    deviations=[COTANGENT_NOT_VARYING, TPU_USES_ALL_REDUCE],
)
def scattered_gradient(env):
    """Each of sixteen replicas gets a part of the summed gradient.

    That moves half of what an all-reduce moves.
    """
    return _data_parallel(
        env, lambda grad: lax.psum_scatter(grad, "x", scatter_dimension=0, tiled=True), P("x")
    )
