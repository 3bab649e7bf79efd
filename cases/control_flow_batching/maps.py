"""`lax.map` in batches and `associative_scan`: the loops that jax writes for you."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import counts, floats


@program(
    source="jax-ml/jax#19614",
    params={"even": {"size": 3}, "rest": {"size": 4}, "larger": {"size": 10}},
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
def map_in_batches(env, size):
    """`lax.map(..., batch_size=n)`: a scan over vmaps, in order, with a rest of its own."""

    def fn(x):
        return lax.map(lambda row: {"sum": row.sum(), "twice": 2 * row}, x, batch_size=size)

    x = env.rng(1).normal(size=(6, 2)).astype(np.float32)
    return Program(fn, args=(x,), reference=lambda x: {"sum": x.sum(1), "twice": 2.0 * x})


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


@program(
    source="jax-ml/jax#29313",
    params={
        "forward": {"reverse": False, "axis": 0},
        "reverse": {"reverse": True, "axis": 0},
        "last_axis": {"reverse": False, "axis": -1},
    },
    same_as=("jit", "aot", "vmap_of_one"),
)
def affine_maps(env, reverse, axis):
    """`associative_scan` of affine maps: from the end, the later element is the first argument."""
    a = env.rng(5).normal(size=(7, 2)).astype(np.float32)
    b = env.rng(6).normal(size=(7, 2)).astype(np.float32)

    def fn(a, b):
        ab = (a.T, b.T) if axis == -1 else (a, b)
        return lax.associative_scan(compose, ab, reverse=reverse, axis=axis)

    def python(a, b):
        out, order = np.zeros((2, 7, 2)), range(7)[:: -1 if reverse else 1]
        state = (1.0, 0.0)
        for i in order:
            state = (a[i] * state[0], a[i] * state[1] + np.float64(b[i]))
            out[:, i] = state
        return tuple(v.T if axis == -1 else v for v in out)

    return Program(fn, args=(a, b), reference=python)


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


@program(source="jax-ml/jax#29313", params={"cumsum": {"name": "add"}, "cummax": {"name": "max"}})
def gradient_of_an_associative_scan(env, name):
    """The gradient of a weighted cumulative sum or maximum, by its transpose written out."""
    weights = floats(1, 10, 100, 1000)

    def fn(x):
        operator = jnp.add if name == "add" else jnp.maximum
        return weights @ lax.associative_scan(operator, x)

    want = [1111.0, 1110, 1100, 1000] if name == "add" else [11.0, 0, 1100, 0]
    return Program(jax.grad(fn), args=(floats(3, 1, 4, 2),), reference=np.array(want))
