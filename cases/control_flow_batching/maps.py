"""`lax.map` in batches and `associative_scan`: the loops that jax writes for you."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.equations import counts

from ._helpers import floats


@program(
    source="jax-ml/jax#19614",
    deviations=[
        deviation(
            "jax<0.4.31",
            error="TypeError",
            match="unexpected keyword argument 'batch_size'",
            reason="map had no batches",
            issue="jax-ml/jax#19614",
        )
    ],
)
def map_in_batches(env):
    """`lax.map(..., batch_size=n)`: a scan over vmaps, in order, with a rest of its own."""

    def fn(x):
        sizes = {"even": 3, "rest": 4, "larger": 10}
        return {
            name: lax.map(lambda row: (row.sum(), 2 * row), x, batch_size=size)
            for name, size in sizes.items()
        }

    x = env.rng(1).normal(size=(6, 2)).astype(np.float32)
    want = (x.sum(1, dtype=np.float64), 2 * x.astype(np.float64))
    return Program(fn, args=(x,), reference=dict.fromkeys(("even", "rest", "larger"), want))


@probe(
    source="jax-ml/jax#29195",
    params={"even": {"size": 3}, "rest": {"size": 4}, "larger": {"size": 10}},
    deviations=[
        deviation(
            "jax<0.4.31",
            error="TypeError",
            match="batch_size",
            reason="map had no batches",
            issue="jax-ml/jax#19614",
        ),
        deviation(
            ">=0.4.31,<0.6.2",
            params=["even"],
            outcome="ok",
            reason="an empty rest was computed and joined on",
            issue="jax-ml/jax#29195",
        ),
        deviation(
            ">=0.4.31,<0.7",
            params=["larger"],
            outcome="ok",
            reason="a scan of no rounds was made before the rest",
            issue="jax-ml/jax#29867",
        ),
    ],
)
def traces_of_the_function(env, size):
    """How often the mapped function is in the program: once, and once more for a rest.

    An empty rest, or a scan of no rounds, was traced and compiled as well.
    """
    found = counts(
        lambda x: lax.map(jnp.sin, x, batch_size=size), (np.ones(6, np.float32),), "scan sin"
    )
    return Observed(found, {"scan": int(size < 10), "sin": 2 if size == 4 else 1})


@program(
    source="jax-ml/jax#33965",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.31",
            error="TypeError",
            match="batch_size",
            reason="map had no batches",
            issue="jax-ml/jax#19614",
        ),
        deviation(
            ">=0.4.31,<0.8.2",
            error="ZeroDivisionError",
            reason="0 had no meaning",
            issue="jax-ml/jax#33965",
        ),
    ],
)
def batch_size_of_zero(env):
    """`batch_size=0` means all at once: a plain vmap."""
    fn = lambda x: lax.map(lambda v: v * v, x, batch_size=0)  # noqa: E731 - reads best in place
    return Program(fn, args=(floats(1, 2, 3),), reference=np.array([1.0, 4, 9]))


def compose(first, then):
    """Compose `x -> a x + b` of the first with that of the second; does not commute."""
    return then[0] * first[0], then[0] * first[1] + then[1]


@program(source="jax-ml/jax#29313")
def affine_maps(env):
    """`associative_scan` of affine maps: from the end, the later element is the first argument."""
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
    """Leaves of different length, and an operator that is none, are told as what they are."""
    match = {"sizes": "must have the same first dimension", "function": "should be callable"}[case]
    operator = None if case == "function" else (lambda a, _: a)
    return Program(
        lambda x, y: lax.associative_scan(operator, (x, y)),
        args=(floats(1, 2), floats(1, 2, 3)),
        reference=raises("ValueError|TypeError", match=match),
    )


@program(source="jax-ml/jax#29313")
def gradient_of_an_associative_scan(env):
    """The gradient of a weighted cumulative sum or maximum, by its transpose written out."""
    weights = floats(1, 10, 100, 1000)

    def gradient(operator, x):
        return jax.grad(lambda x: weights @ lax.associative_scan(operator, x))(x)

    want = np.array([1111.0, 1110, 1100, 1000]), np.array([11.0, 0, 1100, 0])
    return Program(
        lambda x: (gradient(jnp.add, x), gradient(jnp.maximum, x)),
        args=(floats(3, 1, 4, 2),),
        reference=want,
    )


@program(
    source="jax-ml/jax#4181",
    platforms=("cpu",),
    deviations=[
        deviation(
            error="TypeError",
            match="rev dimensions must have every element be nonnegative",
            reason="the axis is used before it is counted from the front",
            issue="jax-ml/jax#4181",
        )
    ],
)
def reversed_along_the_last_axis(env):
    """`associative_scan(reverse=True, axis=-1)` is a TypeError; count the axis from the front."""

    def fn(x):
        return lax.associative_scan(jnp.add, x, reverse=True, axis=-1)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Program(fn, args=(x,), reference=np.array([[3.0, 3, 2], [12, 9, 5]]))
