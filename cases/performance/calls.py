"""The overhead of a call: arguments, pytrees, shardings, callbacks, copies.

The phase `dispatch` is the time until a call returns. It grows with the number of arguments.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, probe, program

defaults(platforms=("cpu",), rtol=1e-4, atol=1e-5)

X = np.linspace(-1, 1, 64, dtype=np.float32)


@program(source="jax-ml/jax#29470", sizes=(1, 10, 100, 1000))
def many_arguments(env, size):
    """One number of each array is used."""
    arrays = [np.full(4, i, np.float32) for i in range(size)]
    return Program(
        lambda *arrays: sum(a[0] for a in arrays), arrays,
        reference=np.float32(size * (size - 1) / 2),
    )  # fmt: skip


@program(source="jax-ml/jax#29470", sizes=(1, 10, 100))
def many_results(env, size):
    """As many arrays are made by one call."""
    return Program(
        lambda x: [x + i for i in range(size)], (X,),
        reference=lambda x: [x + np.float32(i) for i in range(size)],
    )  # fmt: skip


@program(source="jax-ml/jax#29470", sizes=(2, 4, 6, 8))
def nested_arguments(env, size):
    """A binary tree of dictionaries: 2 ** size leaves are flattened by each call."""

    def tree(depth):
        return {"a": tree(depth - 1), "b": tree(depth - 1)} if depth else X[:2]

    return Program(
        lambda tree: sum(leaf[0] for leaf in jax.tree_util.tree_leaves(tree)), (tree(size),),
        reference=np.float32(-(2**size)),
    )  # fmt: skip


@program(source="jax-ml/jax#5485")
def static_arguments(env):
    """A static argument is hashed and compared by each call."""
    return Program(
        lambda x, options: x * options[0], (X, (2, "name", (1, 2, 3))),
        jit={"static_argnums": 1}, reference=2 * X,
    )  # fmt: skip


@program(source="jax-ml/jax#5485")
def donated_argument(env):
    """The result is written where the argument was."""
    return Program(
        lambda x: x + 1, (jnp.zeros((32, 32)),), jit={"donate_argnums": 0},
        reference=np.ones((32, 32), np.float32),
    )  # fmt: skip


@program(source="jax-ml/jax#26145", devices=4)
def sharded_step(env):
    """A product of sharded matrices on four devices, and its gradient."""
    mesh = env.mesh((2, 2), ("x", "y"))
    w = np.random.RandomState(0).uniform(-1, 1, (64, 64)).astype(np.float32)
    x = np.random.RandomState(1).uniform(-1, 1, (32, 64)).astype(np.float32)
    place = lambda a, *spec: env.put(a, NamedSharding(mesh, P(*spec)))  # noqa: E731 - short

    def step(w, x):
        grad = jax.grad(lambda w: ((x @ w) ** 2).sum())(w)
        return w - 0.001 * grad

    return Program(
        step, (place(w, None, "y"), place(x, "x")),
        reference=lambda w, x: w - 0.002 * (x.T @ (x @ w)),
    )  # fmt: skip


@program(source="jax-ml/jax#26145", devices=4, sizes=(4, 8, 16, 32))
def collectives_in_a_loop(env, size):
    """A `psum` in each step of a loop in `shard_map`."""
    mesh = env.mesh(4, "x")

    def shard(x):
        step = lambda _, x: env.compat.pvary(jax.lax.psum(x, "x") / 4, "x")  # noqa: E731 - short
        return jax.lax.fori_loop(0, size, step, x)

    f = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return Program(
        f, (X,), reference=lambda x: np.tile(x.reshape(4, 16).mean(0), 4).astype(np.float32)
    )


@program(source="jax-ml/jax#427")
def callback(env):
    """A call of Python."""

    def double(x):
        return 2 * np.asarray(x)

    return Program(lambda x: jax.pure_callback(double, x, x), (X,), reference=2 * X)


@probe(source="jax-ml/jax#947", sizes=(10, 100, 1000))
def arrays_put_on_a_device(env, size):
    """`device_put` of a list of arrays."""
    put = jax.device_put([X] * size)
    return Observed({"n": len(put), "last": np.asarray(put[-1])}, {"n": size, "last": X})


@probe(source="jax-ml/jax#16905", devices=4, sizes=(10, 100, 1000))
def arrays_put_on_a_mesh(env, size):
    """`device_put` of a list of arrays over four devices."""
    sharding = NamedSharding(env.mesh(4, "x"), P("x"))
    put = jax.device_put([X] * size, sharding)
    return Observed({"n": len(put), "last": np.asarray(put[-1])}, {"n": size, "last": X})


@probe(source="jax-ml/jax#427", sizes=(10, 100, 1000))
def operations_outside_jit(env, size):
    """Additions of small arrays, each dispatched by Python."""
    x = jnp.asarray(X)
    for _ in range(size):
        x = x + 1
    return Observed(np.asarray(x), X + size)


@probe(source="jax-ml/jax#193", sizes=(100, 1000, 10000))
def array_from_a_list(env, size):
    """`jnp.array` of a list of Python numbers."""
    numbers = [float(i) for i in range(size)]
    return Observed(np.asarray(jnp.array(numbers)), np.arange(size, dtype=np.float32))


@probe(source="jax-ml/jax#1130", sizes=(4, 8, 16))
def retraced_for_each_shape(env, size):
    """A jitted function is called with arrays of as many shapes: each is traced and compiled."""
    double = jax.jit(lambda x: 2 * x)
    found = [int(double(np.ones(n, np.float32)).sum()) for n in range(1, size + 1)]
    return Observed(found, [2 * n for n in range(1, size + 1)])
