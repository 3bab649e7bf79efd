"""Activation functions of `jax.nn` and their derivatives against their formulas in NumPy."""

from __future__ import annotations

import jax
import numpy as np
import scipy.special

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import compare_function, compare_values

defaults(source="jax-ml/jax@bf28c44ada17", rtol=1e-4, atol=1e-5)

POINTS = np.array([-6.5, -2.5, -0.75, 0.25, 1.5, 7.25])


def sigmoid(x):
    """Return the logistic function."""
    return scipy.special.expit(x)


def softplus(x):
    """Return the logarithm of 1 + exp(x)."""
    return np.logaddexp(x, 0)


FORMULAS = {
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_sigmoid": lambda x: -softplus(-x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_sign": lambda x: x / (1 + abs(x)),
    "softplus": softplus,
    "sparse_plus": lambda x: np.where(x >= 1, x, np.clip(x + 1, 0, 2) ** 2 / 4),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "tanh": np.tanh,
}


@probe(params=[*FORMULAS])
def activation(env, name):
    """An activation and its derivative."""
    return compare_function(getattr(jax.nn, name), FORMULAS[name], POINTS)


OF_ROWS = {
    "softmax": lambda x: scipy.special.softmax(x, axis=-1),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=-1),
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=-1),
    "standardize": lambda x: (
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    ),
    "glu": lambda x: x[..., :3] * sigmoid(x[..., 3:]),
}


@probe(params=[*OF_ROWS])
def function_of_rows(env, name):
    """A function along the last axis of a matrix, with infinities in another row."""
    fn = getattr(jax.nn, name)
    given = {"axis": -1}
    rows = np.stack([POINTS, POINTS[::-1] / 2])
    return compare_values(lambda x: fn(x, **given), OF_ROWS[name], rows)


@probe()
def exact_gelu(env):
    """The activation `gelu(approximate=False)` with the error function."""
    return compare_function(
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: x * scipy.special.ndtr(x),
        POINTS,
    )


@probe()
def masked_softmax(env):
    """The softmax where a mask holds; a row without a true entry."""
    mask = np.array([[True, False, True, True, False, True], [False] * 6])
    rows = np.stack([POINTS, POINTS[::-1] / 2]).astype(np.float32)
    value = jax.jit(lambda x: jax.nn.softmax(x, where=mask))(rows)
    exact = np.where(mask, np.exp(rows.astype(np.float64)), 0)
    exact /= np.maximum(exact.sum(1, keepdims=True), 1e-300)
    return Observed(np.nan_to_num(np.asarray(value), nan=-777), exact)


@probe()
def one_hot(env):
    """One-hot rows along either axis; an index out of bounds has a row of zeros."""
    labels = np.array([0, 2, 5, -1], np.int32)
    expected = (labels[:, None] == np.arange(4)).astype(np.float32)
    value = jax.jit(lambda: (jax.nn.one_hot(labels, 4), jax.nn.one_hot(labels, 4, axis=0)))()
    return Observed(value, (expected, expected.T))


INDETERMINATE_FORM = deviation(
    outcome="ok",
    reason="the formula is infinity times 0, infinity by infinity or infinity less infinity",
)
LIMITS = {
    "gelu": (-np.inf, 0),
    "silu": (-np.inf, 0),
    "mish": (-np.inf, 0),
    "hard_silu": (-np.inf, 0),
    "squareplus": (-np.inf, 0),
    "soft_sign": (np.inf, 1),
}


@probe(params=[*LIMITS], deviations=[INDETERMINATE_FORM])
def activation_at_infinity(env, name):
    """Some activations are NaN where x is infinite and their limit is finite, such as `silu(-inf)`.

    A masked score of -inf is NaN after these, and 0 after `relu`, `elu` or `sigmoid`.
    """
    x, limit = LIMITS[name]
    result = jax.jit(getattr(jax.nn, name))(np.array([x], np.float32))
    return Observed(np.nan_to_num(np.asarray(result), nan=-777), reference=np.array([float(limit)]))


CUBE_OVERFLOWS = deviation(
    outcome="ok",
    reason="the cube in its tanh is infinite, and so is the derivative of that, times a slope of 0",
)


@probe(deviations=[CUBE_OVERFLOWS])
def slope_of_gelu_far_out(env):
    """The derivative of `gelu` of a large number is 1; it is silently NaN from 1e20 on."""
    slopes = jax.jit(jax.vmap(jax.grad(jax.nn.gelu)))(np.array([10, 1e10, 1e20], np.float32))
    return Observed(np.nan_to_num(np.asarray(slopes), nan=-777), reference=np.ones(3))


ZERO_KEPT_ITS_SIGN = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the maximum of -0.0 and 0.0 was -0.0",
)


@probe(platforms=("cpu",), deviations=[ZERO_KEPT_ITS_SIGN])
def relu_of_negative_zero(env):
    """`relu(-0.0)` is 0.0 from 0.4.33 on, so 1 divided by it is positive; before, it was -0.0."""
    return Observed(1 / jax.jit(jax.nn.relu)(np.array([-0.0], np.float32)), np.array([np.inf]))


FUNCTION_COMPARED = deviation(
    "jax>=0.5.0,<0.8.0",
    outcome="ok",
    reason="by a slip, a function was compared with the index, and not x",
    issue="jax-ml/jax@8c3c441ee44e",
)


@probe(source="jax-ml/jax@41bb2d7ebb18", platforms=("cpu",), deviations=[FUNCTION_COMPARED])
def one_hot_over_a_mapped_axis(env):
    """`one_hot(x, 3, axis="i")`, along a named axis, was silently all 0 from 0.5.0 to 0.7.2."""
    x = np.array([0, 2, 1])
    encode = jax.vmap(
        lambda x: jax.nn.one_hot(x, 3, axis="i"), in_axes=None, axis_name="i", axis_size=3
    )
    return Observed(encode(x), reference=np.eye(3)[x].T)
