"""Blocks and grids in interpret mode, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import (
    F32,
    anywhere,
    block,
    copy,
    double,
    prefetch,
    rows,
    run,
    run_rows,
    shape,
    square,
    vector,
    window,
)

defaults(platforms=("cpu",))


def _integer_grid():
    specs = {"in_specs": [rows()], "out_specs": rows()}
    return run(double, shape(8), vector(), grid=4, **specs), 2 * vector()


def _transposed():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    specs = [block((2, 2), lambda i, j: (i, j)), block((2, 2), lambda i, j: (j, i))]
    out = run(kernel, shape(4, 4), square(), grid=(2, 2), in_specs=specs[:1], out_specs=specs[1])
    return out, square().T


def _reversed():
    backwards = block((2,), lambda i: (3 - i,))
    return run_rows(copy, shape(8), vector(), in_specs=[backwards]), vector().reshape(4, 2)[
        ::-1
    ].ravel()


def _three_axes():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 100 * pl.program_id(0) + 10 * pl.program_id(1) + pl.program_id(2)

    spec = block((1, 1, 1), lambda i, j, k: (i, j, k))
    x, (i, j, k) = vector(24).reshape(2, 3, 4), np.indices((2, 3, 4))
    out = run(kernel, shape(2, 3, 4), x, grid=(2, 3, 4), in_specs=[spec], out_specs=spec)
    return out, (x + 100 * i + 10 * j + k).astype(F32)


def _axis_none():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    x, spec = vector(24).reshape(2, 3, 4), block((None, 3, 4), lambda i: (i, 0, 0))
    out_spec = block((None, 4, 3), lambda i: (i, 0, 0))
    out = run(kernel, shape(2, 4, 3), x, grid=(2,), in_specs=[spec], out_specs=out_spec)
    return out, x.transpose(0, 2, 1)


def _matmul():
    a, b = vector(32).reshape(4, 8) / 8, vector(32).reshape(8, 4) / 8 - 1

    def kernel(a_ref, b_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += a_ref[...] @ b_ref[...]

    specs = [block((2, 4), lambda i, _, k: (i, k)), block((4, 2), lambda _, j, k: (k, j))]
    out_spec = block((2, 2), lambda i, j, _: (i, j))
    out = run(kernel, shape(4, 4), a, b, grid=(2, 2, 2), in_specs=specs, out_specs=out_spec)
    return out, a.astype(np.float64) @ b


def _softmax():
    def kernel(x_ref, o_ref):
        o_ref[...] = jax.nn.softmax(x_ref[...], axis=-1)

    x, spec = square(), block((1, 4), lambda i: (i, 0))
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    out = run(kernel, shape(4, 4), x, grid=(4,), in_specs=[spec], out_specs=spec)
    return out, exact / exact.sum(1, keepdims=True)


def _tree_of_outputs():
    def kernel(x_ref, o_refs):
        o_refs["double"][...] = 2 * x_ref["x"][...]
        o_refs["integers"][...] = x_ref["y"][...].astype(np.int32)

    out = {"double": shape(8), "integers": shape(8, dtype=np.int32)}
    result = run(kernel, out, {"x": vector(), "y": vector() + 0.5})
    return result, {"double": 2 * vector(), "integers": np.arange(8, dtype=np.int32)}


def _overlapping_windows():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].sum(keepdims=True)

    spec = {"in_specs": [window(3, lambda i: (i,))], "out_specs": rows(1)}
    x = vector()
    return run(kernel, shape(6), x, grid=(6,), **spec), x[:-2] + x[1:-1] + x[2:]


def _last_write_wins():
    again = block((2,), lambda i: (i % 2,))
    return run_rows(copy, shape(4), vector(), out_specs=again), vector()[4:]


def _any_memory():
    def kernel(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[pl.ds(2 * pl.program_id(0), 2)]

    return run_rows(kernel, shape(8), vector(), in_specs=[anywhere()]), 2 * vector()


def _traced_grid():
    def call(n, x):
        specs = {"in_specs": [rows()], "out_specs": rows(), "input_output_aliases": {0: 0}}
        return pl.pallas_call(double, out_shape=shape(8), grid=(n,), interpret=True, **specs)(x)

    return jax.jit(call)(np.int32(2), vector()), np.array([0, 2, 4, 6, 4, 5, 6, 7], F32)


GRIDS = {
    "integer_grid": _integer_grid,
    "transposed": _transposed,
    "reversed": _reversed,
    "three_axes": _three_axes,
    "axis_none": _axis_none,
    "matmul": _matmul,
    "softmax": _softmax,
    "tree_of_outputs": _tree_of_outputs,
    "overlapping_windows": _overlapping_windows,
    "last_write_wins": _last_write_wins,
    "any_memory": _any_memory,
    "traced_grid": _traced_grid,
}


@probe(source="jax-ml/jax@ea548e7c86d7", params=[*GRIDS])
def grid(env, name):
    """A kernel over a grid of blocks gives the value of NumPy."""
    result, reference = GRIDS[name]()
    return Observed(result, reference=reference)


def _double_in_place():
    specs = {"grid": (2,), "in_specs": [rows()], "out_specs": rows()}
    out = run(double, shape(8), vector(), input_output_aliases={0: 0}, **specs)
    return out, np.array([0, 2, 4, 6, 4, 5, 6, 7], F32)


def _output_read():
    def kernel(x_ref, o_ref):
        o_ref[...] = o_ref[...] + x_ref[...]

    return run(kernel, shape(8), vector(), input_output_aliases={0: 0}), 2 * vector()


def _rows_by_prefetch():
    indices, x = np.array([2, 0], np.int32), square()
    spec = block((1, 4), lambda i, indices: (indices[i], 0))

    def kernel(_, x_ref, o_ref):
        double(x_ref, o_ref)

    specs = prefetch(1, (2,), [spec], spec)
    out = run(kernel, shape(4, 4), indices, x, grid_spec=specs, input_output_aliases={1: 0})
    return out, x * np.array([[2], [1], [2], [1]], F32)


IN_PLACE = {
    "blocks": _double_in_place,
    "output_read": _output_read,
    "rows_by_prefetch": _rows_by_prefetch,
}


@probe(source="jax-ml/jax#22304", params=[*IN_PLACE])
def in_place(env, name):
    """With `input_output_aliases`, the parts of the output that are not written keep the input."""
    result, reference = IN_PLACE[name]()
    return Observed(result, reference=reference)


def _gathered():
    indices = np.array([2, 0, 3, 1], np.int32)
    spec = block((1, 4), lambda i, indices: (indices[i], 0))
    return indices, spec, block((1, 4), lambda i, _: (i, 0)), square()[indices]


def _scattered():
    indices, exact = np.array([2, 0, 3, 1], np.int32), np.zeros((4, 4), F32)
    exact[indices] = square()
    spec = block((1, 4), lambda i, indices: (indices[i], 0))
    return indices, block((1, 4), lambda i, _: (i, 0)), spec, exact


PREFETCHED = {"gathered": _gathered, "scattered": _scattered}


@probe(source="jax-ml/jax@d872812a359a", params=[*PREFETCHED])
def scalar_prefetch(env, name):
    """An index map reads a prefetched argument: rows are gathered or scattered."""
    indices, spec, out_spec, reference = PREFETCHED[name]()

    def kernel(_, x_ref, o_ref):
        copy(x_ref, o_ref)

    out = run(kernel, shape(4, 4), indices, square(), grid_spec=prefetch(1, (4,), [spec], out_spec))
    return Observed(out, reference=reference)


@probe(source="jax-ml/jax@d872812a359a")
def scratch_persists(env):
    """Scratch memory keeps its content from one step of the grid to the next."""

    def kernel(x_ref, o_ref, sum_ref, count_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)
            count_ref[0] = 0

        sum_ref[...] += x_ref[...]
        count_ref[0] += 1
        o_ref[...] = sum_ref[...] * count_ref[0]

    scratch = [pltpu.VMEM((2,), F32), pltpu.SMEM((1,), np.int32)]
    spec = prefetch(0, (4,), [rows()], rows(), scratch)
    out = run(kernel, shape(8), vector(), grid_spec=spec)
    totals = np.cumsum(vector().reshape(4, 2), 0) * np.arange(1, 5)[:, None]
    return Observed(out, reference=totals.ravel().astype(F32))


NO_SCRATCH_SHAPES = deviation(
    "jax<0.4.34",
    error="TypeError",
    match="unexpected keyword argument 'scratch_shapes'",
    reason="scratch memory needed a PrefetchScalarGridSpec",
    issue="jax-ml/jax@e90336947a7f",
)
NO_NAMED_SCRATCH = deviation(
    "jax>=0.4.34,<0.10",
    params=["named"],
    error="AttributeError",
    match="get_ref_aval",
    reason="scratch_shapes was a sequence",
    issue="jax-ml/jax@aa9b522f5ac7",
)


@probe(
    source="jax-ml/jax@e90336947a7f",
    params={"positional": {"named": False}, "named": {"named": True}},
    deviations=[NO_SCRATCH_SHAPES, NO_NAMED_SCRATCH],
)
def scratch_shapes(env, named):
    """`pallas_call` takes `scratch_shapes` from 0.4.34, and a dictionary from 0.10.0."""

    def kernel(x_ref, o_ref, scratch_ref):
        scratch_ref[...] = x_ref[...].astype(jnp.bfloat16)
        o_ref[...] = scratch_ref[...].astype(F32)

    memory = pltpu.VMEM((8,), jnp.bfloat16)
    x = vector() + F32(2**-10)
    out = run(kernel, shape(8), x, scratch_shapes={"scratch_ref": memory} if named else [memory])
    return Observed(out, reference=x.astype(jnp.bfloat16).astype(F32))
