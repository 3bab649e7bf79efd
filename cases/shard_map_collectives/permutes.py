"""Passing shards on: `ppermute` and `pshuffle`, and valid permutations.

A permutation is pairs of source and destination. A shard that receives nothing has zeros. Over two
axes of a mesh the numbers should be those of `axis_index` over the same names, in the order in
which they are written; `ring_over_two_axes` shows that they are not.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import RING, SHARDS, map_shards, numbers, shards_of, square_mesh

defaults(devices=4)


@program(
    source="jax-ml/jax#1147",
    params={
        "ring": {"pairs": [(0, 1), (1, 2), (2, 3), (3, 0)]},
        "chain": {"pairs": [(0, 1), (1, 2)]},
        "swap": {"pairs": [(3, 1), (1, 3), (2, 2)]},
    },
    facts={"collectives": {"collective-permute": 1}},
)
def handed_on(env, pairs):
    """Each pair of `ppermute` is (source, destination); a shard without a source has zeros."""

    def exact(x):
        parts = shards_of(x)
        out = np.zeros_like(parts)
        for source, destination in pairs:
            out[destination] = parts[source]
        return out.ravel()

    fn = map_shards(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8),), reference=exact)


@program(source="jax-ml/jax#1975", facts={"collectives": {"collective-permute": 1}})
def pshuffle_takes(env):
    """`pshuffle(x, perm)`: shard i takes from shard perm[i], as indexing would.

    It is not the inverse.
    """
    order = [1, 3, 0, 2]
    fn = map_shards(env, lambda x: lax.pshuffle(x, "x", order), P("x"), P("x"))
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: shards_of(x)[order].ravel())


@program(source="jax-ml/jax#1147", facts={"collectives": {"collective-permute": 2}}, rtol=1e-6)
def stencil(env):
    """Second differences on a ring of shards use a halo from the left and one from the right."""

    def body(x):
        left = lax.ppermute(x[-1:], "x", RING)
        right = lax.ppermute(x[:1], "x", [(j, i) for i, j in RING])
        padded = jnp.concatenate([left, x, right])
        return padded[:-2] - 2 * x + padded[2:]

    def exact(x):
        x = x.astype(np.float64)
        return np.roll(x, 1) - 2 * x + np.roll(x, -1)

    return Program(map_shards(env, body, P("x"), P("x")), args=(numbers(env, 16),), reference=exact)


ORDER_OF_NAMES_LOST = deviation(
    "jax<0.11.1",
    params=["reversed"],
    outcome="ok",
    reason="ppermute lost the order of the names: it numbered shards as in the mesh",
    issue="jax-ml/jax@0c17ff9c8660",
)
OTHER_ORDER_REFUSED = deviation(
    "jax>=0.11.1",
    params=["reversed"],
    error="RuntimeError",
    match="in the same order as the axis_names declared on the mesh",
    reason="refused, because the result was wrong before",
    issue="jax-ml/jax@0c17ff9c8660",
)


@probe(
    source="jax-ml/jax@0c17ff9c8660",
    params={"as_in_the_mesh": {"names": ("a", "b")}, "reversed": {"names": ("b", "a")}},
    deviations=[ORDER_OF_NAMES_LOST, OTHER_ORDER_REFUSED],
)
def ring_over_two_axes(env, names):
    """A ring over `("b", "a")` of a mesh `a`, `b` was silently another ring, then refused.

    Code that sends by `axis_index(names)` expects the numbers of that function. Name the axes in
    the order of the mesh and permute the numbers instead: this is right on every release.
    """
    x = numbers(env, 8)
    order = [0, 1, 2, 3] if names[0] == "a" else [0, 2, 1, 3]
    reference = np.empty((4, 2))
    for source, destination in RING:
        reference[order[destination]] = shards_of(x)[order[source]]
    both, names = P(("a", "b")), tuple(names)
    fn = map_shards(env, lambda x: lax.ppermute(x, names, RING), both, both, mesh=square_mesh(env))
    return Observed(jax.jit(fn)(x), reference=reference.ravel())


@probe(source="jax-ml/jax#1147")
def no_permutation(env):
    """Pairs that name a shard twice, or a shard that does not exist, are refused.

    JAX guesses nothing.
    """
    unique, missing = "sources and destinations must be unique", "index out of range"

    def find_ending(pairs):
        fn = map_shards(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
        return ending(jax.jit(fn), numbers(env, 8), words=(unique, missing))

    observed = {
        "two_destinations": find_ending([(0, 1), (0, 2)]),
        "two_sources": find_ending([(0, 1), (2, 1)]),
        "no_such_shard": find_ending([(0, 4)]),
    }
    expected = dict.fromkeys(observed, f"ValueError: {unique}")
    return Observed(observed, reference={**expected, "no_such_shard": f"IndexError: {missing}"})


PAIRS_MUST_BE_LIST_OR_TUPLE = deviation(
    "jax>=0.11.1",
    params=["iterator", "array"],
    error="TypeError",
    match="must be a list or a tuple",
    reason="by design: ppermute accepts only a list or a tuple, as the error states",
    issue="jax-ml/jax@d2b97cab205a",
)


@probe(
    source="jax-ml/jax@d2b97cab205a",
    params={
        "list": {"kind": "list"},
        "tuple": {"kind": "tuple"},
        "iterator": {"kind": "iterator"},
        "array": {"kind": "array"},
    },
    deviations=[PAIRS_MUST_BE_LIST_OR_TUPLE],
)
def pairs_by(env, kind):
    """A permutation as a list, tuple, iterator or NumPy array.

    The last two were accepted for a long time.
    """
    pairs = {
        "list": lambda: RING,
        "tuple": lambda: tuple(RING),
        "iterator": lambda: zip(range(SHARDS), [1, 2, 3, 0], strict=True),
        "array": lambda: np.array(RING),
    }[kind]()
    x = numbers(env, 8)
    fn = map_shards(env, lambda x: lax.ppermute(x, "x", pairs), P("x"), P("x"))
    return Observed(jax.jit(fn)(x), reference=np.roll(shards_of(x), 1, axis=0).ravel())
