"""Loops that jax writes for you: `lax.map` in batches, and `associative_scan`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.equations import counts

from ._helpers import floats

NO_BATCH_SIZE_KEYWORD = deviation(
    "jax<0.4.31",
    error="TypeError",
    match="unexpected keyword argument 'batch_size'",
    reason="lax.map had no batch_size",
    issue="jax-ml/jax#19614",
)


@program(source="jax-ml/jax#19614", deviations=[NO_BATCH_SIZE_KEYWORD])
def map_in_batches(env):
    """`lax.map(..., batch_size=n)` is a scan over vmaps, in order, with a separate remainder."""

    def fn(x):
        sizes = {"even": 3, "rest": 4, "larger": 10}
        return {
            name: lax.map(lambda row: (row.sum(), 2 * row), x, batch_size=size)
            for name, size in sizes.items()
        }

    x = env.rng(1).normal(size=(6, 2)).astype(np.float32)
    want = (x.sum(1, dtype=np.float64), 2 * x.astype(np.float64))
    return Program(fn, args=(x,), reference=dict.fromkeys(("even", "rest", "larger"), want))


NO_BATCH_SIZE = deviation(
    "jax<0.4.31",
    error="TypeError",
    match="batch_size",
    reason="lax.map had no batch_size",
    issue="jax-ml/jax#19614",
)
EMPTY_REMAINDER_COMPUTED = deviation(
    ">=0.4.31,<0.6.2",
    params=["even"],
    outcome="ok",
    reason="an empty remainder was computed and concatenated",
    issue="jax-ml/jax#29195",
)
SCAN_OF_NO_ROUNDS = deviation(
    ">=0.4.31,<0.7",
    params=["larger"],
    outcome="ok",
    reason="a scan of no iterations preceded the remainder",
    issue="jax-ml/jax#29867",
)


@probe(
    source="jax-ml/jax#29195",
    params={"even": {"size": 3}, "rest": {"size": 4}, "larger": {"size": 10}},
    deviations=[NO_BATCH_SIZE, EMPTY_REMAINDER_COMPUTED, SCAN_OF_NO_ROUNDS],
)
def traces_of_the_function(env, size):
    """The mapped function is in the program once, and once more for a remainder.

    An empty remainder, or a scan of no iterations, was traced and compiled as well.
    """
    found = counts(
        lambda x: lax.map(jnp.sin, x, batch_size=size), (np.ones(6, np.float32),), "scan sin"
    )
    return Observed(found, {"scan": int(size < 10), "sin": 2 if size == 4 else 1})


ZERO_HAD_NO_MEANING = deviation(
    ">=0.4.31,<0.8.2",
    error="ZeroDivisionError",
    reason="a batch_size of 0 had no meaning",
    issue="jax-ml/jax#33965",
)


@program(
    source="jax-ml/jax#33965", platforms=("cpu",), deviations=[NO_BATCH_SIZE, ZERO_HAD_NO_MEANING]
)
def batch_size_of_zero(env):
    """`batch_size=0` maps all elements at once, as a plain vmap does."""
    fn = lambda x: lax.map(lambda v: v * v, x, batch_size=0)  # noqa: E731 - reads best in place
    return Program(fn, args=(floats(1, 2, 3),), reference=np.array([1.0, 4, 9]))


def compose(first, then):
    """Compose the map `x -> a x + b` of the first with that of the second; not commutative."""
    return then[0] * first[0], then[0] * first[1] + then[1]


@program(source="jax-ml/jax#29313")
def affine_maps(env):
    """In a reversed `associative_scan`, the later element is the first argument of the operator."""
    a, b = env.rng(5).normal(size=(2, 5, 2)).astype(np.float32)

    def fn(a, b):
        last_axis = lax.associative_scan(compose, (a.T, b.T), axis=-1)
        reverse = lax.associative_scan(compose, (a[:3], b[:3]), reverse=True)
        return {"last_axis": last_axis, "reverse": reverse}

    def python(a, b, order):
        state, out = (1.0, 0.0), np.zeros((2, len(order), 2))
        for i in order:
            state = (a[i] * state[0], a[i] * state[1] + np.float64(b[i]))
            out[:, i] = state
        return out

    def exact(a, b):
        maps, constants = python(a, b, range(5))
        return {
            "last_axis": (maps.T, constants.T),
            "reverse": tuple(python(a, b, range(3)[::-1])),
        }

    return Program(fn, args=(a, b), reference=exact)


@program(
    source="jax-ml/jax#4181",
    platforms=("cpu",),
    params={"sizes": {"case": "sizes"}, "function": {"case": "function"}},
)
def refused_by_associative_scan(env, case):
    """Leaves of different lengths, and an operator that is not callable, are refused as such."""
    match = {"sizes": "must have the same first dimension", "function": "should be callable"}[case]
    operator = None if case == "function" else (lambda a, _: a)
    return Program(
        lambda x, y: lax.associative_scan(operator, (x, y)),
        args=(floats(1, 2), floats(1, 2, 3)),
        reference=raises("ValueError|TypeError", match=match),
    )


@program(source="jax-ml/jax#29313")
def gradient_of_an_associative_scan(env):
    """The gradient of a weighted cumulative sum or maximum equals its explicit transpose."""
    weights = floats(1, 10, 100, 1000)

    def gradient(operator, x):
        return jax.grad(lambda x: weights @ lax.associative_scan(operator, x))(x)

    want = np.array([1111.0, 1110, 1100, 1000]), np.array([11.0, 0, 1100, 0])
    return Program(
        lambda x: (gradient(jnp.add, x), gradient(jnp.maximum, x)),
        args=(floats(3, 1, 4, 2),),
        reference=want,
    )


AXIS_NOT_NORMALISED = deviation(
    error="TypeError",
    match="rev dimensions must have every element be nonnegative",
    reason="the axis is used before it is counted from the front",
    issue="jax-ml/jax#4181",
)


@program(source="jax-ml/jax#4181", platforms=("cpu",), deviations=[AXIS_NOT_NORMALISED])
def reversed_along_the_last_axis(env):
    """`associative_scan(reverse=True, axis=-1)` is a TypeError; count the axis from the front."""

    def fn(x):
        return lax.associative_scan(jnp.add, x, reverse=True, axis=-1)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Program(fn, args=(x,), reference=np.array([[3.0, 3, 2], [12, 9, 5]]))
