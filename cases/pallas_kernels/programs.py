"""`pl.num_programs` in functions that JAX traces once."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import block, run, run_rows, shape, vector

defaults(platforms=("cpu",))


def times_programs(x):
    """Return the product with the number of programs."""
    return x * pl.num_programs(0)


def multiply_element(carry, element):
    """Multiply an element in a step of a loop."""
    return carry, times_programs(element)


def in_scan(x):
    """Multiply each element in a loop."""
    return lax.scan(multiply_element, 0, x)[1]


def in_cond(x):
    """Multiply in a branch."""
    return lax.cond(x[0] > -1, times_programs, jnp.zeros_like, x)


TRACED_ONCE = {
    "kernel": times_programs,
    "jit": jax.jit(times_programs),
    "checkpoint": jax.checkpoint(times_programs),
    "scan": in_scan,
    "cond": in_cond,
}
NUMBER_KEPT = deviation(
    "jax<0.12",
    params=["jit", "checkpoint", "scan", "cond"],
    outcome="ok",
    reason="the traced function was kept for every grid",
    issue="jax-ml/jax#40847",
)
KERNEL_KEPT = deviation(
    "jax>=0.11,<0.12",
    params=["kernel"],
    outcome="ok",
    reason="the traced kernel was kept for every grid",
    issue="jax-ml/jax#40847",
)


@probe(source="jax-ml/jax#40847", params=[*TRACED_ONCE], deviations=[NUMBER_KEPT, KERNEL_KEPT])
def number_of_programs(env, name):
    """`pl.num_programs` in an inner function is that of the kernel, not of an earlier kernel.

    Up to 0.11.2 a second kernel with blocks of the same shape silently got the number of the first.
    """

    def kernel(x_ref, o_ref):
        o_ref[...] = TRACED_ONCE[name](x_ref[...])

    out = [run_rows(kernel, shape(2 * n), vector(2 * n), grid=n) for n in (4, 2)]
    return Observed(out, reference=[4 * vector(), 2 * vector(4)])


AXIS_KEPT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the number of an earlier kernel was kept",
    issue="jax-ml/jax#40847",
)


@probe(source="jax-ml/jax#40847", deviations=[AXIS_KEPT])
def axis_of_an_earlier_grid(env):
    """An inner jit may not ask for an axis of the grid that only an earlier kernel has."""
    inner = jax.jit(lambda x: x * pl.num_programs(1))

    def kernel(x_ref, o_ref):
        o_ref[...] = inner(x_ref[...])

    spec = block((2,), lambda i, _: (i,))
    first = run(kernel, shape(8), vector(), grid=(4, 3), in_specs=[spec], out_specs=spec)
    words = "out of bounds for grid"
    second = refusal(lambda: run_rows(kernel, shape(8), vector()), words)
    return Observed((first, second), reference=(3 * vector(), f"ValueError: {words}"))
