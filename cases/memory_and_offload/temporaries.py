"""Memory that a program needs beside its arguments and results, in whole arrays.

Read from `memory_analysis()`, which needs no run and says on a CPU what holds elsewhere: whether
a loop updates in place, what it keeps for its gradient, how many arrays random numbers take. Given
in multiples of the array, so that a few bytes of bookkeeping do not count.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import sizes

N = 1 << 16
BIG = jax.ShapeDtypeStruct((256, 256), np.float32)


def _arrays(fn, *args, what="temp", **jit):
    """Return temporary memory in multiples of 256 KiB, the size of BIG, to a quarter."""
    return round(sizes(fn, *args, **jit)[what] / (4 * N) * 4) / 4


@probe(
    source="openxla/xla#45912",
    deviations=[
        deviation(
            "jax>=0.7.2,<0.11.1",
            outcome="ok",
            reason="the intermediate was given memory of its own, a copy of the whole array",
            issue="openxla/xla#45912",
        )
    ],
)
def donated_and_read_by_a_loop(env):
    """A donated array updated, read by a loop, updated again: in place, but for 0.7.2 to 0.11.0.

    There the peak was twice the working set, without a word.
    """

    def fn(x):
        y = jnp.exp(x)
        return y + lax.fori_loop(0, 8, lambda i, s: s + y[i * 1000], jnp.float32(0))

    x = jax.ShapeDtypeStruct((16 * N,), np.float32)
    return Observed(_arrays(fn, x, donate_argnums=0), 0.0)


@probe(
    source="jax-ml/jax#18480",
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            match="1.5",
            reason="the stream that could not be partitioned counted in halves",
        )
    ],
)
def random_numbers(env):
    """Random numbers take three arrays beside their result since 0.5.0, one and a half before.

    The price on a CPU of a stream that is the same however it is sharded.
    """
    draws = {"normal": jax.random.normal, "uniform": jax.random.uniform}
    seen = {
        kind: _arrays(lambda: draw(jax.random.key(0), BIG.shape)) for kind, draw in draws.items()
    }
    return Observed(seen, {"normal": 3.0, "uniform": 3.0})


@probe(
    source="jax-ml/jax#18480",
    config={"jax_threefry_partitionable": False},
)
def random_numbers_as_before(env):
    """With `jax_threefry_partitionable` off it is one and a half on every release."""
    draw = lambda: jax.random.normal(jax.random.key(0), BIG.shape)  # noqa: E731 - short
    return Observed(_arrays(draw), 1.5)


@probe(source="jax-ml/jax#1733")
def updated_in_place(env):
    """A donated array, updated a row at a time by a loop or a branch: no second one is made."""
    row = lambda y, i: y.at[i].mul(2.0)  # noqa: E731 - short
    step = lambda c: (c[0] + 1, row(c[1], c[0]))  # noqa: E731 - short
    ways = {
        "fori": lambda x: lax.fori_loop(0, 10, lambda i, y: row(y, i), x),
        "while": lambda x: lax.while_loop(lambda c: c[0] < 10, step, (0, x))[1],
        "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: row(y, 0), lambda y: y, x),
        "once": lambda x: row(x, 3),
    }
    seen = {
        key: [_arrays(fn, BIG, what=what, donate_argnums=0) for what in ("temp", "alias")]
        for key, fn in ways.items()
    }
    return Observed(seen, {key: [0.0, 1.0] for key in ways})


@probe(source="jax-ml/jax#23831")
def kept_for_the_gradient(env):
    """The gradient of sixteen layers of three sines: 48 arrays kept, or 16 with jax.checkpoint.

    What is kept grows by the number of residuals of the body: recomputing leaves its input.
    """
    layer = lambda h: jnp.sin(jnp.sin(jnp.sin(h)))  # noqa: E731 - short

    def kept(body):
        loss = lambda x: lax.scan(lambda h, _: (body(h), None), x, None, length=16)[0].sum()  # noqa: E731 - short
        return _arrays(jax.grad(loss), BIG)

    saved, recomputed = kept(layer), kept(jax.checkpoint(layer))
    return Observed([48 <= saved <= 52, 16 <= recomputed <= 20], [True, True])


@probe(source="jax-ml/jax#23831")
def residuals_of_vjp(env):
    """What `jax.vjp` holds on to, by policy: three cosines, or the input alone."""

    def held(policy):
        fn = jax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x))), policy=policy)
        leaves = jax.tree_util.tree_leaves(jax.vjp(fn, np.ones(5, np.float32))[1])
        return sum(getattr(leaf, "shape", None) == (5,) for leaf in leaves)

    policies = jax.checkpoint_policies
    seen = [held(policies.everything_saveable), held(policies.nothing_saveable)]
    return Observed(seen, [3, 1])


@probe(
    source="jax-ml/jax#1733",
    deviations=[
        deviation(
            "jax<0.11.2",
            outcome="ok",
            match="1.0",
            reason="the sines were written out, then summed",
        )
    ],
)
def reduction_of_a_map(env):
    """`sin(x).sum()` needs no array of sines since 0.11.2: the sum takes them as they come."""
    return Observed(_arrays(lambda x: jnp.sin(x).sum(), BIG), 0.0)
