"""Mutable arrays in loops, branches, transformations and jitted functions, inside of `jit` and not.

A function that writes to references it made, or was given, gives the result of a plain loop.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import floats, new_reference, outcome

defaults(platforms=("cpu",))

X = floats(1, 2, 3)


def sum_by_scan(x):
    """Add the elements of a vector in a reference that a scan closes over."""
    total = new_reference(jnp.float32(0))

    def step(carry, element):
        total[...] += element
        return carry + 1, total[...]

    count, sums = lax.scan(step, 0, x)
    return total[...], sums, count


def sum_by_while(x):
    """Add the elements of a vector in a reference that a while_loop writes to."""
    total = new_reference(jnp.float32(0))

    def body(i):
        total[...] += x[i]
        return i + 1

    lax.while_loop(lambda i: i < 3, body, 0)
    return total[...]


def write_in_a_branch(x):
    """Write to a reference in one of two branches."""
    ref = new_reference(x)

    def first():
        ref[0] = 10.0

    def second():
        ref[1] = 20.0

    lax.cond(x[0] > 0, first, second)
    return ref[...]


def write_at_indices(x):
    """Write at a traced index, to a slice, and add to an array of indices."""
    ref = new_reference(jnp.concatenate([x, x]))
    ref[jnp.int32(x[0])] = 10.0
    ref[3:5] = x[:2] * 2
    ref[jnp.array([0, 5])] += 1.0
    return ref[...]


def write_in_inner_jit(x):
    """Hand a reference to a jitted function that writes to it."""
    ref = new_reference(x)

    @jax.jit
    def inner(ref, y):
        ref[0] += y
        return ref[0] * 2

    doubled = inner(ref, x[2])
    return ref[...], doubled


SUMS = np.cumsum(X, dtype=np.float64)
USES = {
    "scan": (sum_by_scan, (SUMS[-1], SUMS, np.int32(3))),
    "while_loop": (sum_by_while, SUMS[-1]),
    "cond": (write_in_a_branch, floats(10, 2, 3)),
    "indices": (write_at_indices, floats(2, 10, 3, 2, 4, 4)),
    "inner_jit": (write_in_inner_jit, (floats(4, 2, 3), floats(8))),
}


@probe(source="jax-ml/jax@1e2c56e261b6", params=[*USES])
def references_jitted(env, name):
    """Under jit, a reference is read and written in loops, branches and inner functions."""
    f, exact = USES[name]
    return Observed(jax.jit(f)(X), exact)


NO_EAGER_BRANCHES = deviation(
    "jax<0.5",
    params=["cond"],
    error="AssertionError",
    reason="a branch outside of jit could not write to a reference",
)


@probe(source="jax-ml/jax@1e2c56e261b6", params=["scan", "cond"], deviations=[NO_EAGER_BRANCHES])
def references_eager(env, name):
    """Outside of jit, the same functions give the same results."""
    f, exact = USES[name]
    return Observed(f(X), exact)


REFERENCES_NOT_BATCHED = [
    deviation(
        "jax<0.6",
        params=["inner_jit"],
        error="NotImplementedError",
        match="Batching rule for 'mutable_array' not implemented",
        reason="references had no batching rule",
    ),
    deviation(
        "jax>=0.6,<0.7.2",
        params=["inner_jit"],
        error="AssertionError",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.8,<0.8.2",
        params=["inner_jit"],
        error="TypeError",
        match="transpose permutation isn't a permutation",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.8.2,<0.10.1",
        params=["inner_jit"],
        error="ValueError",
        match="axis 1 is out of bounds",
        reason="an inner jit that writes to a reference could not be batched",
    ),
    deviation(
        "jax<0.6",
        params=["scan"],
        error="TypeError",
        match="broadcast_dimensions must have length equal to operand ndim",
        reason="a scan that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.6,<0.6.2",
        params=["scan"],
        error="ValueError",
        match="x not in tuple",
        reason="a scan that writes to a reference could not be batched",
    ),
    deviation(
        "jax>=0.6.2,<0.7.2",
        params=["scan"],
        error="Exception",
        match="vmapped value on an unbatched",
        reason="a scan that writes to a reference could not be batched",
    ),
]


@probe(
    source="jax-ml/jax@1e2c56e261b6",
    params=["scan", "inner_jit"],
    deviations=REFERENCES_NOT_BATCHED,
)
def references_in_lanes(env, name):
    """Under vmap, each lane has its own reference."""
    f, exact = USES[name]
    both = jax.tree_util.tree_map(lambda leaf: np.stack([leaf, leaf]), exact)
    return Observed(jax.jit(jax.vmap(f))(np.stack([X, X])), both)


COTANGENT_OF_A_REFERENCE = deviation(
    "jax<0.7",
    error="TypeError",
    match=r"Zero\(Ref",
    reason="the cotangent of a reference of a scan was a symbolic zero that is no array",
)


@probe(source="jax-ml/jax@be053828118e", deviations=[COTANGENT_OF_A_REFERENCE])
def gradient_through_a_loop(env):
    """The gradient of a product that a scan accumulates in a reference."""

    def product(x):
        total = new_reference(jnp.float32(1))

        def step(carry, element):
            total[...] = total[...] * element
            return carry, None

        lax.scan(step, 0, x)
        return total[...]

    return Observed(jax.jit(jax.grad(product))(X), floats(6, 3, 2))


@probe(source="jax-ml/jax@be053828118e")
def argument_of_jit(env):
    """A jitted function writes to a reference that it is given, and to one that it closes over."""
    one, other = new_reference(X), new_reference(X)

    @jax.jit
    def add(ref, y):
        ref[...] += y
        other[0] = y[0]

    add(one, X)
    add(one, 2 * X)
    return Observed((one[...], other[...]), (4 * X, floats(2, 2, 3)))


@probe(source="jax-ml/jax@be053828118e", records="what a reference may be used for is up to JAX")
def used_as_an_array(env):
    """The outcomes of a reference in place of an array, in `jnp`, arithmetic and NumPy."""
    ref = new_reference(X)
    uses = {
        "sin": lambda: jnp.sin(ref),
        "add": lambda: ref + 1,
        "asarray": lambda: jnp.asarray(ref),
        "numpy": lambda: np.asarray(ref),
        "device_put": lambda: jax.device_put(ref),
        "len": lambda: len(ref),
        "iter": lambda: list(ref),
        "hash": lambda: hash(ref),
        "tree": lambda: jax.tree_util.tree_map(lambda r: r[...], [ref]),
    }
    return {name: outcome(use) for name, use in uses.items()}


MOVED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a reference without a device was copied to the devices of the program",
    issue="jax-ml/jax@89fd5e81e004",
)


@probe(source="jax-ml/jax@89fd5e81e004", devices=4, releases="jax>=0.7.2", deviations=[MOVED])
def reference_on_another_device(env):
    """A program on a mesh refuses a reference on one device: it could not write to it in place."""
    ref = new_reference(jnp.arange(4.0))
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    f = jax.jit(lambda: jnp.ones(8) + ref[...][0], out_shardings=rows)
    return Observed(ending(f, words=["incompatible devices"]), "ValueError: incompatible devices")
