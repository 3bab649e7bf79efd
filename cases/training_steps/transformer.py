"""Four steps of a transformer of two layers: the loss curve is that of NumPy float64.

The model is written once, for `jax.numpy` and for the tape of NumPy. The layouts are those that
training uses; each has the same losses, because none changes the mathematics.
"""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

from . import _tape as tape
from ._helpers import draw

defaults(
    platforms=("cpu",),
    devices=4,
    rtol=2e-4,
    atol=1e-5,
    xla_flags=["--xla_backend_optimization_level=0"],
)

BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS = 8, 6, 12, 16, 4, 2
STEPS, RATE, DECAY = 4, 0.25, 0.5
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))
JAX = SimpleNamespace(
    einsum=jnp.einsum,
    tanh=jnp.tanh,
    where=jnp.where,
    softmax=jax.nn.softmax,
    log_softmax=jax.nn.log_softmax,
)
SHAPES = {
    "query": (LAYERS, WIDTH, HEADS, WIDTH // HEADS),
    "key": (LAYERS, WIDTH, HEADS, WIDTH // HEADS),
    "value": (LAYERS, WIDTH, HEADS, WIDTH // HEADS),
    "out": (LAYERS, HEADS, WIDTH // HEADS, WIDTH),
    "up": (LAYERS, WIDTH, 2 * WIDTH),
    "down": (LAYERS, 2 * WIDTH, WIDTH),
    "embedding": (VOCABULARY, WIDTH),
}


def _normalize(x):
    return x / ((x**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5


def _block(n, h, w):
    """Return the activations after one layer: attention, then a perceptron."""
    x = _normalize(h)
    q, k, v = (n.einsum("btd,dnk->btnk", x, w[key]) for key in ("query", "key", "value"))
    logits = n.where(CAUSAL, n.einsum("btnk,bsnk->bnts", q, k) * 0.5, -1e9)
    mixed = n.einsum("bnts,bsnk->btnk", n.softmax(logits), v)
    h = h + n.einsum("btnk,nkd->btd", mixed, w["out"])
    up = n.tanh(n.einsum("btd,df->btf", _normalize(h), w["up"]))
    return h + n.einsum("btf,fd->btd", up, w["down"])


def _split(w):
    """Return the weights of the layers, and the embedding."""
    return {key: value for key, value in w.items() if key != "embedding"}, w["embedding"]


def _loss(n, run_layers, w, tokens):
    """Return the cross entropy of the next token."""
    layers, embedding = _split(w)
    h = run_layers(layers, embedding[tokens[:, :-1]])
    scores = n.log_softmax(n.einsum("btd,vd->btv", _normalize(h), embedding))
    rows, columns = np.indices((tokens.shape[0], LENGTH))
    return -scores[rows, columns, tokens[:, 1:]].mean()


def _data(env):
    """Return weights, and tokens of which each is its predecessor plus one or two."""
    scales = {"embedding": 1.0}
    w = {
        key: draw(env, *shape, seed=i, scale=scales.get(key, 0.25))
        for i, (key, shape) in enumerate(SHAPES.items())
    }
    jumps = env.rng(9).integers(1, 3, (BATCH, LENGTH + 1))
    return w, np.cumsum(jumps, axis=1).astype(np.int32) % VOCABULARY


def _exact(w, tokens):
    """Return five losses in NumPy float64: before each step, and after the last."""
    keys, losses = list(w), []
    w, momentum = {k: v.astype(np.float64) for k, v in w.items()}, dict.fromkeys(w, 0.0)

    def loss(*values):
        def run_layers(layers, h):
            for i in range(LAYERS):
                h = _block(tape, h, {key: value[i] for key, value in layers.items()})
            return h

        return _loss(tape, run_layers, dict(zip(keys, values, strict=True)), tokens)

    for _ in range(STEPS + 1):
        value, grads = tape.vjp(loss, *w.values())
        losses.append(value)
        momentum = {k: DECAY * momentum[k] + g for k, g in zip(keys, grads, strict=True)}
        w = {k: v - RATE * momentum[k] for k, v in w.items()}
    return np.array(losses)


def _train(block=_block, accumulate=1):
    """Return a jitted function that trains for four steps and returns five losses."""

    def run_layers(layers, h):
        return lax.scan(lambda h, w: (block(JAX, h, w), None), h, layers)[0]

    def gradient(w, tokens):
        loss = lambda w, part: _loss(JAX, run_layers, w, part)  # noqa: E731 - short
        if accumulate == 1:
            return jax.value_and_grad(loss)(w, tokens)
        parts = tokens.reshape(accumulate, -1, LENGTH + 1)

        def add(total, part):
            return jax.tree_util.tree_map(jnp.add, total, jax.value_and_grad(loss)(w, part)), None

        start = jnp.zeros(()), jax.tree_util.tree_map(jnp.zeros_like, w)
        total = lax.scan(add, start, parts)[0]
        return jax.tree_util.tree_map(lambda a: a / accumulate, total)

    def step(carry, _):
        w, momentum, tokens = carry
        loss, grads = gradient(w, tokens)
        momentum = jax.tree_util.tree_map(lambda m, g: DECAY * m + g, momentum, grads)
        w = jax.tree_util.tree_map(lambda w, m: w - RATE * m, w, momentum)
        return (w, momentum, tokens), loss

    def train(w, tokens):
        start = w, jax.tree_util.tree_map(jnp.zeros_like, w), tokens
        return lax.scan(step, start, None, length=STEPS + 1)[1]

    return jax.jit(train)


ROWS = {key: P(None, "x") for key in SHAPES} | {"embedding": P("x")}
HEADS_SPLIT = {
    "query": P(None, None, "y"),
    "key": P(None, None, "y"),
    "value": P(None, None, "y"),
    "out": P(None, "y"),
    "up": P(None, None, "y"),
    "down": P(None, "y"),
    "embedding": P("y"),
}
# For each layout, the specs of weights and of tokens.
LAYOUTS = {
    "one_device": (None, None),
    "fully_sharded": (ROWS, P("x")),
    "data_and_tensor_parallel": (HEADS_SPLIT, P("x")),
    "vocabulary_sharded": ({"embedding": P("x")}, P("x")),
}


def _observe(env, layout, **options):
    """Return the losses of a layout, and those of NumPy."""
    w, tokens = _data(env)
    weights, batch = LAYOUTS[layout]
    placed, ids = w, tokens
    if batch is not None:
        mesh = env.mesh((2, 2), ("x", "y"))
        place = lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec))  # noqa: E731 - short
        placed = {key: place(value, weights.get(key, P())) for key, value in w.items()}
        ids = place(tokens, batch)
    return Observed(_train(**options)(placed, ids), _exact(w, tokens))


@probe(
    source="jax-ml/jax#24114",
    params=["one_device", "fully_sharded", "data_and_tensor_parallel"],
)
def loss_curve(env, name):
    """Four steps of momentum have the losses of NumPy, in each layout of weights and batch."""
    return _observe(env, name)


@probe(source="openxla/xla#49143")
def loss_curve_with_accumulation(env):
    """Gradients accumulated over four parts of the batch give the losses of the whole batch."""
    return _observe(env, "vocabulary_sharded", accumulate=4)


@probe(source="jax-ml/jax#23831")
def loss_curve_with_remat(env):
    """Layers recomputed in the backward pass, except their products, give the same losses."""
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

    def block(n, h, w):
        return jax.checkpoint(lambda h, w: _block(n, h, w), policy=policy)(h, w)

    return _observe(env, "data_and_tensor_parallel", block=block)
