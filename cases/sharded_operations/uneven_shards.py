"""Operations on a matrix whose shards have different sizes, by sharding constraints under jit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import Operation, compare_uneven, numpy_api, operators

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

ROWS = np.array([3, 0, 6, 5, 5, 1])
OPERATIONS = {
    "sum": numpy_api(lambda n, a: n.sum(a, axis=0)),
    "max": numpy_api(lambda n, a: n.max(a, axis=1)),
    "argmin": numpy_api(lambda n, a: n.argmin(a, axis=0)),
    "prod": numpy_api(lambda n, a: n.prod(a)),
    "var": numpy_api(lambda n, a: n.var(a, axis=1)),
    "softmax": Operation(
        lambda a: jax.nn.softmax(a, axis=0),
        lambda a: np.exp(a) / np.exp(a).sum(0),
    ),
    "cumsum": numpy_api(lambda n, a: n.cumsum(a, axis=0)),
    "cumprod": numpy_api(lambda n, a: n.cumprod(a, axis=1)),
    "sort": numpy_api(lambda n, a: n.sort(a, axis=0)),
    "argsort": numpy_api(lambda n, a: n.argsort(a, axis=1)),
    "median": numpy_api(lambda n, a: n.median(a, axis=0)),
    "top_k": Operation(
        lambda a: lax.top_k(a.T, 3)[0],
        lambda a: np.sort(a.T, axis=1)[:, :-4:-1],
    ),
    "reverse": operators(lambda a: a[::-1]),
    "slice": operators(lambda a: a[2:5, 1:]),
    "gather": operators(lambda a: a[ROWS]),
    "transpose": operators(lambda a: a.T),
    "ravel": operators(lambda a: a.reshape(-1)),
    "roll": numpy_api(lambda n, a: n.roll(a, 2, axis=0)),
    "concatenate": numpy_api(lambda n, a: n.concatenate([a, a[:3]])),
    "pad": numpy_api(lambda n, a: n.pad(a, 1)),
    "diff": numpy_api(lambda n, a: n.diff(a, axis=0)),
    "matmul": operators(lambda a: a @ a.T),
    "einsum": numpy_api(lambda n, a: n.einsum("ij,ik->jk", a, a)),
    "set_then_set": Operation(
        lambda a: a.at[:-1].set(a[1:]).at[-1].set(np.full(6, 1.5, np.float32)),
        lambda a: np.concatenate([a[1:], np.full((1, 6), 1.5, np.float32)]),
    ),
    "scan": Operation(
        lambda a: lax.scan(lambda c, row: (c + row, c + row), 0 * a[0], a)[1],
        lambda a: a.cumsum(0),
    ),
    "associative_scan": Operation(
        lambda a: lax.associative_scan(jnp.add, a), lambda a: a.cumsum(0)
    ),
    "fft": numpy_api(lambda n, a: n.abs(n.fft.fft(a, axis=0)).astype(np.float32)),
    "cholesky": numpy_api(
        lambda n, a: n.linalg.cholesky(a.T @ a + 9 * np.eye(6, dtype=np.float32))
    ),
}


UNEVEN_RESULT_REFUSED = deviation(
    "jax>=0.9.1,<0.10",
    params=[
        "argmin",
        "argsort",
        "associative_scan",
        "cholesky",
        "concatenate",
        "cumprod",
        "cumsum",
        "diff",
        "einsum",
        "fft",
        "gather",
        "matmul",
        "max",
        "median",
        "reverse",
        "roll",
        "scan",
        "set_then_set",
        "softmax",
        "sort",
        "sum",
        "top_k",
        "transpose",
        "var",
    ],
    error="IndivisibleError",
    reason="a result for which XLA chose shards of different sizes was refused",
    issue="jax-ml/jax@822e9a7cc31e",
)
ADDED_UP = deviation(
    "jax<0.5",
    params=["associative_scan", "concatenate"],
    outcome="ok",
    reason="parts were concatenated, and their copies along an unused axis of the mesh added up",
    issue="jax-ml/jax#24576",
)
LAST_ROWS_LOST = deviation(
    "jax<0.12,!=0.9.1,!=0.9.2",
    params=["set_then_set"],
    outcome="ok",
    reason="the last row of each shard but the last was that of the whole matrix",
    issue="jax-ml/jax#18434",
)
GRADIENT_OF_MEDIAN = deviation(
    "jax>=0.4.38,!=0.9.1,!=0.9.2",
    params=["median"],
    outcome="crashed",
    reason="a check of the partitioner fails and ends the process",
)
GRADIENT_OF_SORT = deviation(
    "jax>=0.7,!=0.9.1,!=0.9.2",
    params=["sort"],
    outcome="crashed",
    reason="a check of the partitioner fails and ends the process",
)


@probe(
    source="jax-ml/jax#13632",
    params=[*OPERATIONS],
    deviations=[
        UNEVEN_RESULT_REFUSED,
        ADDED_UP,
        LAST_ROWS_LOST,
        GRADIENT_OF_MEDIAN,
        GRADIENT_OF_SORT,
    ],
)
def uneven(env, name):
    """An operation on unevenly sharded matrices equals NumPy."""
    return compare_uneven(env, OPERATIONS[name])


SHARDING_WITHOUT_A_MESH = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="a mesh that only a constraint names was not that of the result",
)
HALVES_OF_THE_COMPILER = deviation(
    "jax>=0.7,<0.9.1",
    outcome="ok",
    reason="the result is in halves, each on two devices, with a sharding of no mesh",
)
FOUR_DO_NOT_DIVIDE_SIX = deviation(
    "jax>=0.9.1,<0.10",
    error="IndivisibleError",
    match="is incompatible with mesh_shape",
    reason="the halves of the compiler are no sharding over the mesh",
)
CONSTRAINED_RESULT_REFUSED = deviation(
    "jax>=0.11.2",
    params=["constrained"],
    error="IndivisibleError",
    match="is incompatible with mesh_shape",
    reason="the halves of the compiler are no sharding over the mesh",
)


@probe(
    source="jax-ml/jax@df8e17a54910",
    devices=4,
    xla_flags=[],
    params={"constrained": {"factor": None}, "doubled": {"factor": 2}},
    deviations=[
        SHARDING_WITHOUT_A_MESH,
        HALVES_OF_THE_COMPILER,
        FOUR_DO_NOT_DIVIDE_SIX,
        CONSTRAINED_RESULT_REFUSED,
    ],
)
def six_numbers_on_four_devices(env, factor):
    """A result of jit with a constraint that does not divide it is replicated.

    From 0.7.0 to 0.9.0 it is in halves, from 0.9.1 to 0.9.2 refused, and from 0.11.2 on refused
    again if the constraint is the last operation.
    """
    along_x = NamedSharding(env.mesh(4, "x"), P("x"))

    def fn(x):
        y = lax.with_sharding_constraint(x, along_x)
        return y if factor is None else factor * y

    x = np.arange(6, dtype=np.float32)
    out = jax.jit(fn)(x)
    return Observed(
        {
            "value": np.asarray(out),
            "class": type(out.sharding).__name__,
            "replicated": out.sharding.is_fully_replicated,
        },
        {"value": x * (factor or 1), "class": "NamedSharding", "replicated": True},
    )
