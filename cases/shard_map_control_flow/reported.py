"""Programs under shard_map from fixes of jax: callbacks, keys, unused results, nested maps.

A map that names some axes of its mesh leaves the others to the compiler. Under `vmap` with
`spmd_axis_name`, the lanes are spread over such an axis.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending, refusal

defaults(devices=4, platforms=("cpu",))


def ascending(*shape):
    """Return 0, 1, 2, ... in a shape, as float32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


CALLBACK_NOT_PARTITIONED = deviation(
    "jax<0.5.1",
    outcome="crashed",
    reason="the partitioner fails a check for a callback that is manual over one axis of two",
    issue="jax-ml/jax@36819604278e",
)


@probe(source="jax-ml/jax@36819604278e", deviations=[CALLBACK_NOT_PARTITIONED])
def callback_of_each_shard(env):
    """`jax.debug.callback` under a map that leaves an axis automatic runs once for each shard."""
    seen = []

    def shard(x):
        jax.debug.callback(lambda part: seen.append(float(np.sum(part))), x)
        return x

    f = env.compat.shard_map(
        shard,
        mesh=env.mesh((2, 2), ("x", "y")),
        in_specs=P("x"),
        out_specs=P("x"),
        check=False,
        axis_names=["x"],
    )
    out = jax.jit(f)(ascending(4))
    jax.effects_barrier()
    return Observed({"seen": sorted(seen), "out": out}, {"seen": [1.0, 5.0], "out": ascending(4)})


KEYS_HAVE_WORDS = deviation(
    "jax<0.5",
    error="XlaRuntimeError",
    match="Number of tile assignment dimensions",
    reason="the sharding had the rank of the keys, not that of their words",
    issue="jax-ml/jax@97b1faacdda4",
)


@probe(source="jax-ml/jax@97b1faacdda4", deviations=[KEYS_HAVE_WORDS])
def keys_of_each_shard(env):
    """Typed keys pass through a map that leaves an axis automatic."""
    keys = jax.random.split(jax.random.key(0), 8)
    f = env.compat.shard_map(
        lambda keys: keys,
        mesh=env.mesh((2, 2), ("x", "y")),
        in_specs=P("x"),
        out_specs=P("x"),
        check=False,
        axis_names=["x"],
    )
    out = jax.random.key_data(jax.jit(f)(keys))
    return Observed(out, np.asarray(jax.random.key_data(keys)))


def sum_and_self(x):
    """Return a shard, and the sum over all shards."""
    return x, lax.psum(x, "x")


def first_half(x):
    """Return the first half of a shard."""
    return jnp.split(x, 2)[0]


UNUSED = {
    "psum": (sum_and_self, (P("x"), P()), lambda out: out[0].sum(), np.ones(8, np.float32)),
    "split": (first_half, P("x"), jnp.sum, np.array([1, 0] * 4, np.float32)),
}
ZERO_SUMMED = deviation(
    "jax<0.6.2",
    params=["psum"],
    outcome="raised",
    match="Zero",
    reason="the transpose of psum took a symbolic zero for an array",
    issue="jax-ml/jax@199d9f73cba5",
)
ZERO_IS_A_TYPE = deviation(
    "jax>=0.7,<0.8.2",
    params=["split"],
    error="TypeError",
    match="is not a valid JAX type",
    reason="the transpose of split took the type of the unused half for its zeros",
    issue="jax-ml/jax@4efd7828b041",
)


@probe(
    source="jax-ml/jax@199d9f73cba5",
    params=[*UNUSED],
    deviations=[ZERO_SUMMED, ZERO_IS_A_TYPE],
)
def gradient_with_an_unused_result(env, name):
    """The gradient of a map, one of whose results is not used, is that of the other result."""
    shard, out_specs, loss, exact = UNUSED[name]
    f = env.compat.shard_map(shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=out_specs)
    gradient = jax.jit(jax.grad(lambda x: loss(f(x))))(ascending(8))
    return Observed(gradient, exact)


