"""Memory that a program needs in addition to its arguments and results, in whole arrays.

`memory_analysis()` needs no run, and shows on a CPU what also holds elsewhere: whether a loop
updates in place, what it keeps for its gradient, how many arrays random numbers take. Sizes are
multiples of the array, so that a few bytes of bookkeeping do not count.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import measure_memory

N = 1 << 16
BIG = jax.ShapeDtypeStruct((256, 256), np.float32)


def _measure_arrays(fn, *args, what="temp", **jit):
    """Return temporary memory in multiples of 256 KiB, the size of BIG, to a quarter."""
    return round(measure_memory(fn, *args, **jit)[what] / (4 * N) * 4) / 4


INTERMEDIATE_COPIED = deviation(
    "jax>=0.7.2,<0.11.1",
    outcome="ok",
    reason="the intermediate had separate memory, a copy of the whole array",
    issue="openxla/xla#45912",
)


@probe(source="openxla/xla#45912", deviations=[INTERMEDIATE_COPIED])
def donated_and_read_by_a_loop(env):
    """A donated array that is updated, read by a loop and updated again stays in place.

    From 0.7.2 to 0.11.0 it does not, and the peak is twice the working set, without a warning.
    """

    def fn(x):
        y = jnp.exp(x)
        return y + lax.fori_loop(0, 8, lambda i, s: s + y[i * 1000], jnp.float32(0))

    x = jax.ShapeDtypeStruct((16 * N,), np.float32)
    return Observed(_measure_arrays(fn, x, donate_argnums=0), 0.0)


UNPARTITIONABLE_STREAM = deviation(
    "jax<0.5",
    outcome="ok",
    match="1.5",
    reason="the stream that could not be partitioned counted in halves",
)


@probe(source="jax-ml/jax#18480", platforms=("cpu",), deviations=[UNPARTITIONABLE_STREAM])
def random_numbers(env):
    """Random numbers take three temporary arrays from 0.5.0, and one and a half before.

    This is the cost on a CPU of a stream that does not depend on the sharding. On an H200, 0.11.2
    needs no temporary array.
    """
    draws = {"normal": jax.random.normal, "uniform": jax.random.uniform}
    observed = {
        kind: _measure_arrays(lambda: draw(jax.random.key(0), BIG.shape))
        for kind, draw in draws.items()
    }
    return Observed(observed, {"normal": 3.0, "uniform": 3.0})


@probe(
    source="jax-ml/jax#18480",
    platforms=("cpu",),
    config={"jax_threefry_partitionable": False},
)
def random_numbers_as_before(env):
    """With `jax_threefry_partitionable` off, they take 1.5 arrays on a CPU on every release."""
    draw = lambda: jax.random.normal(jax.random.key(0), BIG.shape)  # noqa: E731 - short
    return Observed(_measure_arrays(draw), 1.5)


@probe(source="jax-ml/jax#1733")
def updated_in_place(env):
    """A donated array that a loop or branch updates row by row needs no second array."""
    row = lambda y, i: y.at[i].mul(2.0)  # noqa: E731 - short
    step = lambda c: (c[0] + 1, row(c[1], c[0]))  # noqa: E731 - short
    updates = {
        "fori": lambda x: lax.fori_loop(0, 10, lambda i, y: row(y, i), x),
        "while": lambda x: lax.while_loop(lambda c: c[0] < 10, step, (0, x))[1],
        "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: row(y, 0), lambda y: y, x),
        "once": lambda x: row(x, 3),
    }
    observed = {
        key: [_measure_arrays(fn, BIG, what=what, donate_argnums=0) for what in ("temp", "alias")]
        for key, fn in updates.items()
    }
    return Observed(observed, {key: [0.0, 1.0] for key in updates})


@probe(source="jax-ml/jax#23831")
def kept_for_the_gradient(env):
    """The gradient of sixteen layers of three sines keeps 48 arrays, or 16 with jax.checkpoint.

    Memory grows with the number of residuals of the body; recomputation keeps only its input.
    """
    layer = lambda h: jnp.sin(jnp.sin(jnp.sin(h)))  # noqa: E731 - short

    def measure_kept(body):
        loss = lambda x: lax.scan(lambda h, _: (body(h), None), x, None, length=16)[0].sum()  # noqa: E731 - short
        return _measure_arrays(jax.grad(loss), BIG)

    saved, recomputed = measure_kept(layer), measure_kept(jax.checkpoint(layer))
    return Observed([48 <= saved <= 52, 16 <= recomputed <= 20], [True, True])


@probe(source="jax-ml/jax#23831")
def residuals_of_vjp(env):
    """`jax.vjp` holds three cosines, or only the input, depending on the checkpoint policy."""

    def count_held(policy):
        fn = jax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x))), policy=policy)
        leaves = jax.tree_util.tree_leaves(jax.vjp(fn, np.ones(5, np.float32))[1])
        return sum(getattr(leaf, "shape", None) == (5,) for leaf in leaves)

    policies = jax.checkpoint_policies
    counts = [count_held(policies.everything_saveable), count_held(policies.nothing_saveable)]
    return Observed(counts, [3, 1])


SINES_WRITTEN_OUT = deviation(
    "jax<0.11.2",
    outcome="ok",
    match="1.0",
    reason="the sines were written to memory and then summed",
)


@probe(source="jax-ml/jax#1733", platforms=("cpu",), deviations=[SINES_WRITTEN_OUT])
def reduction_of_a_map(env):
    """On a CPU, `sin(x).sum()` needs no array of sines from 0.11.2.

    They are summed as they are computed. On an H200, 0.11.2 writes them to memory.
    """
    return Observed(_measure_arrays(lambda x: jnp.sin(x).sum(), BIG), 0.0)
