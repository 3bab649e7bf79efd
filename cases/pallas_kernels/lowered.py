"""Kernels lowered for a TPU and for a GPU on a host that has neither, as `jax.export` does it.

Whether an operation of a kernel can be lowered is a property of the front end: nothing is compiled.
"""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from conformance.kit import defaults, probe
from conformance.kit.endings import refusal

from ._helpers import F32, shape

defaults(platforms=("cpu",), releases="jax>=0.4.33")

TILE, SQUARE = (8, 128), (128, 128)
POSSIBLE_LATER = {
    "argmax": (lambda x: _rows(jnp.argmax(x, axis=1)), [TILE], F32, np.int32),
    "atan2": (lax.atan2, [TILE, TILE], F32, F32),
    "erf": (lax.erf, [TILE], F32, F32),
    "float_to_unsigned": (lambda x: x.astype(np.uint32), [TILE], F32, np.uint32),
    "precision_high": (lambda x, y: jnp.dot(x, y, precision="high"), [SQUARE] * 2, F32, F32),
    "scan": (lambda x: lax.scan(_double_carry, x, None, length=4)[0], [TILE], F32, F32),
    "softmax": (jax.nn.softmax, [TILE], F32, F32),
    "unrolled_loop": (lambda x: lax.fori_loop(0, 4, _add, x, unroll=2), [TILE], F32, F32),
}
REFUSED_LATER = {
    "bytes": (lambda x, y: lax.dot(x, y, preferred_element_type=np.int32), [SQUARE] * 2, np.uint8),
    "debug_print": (lambda x: (jax.debug.print("{}", x[0, 0]), x)[1], [TILE], F32),
    "floor_division": (lambda x, y: x // y, [TILE, TILE], np.int32),
    "float_iota": (lambda _: lax.broadcasted_iota(F32, TILE, 1), [TILE], F32),
    "row_of_a_vector": (lambda x: jnp.broadcast_to(x, TILE), [(128,)], F32),
    "sinc": (jnp.sinc, [TILE], F32),
}


def _rows(x):
    return jnp.broadcast_to(x[:, None], TILE)


def _double_carry(carry, _):
    return 2 * carry, None


def _add(i, x):
    return x + i


def lowered(platform, operation, sizes, dtype, result, **keywords):
    """Return `lowered`, or `refused`, for a kernel that applies one operation to its arguments."""

    def kernel(*refs):
        refs[-1][...] = operation(*(ref[...] for ref in refs[:-1]))

    args = [jax.ShapeDtypeStruct(size, dtype) for size in sizes]
    out = shape(*jax.eval_shape(operation, *args).shape, dtype=result)
    f = jax.jit(pl.pallas_call(kernel, out_shape=out, **keywords))
    how = refusal(lambda: f.trace(*args).lower(lowering_platforms=(platform,)))
    return "lowered" if how == "ran" else "refused"


@probe(
    source="jax-ml/jax@73d1b26cf64c",
    records="which operations a kernel of a TPU may have is up to JAX",
)
def operations_of_tpus_possible_later(env):
    """Operations of a kernel that can be lowered for a TPU since some release."""
    return {name: lowered("tpu", *case) for name, case in POSSIBLE_LATER.items()}


@probe(
    source="jax-ml/jax@9e83c4450db4",
    records="which operations a kernel of a TPU may have is up to JAX",
)
def operations_of_tpus_refused_later(env):
    """Operations of a kernel that some release no longer lowers for a TPU on another host."""
    results = {"bytes": np.int32, "floor_division": np.int32}
    return {
        name: lowered("tpu", *case, results.get(name, F32)) for name, case in REFUSED_LATER.items()
    }


def triton():
    """Return the keyword that selects Triton; up to 0.8.3 it was the default."""
    with contextlib.suppress(ImportError, AttributeError):
        from jax.experimental.pallas import triton as backend  # noqa: PLC0415 - not always

        return {"compiler_params": backend.CompilerParams()}
    return {}


@probe(
    source="jax-ml/jax@9a4285868507",
    records="which operations a kernel of a GPU may have is up to JAX",
)
def operations_of_gpus(env):
    """Operations of a kernel that Triton lowers for a GPU on a host without a GPU."""
    operations = {
        "sine": (jnp.sin, [TILE], F32, F32),
        "is_finite": (jnp.isfinite, [TILE], F32, np.bool_),
        "tile": (lambda x: jnp.tile(x, (2, 1)), [TILE], F32, F32),
    }
    return {name: lowered("cuda", *case, **triton()) for name, case in operations.items()}
