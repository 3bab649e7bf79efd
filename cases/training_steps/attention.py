"""`jax.nn.dot_product_attention` with its masks, and the gradients that training needs.

Queries are (batch, length, heads, width). The reference is attention in NumPy float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from . import _tape as tape
from ._helpers import attend, draw, make_mask, pull

defaults(platforms=("cpu",))

T, S, HEADS, WIDTH = 4, 6, 2, 4
LENGTHS = np.array([3, 5], np.int32)


def _see_lengths(queries=None, keys=None):
    """Return a mask of (batch, 1, T, S) that hides what follows the given lengths."""
    q = np.arange(T)[:, None] < (np.full(2, T) if queries is None else queries)[:, None, None]
    k = np.arange(S) < (np.full(2, S) if keys is None else keys)[:, None, None]
    return (q & k)[:, None]


MASK = np.array([[1, 0, 1, 1, 0, 1]] * 2 + [[0, 1, 0, 0, 1, 1]] * 2, bool)
ROW_HIDDEN = MASK & (np.arange(T) != 1)[:, None]
BIAS = np.linspace(-1, 1, HEADS * T * S).reshape(1, HEADS, T, S).astype(np.float32)

# For each name, keywords of dot_product_attention and of the reference.
MASKS = {
    "causal": ({"is_causal": True}, {"mask": make_mask(T, S, causal=True)}),
    "boolean": ({"mask": MASK[None, None]}, {"mask": MASK}),
    "bias_and_causal": (
        {"bias": BIAS, "is_causal": True, "scale": 2.0},
        {"bias": BIAS, "mask": make_mask(T, S, causal=True), "scale": 2.0},
    ),
    "row_without_keys": ({"mask": ROW_HIDDEN[None, None]}, {"mask": ROW_HIDDEN}),
}
WINDOWS = {
    "alone": ({"local_window_size": (1, 0)}, {"mask": make_mask(T, S, window=(1, 0))}),
    "with_causal": (
        {"local_window_size": 1, "is_causal": True},
        {"mask": make_mask(T, S, causal=True, window=(1, 1))},
    ),
    "with_bias": (
        {"local_window_size": 2, "bias": BIAS},
        {"mask": make_mask(T, S, window=(2, 2)), "bias": BIAS},
    ),
}
DTYPES = {"bfloat16": jnp.bfloat16, "float16": jnp.float16}


def _inputs(env, heads=HEADS):
    """Return queries, keys, values and a cotangent of the result."""
    q, cotangent = (draw(env, 2, T, HEADS, WIDTH, seed=seed) for seed in (1, 4))
    return (q, *(draw(env, 2, S, heads, WIDTH, seed=seed) for seed in (2, 3))), cotangent


def _observe(env, options, exact, heads=HEADS, dtype=np.float32):
    """Return the value and the three gradients of attention, and the exact ones."""
    inputs, cotangent = _inputs(env, heads)
    fn = lambda *a: jax.nn.dot_product_attention(*a, **options)  # noqa: E731 - short
    out, grads = pull(fn, *(a.astype(dtype) for a in inputs), cotangent=cotangent)
    expected, slopes = tape.vjp(lambda *a: attend(*a, **exact), *inputs, cotangent=cotangent)
    return Observed((out, *grads), (expected, *slopes))


@probe(source="jax-ml/jax#21371", params=[*MASKS], releases="jax>=0.4.31")
def masked(env, name):
    """Attention and its gradients are right under a mask, a bias and a scale."""
    return _observe(env, *MASKS[name])


@probe(source="jax-ml/jax#22477", releases="jax>=0.4.33")
def grouped_queries(env):
    """Two heads of queries share one head of keys."""
    return _observe(env, *MASKS["causal"], heads=1)


@probe(source="jax-ml/jax#23349", releases="jax>=0.4.33")
def key_lengths(env):
    """Keys beyond the length of their sequence are not seen, if no query length is given either."""
    mask = _see_lengths(keys=LENGTHS) & make_mask(T, S, causal=True)
    return _observe(env, {"key_value_seq_lengths": LENGTHS, "is_causal": True}, {"mask": mask})


WINDOW_NEEDS_MASK = deviation(
    "jax<0.8.2",
    params=["alone", "with_bias"],
    outcome="ok",
    reason="without a mask, causal order or lengths, the window was ignored",
    issue="jax-ml/jax#32300",
)


@probe(
    source="jax-ml/jax#32300",
    params=[*WINDOWS],
    releases="jax>=0.4.34",
    deviations=[WINDOW_NEEDS_MASK],
)
def local_window(env, name):
    """A local window limits what a query sees, also without a mask."""
    return _observe(env, *WINDOWS[name])


PADDING_LEFT = deviation(
    "jax<0.7.2",
    params=["alone"],
    outcome="ok",
    reason="results for padding were cleared only if the lengths of keys were given, too",
    issue="jax-ml/jax@494f9c129539",
)


@probe(
    source="jax-ml/jax@494f9c129539",
    params=["alone", "with_key_lengths"],
    releases="jax>=0.4.33",
    deviations=[PADDING_LEFT],
)
def query_lengths(env, name):
    """Results for queries beyond the length of their sequence are zero."""
    keys = LENGTHS if name == "with_key_lengths" else None
    options = {"query_seq_lengths": LENGTHS - 1, "key_value_seq_lengths": keys}
    inputs, cotangent = _inputs(env)
    fn = lambda *a: jax.nn.dot_product_attention(*a, **options)  # noqa: E731 - short
    out, grads = pull(fn, *inputs, cotangent=cotangent)
    kept = (np.arange(T) < (LENGTHS - 1)[:, None])[:, :, None, None]
    exact = lambda *a: attend(*a, mask=_see_lengths(keys=keys)) * kept  # noqa: E731 - short
    expected, slopes = tape.vjp(exact, *inputs, cotangent=cotangent)
    return Observed((out, *grads), (expected, *slopes))


NO_FLOAT16_ON_CPU = deviation(
    "jax>=0.5.1",
    params=["float16"],
    error="ValueError",
    match="'F16_F16_F32' is not supported by dot_general on CPU",
    reason="attention asks for a dot algorithm that a CPU does not have",
    issue="jax-ml/jax#24047",
)


@probe(
    source="jax-ml/jax#24047",
    params=[*DTYPES],
    releases="jax>=0.4.31",
    deviations=[NO_FLOAT16_ON_CPU],
)
def half_precision(env, name):
    """The result and gradients of 16-bit attention have its dtype, and are computed wider."""
    return _observe(env, *MASKS["causal"], dtype=DTYPES[name])


LOGITS_ROUNDED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="logits were rounded to bfloat16",
)
SMALL_DOT_NOT_EMITTED = deviation(
    "jax>=0.5.1,<0.10.2",
    error="XlaRuntimeError|JaxRuntimeError",
    match="ALG_DOT_BF16_BF16_F32",
    reason="XLA had no emitter on CPU for a small dot with the algorithm that attention asks for",
    issue="jax-ml/jax#24047",
)


@probe(
    source="jax-ml/jax#24047",
    releases="jax>=0.4.31",
    deviations=[LOGITS_ROUNDED, SMALL_DOT_NOT_EMITTED],
)
def bfloat16_logits(env):
    """Logits of bfloat16 attention are not rounded to bfloat16, where 256 and 257 are equal."""
    q, k = np.ones((1, 1, 1, WIDTH)), np.array([[256.0, 0, 0, 0], [256, 1, 0, 0]])[None, :, None]
    v = np.array([0.0, 1.0])[None, :, None, None] * np.ones(WIDTH)
    fn = jax.jit(lambda *a: jax.nn.dot_product_attention(*a, scale=1.0))
    exact = tape.vjp(lambda *a: attend(*a, scale=1.0), q, k, v)[0]
    return Observed(fn(*(a.astype(jnp.bfloat16) for a in (q, k, v))), exact)


WEIGHTS_ARE_ROUNDED = deviation(
    outcome="ok",
    reason="the weights are converted to the dtype of the values, and so to 0",
)


@probe(source="jax-ml/jax@df6080f3460c", releases="jax>=0.4.31", deviations=[WEIGHTS_ARE_ROUNDED])
def attention_of_integers(env):
    """Attention to integers is silently 0 for more than one key; the mean of equal keys is right.

    `jax.nn.softmax` of integers is float32.
    """
    q, k = np.ones((1, 1, 1, WIDTH), np.int32), np.ones((1, 2, 1, WIDTH), np.int32)
    v = np.array([10, 20], np.int32)[None, :, None, None] * np.ones(WIDTH, np.int32)
    result = jax.jit(jax.nn.dot_product_attention)(q, k, v)
    return Observed(np.asarray(result, np.float32), np.full((1, 1, 1, WIDTH), 15.0))