RESULTS_FORWARDED = deviation(
    "jax<0.10",
    error="AssertionError",
    reason="a residual was forwarded to a result that is not used",
    issue="jax-ml/jax@f1ae31226e17",
)


@probe(source="jax-ml/jax@f1ae31226e17", deviations=[RESULTS_FORWARDED])
def gradient_of_a_checkpoint(env):
    """`jax.checkpoint` that saves everything, around a map whose first result is not used."""
    f = env.compat.shard_map(
        lambda x: (lax.exp(x), lax.exp(x)),
        mesh=env.mesh(4, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    policy = jax.checkpoint_policies.everything_saveable
    loss = jax.checkpoint(lambda x: f(x)[1].sum(), policy=policy)
    return Observed(jax.grad(loss)(np.zeros(4, np.float32)), np.ones(4, np.float32))


SYMBOLIC_ZERO_UNKNOWN = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="check_rep=False",
    reason="the check of shard_map had no rule for custom_jvp with symbolic zeros",
    issue="jax-ml/jax#26763",
)


@probe(source="jax-ml/jax#26763", deviations=[SYMBOLIC_ZERO_UNKNOWN])
def rule_with_symbolic_zeros(env):
    """A `custom_jvp` rule with `symbolic_zeros=True` runs in a map with its check on."""

    @jax.custom_jvp
    def add(a, b):
        return a + b

    def rule(primals, tangents):
        given = [t for t in tangents if not isinstance(t, SymbolicZero)]
        return add(*primals), sum(given)

    add.defjvp(rule, symbolic_zeros=True)
    f = env.compat.shard_map(
        add, mesh=env.mesh(4, "x"), in_specs=(P("x"), P("x")), out_specs=P("x")
    )
    x, t = ascending(4), np.ones(4, np.float32)
    return Observed(jax.jvp(lambda a: f(a, x), (x,), (t,)), (2 * x, t))


NONE_NOT_ITERABLE = deviation(
    "jax<0.6",
    error="TypeError",
    match="'NoneType' object is not iterable",
    reason="the check met an unknown replication that it did not convert",
    issue="jax-ml/jax#24762",
)


@probe(source="jax-ml/jax#24762", deviations=[NONE_NOT_ITERABLE])
def element_inserted_in_each_shard(env):
    """Without jit, `jnp.insert` of a constant into a shard runs in a map with its check on."""
    f = env.compat.shard_map(
        lambda x: jnp.insert(x, 0, 7), mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x")
    )
    exact = np.insert(ascending(8).reshape(4, 2), 0, 7, axis=1).ravel()
    return Observed(f(ascending(8)), exact)


def zero_first(x, i):
    """Return a vector with zeros at some places."""
    return x.at[i].set(0.0)


def repeat_by_counts(x, counts):
    """Return four elements, each element repeated as often as counts say."""
    return jnp.repeat(x, counts, total_repeat_length=4)


LANES = {
    "scatter": (
        zero_first,
        (P("y"), P()),
        (0, None),
        np.array([0]),
        np.array([[0, 1, 0, 3], [0, 5, 0, 7]], np.float32),
    ),
    "repeat": (
        repeat_by_counts,
        (P("y"), P("y")),
        (0, 0),
        np.array([[1, 3, 2, 2], [4, 0, 0, 4]]),
        np.array([[0, 1, 1, 1, 2, 2, 3, 3], [4, 4, 4, 4, 7, 7, 7, 7]], np.float32),
    ),
}
SCATTER_VARIES = deviation(
    "jax<0.10",
    outcome="raised",
    match="Primitive scatter requires",
    reason="operands of a scatter that are not mapped were not marked as varying",
    issue="jax-ml/jax@206599051f10",
)


@probe(source="jax-ml/jax@206599051f10", params=[*LANES], deviations=[SCATTER_VARIES])
def lanes_over_an_axis(env, name):
    """`vmap` with `spmd_axis_name` of a map that scatters, with the check on."""
    shard, in_specs, in_axes, second, exact = LANES[name]
    f = env.compat.shard_map(
        shard, mesh=env.mesh((2, 2), ("x", "y")), in_specs=in_specs, out_specs=P("y")
    )
    lanes = jax.vmap(f, in_axes=in_axes, spmd_axis_name="x")
    return Observed(jax.jit(lanes)(ascending(2, 4), second), exact)


BARE_ASSERTION = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the names of arguments were not found for functions of any number of arguments",
    issue="jax-ml/jax@555d502d93c8",
)


