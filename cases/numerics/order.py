"""In which order numbers are added and divided, and how often that is rounded.

The sum of floating-point numbers depends on the order, and XLA chooses it: it changed at 0.4.33,
0.5.1 and 0.10.2 on CPU without a word in the changelog. A sum should be known to some
digits, not to all; a test that compares all of them fails at an upgrade.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import f32, numbered


@program(source="jax-ml/jax#585", platforms=("cpu",), rtol=3e-6)
def long_sum(env):
    """A sum of 4,096: up to 0.10.1 a tree of reduce-windows, one reduce from 0.10.2."""
    x = env.rng(1).uniform(1, 2, size=4096).astype(np.float32)
    return Program(jnp.sum, args=(x,), reference=lambda x: x.sum(dtype=np.float64))


@program(source="jax-ml/jax#585", platforms=("cpu",), rtol=3e-6)
def long_cumsum(env):
    """A cumulative sum of 1,024 positive numbers: within 3e-6, in whatever order."""
    x = env.rng(2).uniform(1, 2, size=1024).astype(np.float32)
    return Program(jnp.cumsum, args=(x,), reference=lambda x: x.cumsum(dtype=np.float64))


@probe(source="jax-ml/jax#18183", records="no order of a sum is promised", platforms=("cpu",))
def what_cancellation_leaves(env):
    """1e8, 63 ones and -1e8 add up to 63: how many of the ones are left tells the order.

    One after the other none is left, as each is lost against 1e8.
    """

    @jax.jit
    def added(x, ones):
        return {"sum": jnp.sum(x), "last of cumsum": jnp.cumsum(x)[-1], "matmul": x @ ones}

    return added(np.array([1e8] + [1.0] * 63 + [-1e8], np.float32), np.ones(65, np.float32))


@probe(source="jax-ml/jax@b5e7b60d6a23", platforms=("cpu",), rtol=0)
def narrow_sums(env):
    """Sums of bfloat16 and float16 are kept in float32 and rounded once, at the end."""

    @jax.jit
    def sums(brain, half, twos):
        return {
            "bfloat16": jnp.sum(brain),
            "float16": jnp.sum(half[:4096]),
            "mean": jnp.mean(twos),
            "beyond": jnp.sum(half),
            "dot": jnp.dot(brain, brain),
        }

    wanted = {"bfloat16": 1000.0, "float16": 4096.0, "mean": 2.0, "beyond": np.inf, "dot": 1000.0}
    made = sums(
        np.ones(1000, jnp.bfloat16), np.ones(70000, "float16"), np.full(70000, 2, "float16")
    )
    return Observed(made, reference={name: np.float64(value) for name, value in wanted.items()})


@program(
    source="jax-ml/jax#25601",
    platforms=("cpu",),
    facts={
        "filecheck": {
            "hlo": """
