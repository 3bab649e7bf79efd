"""One spelling of Pallas for every release, and calls of kernels in interpret mode."""

from __future__ import annotations

import inspect
import re
import warnings

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = np.float32


def vector(size=8):
    """Return the numbers from 0, float32."""
    return np.arange(size, dtype=F32)


def square(size=4):
    """Return the numbers from 0 in a square, float32."""
    return vector(size * size).reshape(size, size)


def shape(*sizes, dtype=F32):
    """Return the description of an output."""
    return jax.ShapeDtypeStruct(sizes, dtype)


def block(sizes, index_map, **keywords):
    """Return a BlockSpec; up to 0.4.30 the index map was the first argument."""
    return pl.BlockSpec(block_shape=sizes, index_map=index_map, **keywords)


def rows(size=2):
    """Return the BlockSpec of consecutive blocks of a vector."""
    return block((size,), lambda i: (i,))


def window(size, index_map, padding=(0, 0)):
    """Return a BlockSpec whose index map returns the first element, not the number of the block.

    It is `pl.Element` from 0.6.1; before, it was `indexing_mode=pl.Unblocked()`.
    """
    if hasattr(pl, "Element"):
        return block((pl.Element(size, padding),), index_map)
    return block((size,), index_map, indexing_mode=pl.Unblocked((padding,)))


def anywhere():
    """Return the BlockSpec of an argument without blocks: `pl.ANY`, up to 0.4.33 `pltpu.ANY`."""
    return pl.BlockSpec(memory_space=pl.ANY if hasattr(pl, "ANY") else pltpu.ANY)


def prefetch(count, grid, in_specs, out_specs, scratch=()):
    """Return a grid specification with arguments for the index maps and scratch memory."""
    return pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=count,
        grid=grid,
        in_specs=in_specs,
        out_specs=out_specs,
        scratch_shapes=list(scratch),
    )


def kernel_call(kernel, out, **keywords):
    """Return a function that runs a kernel, in interpret mode unless `interpret` is given."""
    return pl.pallas_call(kernel, out_shape=out, **{"interpret": True, **keywords})


def run(kernel, out, *args, **keywords):
    """Run a kernel in interpret mode under jit, and return its result."""
    return jax.jit(kernel_call(kernel, out, **keywords))(*args)


def run_rows(kernel, out, *args, grid=4, **keywords):
    """Run a kernel on blocks of two elements of each argument and of the result."""
    specs = {"in_specs": [rows()] * len(args), "out_specs": rows()}
    return run(kernel, out, *args, grid=(grid,), **{**specs, **keywords})


def copy(x_ref, o_ref):
    """Copy a block."""
    o_ref[...] = x_ref[...]


def double(x_ref, o_ref):
    """Double a block."""
    o_ref[...] = 2 * x_ref[...]


def square_elements(x_ref, o_ref):
    """Square each element of a block."""
    o_ref[...] = x_ref[...] * x_ref[...]


def accumulate(x_ref, o_ref):
    """Sum the blocks of the first axis of the grid."""

    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jax.numpy.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def core_mesh():
    """Return a mesh of one TensorCore; `create_tensorcore_mesh` takes `num_cores` from 0.6.1."""
    if "num_cores" in inspect.signature(pltpu.create_tensorcore_mesh).parameters:
        return pltpu.create_tensorcore_mesh("core", num_cores=1)
    from jax._src.pallas.mosaic.core import TensorCoreMesh  # noqa: PLC0415 - not public

    return TensorCoreMesh(np.array([0]), ("core",))


def kernel_of_cores(body, size, interpret):
    """Return `pl.kernel` of a body on one core; `out_type` was `out_shape` up to 0.10.0."""
    named = inspect.signature(pl.kernel).parameters
    out = {"out_type" if "out_type" in named else "out_shape": shape(size)}
    return pl.kernel(body, mesh=core_mesh(), interpret=interpret, **out)


def first_words(error, count=100):
    """Return the beginning of the message of an error, without places and addresses."""
    text = " ".join(str(error).split())
    text = re.sub(r" at \S+:\d+", "", re.sub(r"0x[0-9a-f]+", "0x", text))
    return re.sub(r"<function [^>]*>", "<function>", text)[:count].strip()


def describe(call):
    """Return `works`, or the class and first words of the error of a call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return f"{type(error).__name__}: {first_words(error)}".removesuffix(": ")
    return "works"
