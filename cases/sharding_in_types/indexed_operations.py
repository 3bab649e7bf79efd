"""Indexing, scatters and statistics on Explicit axes that move no data between shards.

The sharding of each result is not in doubt: the operation runs along an unsharded axis, or the
result is a single element. Several releases refuse such programs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, format_spec, numbers, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6")

INDICES = np.array([0, 1, 2, 0, 1, 2, 0, 1])


def run_explicit(env, fn, value, *spec):
    """Run a function under `jit` on an array on a mesh of four devices along the Explicit axis `x`.

    Args:
        env: Environment of the case.
        fn: Function of one array.
        value: NumPy array.
        *spec: Entries of its PartitionSpec.
    """
    mesh = env.mesh(SHARDS, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(fn)(put(mesh, value, *spec))
    return {"spec": format_spec(out), "value": out}


def expect(value, *spec):
    """Return the reference for `run_explicit`: a value, and the entries of its PartitionSpec."""
    return {"spec": str([*spec]), "value": value}


ONE_ELEMENT_NOT_DIVISIBLE = deviation(
    "jax<0.11",
    error="ShardingTypeError",
    match="slic(e|ing) on sharded dims where out dim \\(1\\)",
    reason="an index was a slice of length 1, which the four shards do not divide",
    issue="jax-ml/jax@424937b480b5",
)


@probe(
    source="jax-ml/jax@424937b480b5",
    params={
        "number": {"index": 5},
        "last": {"index": -1},
        "traced": {"index": None},
    },
    deviations=[ONE_ELEMENT_NOT_DIVISIBLE],
)
def element_under_jit(env, index):
    """`x[5]` of a vector over `x` is one number on every device; before 0.11.0, it was refused."""
    fn = (lambda x: x[jnp.int32(2)]) if index is None else lambda x: x[index]
    exact = numbers(8)[2 if index is None else index]
    return Observed(run_explicit(env, fn, numbers(8), "x"), expect(exact))


ELEMENT_COTANGENT_UNSHARDED = deviation(
    "jax>=0.11",
    error="ValueError",
    match="Expected cotangent type float32\\[8@x\\] but got float32\\[8\\]",
    reason="the transpose of the index pads with zeros into an unsharded array",
    issue="jax-ml/jax@424937b480b5",
)


@probe(
    source="jax-ml/jax@424937b480b5",
    deviations=[ONE_ELEMENT_NOT_DIVISIBLE, ELEMENT_COTANGENT_UNSHARDED],
)
def gradient_of_an_element(env):
    """The gradient of `x[5]` should be sharded like x; every release refuses it."""
    exact = np.eye(8, dtype=np.float32)[5]
    return Observed(
        run_explicit(env, jax.grad(lambda x: x[5]), numbers(8), "x"), expect(exact, "x")
    )


def sum_segments(x):
    """Return the sums of the rows with equal indices, in NumPy."""
    return np.array([x[i == INDICES].sum(0) for i in range(3)])


def add_rows(x):
    """Return the rows with the sums of rows of equal indices added to the first three."""
    exact = x.copy()
    np.add.at(exact, INDICES, x)
    return exact


SCATTERS = {
    "add": (lambda x: x.at[INDICES].add(x), add_rows),
    "maximum": (lambda x: x.at[INDICES].max(x), lambda x: np.concatenate([x[[6, 7, 5]], x[3:]])),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, INDICES, 3), sum_segments),
    "bincount": (lambda x: jnp.bincount(x[:, 0].astype(int) % 3, length=3), lambda _: [3, 2, 3]),
    "histogram": (lambda x: jnp.histogram(x, 4)[0], lambda _: [4.0] * 4),
    "lookup_gradient": (
        jax.grad(lambda x: (x[INDICES[:4]] ** 2).sum() / 2),
        lambda x: x * np.array([2, 1, 1, 0, 0, 0, 0, 0])[:, None],
    ),
}
NO_RULE_FOR_SCATTER_ADD = deviation(
    "jax<0.7",
    params=["add", "bincount", "histogram", "lookup_gradient"],
    error="ShardingTypeError",
    match="sharding rule for scatter-add is not implemented",
    reason="scatter-add had no sharding rule",
    issue="jax-ml/jax@3f380b70b704",
)
NO_RULE_FOR_SCATTER_MAX = deviation(
    "jax<0.7.1",
    params=["maximum"],
    error="ShardingTypeError",
    match="sharding rule for scatter-max is not implemented",
    reason="scatter-max had no sharding rule",
    issue="jax-ml/jax@235632474517",
)
NO_RULE_FOR_SEGMENTS = deviation(
    "jax<0.7.1",
    params=["segment_sum"],
    error="ShardingTypeError|NotImplementedError",
    match="sharding rule for scatter[-_]add is not implemented",
    reason="scatter-add into an array of zeros had no sharding rule",
    issue="jax-ml/jax@235632474517",
)


@probe(
    source="jax-ml/jax@235632474517",
    params={
        "add": {"what": "add"},
        "maximum": {"what": "maximum"},
        "segment_sum": {"what": "segment_sum"},
        "bincount": {"what": "bincount"},
        "histogram": {"what": "histogram"},
        "lookup_gradient": {"what": "lookup_gradient"},
    },
    deviations=[NO_RULE_FOR_SCATTER_ADD, NO_RULE_FOR_SCATTER_MAX, NO_RULE_FOR_SEGMENTS],
)
def scatter_into_an_unsharded_array(env, what):
    """Scatters of an array that every device holds run on every device.

    Before 0.7.0 or 0.7.1, an Explicit mesh in the context was enough to refuse them.
    """
    fn, exact = SCATTERS[what]
    x = numbers(8, 2)
    value = np.asarray(exact(x), np.int32 if what == "bincount" else np.float32)
    return Observed(run_explicit(env, fn, x), expect(value))


NO_RULE_FOR_GATHER = deviation(
    "jax<0.7",
    params=["quantile", "median"],
    error="ShardingTypeError",
    match=r"\.get\(out_sharding=\)",
    reason="the gather of the two middle elements of each row had no sharding rule",
    issue="jax-ml/jax@4119d5365ada",
)
NAN_MASK_UNSHARDED = deviation(
    params=["nanmedian"],
    error="ShardingTypeError",
    match="All operands should have the same sharding",
    reason="the ranks of the middle elements are made without the sharding of the rows",
    issue="jax-ml/jax@4119d5365ada",
)


@probe(
    source="jax-ml/jax@4119d5365ada",
    params={
        "quantile": {"name": "quantile"},
        "median": {"name": "median"},
        "nanmedian": {"name": "nanmedian"},
    },
    deviations=[NO_RULE_FOR_GATHER, NAN_MASK_UNSHARDED],
)
def statistic_of_each_row(env, name):
    """Quantiles of unsharded rows are sharded as the rows are; up to 0.6.2 they were refused.

    `nanmedian` is refused by every release.
    """
    quantile = {"q": 0.25} if name == "quantile" else {}
    fn = lambda x: getattr(jnp, name)(x, axis=1, **quantile)  # noqa: E731 - short
    exact = getattr(np, name)(numbers(8, 4).astype(np.float64), axis=1, **quantile)
    return Observed(run_explicit(env, fn, numbers(8, 4), "x"), expect(exact, "x"))


NO_RULE_FOR_RESHAPE = deviation(
    "jax<0.6.1",
    error="ShardingTypeError",
    match="This reshape is not supported",
    reason="the rule of reshape did not distinguish arrays without sharded axes",
    issue="jax-ml/jax@36cd3137923a",
)


@probe(source="jax-ml/jax@36cd3137923a", deviations=[NO_RULE_FOR_RESHAPE])
def reshape_of_an_unsharded_array(env):
    """Any reshape of an array that every device holds is accepted; 0.6.0 refused it."""
    x = numbers(8, 3)
    return Observed(
        run_explicit(env, lambda x: x.reshape(3, 8), x),
        expect(x.reshape(3, 8)),
    )
