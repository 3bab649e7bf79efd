"""What a training step does to each row of a batch, with the rows sharded over an Explicit axis.

No row needs another one, so each result and each gradient should be in rows. References are from
NumPy, which knows no shards.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, format_spec, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6.1")

LABELS = np.array([[0], [1], [2], [3], [0], [1], [2], [3]])
RANKS = np.array([0, 10, 20, 30], np.float32)


def cross_entropy(x):
    """Return the loss of each row for the labels."""
    return -jnp.take_along_axis(jax.nn.log_softmax(x), LABELS, axis=1)[:, 0]


def compute_cross_entropy(x):
    """Return `cross_entropy`, by NumPy."""
    return np.log(np.exp(x).sum(1)) - np.take_along_axis(x, LABELS, axis=1)[:, 0]


def drop_none(x):
    """Return x after a dropout that keeps each number."""
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 1.0, x.shape), x, 0)


OPERATIONS = {
    "columns": (lambda x: x[:, np.array([2, 1])], lambda x: x[:, [2, 1]]),
    "every_second_column": (lambda x: x[:, ::2], lambda x: x[:, ::2]),
    "cross_entropy": (cross_entropy, compute_cross_entropy),
    "gradient_of_a_sort": (
        jax.grad(lambda x: (jnp.sort(x, axis=1) * RANKS).sum()),
        lambda x: RANKS[x.argsort(1).argsort(1)],
    ),
    "dropout": (drop_none, lambda x: x),
    "inserted_column": (
        lambda x: jnp.insert(x, 1, 2.0, axis=1),
        lambda x: np.insert(x, 1, 2.0, axis=1),
    ),
    "looked_up": (
        lambda x: jnp.searchsorted(RANKS, x).astype(np.float32),
        lambda x: np.searchsorted(RANKS, x).astype(np.float32),
    ),
    "batch_of_matrices": (
        lambda x: jnp.linalg.solve(np.eye(4, dtype=np.float32) * 2, x[..., None])[..., 0],
        lambda x: x / 2,
    ),
}

NO_RULE_FOR_GATHER = deviation(
    "jax<0.7",
    params=["columns", "every_second_column", "cross_entropy", "gradient_of_a_sort"],
    error="ShardingTypeError",
    match=r"\.get\(out_sharding=\)",
    reason="a gather had no sharding rule",
    issue="jax-ml/jax@4119d5365ada",
)
SORT_REFUSED = deviation(
    "jax>=0.8.2,<0.11",
    params=["gradient_of_a_sort"],
    error="ShardingTypeError",
    match="Arguments to sort must have equal shardings",
    reason="the indices that are sorted with the array were not sharded",
    issue="jax-ml/jax@32d830f9cf21",
)
MASK_UNSHARDED = deviation(
    "jax<0.7.2",
    params=["dropout"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="the mask is not sharded",
)
TABLE_WITHOUT_MESH = deviation(
    params=["looked_up"],
    error="ValueError",
    match="Resource axis: x of .* is not found in mesh",
    reason="the search is a vmap over the numbers, whose table has no mesh",
)
NO_RULE_FOR_SCATTER_ADD = deviation(
    "jax<0.7",
    params=["inserted_column"],
    error="ShardingTypeError",
    match="sharding rule for scatter-add is not implemented",
    reason="scatter-add had no sharding rule",
    issue="jax-ml/jax@235632474517",
)
INSERTED_IN_GATHERED_ROWS = deviation(
    "jax>=0.7,<0.10,!=0.7.1",
    params=["inserted_column"],
    outcome="ok",
    reason="the rows are written into an array of zeros that is not sharded",
)
ZEROS_UNSHARDED = deviation(
    "jax>=0.10",
    params=["inserted_column"],
    error="ValueError",
    match="Incompatible types for broadcasting",
    reason="the rows are written into an array of zeros that is not sharded",
)
ROWS_INTO_COLUMNS = deviation(
    params=["batch_of_matrices"],
    error="ShardingTypeError|ValueError",
    match="Mesh of both lhs and rhs|triangular_solve must be unsharded|Resource axis: x of",
    reason="the rows become the right sides of a single system, which has no batch",
)


@probe(
    source="jax-ml/jax@4119d5365ada",
    params={
        "columns": {"name": "columns"},
        "every_second_column": {"name": "every_second_column"},
        "cross_entropy": {"name": "cross_entropy"},
        "gradient_of_a_sort": {"name": "gradient_of_a_sort"},
        "dropout": {"name": "dropout"},
        "inserted_column": {"name": "inserted_column"},
        "looked_up": {"name": "looked_up"},
        "batch_of_matrices": {"name": "batch_of_matrices"},
    },
    deviations=[
        NO_RULE_FOR_GATHER,
        SORT_REFUSED,
        MASK_UNSHARDED,
        TABLE_WITHOUT_MESH,
        NO_RULE_FOR_SCATTER_ADD,
        INSERTED_IN_GATHERED_ROWS,
        ZEROS_UNSHARDED,
        ROWS_INTO_COLUMNS,
    ],
)
def operation_on_each_row(env, name):
    """Steps such as cross-entropy run on sharded rows from 0.7.0, as on one device."""
    fn, exact = OPERATIONS[name]
    mesh, x = env.mesh(SHARDS, "x", explicit=True), env.rng(0).random((8, 4)).astype(np.float32)
    with env.compat.set_mesh(mesh):
        out = jax.jit(fn)(put(mesh, x, "x"))
    value = exact(x if name in ("looked_up", "inserted_column") else x.astype(np.float64))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": value})


SHIFT_REFUSED = deviation(
    "jax>=0.11",
    error="ShardingTypeError",
    match="cannot be sharded on the axis being rolled over",
    reason="`jnp.roll` refuses a sharded axis",
    issue="jax-ml/jax@098e1332825b",
)


@probe(source="jax-ml/jax@098e1332825b", deviations=[SHIFT_REFUSED])
def shift_along_a_sharded_axis(env):
    """`fftshift` along a sharded axis runs up to 0.10.2, and is refused from 0.11.0 on."""
    mesh, x = env.mesh(SHARDS, "x", explicit=True), np.arange(8, dtype=np.float32)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jnp.fft.fftshift)(put(mesh, x, "x"))
    return Observed(out, reference=np.fft.fftshift(x))
