"""The bits of a key: the default layout of the counters changed in 0.5.0.

All samplers, `split` and `fold_in` reduce to threefry2x32. Up to 0.4.38 the counters of a call
were the two halves of one range, so element i depended on the number of elements, and a sharded
array needed its neighbours. Since `jax_threefry_partitionable` is the default, element i is a
function of the key and of i. Every stream changed with it. The references are threefry in NumPy,
which is checked against the published vectors.

Some cases with several draws disable compiler optimisation: compilation takes most of
the time, and these words do not depend on it.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.extend.random import threefry_2x32
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit import strategies as st
from conformance.kit.laws import check_same

from ._helpers import bits, fold_in, key_words, original_bits, original_split, run_draw, split

VECTORS = {
    "zeros": (0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x6B200159, 0x99BA4EFE),
    "ones": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7),
    "pi": (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0),
}


@probe(source="jax-ml/jax#37872", platforms=("cpu",))
def published_vectors(env):
    """`threefry_2x32` gives the published outputs for the three published vectors.

    A vector holds a key, a counter and the output.
    """
    words = {name: np.array(vector, np.uint32) for name, vector in VECTORS.items()}
    result = {name: threefry_2x32(w[:2], w[2:4]) for name, w in words.items()}
    return Observed(result, reference={name: w[4:] for name, w in words.items()})


HALVED_COUNTERS = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the counters were halves of one range",
    issue="jax-ml/jax#18480",
)


@probe(source="jax-ml/jax@a60ead6fd1a0", platforms=("cpu",), deviations=[HALVED_COUNTERS])
def bits_of_a_shape(env):
    """Element i of `random.bits` is threefry of the counter i, folded to the width."""
    asked = {"eight": ((8,), 32), "five": ((5,), 32), "matrix": ((2, 3), 32), "bytes": ((6,), 8)}

    def draw(key):
        return {n: jax.random.bits(key, shape, f"uint{w}") for n, (shape, w) in asked.items()}

    expected = {
        name: bits(key_words(), int(np.prod(shape)), width).reshape(shape)
        for name, (shape, width) in asked.items()
    }
    return Observed(run_draw(draw), reference=expected)


@probe(source="jax-ml/jax@a60ead6fd1a0", platforms=("cpu",), x64=True, deviations=[HALVED_COUNTERS])
def bits_of_64(env):
    """64-bit words are both words of threefry, the first word high."""
    result = run_draw(lambda key: jax.random.bits(key, (5,), "uint64"))
    return Observed(result, reference=bits(key_words(), 5, 64))


@probe(source="jax-ml/jax@a60ead6fd1a0", platforms=("cpu",), deviations=[HALVED_COUNTERS])
def split_keys(env):
    """`split` into two, five, or a shape: key i is threefry of the counter i."""
    asked = (2, 5, (2, 2))
    result = run_draw(lambda key: [jax.random.key_data(jax.random.split(key, n)) for n in asked])
    words = split(key_words(), 5)
    return Observed(result, reference=[words[:2], words, words[:4].reshape(2, 2, 2)])


@probe(
    source="jax-ml/jax#18480",
    platforms=("cpu",),
    given={"seed": st.integers(0, 2**32 - 1), "number": st.integers(0, 2**32 - 1)},
)
def folded_keys(env, seed, number):
    """`fold_in` is threefry of the number: the same in both layouts, so on every release."""
    key = jax.random.wrap_key_data(key_words(seed))
    folded = jax.random.key_data(jax.random.fold_in(key, np.uint32(number)))
    check_same(folded, fold_in(key_words(seed), number))


@probe(
    source="jax-ml/jax#4877",
    platforms=("cpu",),
    given={"seed": st.integers(-(2**63), 2**63 - 1)},
)
def keys_of_seeds(env, seed):
    """A Python int as a seed, without x64, keeps its low 32 bits, so seeds may coincide."""
    check_same(
        jax.random.key_data(jax.random.key(seed)), np.array([0, seed & 0xFFFFFFFF], np.uint32)
    )


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[HALVED_COUNTERS],
)
def prefix_stability(env):
    """The first four of eight draws equal a draw of four, since 0.5.0.

    So a longer run can extend a shorter run. Before 0.5.0, draw in blocks of a fixed size.
    """

    def draws(key):
        asked = jax.random.bits, jax.random.normal
        return {
            **{f.__name__: [f(key, (n,)) for n in (8, 4)] for f in asked},
            "keys": [jax.random.key_data(jax.random.split(key, n)) for n in (8, 4)],
        }

    result = jax.tree_util.tree_map(np.asarray, run_draw(draws))
    same = {name: np.array_equal(long[:4], short) for name, (long, short) in result.items()}
    return Observed(same, reference=dict.fromkeys(result, True))


@probe(source="jax-ml/jax#18480", platforms=("cpu",), config={"jax_threefry_partitionable": False})
def original_layout(env):
    """`jax_threefry_partitionable=False` still gives the old stream."""

    def draw(key):
        return {
            "even": jax.random.bits(key, (8,)),
            "odd": jax.random.bits(key, (5,)),
            "keys": jax.random.key_data(jax.random.split(key, 3)),
        }

    words = key_words()
    expected = {
        "even": original_bits(words, 8),
        "odd": original_bits(words, 5),
        "keys": original_split(words, 3),
    }
    return Observed(run_draw(draw), reference=expected)


SHARDS_EXCHANGED_COUNTERS = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the counters were halves of one range, so shards exchanged them",
    issue="jax-ml/jax#18480",
)


@program(
    source="jax-ml/jax#18480",
    devices=4,
    facts={"collectives": {}},
    deviations=[SHARDS_EXCHANGED_COUNTERS],
)
def sharded_draw(env):
    """Since 0.5.0 each of four devices draws its part of the words, without a collective."""
    mesh = env.mesh(4, "x")
    words = env.put(key_words(), NamedSharding(mesh, P()))

    def draw(words):
        return jax.random.bits(jax.random.wrap_key_data(words), (32,))

    spread = {"out_shardings": NamedSharding(mesh, P("x"))}
    return Program(draw, args=(words,), jit=spread, reference=lambda words: bits(words, 32))


@probe(
    source="jax-ml/jax#18480",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[HALVED_COUNTERS],
)
def same_in_transformations(env):
    """A batch of keys under vmap and scan draws the same as each key separately."""

    def batches(key):
        keys = jax.random.split(key, 3)
        return {
            "vmap": jax.vmap(lambda key: jax.random.bits(key, (4,)))(keys),
            "scan": jax.lax.scan(lambda c, key: (c, jax.random.bits(key, (4,))), 0, keys)[1],
            "alone": jax.random.bits(keys[1], (4,)),
        }

    alone = np.stack([bits(words, 4) for words in split(key_words(), 3)])
    return Observed(run_draw(batches), {"vmap": alone, "scan": alone, "alone": alone[1]})
