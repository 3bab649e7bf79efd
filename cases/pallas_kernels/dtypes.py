"""Dtypes of blocks in interpret mode."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import F32, block, copy, describe, run, run_rows, shape, square, vector

defaults(platforms=("cpu",))


def _dtype(name):
    return jnp.dtype(getattr(ml_dtypes, name, None) or name)


NO_SUCH_DTYPE = deviation(
    "jax<0.5.3",
    params=["float4_e2m1fn"],
    error="TypeError",
    reason="the dtype did not exist",
)
NO_PARTIAL_BLOCK = deviation(
    "jax<0.4.31",
    params=["bfloat16", "bool", "float8_e4m3fn", "int4"],
    error="ValueError",
    match="Cannot lower jaxpr with verifier errors",
    reason="the interpreter did not cut the last block",
    issue="jax-ml/jax#22275",
)
NOT_COMPILED_AS_INT4 = deviation(
    "jax>=0.4.31,<0.4.36",
    params=["int4"],
    error="XlaRuntimeError",
    match="is currently only supported in",
    reason="XLA refused most operations of 4-bit integers",
)
NO_INT2 = deviation(
    "jax<0.4.33",
    params=["int2"],
    error="TypeError",
    match="int2",
    reason="the dtype did not exist",
)
NOT_COMPILED_AS_INT2 = deviation(
    "jax>=0.4.33,<0.4.36",
    params=["int2"],
    error="XlaRuntimeError",
    match="is currently only supported in",
    reason="XLA refused most operations of 2-bit integers",
)
INT2_CRASHES = deviation(
    "jax>=0.4.36,<0.8",
    params=["int2"],
    outcome="crashed",
    reason="an assertion of XLA fails: `Check failed: bit_offset != nullptr`",
)


@probe(
    source="jax-ml/jax#22275",
    params=["bfloat16", "bool", "float8_e4m3fn", "int4", "int2", "float4_e2m1fn"],
    deviations=[
        NO_SUCH_DTYPE,
        NO_PARTIAL_BLOCK,
        NOT_COMPILED_AS_INT4,
        NO_INT2,
        NOT_COMPILED_AS_INT2,
        INT2_CRASHES,
    ],
)
def copied(env, name):
    """Blocks of each dtype are copied; the last one ends beyond the array.

    Blocks of int2 end the process from 0.4.36 to 0.7.2.
    """
    x = (np.arange(3) % 2).astype(_dtype(name))
    out = run_rows(copy, shape(3, dtype=x.dtype), x, grid=2)
    return Observed(np.asarray(out).astype(F32), reference=x.astype(F32))


def _bfloat16_product():
    a = (square() / 8 - 1).astype(jnp.bfloat16)

    def kernel(a_ref, o_ref):
        o_ref[...] = jnp.dot(a_ref[...], a_ref[...], preferred_element_type=F32)

    return kernel, a, shape(4, 4), a.astype(np.float64) @ a.astype(np.float64)


def _int8_product():
    a = (9 * square()).astype(np.int8)

    def kernel(a_ref, o_ref):
        o_ref[...] = jnp.dot(a_ref[...], a_ref[...], preferred_element_type=np.int32)

    return kernel, a, shape(4, 4, dtype=np.int32), a.astype(np.int32) @ a.astype(np.int32)


def _int8_overflow():
    a = (10 * vector()).astype(np.int8)

    def kernel(a_ref, o_ref):
        o_ref[...] = a_ref[...] + 100

    return kernel, a, shape(8, dtype=np.int8), a + np.int8(100)


ARITHMETIC = {
    "bfloat16_product": _bfloat16_product,
    "int8_product": _int8_product,
    "int8_overflow": _int8_overflow,
}


@probe(source="jax-ml/jax@d872812a359a", params=[*ARITHMETIC])
def arithmetic(env, name):
    """A product in a wider dtype is exact, and integers wrap around."""
    kernel, a, out, reference = ARITHMETIC[name]()
    return Observed(run(kernel, out, a), reference=reference)


INTERNAL_ERROR = deviation(
    "jax>=0.4.33,<0.6",
    outcome="ok",
    match="AttributeError",
    reason="an internal AttributeError hid the message",
)


@probe(source="jax-ml/jax@d872812a359a", deviations=[INTERNAL_ERROR])
def complex_numbers(env):
    """Complex blocks are refused by a NotImplementedError, from 0.4.33 to 0.5.3 by a wrong one."""
    x = vector().astype(np.complex64)
    outcome = describe(lambda: run_rows(copy, shape(8, dtype=x.dtype), x))
    return Observed(outcome, reference="NotImplementedError: complex64")


@probe(source="jax-ml/jax@d872812a359a", x64=True)
def wide(env):
    """With 64-bit types on, indices are int64 and blocks float64."""

    def kernel(i_ref, x_ref, o_ref):
        step = pl.program_id(0)

        def body(i, _):
            o_ref[i] = x_ref[i] / 3 + step

        lax.fori_loop(0, 2, body, None)
        o_ref[pl.ds(2, 2)] = x_ref[pl.ds(i_ref[0], 2)]

    specs = {"in_specs": [block((1,), lambda _: (0,)), block((4,), lambda i: (i,))]}
    x, out_spec = np.arange(8.0), block((4,), lambda i: (i,))
    out = run(
        kernel, shape(8, dtype=x.dtype), np.array([1]), x, grid=(2,), out_specs=out_spec, **specs
    )
    return Observed(out, reference=np.array([0, 1 / 3, 1, 2, 4 / 3 + 1, 5 / 3 + 1, 5, 6]))


STORED = {
    "narrower": (np.int32([300, 1]), np.int8),
    "unsigned": (np.int8([-1, 1]), np.uint8),
    "wider": (np.int8([100, 1]), np.int32),
}
CONVERTED = deviation(
    "jax>=0.6",
    outcome="ok",
    reason="the test for weakly typed values lets integers of every dtype pass",
    issue="jax-ml/jax@4d2808c1155b",
)


@probe(source="jax-ml/jax@4d2808c1155b", params=[*STORED], deviations=[CONVERTED])
def integers_of_another_dtype(env, name):
    """Integers of another dtype than the block are refused; from 0.6.0 they are converted.

    300 is silently stored as 44 in a block of int8.
    """
    x, dtype = STORED[name]
    words = "Invalid dtype for `swap`"
    observed = refusal(lambda: run(copy, shape(2, dtype=dtype), x), words)
    return Observed(observed, reference=f"ValueError: {words}")
