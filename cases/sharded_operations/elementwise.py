"""Elementwise operations on a sharded matrix with rows, ranges and random numbers; control flow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import defaults, deviation, probe

from ._helpers import SIZE, Operation, compare, numpy_api, operators, unsharded

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])


def make_key():
    """Return a key; at import it would make an array."""
    return jax.random.PRNGKey(0)


OPERATIONS = {
    "sin": numpy_api(lambda n, a: n.sin(a)),
    "add_row": operators(lambda a: a + a[0]),
    "add_column": operators(lambda a: a + a[:, :1]),
    "maximum_of_reverse": numpy_api(lambda n, a: n.maximum(a, a[::-1])),
    "add_linspace": numpy_api(lambda n, a: a + n.linspace(0, 1, SIZE, dtype=np.float32)),
    "multiply_arange": numpy_api(lambda n, a: a * n.arange(SIZE, dtype=np.float32)[:, None]),
    "add_eye": numpy_api(lambda n, a: a + n.eye(SIZE, dtype=np.float32)),
    "linspace_between_rows": numpy_api(lambda n, a: n.linspace(a[0], a[1], 5, dtype=np.float32)),
    "broadcast_to": numpy_api(lambda n, a: n.broadcast_to(a[None], (3, SIZE, SIZE))),
    "cond": Operation(
        lambda a: lax.cond(a.sum() > 0, lambda b: b.cumsum(0), lambda b: b, a),
        lambda a: a.cumsum(0),
    ),
    "while_loop": Operation(
        lambda a: lax.while_loop(lambda c: c.sum() < 900, lambda c: 2 * c, 9 * a).astype(np.int32),
        lambda a: (9 * a * 2 ** np.ceil(np.log2(100 / a.sum())).astype(np.float32)).astype(
            np.int32
        ),
    ),
    "checkpoint": Operation(
        jax.checkpoint(lambda b: jnp.sin(b @ b / 9)),
        lambda a: np.sin(a @ a / 9),
    ),
    "vmap": Operation(
        jax.vmap(lambda row: row[::-1] * row.sum()), lambda a: a[:, ::-1] * a.sum(1, keepdims=True)
    ),
    "vmap_columns": Operation(
        jax.vmap(lambda row: row[::-1] * row.sum(), in_axes=1, out_axes=1),
        lambda a: a[::-1] * a.sum(0),
    ),
    "random_normal": unsharded(lambda a: a + jax.random.normal(make_key(), a.shape)),
    "random_bits": unsharded(
        lambda a: (a > 1) * (jax.random.bits(make_key(), a.shape) >> 8).astype(np.int32)
    ),
    "permutation": unsharded(lambda a: jax.random.permutation(make_key(), a)),
    "categorical": unsharded(lambda a: jax.random.categorical(make_key(), 9 * a, axis=0)),
    "dropout": unsharded(
        lambda a: jnp.where(jax.random.bernoulli(make_key(), 0.5, a.shape), 2 * a, 0)
    ),
}


ADDED_UP = deviation(
    "jax<0.5",
    params=["add_linspace", "categorical", "dropout", "random_bits", "random_normal"],
    outcome="ok",
    reason="parts were concatenated, and their copies along an unused axis of the mesh added up",
    issue="jax-ml/jax#24576",
)


@probe(source="jax-ml/jax#24576", params=[*OPERATIONS], deviations=[ADDED_UP])
def computed(env, name):
    """An elementwise operation, loop or random draw is that of a matrix on one device."""
    return compare(env, OPERATIONS[name])
