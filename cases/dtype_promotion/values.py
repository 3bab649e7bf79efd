"""Numbers that depend on the dtype of an intermediate result: sums, means and products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",), source="jax-ml/jax#17792")

LARGE = np.full(8, 6e4, np.float16)
"""Numbers of float16 whose sum overflows."""
HALVES = {
    "cumsum": (lambda x: jnp.cumsum(x["ones"])[-1], 4096),
    "dot": (lambda x: jnp.dot(x["ones"], x["ones"]), 4096),
    "mean": (lambda x: jnp.mean(x["large"]), 6e4),
    "prod": (lambda x: jnp.prod(x["large"][:1] * np.float16([1, 0.5])), np.inf),
    "sum": (lambda x: jnp.sum(x["ones"]), 4096),
    "sum_of_opposites": (lambda x: jnp.sum(x["large"] * np.float16([1, -1] * 4)), 0),
}
"""Reductions of float16 with their results, of which XLA accumulates some in float32."""


@probe()
def reductions_of_float16(env):
    """Sums and means of float16 are accumulated in float32, and do not overflow."""
    arrays = {"large": LARGE, "ones": np.ones(4096, np.float16)}
    result = jax.jit(lambda x: {name: call(x) for name, (call, _) in HALVES.items()})(arrays)
    return Observed(
        {name: np.asarray(value).item() for name, value in result.items()},
        reference={name: float(expected) for name, (_, expected) in HALVES.items()},
    )


OVERFLOWS = {
    "median": (lambda x: jnp.median(x), 6e4),  # noqa: PLW0108
    "nanmean": (lambda x: jnp.nanmean(x), 6e4),  # noqa: PLW0108
    "norm": (lambda x: jnp.linalg.norm(x[:1]), 6e4),
    "std": (lambda x: jnp.std(x * np.float16([0.5, -0.5] * 4)), 3e4),
    "trapezoid": (lambda x: jnp.trapezoid(x) / 16, 26250),
}
OVERFLOW = deviation(
    params=["median", "nanmean", "std", "trapezoid"],
    outcome="ok",
    reason="an intermediate result in float16 overflows, where the result would fit",
)


SQUARES_OVERFLOW = deviation(
    "jax>=0.11.1",
    params=["norm"],
    outcome="ok",
    reason="the squares are rounded to float16 before they are summed",
)


@probe(params=[*OVERFLOWS], deviations=[OVERFLOW, SQUARES_OVERFLOW])
def overflow_in_float16(env, name):
    """A median, norm or standard deviation of float16 overflows: 777 for infinity, -777 for NaN."""
    call, expected = OVERFLOWS[name]
    result = np.asarray(jax.jit(call)(LARGE)).astype(np.float64)
    return Observed(
        np.nan_to_num(result, nan=-777, posinf=777), reference=np.float64(np.float16(expected))
    )


INTEGERS = {
    "cumsum": (lambda x: jnp.cumsum(x["signed"]), np.int8([100, -56])),
    "cumulative_sum": (lambda x: jnp.cumulative_sum(x["signed"]), np.int32([100, 200])),
    "dot": (lambda x: jnp.dot(x["signed"], x["signed"]), np.int8(32)),
    "mean": (lambda x: jnp.mean(x["unsigned"]), np.float32(200)),
    "ptp": (lambda x: jnp.ptp(x["signed"] * np.int8([1, -1])), np.int8(-56)),
    "sum": (lambda x: jnp.sum(x["signed"]), np.int32(200)),
    "sum_as_int8": (lambda x: jnp.sum(x["signed"], dtype=np.int8), np.int8(-56)),
    "sum_not_promoted": (lambda x: jnp.sum(x["signed"], promote_integers=False), np.int8(-56)),
    "sum_of_mask": (lambda x: jnp.sum(x["mask"]), np.int32(300)),
    "sum_of_unsigned": (lambda x: jnp.sum(x["unsigned"]), np.uint32(400)),
    "var": (lambda x: jnp.var(x["signed"] * np.int8([1, -1])), np.float32(10000)),
}


@probe()
def reductions_of_integers(env):
    """A sum or product of narrow integers has 32 bits; a cumsum, dot or ptp wraps around."""
    arrays = {
        "falling": np.uint8([3, 1]),
        "least": np.int8([-128]),
        "mask": np.ones(300, bool),
        "one": np.uint8([1, 1]),
        "signed": np.int8([100, 100]),
        "unsigned": np.uint8([200, 200]),
    }
    result = jax.jit(lambda x: {name: call(x) for name, (call, _) in INTEGERS.items()})(arrays)
    return Observed(result, {name: expected for name, (_, expected) in INTEGERS.items()})


NO_KIND_OF_INT4 = deviation(
    error="ValueError",
    match="Invalid integer data type 'V'",
    issue="jax-ml/jax#24499",
    reason="the accumulator is chosen by NumPy's letter of the kind, which is V for int4",
)


@probe(source="jax-ml/jax#24499", deviations=[NO_KIND_OF_INT4])
def sum_of_int4(env):
    """A sum of int4 is a ValueError; with `dtype=` it works."""
    x = np.array([3, 2], jnp.int4)
    with_dtype = np.asarray(jax.jit(lambda x: jnp.sum(x, dtype=np.int32))(x))
    return Observed([with_dtype, jax.jit(jnp.sum)(x)], reference=[np.int32(5), np.int32(5)])


PRODUCTS = {
    "bfloat16_to_float32": ("bfloat16", "bfloat16", "float32"),
    "complex64_to_float32": ("complex64", "complex64", "float32"),
    "float8": ("float8_e4m3fn", "float8_e4m3fn", None),
    "float8_to_float32": ("float8_e4m3fn", "float8_e5m2", "float32"),
    "int32_to_int8": ("int32", "int32", "int8"),
    "int4_to_int32": ("int4", "int4", "int32"),
    "int8": ("int8", "int8", None),
    "int8_to_int32": ("int8", "int8", "int32"),
}
"""Dtypes of two vectors, and `preferred_element_type`."""


@probe(source="jax-ml/jax#5213", params=[*PRODUCTS], records="the back end decides what it has")
def preferred_element_type(env, name):
    """The product of [7, 7, 7, 7, 7] and [6, 7, 7, 7, 7]: dtype and number, or the error."""
    first, second, preferred = PRODUCTS[name]
    a = np.full(5, 7).astype(jnp.dtype(first))
    b = np.array([6, 7, 7, 7, 7]).astype(jnp.dtype(second))
    results = []

    def call():
        matmul = jax.jit(jnp.matmul, static_argnames="preferred_element_type")
        results.append(np.asarray(matmul(a, b, preferred_element_type=preferred)))

    outcome = refusal(call, "must not be narrower", "RET_CHECK", "does not support")
    return [f"{x.dtype.name} {x.astype(np.complex64).real.item():g}" for x in results] or [outcome]


BITS_OF_THE_EXPONENT_LOST = deviation(
    params=["array", "traced"],
    outcome="ok",
    reason="six bits of the exponent are used if it is no constant, so 2**64 is 2**0",
    issue="jax-ml/jax#10692",
)
POWERS = {
    "array": jnp.power,
    "traced": lambda x, n: jax.jit(jnp.power)(x[0], n[0])[None],
    "scalar": lambda x, n: jnp.power(x, n[0]),
    "python": lambda x, n: x ** int(n[0]),
}


@probe(source="jax-ml/jax#10692", params=[*POWERS], deviations=[BITS_OF_THE_EXPONENT_LOST])
def power_that_overflows(env, name):
    """`jnp.power` of integers 2 and 64 is 0 for a scalar exponent, but 1 for an array of one."""
    result = POWERS[name](jnp.array([2], jnp.int8), jnp.array([64], jnp.int8))
    return Observed(result, reference=np.power(np.int8([2]), np.int8([64])))
