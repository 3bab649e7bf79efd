"""Operations on arrays with reduced axes: copies whose gradients are partial sums, not yet added.

The gradient of a reduced weight is unreduced: each device holds its part. An operation without a
rule for such axes refuses them. If a device holds a copy in place of a part, the sum is too large.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import numbers, put, reshard

defaults(devices=2, platforms=("cpu",), releases="jax>=0.8.2")


def describe(array):
    """Return the shape of a shard, and the reduced and unreduced axes of an array."""
    spec = array.sharding.spec
    return {
        "shard": list(array.addressable_shards[0].data.shape),
        "reduced": ",".join(sorted(spec.reduced)),
        "unreduced": ",".join(sorted(spec.unreduced)),
    }


def values(array):
    """Return the values of an array after its sum is made."""
    return np.asarray(reshard(array, P()), np.float32)


def half(w):
    """Return ones in the first two of four rows, zeros in the others."""
    return np.repeat(np.float32([1, 1, 0, 0])[:, None], 4, axis=1)


def every_other(w):
    """Return ones in the first and third of four rows, zeros in the others."""
    return np.repeat(np.float32([1, 0, 1, 0])[:, None], 4, axis=1)


def once(w):
    """Return ones."""
    return np.ones((4, 4), np.float32)


def twice(w):
    """Return twos."""
    return 2 * once(w)


OF_A_WEIGHT = {
    "sin": (jnp.sin, np.sin, np.cos),
    "sqrt": (jnp.sqrt, np.sqrt, lambda w: 0.5 / np.sqrt(w)),
    "tanh": (jnp.tanh, np.tanh, lambda w: 1 - np.tanh(w) ** 2),
    "square": (lambda w: w * w, np.square, lambda w: 2 * w),
    "scaled": (lambda w: 2 * w, lambda w: 2 * w, twice),
    "negative": (lambda w: -w, np.negative, lambda w: -once(w)),
    "astype": (lambda w: w.astype(jnp.bfloat16), lambda w: w, once),
    "reduce_precision": (lambda w: lax.reduce_precision(w, 8, 7), lambda w: w, once),
    "sum": (jnp.sum, np.sum, once),
    "max": (jnp.max, np.max, lambda w: (w == w.max()).astype(np.float32)),
    "maximum": (lambda w: jnp.maximum(w, w + w), lambda w: 2 * w, twice),
    "select": (lambda w: lax.select(np.ones((4, 4), bool), w, w), lambda w: w, once),
    "transpose": (lambda w: w.T, np.transpose, once),
    "reshape": (lambda w: w.reshape(2, 8), lambda w: w.reshape(2, 8), once),
    "broadcast": (
        lambda w: lax.broadcast_in_dim(w, (2, 4, 4), (1, 2)),
        lambda w: np.stack([w, w]),
        twice,
    ),
    "split": (lambda w: jnp.split(w, 2)[0], lambda w: w[:2], half),
    "slice": (lambda w: w[:2], lambda w: w[:2], half),
    "pad": (
        lambda w: lax.pad(w, np.float32(0), [(1, 0, 0), (0, 0, 0)]),
        lambda w: np.pad(w, [(1, 0), (0, 0)]),
        once,
    ),
    "concatenate": (
        lambda w: jnp.concatenate([w, w]),
        lambda w: np.concatenate([w, w]),
        twice,
    ),
    "rows": (lambda w: w.at[np.array([0, 2])].get(), lambda w: w[[0, 2]], every_other),
    "vmap": (jax.vmap(jnp.sin), np.sin, np.cos),
    "cond": (lambda w: lax.cond(True, lambda w: w + w, lambda w: w, w), lambda w: 2 * w, twice),
    "loop": (
        lambda w: lax.fori_loop(0, 3, lambda _, c: c + c, w),
        lambda w: 8 * w,
        lambda w: 8 * once(w),
    ),
    "scan": (
        lambda w: lax.scan(lambda c, row: (c + row, None), w[0], w)[0],
        lambda w: w[0] + w.sum(0),
        lambda w: once(w) + np.eye(4, 1, dtype=np.float32),
    ),
    "checkpoint": (jax.checkpoint(jnp.sin), np.sin, np.cos),
}

COPIES_FOR_PARTS = deviation(
    "jax<0.9",
    params=["sin", "sqrt", "sum", "transpose", "astype", "vmap"],
    outcome="ok",
    reason="each device held the whole gradient, so that the sum was too large by their number",
)
COPIES_OF_A_PRODUCT = deviation(
    "jax<0.9.2",
    params=["square", "cond", "tanh"],
    outcome="ok",
    reason="each device held the whole gradient, so that the sum was too large by their number",
)
COPIES_OF_A_SPLIT = deviation(
    "jax>=0.9.1,<0.9.2",
    params=["concatenate"],
    outcome="ok",
    reason="each device held the whole gradient, so that the sum was too large by their number",
)
COPIES_OF_A_SCAN = deviation(
    "jax>=0.10.2,<0.11",
    params=["scan"],
    outcome="ok",
    reason="each device held the whole gradient, so that the sum was too large by their number",
)
COPIES_OF_A_TANH = deviation(
    "jax>=0.10.1",
    params=["tanh"],
    outcome="ok",
    reason="each device holds the whole gradient, so that the sum is too large by their number",
)
NO_RULE_TO_SPLIT = deviation(
    "jax<0.9.1",
    params=["reshape", "split", "concatenate"],
    error="NotImplementedError",
    match="reduced rule for (reshape|split) is not implemented",
    reason="the operation, or that of the gradient, had no rule",
    issue="jax-ml/jax@2679eb3320c9",
)
NO_SUM_OF_PARTS = deviation(
    "jax<0.9.1",
    params=["broadcast"],
    error="ShardingTypeError",
    match="reduce_sum cannot be unreduced",
    reason="the gradient sums parts, which was refused",
    issue="jax-ml/jax@aa9e476a3f68",
)
NO_RULE_TO_SELECT = deviation(
    "jax<0.10.2",
    params=["select", "maximum", "reduce_precision", "slice", "pad", "scan"],
    error="NotImplementedError",
    match="reduced rule for",
    reason="the operation had no rule",
    issue="jax-ml/jax@8eaeabb0ae34",
)
NO_RULE_FOR_NEG = deviation(
    "jax<0.12",
    params=["negative"],
    error="NotImplementedError",
    match="unreduced rule for neg",
    reason="the operation of the gradient had no rule",
)
NO_RULE_FOR_MAX = deviation(
    "jax<0.11.1",
    params=["max", "rows"],
    outcome="raised",
    reason="the operation had no rule",
    issue="jax-ml/jax@21af5cb03d54",
)
NUMBER_REFUSED = deviation(
    "jax<0.10.1",
    params=["scaled"],
    error="ShardingTypeError",
    reason="the number, or its gradient, was not reduced",
    issue="jax-ml/jax@05b25a9865f9",
)
CONSTANT_REFUSED = deviation(
    "jax>=0.9.2,<0.10.1",
    params=["sqrt", "tanh"],
    error="ShardingTypeError",
    match="Inputs cannot be replicated",
    reason="the derivative multiplies by a number, which was refused",
    issue="jax-ml/jax@05b25a9865f9",
)
TYPE_OF_THE_COTANGENT = deviation(
    "jax<0.10.2",
    params=["loop", "checkpoint"],
    error="ValueError",
    reason="the cotangent had the type of the weight",
    issue="jax-ml/jax@2a576d797c87",
)
SPEC_UNPACKED = deviation(
    "jax>=0.10.2",
    params=["vmap"],
    error="ValueError",
    match="dangerous when PartitionSpec has non-empty",
    reason="vmap takes entries of the spec, which is refused if it has reduced axes",
)


@probe(
    source="jax-ml/jax@22ceb6877512",
    params=[*OF_A_WEIGHT],
    deviations=[
        COPIES_FOR_PARTS,
        COPIES_OF_A_PRODUCT,
        COPIES_OF_A_SPLIT,
        COPIES_OF_A_SCAN,
        COPIES_OF_A_TANH,
        NO_RULE_TO_SPLIT,
        NO_SUM_OF_PARTS,
        NO_RULE_TO_SELECT,
        NO_RULE_FOR_NEG,
        NO_RULE_FOR_MAX,
        NUMBER_REFUSED,
        CONSTANT_REFUSED,
        TYPE_OF_THE_COTANGENT,
        SPEC_UNPACKED,
    ],
)
def of_a_weight(env, name):
    """An operation on a reduced weight has a reduced result, and its gradient is unreduced."""
    f, exact, slope = OF_A_WEIGHT[name]
    w = 1 + numbers(4, 4) / 8
    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        weight = jax.device_put(w, P(reduced={"x"}))
        out = jax.jit(f)(weight)
        gradient = jax.jit(jax.grad(lambda w: f(w).sum().astype(np.float32)))(weight)
        observed = {
            "result": (describe(out), values(out)),
            "gradient": (describe(gradient), values(gradient)),
        }
    value = np.asarray(exact(w), np.float32)
    expected = {
        "result": ({"shard": list(value.shape), "reduced": "x", "unreduced": ""}, value),
        "gradient": ({"shard": [4, 4], "reduced": "", "unreduced": "x"}, slope(w)),
    }
    return Observed(observed, expected)


def partial_sum(a):
    """Return the sum over the sharded axis, which is not made yet."""
    return jnp.einsum("ijk->jk", a, out_sharding=P(None, None, unreduced={"x"}))


OF_A_SUM = {
    "transpose": (lambda s: s.T, np.transpose),
    "reshape": (lambda s: s.reshape(2, 8), lambda s: s.reshape(2, 8)),
    "split": (lambda s: jnp.split(s, 2)[0], lambda s: s[:2]),
    "slice": (lambda s: s[:2], lambda s: s[:2]),
    "pad": (
        lambda s: lax.pad(s, np.float32(0), [(1, 0, 0), (0, 0, 0)]),
        lambda s: np.pad(s, [(1, 0), (0, 0)]),
    ),
    "concatenate": (lambda s: jnp.concatenate([s, s]), lambda s: np.concatenate([s, s])),
    "select": (lambda s: lax.select(np.ones((4, 4), bool), s, s), lambda s: s),
    "sum": (jnp.sum, np.sum),
    "negative": (lambda s: -s, np.negative),
    "subtract": (lambda s: s + s - s, lambda s: s),
    "vmap": (jax.vmap(lambda row: row + row), lambda s: 2 * s),
    "scan": (lambda s: lax.scan(lambda c, _: (c + s, None), s, None, length=2)[0], lambda s: 3 * s),
}

NO_RULE_FOR_A_SUM = deviation(
    "jax<0.9.1",
    params=["reshape", "split", "concatenate", "sum"],
    outcome="raised",
    reason="the operation had no rule",
    issue="jax-ml/jax@2679eb3320c9",
)
NO_RULE_FOR_A_PART = deviation(
    "jax<0.10.2",
    params=["select", "slice", "pad"],
    error="NotImplementedError",
    match="reduced rule for",
    reason="the operation had no rule",
    issue="jax-ml/jax@8eaeabb0ae34",
)
NO_RULE_FOR_A_DIFFERENCE = deviation(
    "jax<0.12",
    params=["negative", "subtract"],
    error="NotImplementedError",
    match="unreduced rule for",
    reason="the operation had no rule",
)
CARRIED_COPIES = deviation(
    "jax<0.11",
    params=["scan"],
    outcome="ok",
    reason="the loop made the sum in every step, and the sum of the copies was made once more",
)


@probe(
    source="jax-ml/jax@22ceb6877512",
    params=[*OF_A_SUM],
    deviations=[
        NO_RULE_FOR_A_SUM,
        NO_RULE_FOR_A_PART,
        NO_RULE_FOR_A_DIFFERENCE,
        CARRIED_COPIES,
        SPEC_UNPACKED,
    ],
)
def of_a_partial_sum(env, name):
    """A linear operation on an unreduced array has an unreduced result."""
    f, exact = OF_A_SUM[name]
    a, mesh = numbers(2, 4, 4) / 8, env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: f(partial_sum(a)))(put(mesh, a, "x"))
        observed = (describe(out), values(out))
    value = np.asarray(exact(a.sum(0)), np.float32)
    expected = {"shard": list(value.shape), "reduced": "", "unreduced": "x"}
    return Observed(observed, (expected, value))


MAXIMUM_OF_PARTS = deviation(
    "jax>=0.11.1,<0.12",
    outcome="ok",
    reason="the maxima of the parts were added",
    issue="jax-ml/jax@21af5cb03d54",
)


@probe(source="jax-ml/jax@21af5cb03d54", deviations=[MAXIMUM_OF_PARTS])
def maximum_of_a_partial_sum(env):
    """`jnp.max` of an array whose sum is not made is refused.

    In 0.11.1 and 0.11.2 it was silently the sum of the maxima of the parts.
    """
    mesh, a = env.mesh(2, "x", explicit=True), numbers(2, 4, 4) * np.float32([[[1]], [[-1]]])

    def largest():
        out = jax.jit(lambda a: jnp.max(partial_sum(a)))(put(mesh, a, "x"))
        return float(values(out))

    with env.compat.set_mesh(mesh):
        ended = refusal(largest)
        observed = "refused" if ended != "ran" else largest()
    return Observed(observed, "refused")


UNREDUCED_IGNORED = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the unreduced axes of the spec were ignored",
    issue="jax-ml/jax@0422b1a7f7ad",
)


@probe(source="jax-ml/jax@0422b1a7f7ad", deviations=[UNREDUCED_IGNORED])
def array_made_unreduced(env):
    """`jnp.array(x, out_sharding=P(unreduced={"x"}))` of a jax array gives it to a single device.

    Up to 0.9.2 the result was silently replicated.
    """
    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        out = jnp.array(jnp.asarray(numbers(2, 2)), out_sharding=P(unreduced={"x"}))
        observed = (describe(out), values(out))
    expected = {"shard": [2, 2], "reduced": "", "unreduced": "x"}
    return Observed(observed, (expected, numbers(2, 2)))


NOT_PUT = deviation(
    "jax<0.10",
    error="NotImplementedError",
    match="unreduced",
    reason="device_put knew no unreduced axes",
    issue="jax-ml/jax@2f3557a31e87",
)


@probe(source="jax-ml/jax@2f3557a31e87", deviations=[NOT_PUT])
def array_put_unreduced(env):
    """`device_put` of an array on a mesh to unreduced axes gives it to a single device."""
    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        out = jax.device_put(reshard(numbers(4), P()), P(unreduced={"x"}))
        observed = (describe(out), values(out))
    expected = {"shard": [4], "reduced": "", "unreduced": "x"}
    return Observed(observed, (expected, numbers(4)))


CAST_BY_ITSELF = deviation(
    "jax<0.11",
    outcome="ok",
    reason="shard_map cast the varying result by itself",
    issue="jax-ml/jax@0b9e4166c22e",
)


@probe(source="jax-ml/jax@0b9e4166c22e", deviations=[CAST_BY_ITSELF])
def varying_result_as_a_partial_sum(env):
    """A varying result for unreduced `out_specs` of shard_map is a ValueError, from 0.11.0 on."""
    mesh, x = env.mesh(2, "x", explicit=True), numbers(8)
    with env.compat.set_mesh(mesh):
        total = env.compat.shard_map(
            lambda x: x.sum(), mesh=mesh, in_specs=P("x"), out_specs=P(unreduced={"x"})
        )
        observed = refusal(lambda: jax.jit(total)(put(mesh, x, "x")), "out_specs")
    return Observed(observed, "ValueError: out_specs")


ONLY_UNDER_JIT = deviation(
    "jax<0.10",
    outcome="raised",
    reason="without jit, shard_map knew no reduced axes",
    issue="jax-ml/jax@dfa5bb82e82b",
)


@probe(source="jax-ml/jax@dfa5bb82e82b", deviations=[ONLY_UNDER_JIT])
def reduced_argument_without_jit(env):
    """Without `jit`, shard_map takes a reduced argument."""
    mesh, x = env.mesh(2, "x", explicit=True), numbers(4)
    with env.compat.set_mesh(mesh):
        copies = env.compat.shard_map(
            lambda x: lax.pcast(x, "x", to="varying"),
            mesh=mesh,
            in_specs=P(reduced={"x"}),
            out_specs=P("x"),
        )
        observed = np.asarray(copies(jax.device_put(x, P(reduced={"x"}))))
    return Observed(observed, np.concatenate([x, x]))


OTHER_AXIS_REFUSED = deviation(
    "jax<0.9.1",
    error="ValueError",
    match="cannot accept args which are reduced",
    reason="any reduced axis was refused",
    issue="jax-ml/jax@0b986900cd1f",
)


@probe(source="jax-ml/jax@0b986900cd1f", devices=4, deviations=[OTHER_AXIS_REFUSED])
def psum_over_another_axis(env):
    """`psum` over one axis takes a value that is reduced over another axis."""
    mesh, x = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(4, 4)

    def total(x):
        row = lax.all_gather(x, "y", axis=1, tiled=True, to="reduced")
        return lax.psum(row.sum(), "x")

    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(total, mesh=mesh, in_specs=P("x", "y"), out_specs=P(reduced={"y"}))
        observed = np.asarray(jax.jit(f)(put(mesh, x, "x", "y")))
    return Observed(observed, np.float32(x.sum()))


LANES_OF_PARTS_REFUSED = deviation(
    "jax<0.9.1",
    error="ValueError",
    match="cotangent type",
    reason="the gradient of each lane was not unreduced",
    issue="jax-ml/jax@14ce7f2832ca",
)


@probe(source="jax-ml/jax@14ce7f2832ca", deviations=[LANES_OF_PARTS_REFUSED])
def gradients_of_microbatches(env):
    """`vmap` over microbatches of the gradient of a reduced weight is unreduced."""
    mesh, x, w = env.mesh(2, "x", explicit=True), numbers(3, 4, 2), numbers(2, 2)

    def loss(w, x):
        return jnp.dot(x, w, out_sharding=P("x")).sum()

    with env.compat.set_mesh(mesh):
        weight = jax.device_put(w, P(reduced={"x"}))
        slopes = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))
        out = slopes(weight, put(mesh, x, None, "x"))
        observed = (describe(out), values(out))
    exact = np.repeat(x.sum(1)[:, :, None], 2, axis=2)
    expected = {"shard": [3, 2, 2], "reduced": "", "unreduced": "x"}
    return Observed(observed, (expected, exact))


COPIES_FOR_A_RESULT = deviation(
    "jax<0.10",
    outcome="ok",
    reason="each device kept a copy of the replicated argument, and the sum adds them",
    issue="jax-ml/jax@fa413e528d83",
)


@probe(source="jax-ml/jax@fa413e528d83", deviations=[COPIES_FOR_A_RESULT])
def result_made_unreduced(env):
    """A replicated result of jit with unreduced `out_shardings` is on one device, zero on others.

    Up to 0.9.2 each device had the whole result, so that their sum was twice as large.
    """
    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        out = jax.jit(lambda x: 2 * x, out_shardings=P(unreduced={"x"}))(reshard(numbers(4), P()))
        observed = (describe(out), values(out))
    expected = {"shard": [4], "reduced": "", "unreduced": "x"}
    return Observed(observed, (expected, 2 * numbers(4)))


def differentiate_by_rule(env, backward):
    """Return the layout and the values of the gradient of a reduced weight, by a backward rule.

    A function with the rule is called in a map over the weight.
    """
    mesh, spec = env.mesh(2, "x", explicit=True), P(reduced={"x"})
    f = jax.custom_vjp(lambda w: w)
    f.defvjp(lambda w: (w, None), backward)
    with env.compat.set_mesh(mesh):
        g = env.compat.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
        out = jax.jit(jax.grad(lambda w: g(w).sum()))(jax.device_put(numbers(8), spec))
        return describe(out), values(out)


ZERO_HAS_THE_TYPE_OF_THE_WEIGHT = deviation(
    "jax<0.9.2",
    error="ValueError",
    match="Hence the expected cotangent type is",
    reason="the zero was reduced, as the weight, not unreduced",
    issue="jax-ml/jax@02007235bb57",
)


@probe(source="jax-ml/jax@02007235bb57", deviations=[ZERO_HAS_THE_TYPE_OF_THE_WEIGHT])
def no_gradient_of_a_weight(env):
    """In a map over a reduced weight, a `custom_vjp` may return None as its gradient."""
    observed = differentiate_by_rule(env, lambda *_: (None,))
    return Observed(observed, ({"shard": [8], "reduced": "", "unreduced": "x"}, 0 * numbers(8)))


PRODUCT_ACCEPTED = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the product was reduced",
    issue="jax-ml/jax@faabcc5e0cba",
)


@probe(
    source="jax-ml/jax@faabcc5e0cba",
    releases="jax>=0.8.1",
    params=["product", "gradient"],
    deviations=[PRODUCT_ACCEPTED],
)
def reduced_times_replicated(env, name):
    """A reduced weight times a replicated array is refused from 0.8.2 on.

    In 0.8.1 the gradient was reduced, not unreduced.
    """
    mesh = env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        w, y = jax.device_put(numbers(4), P(reduced={"x"})), put(mesh, numbers(4))
        f = (lambda w: w * y) if name == "product" else jax.grad(lambda w: (w * y).sum())
        try:
            observed = describe(jax.jit(f)(w))
        except Exception as error:  # noqa: BLE001 - the class is part of the observation
            observed = type(error).__name__
    return Observed(observed, "ShardingTypeError")


INDEXED_ON_AUTO_AXES = deviation(
    "jax>=0.8.1,<0.8.2",
    error="ValueError",
    match="Reduced axes can only refer to mesh axes that are of type",
    reason="the rows were read on Auto axes, which cannot be reduced",
    issue="jax-ml/jax@1b3c5a72d331",
)


@probe(
    source="jax-ml/jax@1b3c5a72d331",
    releases="jax>=0.8",
    params=["replicated", "reduced"],
    deviations=[INDEXED_ON_AUTO_AXES],
)
def rows_of_a_reduced_weight(env, name):
    """`w.at[i].get(out_sharding=...)` reads rows of a reduced weight; in 0.8.1 it is refused."""
    mesh, w = env.mesh(2, "x", explicit=True), numbers(4, 2)
    spec = P(reduced={"x"}) if name == "reduced" else P()
    with env.compat.set_mesh(mesh):
        weight, rows = jax.device_put(w, P(reduced={"x"})), put(mesh, np.array([0, 2]))
        out = jax.jit(lambda w, i: w.at[i].get(out_sharding=spec))(weight, rows)
        return Observed(np.asarray(out), w[::2])


COPIES_REFUSED = deviation(
    "jax>=0.8.1,<0.9.1",
    error="ValueError",
    match="passed to shard_map should be equal to the unreduced present on the",
    reason="the spec was compared with the type, which has no unreduced axes without the check",
    issue="jax-ml/jax@11fe9d20a015",
)


@probe(source="jax-ml/jax@11fe9d20a015", releases="jax>=0.8", deviations=[COPIES_REFUSED])
def copies_as_parts_of_a_sum(env):
    """With the check off, a map may return a copy on each device as the parts of a sum."""
    mesh, x = env.mesh(2, "x", explicit=True), numbers(4)
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            lambda x: x, mesh=mesh, in_specs=P(), out_specs=P(unreduced={"x"}), check=False
        )
        out = jax.jit(f)(put(mesh, x))
        return Observed(values(out), 2 * x)


COTANGENT_NOT_REDUCED = deviation(
    "jax<0.8.1",
    error="ValueError",
    match="unexpected JAX type",
    reason="the cotangent was one without axes, where a reduced one is expected",
    issue="jax-ml/jax@8050eddd2bee",
)


@probe(
    source="jax-ml/jax@8050eddd2bee",
    releases="jax>=0.7.2",
    deviations=[COTANGENT_NOT_REDUCED],
)
def gradient_of_a_partial_sum(env):
    """`jax.grad` accepts a function with an unreduced result."""
    mesh, x = env.mesh(2, "x", explicit=True), numbers(4)
    with env.compat.set_mesh(mesh):
        square = jax.grad(lambda x: jnp.einsum("i,i->", x, x, out_sharding=P(unreduced={"x"})))
        out = jax.jit(square)(put(mesh, x, "x"))
    return Observed(np.asarray(out), 2 * x)


ONE_AXIS_ONLY = deviation(
    "jax<0.8",
    error="ShardingTypeError",
    match="unreduced axes should be equal to the contracting specs",
    reason="the two axes of a dimension counted as one",
    issue="jax-ml/jax#31927",
)


@probe(
    source="jax-ml/jax#31927",
    devices=4,
    releases="jax>=0.7.2",
    deviations=[ONE_AXIS_ONLY],
)
def parts_over_two_axes(env):
    """A product over a dimension that is sharded over two axes may be unreduced over both."""
    mesh, x = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(2, 4)
    spec = P(unreduced={"x", "y"})
    with env.compat.set_mesh(mesh):
        f = jax.jit(lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=spec))
        return Observed(values(f(put(mesh, x, None, ("x", "y")))), x @ x.T)


ZEROS_ARE_NOT_UNREDUCED = deviation(
    "jax>=0.10",
    error="ValueError",
    match="must produce an output with the same type",
    reason="the zeros are not unreduced, as the gradient of a reduced weight must be",
)


@probe(source="jax-ml/jax@02007235bb57", deviations=[ZEROS_ARE_NOT_UNREDUCED])
def zeros_as_the_gradient_of_a_weight(env):
    """In a map over a reduced weight, a backward rule that returns zeros is refused from 0.10.0."""
    _, zeros = differentiate_by_rule(env, lambda _, g: (jnp.zeros_like(g),))
    return Observed(zeros, 0 * numbers(8))


ZERO_IS_REDUCED = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the zero had the type of the weight, not that of its gradient",
    issue="jax-ml/jax@12462e0520bf",
)


@probe(source="jax-ml/jax@12462e0520bf", deviations=[ZERO_IS_REDUCED])
def gradient_of_an_unused_weight(env):
    """The gradient of a reduced weight that the function does not use is unreduced."""
    mesh = env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        weights = [jax.device_put(numbers(4), P(reduced={"x"})) for _ in range(2)]
        unused, used = jax.jit(jax.grad(lambda *both: both[1].sum(), argnums=(0, 1)))(*weights)
    expected = {"shard": [4], "reduced": "", "unreduced": "x"}
    return Observed([describe(unused), describe(used)], [expected, expected])
