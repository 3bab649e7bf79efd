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


def same_sharding(*args):
    """Return the sharding of the first argument, for the result."""
    return jax.tree_util.tree_leaves(args[-2])[0].sharding


def split_by(f):
    """Return a callback that splits a function as its arguments."""

    def partition(*args):
        *_, mesh, arg_shapes, _ = args
        shardings = jax.tree_util.tree_map(lambda shape: shape.sharding, arg_shapes)
        return mesh, f, same_sharding(*args), shardings

    return partition


def put_rows(env):
    """Return the matrix, each row on a device of its own."""
    return jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x"), P("x")))


NO_MESH_IN_THE_CALLBACKS = deviation(
    "jax<0.4.33",
    outcome="raised",
    reason="the callbacks received the mesh of the context, which is empty",
    issue="jax-ml/jax@53045380b11a",
)


@probe(source="jax-ml/jax@53045380b11a", deviations=[NO_MESH_IN_THE_CALLBACKS])
def mesh_of_the_callbacks(env):
    """Outside of `with mesh:`, the callbacks receive the mesh of the arguments."""
    seen = []

    def partition(mesh, arg_shapes, result_shape):
        seen.append(dict(mesh.shape))
        sharding = NamedSharding(mesh, P("x"))
        return mesh, lambda x: 2 * x, sharding, (sharding,)

    f = add_rule(custom_partitioning(lambda x: 2 * x), "i j -> i j", same_sharding, partition)
    y = jax.jit(f)(put_rows(env))
    return Observed((y, seen[-1]), (2 * MATRIX, {"x": 4}))


TREE_IN_PIECES = deviation(
    "jax<0.5.3",
    outcome="raised",
    reason="the function for a shard received the leaves of the tree as arguments",
    issue="jax-ml/jax@0fb59747f0a1",
)


@probe(source="jax-ml/jax@0fb59747f0a1", deviations=[TREE_IN_PIECES])
def partitioned_tree(env):
    """The function for a shard receives a tuple where the whole function does."""

    def total(xs):
        x, y, z = xs
        return x + y + z

    rule = "i j, i j, i j -> i j"
    f = add_rule(custom_partitioning(total), rule, same_sharding, split_by(total))
    x = put_rows(env)
    return Observed(jax.jit(f)((x, x, x)), 3 * MATRIX)


RULE_WITHOUT_STATIC_ARGUMENTS = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="the function received no static arguments",
    issue="jax-ml/jax@30348e90e755",
)


@probe(
    source="jax-ml/jax@30348e90e755",
    config={"jax_use_shardy_partitioner": True},
    releases="jax>=0.5.1",
    deviations=[RULE_WITHOUT_STATIC_ARGUMENTS],
)
def static_argument_of_a_rule(env):
    """A function that makes the sharding rule receives the static arguments first."""
    seen = []

    def rule(*args):
        seen.append([arg for arg in args if isinstance(arg, float)])
        return "i j -> i j"

    f = custom_partitioning(lambda x, factor: x * factor, static_argnums=(1,))

    def partition(factor, mesh, arg_shapes, result_shape):
        sharding = arg_shapes[0].sharding
        return mesh, lambda x: x * factor, sharding, (sharding,)

    add_rule(f, rule, same_sharding, partition)
    y = jax.jit(lambda x: f(x, 3.0) + np.float32(1))(put_rows(env))
    return Observed((y, seen[-1]), (3 * MATRIX + 1, [3.0]))


ALL_FACTORS_ALIKE = deviation(
    "jax<0.7.2",
    outcome="raised",
    reason="a rule could not declare what its factors are",
    issue="jax-ml/jax@520ff18603ad",
)


@probe(source="jax-ml/jax@520ff18603ad", releases="jax>=0.5", deviations=[ALL_FACTORS_ALIKE])
def factors_of_a_reduction(env):
    """A rule declares the axis that is summed, so that the shards of a row are not gathered."""
    columns = NamedSharding(env.mesh(4, "x"), P(None, "x"))
    f = custom_partitioning(lambda x: x.sum(1))

    def partition(mesh, arg_shapes, result_shape):
        spec = spec_of(arg_shapes[0])

        def lower(x):
            return jax.lax.psum(x.sum(1), spec[1]) if spec[1] else x.sum(1)

        return mesh, lower, NamedSharding(mesh, P(spec[0])), (arg_shapes[0].sharding,)

    def infer(mesh, arg_shapes, result_shape):
        return NamedSharding(mesh, P(spec_of(arg_shapes[0])[0]))

    f.def_partition(partition, infer, sharding_rule="i j -> i", reduction_factors=("j",))
    return Observed(jax.jit(f)(jax.device_put(MATRIX, columns)), MATRIX.sum(1, dtype=np.float64))


ONE_SIZE_FOR_A_NAME = deviation(
    "jax>=0.7,<0.7.1",
    outcome="raised",
    reason="Shardy is the default, and a name stood for one size",
    issue="jax-ml/jax@5ef7deb74dcd",
)


@probe(source="jax-ml/jax@5ef7deb74dcd", releases="jax>=0.5", deviations=[ONE_SIZE_FOR_A_NAME])
def sizes_that_differ(env):
    """A rule may give one name to axes of different sizes, such as those of every other column."""
    f = custom_partitioning(lambda x: x[:, ::2])
    add_rule(f, "i j -> i j", same_sharding, split_by(lambda x: x[:, ::2]))
    return Observed(jax.jit(f)(put_rows(env)), MATRIX[:, ::2])


AUTO_MESH_IN_THE_CALLBACKS = deviation(
    outcome="ok",
    reason="the mesh is made again from the program, which has no axis types",
    issue="jax-ml/jax#34811",
)


@probe(
    source="jax-ml/jax#34811",
    releases="jax>=0.7",
    devices=4,
    deviations=[AUTO_MESH_IN_THE_CALLBACKS],
)
def axis_types_in_the_callbacks(env):
    """The callbacks receive the axis types of the mesh: here Explicit."""
    seen = []

    def partition(mesh, arg_shapes, result_shape):
        seen.append(mesh.axis_types[0].name)
        sharding = NamedSharding(mesh, P("x"))
        return mesh, lambda x: 2 * x, sharding, (sharding,)

    f = add_rule(custom_partitioning(lambda x: 2 * x), "i j -> i j", same_sharding, partition)
    x = jax.device_put(MATRIX, NamedSharding(env.mesh(4, "x", explicit=True), P("x")))
    y = jax.jit(f)(x)
    return Observed((y, seen[-1]), (2 * MATRIX, "Explicit"))
