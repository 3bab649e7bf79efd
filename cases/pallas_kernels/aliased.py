"""Kernels that read and write an argument in place, over the steps of the grid."""

import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import F32, block, rows, run, shape, vector

defaults(platforms=("cpu",))


def _whole(size):
    return block((size,), lambda _: (0,))


def _element_before():
    """Each step reads the element that the step before wrote."""

    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        o_ref[i] = x_ref[jnp.maximum(i - 1, 0)] + 1

    return kernel, _whole(8), _whole(8), 8, np.arange(1, 9, dtype=F32)


def _block_before():
    """Each step reads the block that the step before wrote."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    before = block((2,), lambda i: (jnp.maximum(i - 1, 0),))
    exact = np.tile([1, 11], 4) + np.repeat([0, 1, 2, 3], 2)
    return kernel, before, rows(), 4, exact.astype(F32)


def _argument_alone():
    """The kernel writes to the argument, and not to the result."""

    def kernel(x_ref, _):
        x_ref[...] = x_ref[...] + 1

    return kernel, rows(), rows(), 4, 10 * vector() + 1


def _argument_and_result():
    """The kernel uses the argument as scratch memory, and writes the result."""

    def kernel(x_ref, o_ref):
        x_ref[...] = 2 * x_ref[...]
        o_ref[...] = x_ref[...] + 1

    return kernel, rows(), rows(), 4, 20 * vector() + 1


IN_PLACE = {
    "element_before": _element_before,
    "block_before": _block_before,
    "argument_alone": _argument_alone,
    "argument_and_result": _argument_and_result,
}
TWO_BUFFERS = deviation(
    "jax<0.11.2",
    params=["element_before", "block_before", "argument_alone"],
    outcome="ok",
    reason="the interpreter kept the argument and the result in two buffers",
)
RESULT_LOST = deviation(
    "jax>=0.11.2",
    params=["argument_and_result"],
    outcome="ok",
    reason="the argument, which the kernel wrote to as well, replaces the result",
)


@probe(source="jax-ml/jax#22304", params=[*IN_PLACE], deviations=[TWO_BUFFERS, RESULT_LOST])
def argument_as_result(env, name):
    """With `input_output_aliases`, the argument and the result are the same memory.

    Up to 0.11.1 the interpreter kept two copies. From 0.11.2 what a kernel writes to the argument
    silently replaces the result that it writes in the same step.
    """
    kernel, spec, out_spec, steps, exact = IN_PLACE[name]()
    out = run(
        kernel,
        shape(8),
        10 * vector(),
        grid=(steps,),
        in_specs=[spec],
        out_specs=out_spec,
        input_output_aliases={0: 0},
    )
    return Observed(out, reference=exact)
