"""Layouts of a training step over devices: which collectives each one needs, and right gradients.

`jit` gets shardings alone and decides itself, or shard_map states the collectives. Cells of
`tpu:v5e:4x4` and `cuda:h100:1x1x4` compile the same programs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

from . import _tape as tape
from ._helpers import draw

defaults(devices=4, xla_flags=["--xla_backend_optimization_level=0"])

SUMMED_SEPARATELY = deviation(
    "jax<0.7.2",
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="the loss and the gradients of the two weights were summed separately",
    issue="jax-ml/jax#2337",
)
CUDA_COMBINES = deviation(
    platform="cuda",
    outcome="ok",
    match="collectives",
    reason="XLA for GPUs combines gathers, and scatters sums that are sharded",
)
V5E_GATHERS_ACTIVATIONS = deviation(
    platform="tpu:v5e",
    outcome="ok",
    match="collectives",
    reason="XLA for TPUs splits matrix products in other ways",
)
TPU_GATHERS_ACTIVATIONS = deviation(
    platform="tpu",
    outcome="ok",
    match="collectives",
    reason="XLA for TPUs splits matrix products in other ways",
)

BATCH, WIDTH, HIDDEN, RATE = 128, 32, 64, 0.125


def _loss(n, up, down, x):
    """Return the mean squared error of a perceptron that should return its input."""
    return ((n.tanh(x @ up) @ down - x) ** 2).mean()


def _exact_step(up, down, x):
    """Return the weights after one step, and the loss before, in NumPy float64."""
    loss, (d_up, d_down, _) = tape.vjp(lambda *a: _loss(tape, *a), up, down, x)
    return up - RATE * d_up, down - RATE * d_down, loss


def _step(up, down, x):
    """Return the weights after one step, and the loss before."""
    loss, grads = jax.value_and_grad(lambda *w: _loss(jnp, *w, x), (0, 1))(up, down)
    return up - RATE * grads[0], down - RATE * grads[1], loss


def _arrays(env):
    """Return the weights of a perceptron and a batch."""
    up, down = draw(env, WIDTH, HIDDEN, scale=0.25), draw(env, HIDDEN, WIDTH, scale=0.25, seed=1)
    return up, down, draw(env, BATCH, WIDTH, seed=2)


def _layout(env, shape, names, *specs, step=_step):
    """Return a donating step whose weights and batch have the given shardings on a mesh."""
    mesh = env.mesh(shape, names)
    places = [NamedSharding(mesh, spec) for spec in specs]
    args = [env.put(a, place) for a, place in zip(_arrays(env), places, strict=True)]
    shardings = (places[0], places[1], NamedSharding(mesh, P()))
    jit = {"donate_argnums": (0, 1), "out_shardings": shardings}
    return Program(step, args=args, jit=jit, reference=_exact_step)


@program(
    source="jax-ml/jax#7351",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[SUMMED_SEPARATELY],
)
def data_parallel(env):
    """With a sharded batch and replicated weights, one all-reduce sums loss and gradients."""
    return _layout(env, 4, "x", P(), P(), P("x"))


@program(
    source="jax-ml/jax#25010",
    facts={"collectives": {"all-gather": 2, "all-reduce": 1}},
    deviations=[SUMMED_SEPARATELY, CUDA_COMBINES, V5E_GATHERS_ACTIVATIONS],
)
def fully_sharded(env):
    """With weights sharded as the batch is, both are gathered and their gradients scattered."""
    return _layout(env, 4, "x", P("x"), P("x"), P("x"))


@program(source="jax-ml/jax#7351", facts={"collectives": {"all-reduce": 1}})
def tensor_parallel(env):
    """Columns of the first weight and rows of the second: one all-reduce, of the result."""
    return _layout(env, 4, "x", P(None, "x"), P("x"), P())


@program(
    source="jax-ml/jax#7351",
    facts={"collectives": {"all-reduce": 2}},
    deviations=[SUMMED_SEPARATELY],
)
def data_and_tensor_parallel(env):
    """On a 2 by 2 mesh, one axis sums activations, the other gradients."""
    return _layout(env, (2, 2), ("x", "y"), P(None, "y"), P("y"), P("x"))


@program(
    source="jax-ml/jax#25010",
    facts={"collectives": {"all-gather": 2, "all-reduce": 2}},
    deviations=[SUMMED_SEPARATELY, CUDA_COMBINES, TPU_GATHERS_ACTIVATIONS],
)
def fully_sharded_and_tensor_parallel(env):
    """Weights are sharded over both axes of a 2 by 2 mesh, and gathered over that of the batch."""
    return _layout(env, (2, 2), ("x", "y"), P("x", "y"), P("y", "x"), P("x"))


def _step_with_state(up, down, x, momentum):
    """Return weights, the momentum of the first and the loss; only the first has momentum."""
    loss, grads = jax.value_and_grad(lambda *w: _loss(jnp, *w, x), (0, 1))(up, down)
    momentum = 0.5 * momentum + grads[0]
    return up - RATE * momentum, down - RATE * grads[1], momentum, loss


@program(
    source="google-deepmind/optax#1714",
    facts={"collectives": {"all-gather": 1, "all-reduce": 1}},
    deviations=[SUMMED_SEPARATELY, CUDA_COMBINES],
)
def sharded_optimizer_state(env):
    """With the optimiser's state alone sharded, the updated weights are gathered."""
    mesh = env.mesh(4, "x")
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    up, down, x = _arrays(env)
    momentum = draw(env, WIDTH, HIDDEN, seed=5)

    def exact(up, down, x, momentum):
        loss, (d_up, d_down, _) = tape.vjp(lambda *a: _loss(tape, *a), up, down, x)
        momentum = 0.5 * momentum + d_up
        return up - RATE * momentum, down - RATE * d_down, momentum, loss

    places = (whole, whole, rows, rows)
    args = [env.put(a, p) for a, p in zip((up, down, x, momentum), places, strict=True)]
    jit = {"donate_argnums": (0, 1, 3), "out_shardings": (whole, whole, rows, whole)}
    return Program(_step_with_state, args=args, jit=jit, reference=exact)


def _accumulate(table, ids, weigh):
    """Return the gradient of a table of embeddings, accumulated over parts of the batch."""
    gradient = jax.grad(lambda t, ids, w: (t[ids] * w).sum())
    add = lambda total, part: (total + gradient(table, *part), None)  # noqa: E731 - short
    return lax.scan(add, jnp.zeros_like(table), (ids, weigh))[0]


TABLE_GATHERED_ONCE = deviation(
    "jax<0.4.36",
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="the sum was kept sharded, and gathered after the loop",
)


@program(
    source="openxla/xla#49143",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[TABLE_GATHERED_ONCE, CUDA_COMBINES, TPU_GATHERS_ACTIVATIONS],
)
def embedding_gradient_accumulation(env):
    """The gradient of a sharded table of embeddings, accumulated over two parts of a batch."""
    mesh = env.mesh(4, "x")
    ids = env.rng(1).integers(0, 96, (2, 16, 8)).astype(np.int32)
    arrays = draw(env, 96, 32), ids, draw(env, 2, 16, 8, 32, seed=2)
    specs = (P("x"), P(None, "x"), P(None, "x"))
    places = [NamedSharding(mesh, spec) for spec in specs]

    def exact(table, ids, weigh):
        total = np.zeros(table.shape)
        np.add.at(total, ids, weigh)
        return total

    args = [env.put(a, place) for a, place in zip(arrays, places, strict=True)]
    return Program(_accumulate, args=args, jit={"out_shardings": places[0]}, reference=exact)
