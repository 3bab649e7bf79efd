"""`custom_partitioning`: a function that tells the partitioner how to split its work.

GSPMD calls back for the sharding of the result, Shardy (the default from 0.7.0) needs a rule in
the style of einsum. A function with both works on every release that has rules.
"""

from __future__ import annotations

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import outcome

defaults(platforms=("cpu",), devices=4)

HAS_RULES = "sharding_rule" in inspect.signature(custom_partitioning.def_partition).parameters


def add_rule(f, rule, infer, partition):
    """Define the partitioning of a function by a rule where it exists, and by callbacks."""
    rules = {"sharding_rule": rule} if HAS_RULES and rule else {}
    f.def_partition(infer_sharding_from_operands=infer, partition=partition, **rules)
    return f


def spec_of(info):
    """Return the PartitionSpec of an argument or result, one entry for each of two axes."""
    spec = tuple(info.sharding.spec)
    return spec + (None,) * (len(info.shape) - len(spec))


def elementwise(rule="i j -> i j", calls=None):
    """Return a function that doubles a matrix, split as its argument."""

    def infer(mesh, arg_shapes, result_shape):
        return arg_shapes[0].sharding

    def partition(mesh, arg_shapes, result_shape):
        shardings = arg_shapes[0].sharding, (arg_shapes[0].sharding,)

        def lower(x):
            if calls is not None:
                calls.append(x.shape)
            return 2 * x

        return mesh, lower, *shardings

    return add_rule(custom_partitioning(lambda x: 2 * x), rule, infer, partition)


def row_sums():
    """Return a function that sums the rows of a matrix, over the shards of a row too."""

    def infer(mesh, arg_shapes, result_shape):
        return NamedSharding(arg_shapes[0].sharding.mesh, P(spec_of(arg_shapes[0])[0]))

    def partition(mesh, arg_shapes, result_shape):
        rows, columns = spec_of(arg_shapes[0])
        mesh = arg_shapes[0].sharding.mesh

        def lower(x):
            total = x.sum(1)
            return jax.lax.psum(total, columns) if columns else total

        return mesh, lower, NamedSharding(mesh, P(rows)), (arg_shapes[0].sharding,)

    return add_rule(custom_partitioning(lambda x: x.sum(1)), "i j -> i", infer, partition)


MATRIX = np.arange(16, dtype=np.float32).reshape(4, 4)
SPECS = {"rows": P("x"), "columns": P(None, "x")}


@probe(source="jax-ml/jax@c4ac0dd6bd93", params=[*SPECS])
def partitioned_elementwise(env, name):
    """An elementwise function is split as its argument; the result has the same sharding."""
    sharding, calls = NamedSharding(env.mesh(4, "x"), SPECS[name]), []
    y = jax.jit(elementwise(calls=calls))(jax.device_put(MATRIX, sharding))
    shape = (1, 4) if name == "rows" else (4, 1)
    observed = {
        "shard": calls[-1],
        "kept": y.sharding.is_equivalent_to(sharding, 2),
    }
    return Observed((y, observed), (2 * MATRIX, {"shard": shape, "kept": True}))


ABORTED = deviation(
    "jax<0.4.33",
    outcome="crashed",
    reason="the compilation of a custom partitioning ends the process",
)


@program(source="jax-ml/jax@c4ac0dd6bd93", params=["rows", "columns"], deviations=[ABORTED])
def partitioned_sum(env, name):
    """A sum over rows calls psum if the columns are split."""
    x = jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x"), SPECS[name]))
    return Program(row_sums(), args=(x,), reference=MATRIX.sum(1, dtype=np.float64))


RULE_NOT_NEEDED = deviation(
    "jax<0.7", outcome="ok", reason="GSPMD was the default, which needs no rule"
)


@probe(source="jax-ml/jax@6e75a04eafe6", deviations=[RULE_NOT_NEEDED])
def partitioned_without_a_rule(env):
    """A function without a sharding rule is a NotImplementedError from 0.7.0, under Shardy."""
    x = jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x"), P("x")))
    f = jax.jit(elementwise(rule=None))
    return Observed(outcome(lambda: f(x), "sharding_rule"), "NotImplementedError: sharding_rule")


@probe(source="jax-ml/jax@c4ac0dd6bd93", releases="jax>=0.5.1", records="texts of errors")
def wrong_sharding_rules(env):
    """A rule that is malformed, or does not fit the ranks, is refused."""
    rules = {"no arrow": "i j", "rank": "i -> i", "result": "i j -> i", "name": "i 1x -> i 1x"}
    x = jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x"), P("x")))

    def call(rule):
        return jax.jit(elementwise(rule=rule))(x)

    return {name: outcome(lambda rule=rule: call(rule)) for name, rule in rules.items()}


@probe(source="jax-ml/jax#25802")
def partitioned_derivative(env):
    """A function with a custom partitioning has no derivative and no batching rule.

    A `custom_jvp` around it supplies the derivative.
    """
    f, x = elementwise(), MATRIX
    ruled = jax.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    observed = {
        "jit": outcome(lambda: jax.jit(f)(x)),
        "grad": outcome(lambda: jax.grad(lambda x: f(x).sum())(x), "Differentiation rule"),
        "vmap": outcome(lambda: jax.vmap(f)(x[None]), "Batching rule"),
    }
    expected = {
        "jit": "ran",
        "grad": "NotImplementedError: Differentiation rule",
        "vmap": "NotImplementedError: Batching rule",
    }
    gradient = jax.jit(jax.grad(lambda x: ruled(x).sum()))(x)
    return Observed((observed, gradient), (expected, np.full_like(x, 2)))


@probe(source="jax-ml/jax#19881")
def partitioned_static_argument(env):
    """A static argument is handed to the callbacks first."""
    seen = []

    @partial(custom_partitioning, static_argnums=(1,))
    def scaled(x, factor):
        return x * factor

    def infer(factor, mesh, arg_shapes, result_shape):
        return arg_shapes[0].sharding

    def split(factor, mesh, arg_shapes, result_shape):
        seen.append(factor)
        sharding = arg_shapes[0].sharding
        return mesh, lambda x: x * factor, sharding, (sharding,)

    add_rule(scaled, "i j -> i j", infer, split)
    x = jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x"), P("x")))
    y = jax.jit(lambda x: scaled(x, 3.0) + jnp.float32(1))(x)
    return Observed((y, set(seen) == {3.0}), (3 * MATRIX + 1, True))
