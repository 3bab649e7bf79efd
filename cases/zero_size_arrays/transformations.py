"""Control flow, transformations, indexed updates and random numbers without elements."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import describe

defaults(source="jax-ml/jax@ff637e12f145")

EMPTY = np.zeros((0, 3), np.float32)
ROW = np.arange(3, dtype=np.float32)
INDICES = np.zeros(0, np.int32)
CALLS = {
    "scan": (lambda a: lax.scan(lambda c, x: (c + x.sum(), c), 1.0, a), "() [1.0]; (0,) []"),
    "scan_without_rows": (
        lambda _: lax.scan(lambda c, _: (c + 1, c), 1.0, None, length=0),
        "() [1.0]; (0,) []",
    ),
    "map": (lambda a: lax.map(lambda x: x.sum(), a), "(0,) []"),
    "vmap": (jax.vmap(lambda x: x.sum()), "(0,) []"),
    "associative_scan": (lambda a: lax.associative_scan(jnp.add, a), "(0, 3) []"),
    "fori_loop": (lambda a: lax.fori_loop(0, 3, lambda i, c: c + i, a), "(0, 3) []"),
    "while_loop": (
        lambda a: lax.while_loop(lambda c: c.sum() < 0, lambda c: c - 1, a),
        "(0, 3) []",
    ),
    "cond": (lambda a: lax.cond(a.sum() == 0, lambda b: b, lambda b: b + 1, a), "(0, 3) []"),
    "grad": (jax.grad(lambda a: (a**2).sum()), "(0, 3) []"),
    "jacobian": (jax.jacrev(lambda a: a.sum(0)), "(3, 0, 3) []"),
    "hessian": (jax.hessian(lambda a: (a**2).sum()), "(0, 3, 0, 3) []"),
    "linearize": (lambda a: jax.linearize(lambda b: b * 2, a)[1](a), "(0, 3) []"),
    "checkpoint": (
        jax.grad(lambda a: jax.checkpoint(jnp.sin)(a).sum()),
        "(0, 3) []",
    ),
    "gather": (lambda a: (ROW + a.sum())[INDICES], "(0,) []"),
    "set": (lambda a: (ROW + a.sum()).at[INDICES].set(a[:, 0]), "(3,) [0.0, 1.0, 2.0]"),
    "add": (lambda a: (ROW + a.sum()).at[INDICES].add(a[:, 0]), "(3,) [0.0, 1.0, 2.0]"),
    "set_in_empty": (lambda a: a.at[:].set(1), "(0, 3) []"),
    "dynamic_slice": (lambda a: lax.dynamic_slice(a, (0, 1), (0, 2)), "(0, 2) []"),
    "dynamic_update_slice": (
        lambda a: lax.dynamic_update_slice(ROW + a.sum(), a[:, 0], (1,)),
        "(3,) [0.0, 1.0, 2.0]",
    ),
    "top_k": (lambda a: lax.top_k(a, 0), "(0, 0) []; (0, 0) []"),
    "sort_of_two": (
        lambda a: lax.sort((a[:, 0], a[:, 1]), num_keys=2),
        "(0,) []; (0,) []",
    ),
    "segment_sum": (
        lambda a: jax.ops.segment_sum(a[:, 0], INDICES, 2),
        "(2,) [0.0, 0.0]",
    ),
    "reduce_window": (
        lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 2), (1, 1), "VALID"),
        "(0, 2) []",
    ),
    "conv": (
        lambda a: lax.conv(a[:, None, None], np.ones((2, 1, 1, 2), np.float32), (1, 1), "VALID"),
        "(0, 2, 1, 2) []",
    ),
    "dot_general": (
        lambda a: lax.dot_general(a, a, (((0,), (0,)), ((), ()))),
        "(3, 3) [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
    ),
    "softmax": (lambda a: jax.nn.softmax(a, axis=-1), "(0, 3) []"),
    "logsumexp": (lambda a: jax.nn.logsumexp(a, axis=0), "(3,) [-inf, -inf, -inf]"),
    "one_hot": (lambda _: jax.nn.one_hot(INDICES, 2), "(0, 2) []"),
    "normal": (lambda _: jax.random.normal(jax.random.PRNGKey(0), (0, 2)), "(0, 2) []"),
    "randint": (lambda _: jax.random.randint(jax.random.PRNGKey(0), (0,), 0, 9), "(0,) []"),
    "permutation": (lambda a: jax.random.permutation(jax.random.PRNGKey(0), a), "(0, 3) []"),
    "categorical": (lambda a: jax.random.categorical(jax.random.PRNGKey(0), a), "(0,) []"),
    "split_of_a_key": (lambda _: jax.random.split(jax.random.PRNGKey(0), 0), "(0, 2) []"),
    "pure_callback": (
        lambda a: jax.pure_callback(
            lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct((0, 3), np.float32), a
        ),
        "(0, 3) []",
    ),
    "bitcast": (lambda a: lax.bitcast_convert_type(a, np.int8), "(0, 3, 4) []"),
    "convert_to_bfloat16": (lambda a: a.astype(jnp.bfloat16).astype(np.float32), "(0, 3) []"),
}


@probe(params=[*CALLS])
def call(env, name):
    """A transformation or an operation of `lax` on an empty array."""
    fn, expected = CALLS[name]
    return Observed(describe(lambda: jax.jit(fn)(EMPTY)), expected)


SLICE_LARGER_THAN_NOTHING = deviation(
    "jax>=0.4.38,<0.8.1",
    params=["sort", "sort_of_rows"],
    outcome="ok",
    reason="the derivative of a sort is a gather, which refused slices of an empty array",
    issue="jax-ml/jax@cab8c2293e2d",
)
DERIVATIVES = {
    "sort": lambda a: jax.grad(lambda v: jnp.sort(v).sum())(a[:, 0]),
    "sort_of_rows": lambda a: jax.jvp(lambda m: jnp.sort(m, axis=0), (a,), (a,))[1],
    "cumsum": lambda a: jax.grad(lambda v: jnp.cumsum(v).sum())(a[:, 0]),
}


@probe(
    source="jax-ml/jax@cab8c2293e2d",
    params=[*DERIVATIVES],
    deviations=[SLICE_LARGER_THAN_NOTHING],
)
def derivative(env, name):
    """A derivative with respect to an empty array is an empty array."""
    expected = "(0, 3) []" if name == "sort_of_rows" else "(0,) []"
    return Observed(describe(lambda: jax.jit(DERIVATIVES[name])(EMPTY)), expected)


NO_GATHER = deviation(
    params=["all_gather"],
    outcome="ok",
    reason="the verifier of StableHLO refuses a gather along an axis of size 0",
    issue="openxla/stablehlo#1991",
)


@probe(
    source="jax-ml/jax#35013",
    devices=4,
    params=["psum", "all_gather", "ppermute", "all_to_all"],
    deviations=[NO_GATHER],
)
def collective(env, name):
    """A collective over shards without elements."""
    mesh = env.mesh(4, "x")
    spec = jax.sharding.PartitionSpec("x")
    collectives = {
        "psum": lambda a: lax.psum(a, "x"),
        "all_gather": lambda a: lax.all_gather(a, "x", tiled=True),
        "ppermute": lambda a: lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)]),
        "all_to_all": lambda a: lax.all_to_all(a, "x", 0, 0, tiled=True),
    }
    run = env.compat.shard_map(
        collectives[name], mesh=mesh, in_specs=spec, out_specs=spec, check=False
    )
    return Observed(describe(lambda: jax.jit(run)(EMPTY)), "(0, 3) []")
