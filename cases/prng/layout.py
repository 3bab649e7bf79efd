"""Which bits a key gives: the default layout of the counters changed at 0.5.0.

All samplers, `split` and `fold_in` come down to threefry2x32. Up to 0.4.38 the counters of one
call were the two halves of one range, so element i depended on how many were asked for, and a
sharded array needed its neighbours. Since `jax_threefry_partitionable` is the default element i
is a function of the key and of i. Every stream changed with it. The references are threefry in
NumPy, which is checked against the published vectors.

Where a program holds several draws, the compiler is told not to optimise: compilation is most of
the time, and these words do not depend on it.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.extend.random import threefry_2x32
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import bits, drawn, fold_in, original_bits, original_split, seeded, split

VECTORS = {
    "zeros": (0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x6B200159, 0x99BA4EFE),
    "ones": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7),
    "pi": (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0),
}


@probe(source="jax-ml/jax#37872", platforms=("cpu",))
def published_vectors(env):
    """The three vectors published with the generator: key, counter, and what comes out."""
    words = {name: np.array(vector, np.uint32) for name, vector in VECTORS.items()}
    made = {name: threefry_2x32(w[:2], w[2:4]) for name, w in words.items()}
    return Observed(made, reference={name: w[4:] for name, w in words.items()})


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range",
            issue="jax-ml/jax#18480",
        )
    ],
)
def bits_of_a_shape(env):
    """`random.bits`: element i is threefry of the counter i, folded to the width."""
    asked = {"eight": ((8,), 32), "five": ((5,), 32), "matrix": ((2, 3), 32), "bytes": ((6,), 8)}

    def draw(key):
        return {n: jax.random.bits(key, shape, f"uint{w}") for n, (shape, w) in asked.items()}

    wanted = {
        name: bits(seeded(), int(np.prod(shape)), width).reshape(shape)
        for name, (shape, width) in asked.items()
    }
    return Observed(drawn(draw), reference=wanted)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    x64=True,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range",
            issue="jax-ml/jax#18480",
        )
    ],
)
def bits_of_64(env):
    """64-bit words are both words of threefry, the first one high."""
    made = drawn(lambda key: jax.random.bits(key, (5,), "uint64"))
    return Observed(made, reference=bits(seeded(), 5, 64))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range",
            issue="jax-ml/jax#18480",
        )
    ],
)
def split_keys(env):
    """`split` in two, five, or into a shape: key i is threefry of the counter i."""
    asked = (2, 5, (2, 2))
    made = drawn(lambda key: [jax.random.key_data(jax.random.split(key, n)) for n in asked])
    words = split(seeded(), 5)
    return Observed(made, reference=[words[:2], words, words[:4].reshape(2, 2, 2)])


@probe(source="jax-ml/jax#18480", platforms=("cpu",))
def folded_keys(env):
    """`fold_in` is threefry of the number: the same in both layouts, so on every release."""
    numbers = np.array([0, 7, 2**32 - 1], np.uint32)

    def folded(key, numbers):
        return [jax.random.key_data(jax.random.fold_in(key, n)) for n in numbers]

    return Observed(drawn(folded, numbers), reference=[fold_in(seeded(), n) for n in numbers])


@probe(source="jax-ml/jax#4877", platforms=("cpu",))
def keys_of_seeds(env):
    """A Python int as a seed, without x64: its low 32 bits are kept, so seeds may coincide."""
    seeds = (0, 1701, -1, 2**32 - 1, 2**40 + 5)
    made = [jax.random.key_data(jax.random.key(seed)) for seed in seeds]
    return Observed(made, reference=[np.array([0, s & 0xFFFFFFFF], np.uint32) for s in seeds])


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range",
            issue="jax-ml/jax#18480",
        )
    ],
)
def prefix_stability(env):
    """The first four of eight are the four one gets when asking for four: since 0.5.0.

    So a longer run can extend a shorter one. Before, draw in blocks of a fixed size.
    """

    def draws(key):
        asked = jax.random.bits, jax.random.normal
        return {
            **{f.__name__: [f(key, (n,)) for n in (8, 4)] for f in asked},
            "keys": [jax.random.key_data(jax.random.split(key, n)) for n in (8, 4)],
        }

    made = jax.tree_util.tree_map(np.asarray, drawn(draws))
    same = {name: np.array_equal(long[:4], short) for name, (long, short) in made.items()}
    return Observed(same, reference=dict.fromkeys(made, True))


@probe(
    source="jax-ml/jax#18480",
    platforms=("cpu",),
    config={"jax_threefry_partitionable": False},
)
def original_layout(env):
    """The switch `jax_threefry_partitionable=False` gives the old stream back, to this day."""

    def draw(key):
        return {
            "even": jax.random.bits(key, (8,)),
            "odd": jax.random.bits(key, (5,)),
            "keys": jax.random.key_data(jax.random.split(key, 3)),
        }

    words = seeded()
    wanted = {
        "even": original_bits(words, 8),
        "odd": original_bits(words, 5),
        "keys": original_split(words, 3),
    }
    return Observed(drawn(draw), reference=wanted)


@program(
    source="jax-ml/jax#18480",
    devices=4,
    facts={"collectives": {}},
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range, so shards exchanged them",
            issue="jax-ml/jax#18480",
        )
    ],
)
def sharded_draw(env):
    """Words drawn over four devices: since 0.5.0 each makes its part, without a collective."""
    mesh = env.mesh(4, "x")
    words = env.put(seeded(), NamedSharding(mesh, P()))

    def draw(words):
        return jax.random.bits(jax.random.wrap_key_data(words), (32,))

    spread = {"out_shardings": NamedSharding(mesh, P("x"))}
    return Program(draw, args=(words,), jit=spread, reference=lambda words: bits(words, 32))


@probe(
    source="jax-ml/jax#18480",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="counters were halves of one range",
            issue="jax-ml/jax#18480",
        )
    ],
)
def same_in_transformations(env):
    """A batch of keys under vmap and scan draws what each key draws by itself."""

    def batches(key):
        keys = jax.random.split(key, 3)
        return {
            "vmap": jax.vmap(lambda key: jax.random.bits(key, (4,)))(keys),
            "scan": jax.lax.scan(lambda c, key: (c, jax.random.bits(key, (4,))), 0, keys)[1],
            "alone": jax.random.bits(keys[1], (4,)),
        }

    alone = np.stack([bits(words, 4) for words in split(seeded(), 3)])
    return Observed(drawn(batches), {"vmap": alone, "scan": alone, "alone": alone[1]})