CHECK: multiply
CHECK-NOT: divide
"""
        }
    },
    rtol=3e-7,
)
def division_by_a_constant(env):
    """Division by a constant becomes a multiplication by its reciprocal: 1 ulp off at times."""
    return Program(
        lambda x: x / 255,
        args=(np.arange(256, dtype=np.float32),),
        reference=lambda x: x.astype(np.float64) / 255,
    )


@probe(
    source="jax-ml/jax#25601",
    platforms=("cpu",),
    rtol=0,
    deviations=[
        deviation(
            "jax>=0.10.1",
            outcome="ok",
            reason="the reciprocal of the divisor is taken once, and multiplied by",
            issue="jax-ml/jax#25601",
        )
    ],
)
def division_by_an_argument(env):
    """Division of an array by an argument: exact, until that became a multiplication as well."""
    x = np.arange(1, 257, dtype=np.float32)
    made = jax.jit(lambda x, y: x / y)(x, np.float32(255))
    return Observed(made, reference=x / np.float32(255))


@probe(source="jax-ml/jax@2acdb120a098", platforms=("cpu",))
def products_of_small_integers(env):
    """A matmul of int8 overflows in int8, unless another type of the result is asked for."""

    @jax.jit
    def products(row, column):
        wide = {"preferred_element_type": jnp.int32}
        return {
            "as they are": jnp.matmul(row, column),
            "in int32": jnp.matmul(row, column, **wide),
            "einsum": jnp.einsum("ij,jk->ik", row, column, **wide),
            "sum": jnp.sum(row),
            "cumsum": jnp.cumsum(row),
        }

    wanted = {
        "as they are": np.array([[32]], np.int8),
        "in int32": np.array([[20000]], np.int32),
        "einsum": np.array([[20000]], np.int32),
        "sum": np.int32(200),
        "cumsum": np.array([100, -56], np.int8),
    }
    made = products(np.full((1, 2), 100, np.int8), np.full((2, 1), 100, np.int8))
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@9d7ed1b0aa24",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.2",
            outcome="ok",
            reason="numbers were added as numbers, then made truths",
            issue="jax-ml/jax@9d7ed1b0aa24",
        )
    ],
)
def running_truth(env):
    """`cumsum(dtype=bool)` is a running or: right since 0.10.2, also where numbers cancel."""

    @jax.jit
    def added(numbers, halves):
        sums = jnp.cumsum(numbers, dtype=bool), jnp.cumsum(halves, dtype=bool)
        return dict(zip(("numbers", "halves"), sums, strict=True))

    made = added(np.int32([0, 2, 0, -2, 0]), f32(0, 0.5, 0))
    wanted = {"numbers": [False, True, True, True, True], "halves": [False, True, True]}
    return Observed(made, reference={name: np.array(value) for name, value in wanted.items()})


@probe(source="jax-ml/jax#25214", platforms=("cpu",))
def order_of_einsum(env):
    """Three factors of `einsum`: two products, the cheap one first, whatever the search."""
    a, b, c = (
        np.ones((2, 30), np.float32),
        np.ones((30, 4), np.float32),
        np.ones((4, 50), np.float32),
    )
    jaxpr = jax.make_jaxpr(lambda *x: jnp.einsum("ij,jk,kl->il", *x))(a, b, c)
    inner = jaxpr.eqns[0].params.get("jaxpr", jaxpr).eqns if jaxpr.eqns else []
    shapes = [e.outvars[0].aval.shape for e in inner if e.primitive.name == "dot_general"]
    return Observed([sorted(shape) for shape in shapes], reference=[[2, 4], [2, 50]])


@probe(source="jax-ml/jax#6553", platforms=("cpu",))
def empty_and_masked(env):
    """Reductions of nothing: their neutral element, NaN for a mean, the masked left out."""

    @jax.jit
    def reduced(x, empty, mask):
        return {
            "sum": jnp.sum(empty),
            "prod": jnp.prod(empty),
            "mean": jnp.mean(empty),
            "max": jnp.max(empty, initial=-1),
            "masked sum": jnp.sum(x, where=mask),
            "masked mean": jnp.mean(x, where=mask),
            "masked max": jnp.max(x, where=mask, initial=-np.inf),
            "cummax": lax.cummax(x),
        }

    names = ("sum", "prod", "mean", "max", "masked sum", "masked mean", "masked max")
    wanted = dict(zip(names, f32(0, 1, np.nan, -1, 4, 2, 3), strict=True))
    made = reduced(f32(1, np.nan, 3), f32(), np.array([True, False, True]))
    wanted["cummax"] = f32(1, np.nan, np.nan)
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@8b6251667617", platforms=("cpu",))
def reductions_with_nan(env):
    """NaN wins in max, min and argmax, is left out by their nan-forms, and sorts to the end."""

    @jax.jit
    def reduced(x):
        return {
            "max": jnp.max(x),
            "nanmax": jnp.nanmax(x),
            "argmax": jnp.argmax(x),
            "argmin": jnp.argmin(x),
            "nanargmax": jnp.nanargmax(x),
            "nanmean": jnp.nanmean(x[:4]),
            "sorted": jnp.sort(x),
            "descending": jnp.argsort(x, descending=True),
            "clip": jnp.clip(x, 0, 2),
            "median": jnp.median(x),
        }

    x = f32(3, np.nan, -0.0, 0, -np.inf, 1)
    wanted = {
        "max": np.float64(np.nan),
        "nanmax": np.float64(3),
        "argmax": np.int32(1),
        "argmin": np.int32(1),
        "nanargmax": np.int32(0),
        "nanmean": np.float64(1),
        "sorted": np.sort(x),
        "descending": np.array([1, 0, 5, 2, 3, 4], np.int32),
        "clip": f32(2, np.nan, -0.0, 0, 0, 1),
        "median": np.float64(np.nan),
    }
    return Observed(numbered(reduced(x)), reference=numbered(wanted))


@probe(source="jax-ml/jax#21088", platforms=("cpu",), rtol=1e-6)
def variances(env):
    """`var` and `std` divide by the number of what counts, less `ddof`."""
    x, counts = f32(1, 2, 4, 9), np.array([True, True, True, False])

    @jax.jit
    def made(x):
        masked = jnp.var(x, ddof=1, where=counts)
        return {
            "all": jnp.var(x),
            "sample": (jnp.var(x, ddof=1), jnp.std(x, ddof=2)),
            "masked": masked,
        }

    y = np.float64(x)
    sample = (np.var(y, ddof=1), np.std(y, ddof=2))
    wanted = {"all": np.var(y), "sample": sample, "masked": np.var(y[:3], ddof=1)}
    return Observed(made(x), reference=wanted)


@probe(
    source="jax-ml/jax#40412",
    platforms=("cpu",),
    timeout=15,
    deviations=[
        deviation(
            "jax==0.10.2",
            outcome="crashed",
            reason="the library that the product and its sum are handed to took six axes for all",
            issue="jax-ml/jax#40412",
        ),
        deviation(
            "jax==0.10.2",
            outcome="timed_out",
            reason="the same, on other processors",
            issue="jax-ml/jax#39257",
        ),
    ],
)
def product_and_sum_over_seven_axes(env):
    """A sum of products of arrays of seven axes, one of them of size 1: ends 0.10.2."""
    u, v = env.rng(0).random((2, 3, 1, 2, 2, 8, 8, 8), np.float32)
    made = jax.jit(lambda u, v: (u * v).sum(axis=3))(u, v)
    return Observed(made, reference=(u.astype(np.float64) * v).sum(axis=3))
