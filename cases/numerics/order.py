"""The order of additions and divisions, and the number of their roundings.

The sum of floating-point numbers depends on the order, and XLA chooses the order: it changed in
0.4.33, 0.5.1 and 0.10.2 on CPU, and the changelog does not mention it. Some digits of a sum are
known, not all; a test that compares all digits fails at an upgrade.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit import strategies as st
from conformance.kit.laws import check_same

from ._helpers import f32, replace_nan

defaults(platforms=("cpu",))


@program(source="jax-ml/jax#585", rtol=3e-6)
def long_sum(env):
    """A sum of 4,096 is a tree of reduce-windows up to 0.10.1, and one reduce from 0.10.2 on."""
    x = env.rng(1).uniform(1, 2, size=4096).astype(np.float32)
    return Program(jnp.sum, args=(x,), reference=lambda x: x.sum(dtype=np.float64))


@program(source="jax-ml/jax#585", rtol=3e-6)
def long_cumsum(env):
    """A cumulative sum of 1,024 positive numbers is accurate to 3e-6 in any order."""
    x = env.rng(2).uniform(1, 2, size=1024).astype(np.float32)
    return Program(jnp.cumsum, args=(x,), reference=lambda x: x.cumsum(dtype=np.float64))


@probe(source="jax-ml/jax#18183", records="no release promises the order of a sum")
def what_cancellation_leaves(env):
    """The ones that survive in a sum of 1e8, 63 ones and -1e8 show the order of the sum.

    The exact sum is 63. In sequence, no 1 survives, because each is lost against 1e8.
    """

    @jax.jit
    def added(x, ones):
        return {"sum": jnp.sum(x), "last of cumsum": jnp.cumsum(x)[-1], "matmul": x @ ones}

    return added(np.array([1e8] + [1.0] * 63 + [-1e8], np.float32), np.ones(65, np.float32))


@probe(source="jax-ml/jax@b5e7b60d6a23", rtol=0)
def narrow_sums(env):
    """Sums of bfloat16 and float16 are computed in float32 and rounded once, at the end."""

    @jax.jit
    def sums(brain, half, twos):
        return {
            "bfloat16": jnp.sum(brain),
            "float16": jnp.sum(half[:4096]),
            "mean": jnp.mean(twos),
            "beyond": jnp.sum(half),
            "dot": jnp.dot(brain, brain),
        }

    expected = {"bfloat16": 1000.0, "float16": 4096.0, "mean": 2.0, "beyond": np.inf, "dot": 1000.0}
    result = sums(
        np.ones(1000, jnp.bfloat16), np.ones(70000, "float16"), np.full(70000, 2, "float16")
    )
    return Observed(result, reference={name: np.float64(value) for name, value in expected.items()})


@program(
    source="jax-ml/jax#25601",
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
    """Division by a constant multiplies by its reciprocal, which is sometimes 1 ulp off."""
    return Program(
        lambda x: x / 255,
        args=(np.arange(256, dtype=np.float32),),
        reference=lambda x: x.astype(np.float64) / 255,
    )


RECIPROCAL_MULTIPLIED = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="the program computes the reciprocal of the divisor once, and multiplies by it",
    issue="jax-ml/jax#25601",
)


@probe(source="jax-ml/jax#25601", rtol=0, deviations=[RECIPROCAL_MULTIPLIED])
def division_by_an_argument(env):
    """Division by an argument is exact up to 0.10.0; from 0.10.1 on it is a multiplication, too."""
    x = np.arange(1, 257, dtype=np.float32)
    result = jax.jit(lambda x, y: x / y)(x, np.float32(255))
    return Observed(result, reference=x / np.float32(255))


@probe(
    source="jax-ml/jax@2acdb120a098",
    given={"row": st.arrays("int8", (1, 2)), "column": st.arrays("int8", (2, 1))},
)
def products_of_small_integers(env, row, column):
    """A matmul of int8 overflows in int8, unless another result type is requested."""
    wide = {"preferred_element_type": jnp.int32}
    exact = np.int64(row) @ np.int64(column)
    check_same(jnp.matmul(row, column), exact.astype(np.int8))
    check_same(jnp.matmul(row, column, **wide), exact.astype(np.int32))
    check_same(jnp.einsum("ij,jk->ik", row, column, **wide), exact.astype(np.int32))
    check_same(jnp.sum(row), np.sum(row, dtype=np.int32))
    check_same(jnp.cumsum(row), np.cumsum(row, dtype=np.int8))


ADDED_AS_NUMBERS = deviation(
    "jax<0.10.2",
    error="LawError",
    reason="numbers were added as numbers, and then converted to booleans",
    issue="jax-ml/jax@9d7ed1b0aa24",
)


@probe(
    source="jax-ml/jax@9d7ed1b0aa24",
    given={
        "numbers": st.arrays("int32", 4, elements=st.integers(-2, 2)),
        "floats": st.arrays("float32", 3),
    },
    deviations=[ADDED_AS_NUMBERS],
)
def running_truth(env, numbers, floats):
    """`cumsum(dtype=bool)` is a running or: right from 0.10.2 on, also where numbers cancel."""
    for x in (numbers, floats):
        check_same(jnp.cumsum(x, dtype=bool), np.logical_or.accumulate(x != 0))


FRACTIONS_WERE_FALSE = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="fractions were multiplied or added first, and truncated to false",
    issue="jax-ml/jax#28669",
)


@probe(
    source="jax-ml/jax#28669",
    params=["cumprod", "nancumsum", "nancumprod"],
    deviations=[FRACTIONS_WERE_FALSE],
)
def running_truth_of_fractions(env, name):
    """Cumulative functions with `dtype=bool` count a fraction as true, from 0.10.2 on."""
    x = np.float32([0.5, 0.5, 0])
    accumulate = np.logical_or if name == "nancumsum" else np.logical_and
    return Observed(getattr(jnp, name)(x, dtype=bool), reference=accumulate.accumulate(x != 0))


@probe(source="jax-ml/jax#25214")
def order_of_einsum(env):
    """`einsum` of three factors makes two products, the cheap product first, on any release."""
    a, b, c = (
        np.ones((2, 30), np.float32),
        np.ones((30, 4), np.float32),
        np.ones((4, 50), np.float32),
    )
    jaxpr = jax.make_jaxpr(lambda *x: jnp.einsum("ij,jk,kl->il", *x))(a, b, c)
    # `einsum` may be a jitted function with the products inside.
    inner = jaxpr.eqns[0].params.get("jaxpr", jaxpr).eqns if jaxpr.eqns else []
    shapes = [e.outvars[0].aval.shape for e in inner if e.primitive.name == "dot_general"]
    return Observed([sorted(shape) for shape in shapes], reference=[[2, 4], [2, 50]])


@probe(source="jax-ml/jax#6553")
def empty_and_masked(env):
    """Empty reductions give the neutral element, or NaN for a mean; masked elements are skipped."""

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
    expected = dict(zip(names, f32(0, 1, np.nan, -1, 4, 2, 3), strict=True))
    result = reduced(f32(1, np.nan, 3), f32(), np.array([True, False, True]))
    expected["cummax"] = f32(1, np.nan, np.nan)
    return Observed(replace_nan(result), reference=replace_nan(expected))


@probe(source="jax-ml/jax@8b6251667617")
def reductions_with_nan(env):
    """NaN wins in `max`, `argmax` and `argmin`, is skipped by nan-forms, and sorts to the end."""

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
    expected = {
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
    return Observed(replace_nan(reduced(x)), reference=replace_nan(expected))


@probe(
    source="jax-ml/jax#21088",
    given={"x": st.arrays("float32", 4), "ddof": st.integers(0, 2), "last": st.booleans()},
)
def variances(env, x, ddof, last):
    """`var` and `std` divide by the number of elements that count, less `ddof`."""
    counts, y = np.array([True, True, True, last]), np.float64(x)
    close = {"rtol": 1e-5, "atol": 1e-5}
    check_same(jnp.var(x, ddof=ddof), np.var(y, ddof=ddof), **close)
    check_same(jnp.var(x, ddof=ddof, where=counts), np.var(y[counts], ddof=ddof), **close)
    # Squared, because the root of a variance near 0 loses half of the digits.
    check_same(jnp.std(x, ddof=ddof) ** 2, np.var(y, ddof=ddof), **close)


SIX_AXES_ASSUMED = deviation(
    "jax==0.10.2",
    outcome="crashed",
    reason="the library that computes the product and its sum assumed six axes at most",
    issue="jax-ml/jax#40412",
)
HANGS_ON_OTHER_PROCESSORS = deviation(
    "jax==0.10.2",
    outcome="timed_out",
    reason="the same fault, on other processors",
    issue="jax-ml/jax#39257",
)


@probe(
    source="jax-ml/jax#40412", timeout=15, deviations=[SIX_AXES_ASSUMED, HANGS_ON_OTHER_PROCESSORS]
)
def product_and_sum_over_seven_axes(env):
    """A sum of products with seven axes, one of size 1, crashes or hangs on 0.10.2."""
    # The first axis separates u and v, which have seven axes each.
    u, v = env.rng(0).random((2, 3, 1, 2, 2, 8, 8, 8), np.float32)
    result = jax.jit(lambda u, v: (u * v).sum(axis=3))(u, v)
    return Observed(result, reference=(u.astype(np.float64) * v).sum(axis=3))


NEVER_ENDS = deviation(
    outcome="timed_out",
    reason="the absolute value of the least integer is negative, and the loop never ends",
    issue="jax-ml/jax#40840",
)


@probe(source="jax-ml/jax#40840", releases="jax>=0.12", timeout=2, deviations=[NEVER_ENDS])
def divisor_of_the_least_integer(env):
    """`gcd` of the least signed integer never ends.

    So it was on all releases from 0.4.30 to 0.12.0.1; as it takes the whole time limit, it runs on
    the newest ones only.
    """
    x, y = np.int8(-128), np.int8(6)
    return Observed(jax.jit(jnp.gcd)(x, y), reference=np.gcd(x, y))


MULTIPLIED_BY_A_THIRD = deviation(
    outcome="ok",
    reason="the mean multiplies the sum by 1 / 3, which is rounded, so it is not the number itself",
    issue="tensorflow/tensorflow#120234",
)


@probe(source="tensorflow/tensorflow#120234", rtol=0, atol=0, deviations=[MULTIPLIED_BY_A_THIRD])
def variance_of_equal_numbers(env):
    """`jnp.var` of three equal numbers may be positive, where that of NumPy is 0."""
    x = np.full(3, 1.8132702, np.float32)
    return Observed(jnp.var(x), reference=np.var(x))