@probe(source="jax-ml/jax@555d502d93c8", deviations=[BARE_ASSERTION])
def uneven_arguments_of_any_number(env):
    """A map of `f(*args, **kwargs)` names the arguments that do not divide by the mesh."""
    f = env.compat.shard_map(
        lambda *args, **_: args, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x")
    )
    outcome = ending(lambda: f(ascending(3), ascending(3)), words=["not evenly divisible"])
    return Observed(outcome, "ValueError: not evenly divisible")


BOUND_TWICE = deviation(
    "jax>=0.7,<0.10.2",
    error="ValueError",
    match="already bound by a parent sdy.manual_computation",
    reason="the innermost map bound the axes of the outer ones again",
    issue="jax-ml/jax@6feb29fa5976",
)


@probe(source="jax-ml/jax@6feb29fa5976", devices=8, releases="jax>=0.6.2", deviations=[BOUND_TWICE])
def innermost_of_three_maps(env):
    """A map that names no axes, within maps over two of three axes, is over the third."""

    def spread(f, **names):
        return jax.shard_map(f, in_specs=P(), out_specs=P(), **names)

    inner = spread(spread(lambda x: 2 * x), axis_names={"y"})
    with env.compat.set_mesh(env.mesh((2, 2, 2), ("x", "y", "z"))):
        out = jax.jit(spread(inner, axis_names={"x"}))(ascending(4))
    return Observed(out, 2 * ascending(4))


SLICES_HAVE_NO_WORDS = [
    deviation(
        "jax<0.5",
        error="XlaRuntimeError",
        match="Number of tile assignment dimensions",
        reason="the sharding had the rank of the keys, not that of their words",
        issue="jax-ml/jax@97b1faacdda4",
    ),
    deviation(
        "jax>=0.5.1,<0.5.3",
        error="XlaRuntimeError",
        match="Number of tile assignment dimensions",
        reason="the type of the words had no sharding of their rank",
        issue="jax-ml/jax@9deb7e3d968d",
    ),
]


@probe(source="jax-ml/jax@9deb7e3d968d", deviations=SLICES_HAVE_NO_WORDS)
def first_key_of_each_shard(env):
    """A map that leaves an axis automatic takes a row of typed keys."""
    keys = jax.random.split(jax.random.key(0), 4).reshape(4, 1)
    f = env.compat.shard_map(
        lambda keys: keys[0],
        mesh=env.mesh((2, 2), ("x", "y")),
        in_specs=P("x"),
        out_specs=P("x"),
        check=False,
        axis_names=["x"],
    )
    out = jax.random.key_data(jax.jit(f)(keys))
    return Observed(out, np.asarray(jax.random.key_data(keys))[::2, 0])


SUBCLASS_IS_NO_LEAF = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the report took a spec of a subclass for a tree",
    issue="jax-ml/jax@b2217c3b7af5",
)


@probe(
    source="jax-ml/jax@b2217c3b7af5",
    releases="jax>=0.7,<0.9.1",
    deviations=[SUBCLASS_IS_NO_LEAF],
)
def uneven_argument_with_a_spec_of_a_subclass(env):
    """The error for an argument that is not divisible, where its spec is of a subclass."""

    class Spec(P):
        pass

    f = env.compat.shard_map(
        lambda x, _: x, mesh=env.mesh(4, "x"), in_specs=(P("x"), Spec("x")), out_specs=P("x")
    )
    words = ("not evenly divisible", "pytree structure error")
    outcome = refusal(lambda: f(ascending(8), ascending(9)), *words)
    return Observed(outcome, "ValueError: not evenly divisible")
