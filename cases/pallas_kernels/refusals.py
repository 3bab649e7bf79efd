"""Wrong kernels, blocks, index maps and aliases: the class and words of the error."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import F32, block, copy, double, prefetch, rows, run, run_rows, shape, vector

defaults(platforms=("cpu",))


def _run(kernel=double, out=None, grid=4, **keywords):
    specs = {"in_specs": [rows()], "out_specs": rows(), **keywords}
    return run(kernel, shape(8) if out is None else out, vector(), grid=(grid,), **specs)


def _spec(sizes, index_map):
    return lambda: _run(in_specs=[block(sizes, index_map)])


def _half(x_ref, o_ref):
    o_ref[...] = x_ref[:4]


REFUSALS = {
    "block_rank": (_spec((2, 2), lambda i: (i, 0)), "ValueError", "same number of dimensions"),
    "index_map_rank": (_spec((2,), lambda i: (i, 0)), "ValueError", "must return 1 values"),
    "index_map_arity": (_spec((2,), lambda i, _: (i,)), "TypeError", "missing 1 required"),
    "float_index": (_spec((2,), lambda i: (1.0 * i,)), "ValueError", "must return integer scalars"),
    "float_grid": (lambda: _run(grid=4.0), "ValueError", "Grid must be a tuple of integers"),
    "number_of_specs": (
        lambda: _run(in_specs=[rows(), rows()]),
        "ValueError",
        "do not match",
    ),
    "returned_value": (
        lambda: run(lambda x_ref, _: x_ref[...], shape(8), vector()),
        "ValueError",
        "should return None",
    ),
    "alias_shape": (
        lambda: run(_half, shape(4), vector(), input_output_aliases={0: 0}),
        "ValueError",
        "different abstract value",
    ),
    "alias_index": (
        lambda: run(double, shape(8), vector(), input_output_aliases={0: 1}),
        "ValueError",
        "outside the range",
    ),
    "grid_and_grid_spec": (
        lambda: _run(grid_spec=prefetch(0, (4,), [rows()], rows()), in_specs=[rows()]),
        "ValueError",
        "must be",
    ),
    "stored_dtype": (
        lambda: _run(copy, shape(8, dtype=np.int32)),
        "ValueError",
        "Invalid dtype for `swap`",
    ),
    "stored_scalar": (
        lambda: run(lambda _, o_ref: o_ref.__setitem__(..., 1.0), shape(8), vector()),
        "ValueError",
        "Invalid shape for `swap`",
    ),
    "program_id_outside": (jax.jit(lambda: pl.program_id(0)), "AssertionError", ""),
    "axis_of_the_grid": (
        lambda: run_rows(
            lambda x, o: o.__setitem__(..., x[...] + pl.program_id(2)), shape(8), vector()
        ),
        "ValueError",
        "out of bounds for grid",
    ),
    "on_the_cpu": (
        lambda: _run(interpret=False),
        "ValueError",
        "Only interpret mode is supported on CPU",
    ),
}
OTHER_WORDS = deviation(
    "jax<0.4.31",
    params=[
        "block_rank",
        "number_of_specs",
        "returned_value",
        "alias_shape",
        "grid_and_grid_spec",
    ],
    outcome="ok",
    reason="an error from inside, or other words",
    issue="jax-ml/jax@a4a9499a400d",
)
NOT_CHECKED = deviation(
    "jax<0.4.31",
    params=["index_map_rank", "float_grid", "alias_index"],
    outcome="ok",
    match="ran",
    reason="it was not checked: the kernel ran",
    issue="jax-ml/jax@a4a9499a400d",
)
FLOAT_INDEX_TRUNCATED = deviation(
    "jax<0.4.33",
    params=["float_index"],
    outcome="ok",
    match="ran",
    reason="the number of the block was truncated",
    issue="jax-ml/jax@6d53aaf7d06b",
)


@probe(
    source="jax-ml/jax@a4a9499a400d",
    params=[*REFUSALS],
    deviations=[OTHER_WORDS, NOT_CHECKED, FLOAT_INDEX_TRUNCATED],
)
def refused(env, name):
    """A mistake in a call of a kernel is an error whose words name it, mostly from 0.4.31."""
    call, error, words = REFUSALS[name]
    return Observed(refusal(call, words), reference=f"{error}: {words}")


CONSTANTS_ACCEPTED = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="ran",
    reason="a kernel could capture constants",
    issue="jax-ml/jax#22746",
)


@probe(source="jax-ml/jax#22746", deviations=[CONSTANTS_ACCEPTED])
def captured_constants(env):
    """A kernel that captures an array, even of one element, is refused from 0.4.33.

    Python and NumPy scalars are accepted.
    """
    values = {
        "numpy_array": vector(),
        "jax_array": jax.jit(lambda: jnp.ones(8))(),
        "jax_scalar": jnp.float32(3),
        "numpy_scalar": F32(3),
        "python_scalar": 3.0,
    }

    def call(value):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + value

        return refusal(lambda: run(kernel, shape(8), vector()), "captures constants")

    refused = "ValueError: captures constants"
    exact = dict.fromkeys(values, refused) | {"numpy_scalar": "ran", "python_scalar": "ran"}
    return Observed({name: call(value) for name, value in values.items()}, reference=exact)


ARANGE_WAS_A_CONSTANT = deviation(
    "jax>=0.4.33,<0.8.2",
    error="ValueError",
    match="captures constants",
    reason="jnp.arange with a start was a constant",
    issue="jax-ml/jax#32542",
)


@probe(source="jax-ml/jax#32542", deviations=[ARANGE_WAS_A_CONSTANT])
def arange_in_a_kernel(env):
    """`jnp.arange` with a start is refused as a captured constant from 0.4.33 to 0.8.1."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] - jnp.arange(1, 9, dtype=F32)

    return Observed(run(kernel, shape(8), vector()), reference=np.full(8, -1, F32))


CONSTANT_ACCEPTED = deviation(
    "jax<0.4.31",
    outcome="ok",
    match="ran",
    reason="an index map could capture a constant",
)
NOT_IMPLEMENTED = deviation(
    "jax>=0.4.31,<0.4.33",
    outcome="ok",
    match="NotImplementedError",
    reason="the error was a NotImplementedError with other words",
    issue="jax-ml/jax@6d53aaf7d06b",
)


@probe(source="jax-ml/jax@6d53aaf7d06b", deviations=[CONSTANT_ACCEPTED, NOT_IMPLEMENTED])
def constant_of_an_index_map(env):
    """An index map that captures an array is refused; pass it by scalar prefetch."""
    order = np.array([3, 2, 1, 0], np.int32)
    spec = block((2,), lambda i: (jnp.asarray(order)[i],))
    outcome = refusal(
        lambda: run_rows(copy, shape(8), vector(), in_specs=[spec]), "must not capture"
    )
    return Observed(outcome, reference="ValueError: must not capture")
