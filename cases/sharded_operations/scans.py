"""Cumulative operations, scans and convolutions along the axes of a sharded matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import WEIGHTS, Operation, compare, numpy_api

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

KERNEL = np.outer(WEIGHTS, WEIGHTS)


def halve_and_add(carry, row):
    """Return the next carry of a scan, and the present one as its output."""
    return carry / 2 + row, carry


def run_scan(a):
    """Return the outputs of a scan of `halve_and_add` over the rows, by NumPy."""
    carries = [0 * a[0]]
    for row in a[:-1]:
        carries.append(halve_and_add(carries[-1], row)[0])
    return np.stack(carries)


def convolve_image(a):
    """Return the convolution of a matrix with `KERNEL` and stride 2, by NumPy."""
    starts = (0, 2, 4)
    return np.array(
        [[(a[i : i + 3, j : j + 3] * KERNEL).sum() for j in starts] for i in starts], np.float32
    )


def convolve_rows(a):
    """Return the convolution of each row of a matrix with `WEIGHTS`, by NumPy."""
    return np.stack([np.convolve(row, WEIGHTS[::-1], "same") for row in a])


OPERATIONS = {
    "cumsum": numpy_api(lambda n, a: n.cumsum(a, axis=0)),
    "cumsum_axis_1": numpy_api(lambda n, a: n.cumsum(a, axis=1)),
    "cumsum_flat": numpy_api(lambda n, a: n.cumsum(a)),
    "cumsum_reverse": Operation(
        lambda a: lax.cumsum(a, 0, reverse=True),
        lambda a: a[::-1].cumsum(0)[::-1],
    ),
    "cumsum_int32": numpy_api(lambda n, a: n.cumsum((9 * a).astype(np.int32), axis=1)),
    "cumprod": numpy_api(lambda n, a: n.cumprod(a, axis=0)),
    "diff": numpy_api(lambda n, a: n.diff(a, axis=0)),
    "diff_axis_1": numpy_api(lambda n, a: n.diff(a, axis=1)),
    "gradient": numpy_api(lambda n, a: n.gradient(a, axis=0)),
    "scan": Operation(lambda a: lax.scan(halve_and_add, 0 * a[0], a)[1], run_scan),
    "scan_reverse": Operation(
        lambda a: lax.scan(halve_and_add, 0 * a[0], a, reverse=True)[1],
        lambda a: run_scan(a[::-1])[::-1],
    ),
    "associative_scan": Operation(
        lambda a: lax.associative_scan(jnp.add, a), lambda a: a.cumsum(0)
    ),
    "map": Operation(
        lambda a: lax.map(lambda row: row[::-1].cumsum(), a),
        lambda a: a[:, ::-1].cumsum(1),
    ),
    "convolve": numpy_api(lambda n, a: n.convolve(a[0], WEIGHTS, mode="same")),
    "conv_batch": Operation(
        lambda a: lax.conv_general_dilated(a[:, None], WEIGHTS[None, None], (1,), "SAME")[:, 0],
        convolve_rows,
    ),
    "conv_batch_of_columns": Operation(
        lambda a: lax.conv_general_dilated(a.T[:, None], WEIGHTS[None, None], (1,), "SAME")[:, 0],
        lambda a: convolve_rows(a.T),
    ),
    "conv_image": Operation(
        lambda a: lax.conv_general_dilated(a[None, None], KERNEL[None, None], (2, 2), "VALID")[
            0, 0
        ],
        convolve_image,
    ),
}


ADDED_UP = deviation(
    "jax<0.5",
    params=["associative_scan", "gradient"],
    outcome="ok",
    reason="parts were concatenated, and their copies along an unused axis of the mesh added up",
    issue="jax-ml/jax#24576",
)


@probe(source="jax-ml/jax#21403", params=[*OPERATIONS], deviations=[ADDED_UP])
def accumulated(env, name):
    """A cumulative operation, scan or convolution of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name], eager=False)


COUNTER_OF_ANOTHER_SIZE = deviation(
    "jax<0.6",
    error="XlaRuntimeError",
    match="Binary op compare with different element types",
    reason="the partitioner compared the 64-bit counter of the loop with 32-bit offsets",
    issue="jax-ml/jax#19691",
)


@probe(source="jax-ml/jax#19691", x64=True, deviations=[COUNTER_OF_ANOTHER_SIZE])
def mapped_in_64_bits(env):
    """With x64, `lax.map` over a sharded vector, which is read again afterwards, compiles."""
    x = np.arange(16, dtype=np.float64)
    sharded = jax.device_put(x, NamedSharding(env.mesh(8, "x"), P("x")))
    f = jax.jit(lambda x: x - lax.map(lambda element: 3 * element, x))
    return Observed(f(sharded), reference=-2 * x)
