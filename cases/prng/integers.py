"""Random integers, permutations and choices.

`randint` takes twice the bits of its dtype modulo the span. For 8 and 16 bits that was wrong up
to 0.7.1: 2**8 modulo the span was computed in 8 bits and became 0, so the high half was lost and
small numbers came up half as often again as large ones.

Where a program holds several draws, the compiler is told not to optimise: compilation is most of
the time, and these words do not depend on it.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import bits, drawn, gumbel, randint, seeded, split, unit


@probe(
    source="jax-ml/jax#27702",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="the high half of the random bits was lost",
            issue="jax-ml/jax#27702",
        )
    ],
)
def narrow(env):
    """`randint` of 8 and 16 bits: drawn with 32 bits from 0.7.2, so that most values changed."""
    types = ("int8", "uint8", "int16", "uint16")
    made = drawn(lambda key: {t: jax.random.randint(key, (8,), 0, 100, t) for t in types})
    wanted = randint(seeded(), 8, 0, 100)
    return Observed(made, reference={dtype: wanted.astype(dtype) for dtype in types})


@probe(
    source="jax-ml/jax#27702",
    platforms=("cpu",),
    atol=0.01,
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            match="0.65",
            reason="the high half of the random bits was lost",
            issue="jax-ml/jax#27702",
        )
    ],
)
def bias(env):
    """The share of 0..55 among random bytes below 100: 0.56, but 0.66 up to 0.7.1."""
    made = drawn(lambda key: jax.random.randint(key, (100_000,), 0, 100, "uint8"))
    return Observed(np.mean(np.asarray(made) < 56), reference=0.56)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def wide(env):
    """`randint` of 32 bits: 64 random bits modulo the span, so its bias cannot be seen."""
    ranges = {"int32": (-10, 100), "uint32": (5, 60000)}
    made = drawn(lambda key: {d: jax.random.randint(key, (8,), *ranges[d], d) for d in ranges})
    wanted = {d: randint(seeded(), 8, *span).astype(d) for d, span in ranges.items()}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax#222", xla_flags=["--xla_backend_optimization_level=0"], platforms=("cpu",)
)
def bounds_of_the_dtype(env):
    """An upper bound beyond the dtype stands for all of its values; an empty range for its low."""
    asked = {"all": (0, 256), "beyond": (0, 1000), "below": (-1000, 256), "empty": (5, 2)}
    spans = np.int32(list(asked.values()))[:, :, None]

    def draw(key, spans):
        return jax.random.randint(key, (4, 4096), spans[:, 0], spans[:, 1], "uint8")

    made = np.asarray(drawn(draw, spans))
    seen = {name: np.unique(row) for name, row in zip(asked, made, strict=True)}
    whole = np.arange(256, dtype=np.uint8)
    wanted = {"all": whole, "beyond": whole, "below": whole, "empty": whole[5:6]}
    return Observed(seen, reference=wanted)


@probe(
    source="jax-ml/jax#27742",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.1",
            error="AttributeError",
            match="jax_safer_randint",
            reason="there was nothing to switch",
            issue="jax-ml/jax#27742",
        ),
        deviation(
            "jax>=0.9",
            error="AttributeError",
            match="jax_safer_randint",
            reason="the switch was temporary",
            issue="jax-ml/jax@a9dac1167db7",
        ),
    ],
)
def old_stream_by_config(env):
    """`jax_safer_randint=False` was the way back to the old values, up to 0.8.3."""
    jax.config.update("jax_safer_randint", False)
    made = drawn(lambda key: jax.random.randint(key, (8,), 0, 100, "uint8"))
    lower = bits(split(seeded())[1], 8, 8)
    return Observed(made, reference=lower % np.uint8(100))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def permutation(env):
    """A permutation sorts by random words, of the second key of a split, for each round."""
    made = drawn(lambda key: jax.random.permutation(key, 10))
    return Observed(made, reference=np.argsort(bits(split(seeded())[1], 10)).astype(np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def permutation_of_an_array(env):
    """Rows move as wholes, or (`independent`) each column has an order of its own."""
    x, words = np.arange(12, dtype=np.int32).reshape(6, 2), split(seeded())[1]

    def draw(key, x):
        return {how: jax.random.permutation(key, x, independent=how == "each") for how in WORDS}

    order = {how: np.argsort(bits(words, n).reshape(6, -1), axis=0) for how, n in WORDS.items()}
    wanted = {how: np.take_along_axis(x, order[how], 0) for how in WORDS}
    wanted["rows"] = x[order["rows"][:, 0]]
    return Observed(drawn(draw, x), reference=wanted)


WORDS = {"rows": 6, "each": 12}


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def choice(env):
    """The four ways of `choice`: `randint`, inversion, `permutation`, and the largest Gumbel."""
    p = np.array([0.1, 0.1, 0.1, 0.2, 0.5], np.float32)
    words, sums = seeded(), np.cumsum(p)

    def draw(key, p):
        return {
            "uniform": jax.random.choice(key, 5, (4,)),
            "weighted": jax.random.choice(key, 5, (4,), p=p),
            "once each": jax.random.choice(key, 5, (4,), replace=False),
            "once each, weighted": jax.random.choice(key, 5, (4,), replace=False, p=p),
        }

    wanted = {
        "uniform": randint(words, 4, 0, 5),
        "weighted": np.searchsorted(sums, sums[-1] * (1 - unit(words, 4))),
        "once each": np.argsort(bits(split(words)[1], 5))[:4],
        "once each, weighted": np.argsort(-(gumbel(words, 5) + np.log(p)))[:4],
    }
    reference = {name: value.astype(np.int32) for name, value in wanted.items()}
    return Observed(drawn(draw, p), reference)


@probe(source="jax-ml/jax@4a82fe94ded3", platforms=("cpu",))
def choice_among_impossible(env):
    """More draws without replacement than have a chance: those of weight 0 come last, in order."""
    p = np.array([0, 0.5, 0, 0.5, 0], np.float32)
    made = drawn(lambda key, p: jax.random.choice(key, 5, (5,), replace=False, p=p), p)
    return Observed(np.asarray(made)[2:], reference=np.array([0, 2, 4], np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def categorical(env):
    """`categorical` takes the largest of logits plus Gumbel."""
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    made = drawn(lambda key, logits: jax.random.categorical(key, logits, shape=(6,)), logits)
    wanted = (gumbel(seeded(), 24).reshape(6, 4) + logits).argmax(1)
    return Observed(made, reference=wanted.astype(np.int32))


@probe(
    source="jax-ml/jax@3f59fa688899",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5.3",
            error="TypeError",
            match="unexpected keyword argument 'replace'",
            reason="the argument came with 0.5.3",
            issue="jax-ml/jax@3f59fa688899",
        )
    ],
)
def categorical_once_each(env):
    """`categorical` without replacement, from 0.5.3: the largest three, in order."""
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))

    def draw(key, logits):
        return jax.random.categorical(key, logits, shape=(3,), replace=False)

    wanted = np.argsort(-(gumbel(seeded(), 4) + logits))[:3]
    return Observed(drawn(draw, logits), reference=wanted.astype(np.int32))


@probe(
    source="jax-ml/jax#26524",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[
        deviation(
            "jax<0.5.3",
            error="AttributeError",
            match="multinomial",
            reason="the changelog tells it of 0.5.1, from which it was rolled back",
            issue="jax-ml/jax#26524",
        )
    ],
)
def multinomial(env):
    """`multinomial` gives counts that add up to the trials; it came with 0.5.3, not 0.5.1."""
    p = np.array([0.2, 0.3, 0.5], np.float32)
    many = np.tile(p, (50, 1))
    counts = drawn(jax.random.multinomial, np.float32(1000), many)
    counts = np.asarray(counts, np.float64)
    seen = {"totals": np.unique(counts.sum(1)), "near": abs(counts.mean(0) / 1000 - p) < 0.01}
    return Observed(seen, reference={"totals": np.array([1000.0]), "near": np.ones(3, bool)})


@probe(
    source="jax-ml/jax#25688",
    platforms=("cpu",),
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax<0.12",
            outcome="ok",
            reason="the shape was that of the result, against the documentation",
            issue="jax-ml/jax#25688",
        )
    ],
)
def shape_of_multinomial(env):
    """`multinomial(shape=(5, 3))` of three outcomes: (5, 3) up to 0.11.2, (5, 3, 3) from 0.12.0.

    The shape is now without the axis of the outcomes, as documented. Broadcast p instead.
    """

    def draw(words, n, p):
        return jax.random.multinomial(jax.random.wrap_key_data(words), n, p, shape=(5, 3))

    made = jax.eval_shape(draw, seeded(), np.float32(10), np.ones(3, np.float32) / 3)
    return Observed(made.shape, reference=(5, 3, 3))


@probe(
    source="jax-ml/jax@e5f4be556412",
    platforms=("cpu",),
)
def refused_draws(env):
    """What is refused: integers of a float type, more than there is, weights that do not fit."""
    key, two = jax.random.wrap_key_data(seeded()), np.ones(2, np.float32)
    seen = {
        "dtype": refusal(lambda: jax.random.randint(key, (2,), 0, 5, float), "integer dtypes"),
        "uniform": refusal(lambda: jax.random.uniform(key, (2,), int), "float", "floating"),
        "shape": refusal(lambda: jax.random.randint(key, (2,), np.zeros(3, int), 5), "shape"),
        "many": refusal(lambda: jax.random.choice(key, 3, (4,), replace=False), "larger sample"),
        "p": refusal(lambda: jax.random.choice(key, 3, (1,), p=two), "p must be None or"),
        "none": refusal(lambda: jax.random.choice(key, 0, (1,)), "greater than 0"),
    }
    wanted = {
        "dtype": "TypeError: integer dtypes",
        "uniform": "ValueError: float",
        "shape": "ValueError: shape",
        "many": "ValueError: larger sample",
        "p": "ValueError: p must be None or",
        "none": "ValueError: greater than 0",
    }
    return Observed(seen, reference=wanted)
