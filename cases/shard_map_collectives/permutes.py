"""Handing shards on: `ppermute` and `pshuffle`, and what makes a permutation.

A permutation is pairs of source and destination. Who is sent nothing has zeros. Over two axes of a
mesh the numbers are those of `axis_index` over the same names, in the order they are written in,
or so one would think.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import RING, SHARDS, mapped, numbers, shards_of, square_mesh


@program(
    source="jax-ml/jax#1147",
    devices=4,
    params={
        "ring": {"pairs": [(0, 1), (1, 2), (2, 3), (3, 0)]},
        "chain": {"pairs": [(0, 1), (1, 2)]},
        "swap": {"pairs": [(3, 1), (1, 3), (2, 2)]},
    },
    facts={"collectives": {"collective-permute": 1}},
)
def handed_on(env, pairs):
    """Each pair is (source, destination); a shard that nobody sends to has zeros."""

    def exact(x):
        parts = shards_of(x)
        out = np.zeros_like(parts)
        for source, destination in pairs:
            out[destination] = parts[source]
        return out.ravel()

    fn = mapped(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8),), reference=exact)


@program(source="jax-ml/jax#1975", devices=4, facts={"collectives": {"collective-permute": 1}})
def pshuffle_takes(env):
    """`pshuffle(x, perm)`: shard i takes from shard perm[i], as indexing would. Not the inverse."""
    order = [1, 3, 0, 2]
    fn = mapped(env, lambda x: lax.pshuffle(x, "x", order), P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: shards_of(x)[order].ravel())


@program(
    source="jax-ml/jax#1147", devices=4, facts={"collectives": {"collective-permute": 2}}, rtol=1e-6
)
def stencil(env):
    """Second differences on a ring of shards: a halo from the left and one from the right."""

    def body(x):
        left = lax.ppermute(x[-1:], "x", RING)
        right = lax.ppermute(x[:1], "x", [(j, i) for i, j in RING])
        padded = jnp.concatenate([left, x, right])
        return padded[:-2] - 2 * x + padded[2:]

    def exact(x):
        x = x.astype(np.float64)
        return np.roll(x, 1) - 2 * x + np.roll(x, -1)

    return Program(mapped(env, body, P("x"), P("x")), args=(numbers(env, 16),), reference=exact)


@probe(
    source="jax-ml/jax@0c17ff9c8660",
    devices=4,
    params={"as_in_the_mesh": {"names": ("a", "b")}, "reversed": {"names": ("b", "a")}},
    deviations=[
        deviation(
            "jax<0.11.1",
            params=["reversed"],
            outcome="ok",
            reason="the order of the names was lost: shards were numbered as in the mesh",
            issue="jax-ml/jax@0c17ff9c8660",
        ),
        deviation(
            "jax>=0.11.1",
            params=["reversed"],
            error="RuntimeError",
            match="in the same order as the axis_names declared on the mesh",
            reason="refused, for it was answered wrongly before",
            issue="jax-ml/jax@0c17ff9c8660",
        ),
    ],
)
def ring_over_two_axes(env, names):
    """A ring over `("b", "a")` of a mesh `a`, `b`: silently another ring, then refused.

    Whoever sends by `axis_index(names)` expects the numbers of that function. Name the axes in the
    order of the mesh and permute the numbers instead: right on every release.
    """
    x = numbers(env, 8)
    order = [0, 1, 2, 3] if names[0] == "a" else [0, 2, 1, 3]
    reference = np.empty((4, 2))
    for source, destination in RING:
        reference[order[destination]] = shards_of(x)[order[source]]
    both, names = P(("a", "b")), tuple(names)
    fn = mapped(env, lambda x: lax.ppermute(x, names, RING), both, both, mesh=square_mesh(env))
    return Observed(jax.jit(fn)(x), reference=reference.ravel())


@probe(source="jax-ml/jax#1147", devices=4)
def no_permutation(env):
    """Pairs that name a shard twice, or none that is there, are refused; nothing is guessed."""
    unique, missing = "sources and destinations must be unique", "index out of range"

    def told(pairs):
        fn = mapped(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
        return ending(jax.jit(fn), numbers(env, 8), words=(unique, missing))

    seen = {
        "two_destinations": told([(0, 1), (0, 2)]),
        "two_sources": told([(0, 1), (2, 1)]),
        "no_such_shard": told([(0, 4)]),
    }
    expected = dict.fromkeys(seen, f"ValueError: {unique}")
    return Observed(seen, reference={**expected, "no_such_shard": f"IndexError: {missing}"})


@probe(
    source="jax-ml/jax@d2b97cab205a",
    devices=4,
    params={
        "list": {"kind": "list"},
        "tuple": {"kind": "tuple"},
        "iterator": {"kind": "iterator"},
        "array": {"kind": "array"},
    },
    deviations=[
        deviation(
            "jax>=0.11.1",
            params=["iterator", "array"],
            error="TypeError",
            match="must be a list or a tuple",
            reason="by design, and told: a permutation is a list or a tuple",
            issue="jax-ml/jax@d2b97cab205a",
        ),
    ],
)
def pairs_by(env, kind):
    """A permutation as list, tuple, iterator, NumPy array; the last two were taken for long."""
    pairs = {
        "list": lambda: RING,
        "tuple": lambda: tuple(RING),
        "iterator": lambda: zip(range(SHARDS), [1, 2, 3, 0], strict=True),
        "array": lambda: np.array(RING),
    }[kind]()
    x = numbers(env, 8)
    fn = mapped(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
    return Observed(jax.jit(fn)(x), reference=np.roll(shards_of(x), 1, axis=0).ravel())
