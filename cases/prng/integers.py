"""Random integers, permutations and choices.

`randint` reduces twice the bits of its dtype modulo the span. For 8 and 16 bits this was wrong up
to 0.7.1: 2**8 modulo the span was computed in 8 bits and became 0, so the high half was lost and
small numbers came up half as often again as large numbers.

Some cases with several draws disable compiler optimisation: compilation takes most of
the time, and these words do not depend on it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import bits, gumbel, key_words, randint, run_draw, split, unit

defaults(platforms=("cpu",))


HIGH_BITS_LOST = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="randint lost the high half of the random bits",
    issue="jax-ml/jax#27702",
)


@probe(source="jax-ml/jax#27702", deviations=[HIGH_BITS_LOST])
def narrow(env):
    """`randint` of 8 and 16 bits is drawn with 32 bits from 0.7.2, which changed most values."""
    types = ("int8", "uint8", "int16", "uint16")
    result = run_draw(lambda key: {t: jax.random.randint(key, (8,), 0, 100, t) for t in types})
    expected = randint(key_words(), 8, 0, 100)
    return Observed(result, reference={dtype: expected.astype(dtype) for dtype in types})


SMALL_NUMBERS_FAVOURED = deviation(
    "jax<0.7.2",
    outcome="ok",
    match="0.65",
    reason="randint lost the high half of the random bits",
    issue="jax-ml/jax#27702",
)


@probe(source="jax-ml/jax#27702", atol=0.01, deviations=[SMALL_NUMBERS_FAVOURED])
def bias(env):
    """The share of 0..55 among random bytes below 100 is 0.56, but was 0.66 up to 0.7.1."""
    result = run_draw(lambda key: jax.random.randint(key, (100_000,), 0, 100, "uint8"))
    return Observed(np.mean(np.asarray(result) < 56), reference=0.56)


OLD_BIT_LAYOUT = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the bits are those of the old layout",
    issue="jax-ml/jax#18480",
)


@probe(source="jax-ml/jax@a60ead6fd1a0", deviations=[OLD_BIT_LAYOUT])
def wide(env):
    """`randint` of 32 bits is 64 random bits modulo the span, so its bias cannot be seen."""
    ranges = {"int32": (-10, 100), "uint32": (5, 60000)}
    result = run_draw(lambda key: {d: jax.random.randint(key, (8,), *ranges[d], d) for d in ranges})
    expected = {d: randint(key_words(), 8, *span).astype(d) for d, span in ranges.items()}
    return Observed(result, reference=expected)


@probe(source="jax-ml/jax#222", xla_flags=["--xla_backend_optimization_level=0"])
def bounds_of_the_dtype(env):
    """`randint` with a bound beyond the dtype draws from all values up to the limit.

    An empty range gives its lower bound.
    """
    ranges = {"all": (0, 256), "beyond": (0, 1000), "below": (-1000, 256), "empty": (5, 2)}
    spans = np.int32(list(ranges.values()))[:, :, None]

    def draw(key, spans):
        return jax.random.randint(key, (4, 4096), spans[:, 0], spans[:, 1], "uint8")

    result = np.asarray(run_draw(draw, spans))
    observed = {name: np.unique(row) for name, row in zip(ranges, result, strict=True)}
    whole = np.arange(256, dtype=np.uint8)
    expected = {"all": whole, "beyond": whole, "below": whole, "empty": whole[5:6]}
    return Observed(observed, reference=expected)


NO_SAFER_RANDINT_YET = deviation(
    "jax<0.7.1",
    error="AttributeError",
    match="jax_safer_randint",
    reason="the option jax_safer_randint did not exist yet",
    issue="jax-ml/jax#27742",
)
SAFER_RANDINT_REMOVED = deviation(
    "jax>=0.9",
    error="AttributeError",
    match="jax_safer_randint",
    reason="the option was temporary",
    issue="jax-ml/jax@a9dac1167db7",
)


@probe(source="jax-ml/jax#27742", deviations=[NO_SAFER_RANDINT_YET, SAFER_RANDINT_REMOVED])
def old_stream_by_config(env):
    """`jax_safer_randint=False` restores the old values of `randint`, up to 0.8.3."""
    jax.config.update("jax_safer_randint", False)
    result = run_draw(lambda key: jax.random.randint(key, (8,), 0, 100, "uint8"))
    lower = bits(split(key_words())[1], 8, 8)
    return Observed(result, reference=lower % np.uint8(100))


@probe(source="jax-ml/jax@a60ead6fd1a0", deviations=[OLD_BIT_LAYOUT])
def permutation(env):
    """`permutation` sorts by random words, in each round from the second key of a split."""
    result = run_draw(lambda key: jax.random.permutation(key, 10))
    return Observed(result, reference=np.argsort(bits(split(key_words())[1], 10)).astype(np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[OLD_BIT_LAYOUT],
)
def permutation_of_an_array(env):
    """`permutation` moves whole rows, or orders each column separately (`independent`)."""
    x, words = np.arange(12, dtype=np.int32).reshape(6, 2), split(key_words())[1]

    def draw(key, x):
        return {how: jax.random.permutation(key, x, independent=how == "each") for how in WORDS}

    order = {how: np.argsort(bits(words, n).reshape(6, -1), axis=0) for how, n in WORDS.items()}
    expected = {how: np.take_along_axis(x, order[how], 0) for how in WORDS}
    expected["rows"] = x[order["rows"][:, 0]]
    return Observed(run_draw(draw, x), reference=expected)


WORDS = {"rows": 6, "each": 12}


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[OLD_BIT_LAYOUT],
)
def choice(env):
    """The four methods of `choice`: `randint`, inversion, `permutation` and the largest Gumbel."""
    p = np.array([0.1, 0.1, 0.1, 0.2, 0.5], np.float32)
    words, sums = key_words(), np.cumsum(p)

    def draw(key, p):
        return {
            "uniform": jax.random.choice(key, 5, (4,)),
            "weighted": jax.random.choice(key, 5, (4,), p=p),
            "once each": jax.random.choice(key, 5, (4,), replace=False),
            "once each, weighted": jax.random.choice(key, 5, (4,), replace=False, p=p),
        }

    expected = {
        "uniform": randint(words, 4, 0, 5),
        "weighted": np.searchsorted(sums, sums[-1] * (1 - unit(words, 4))),
        "once each": np.argsort(bits(split(words)[1], 5))[:4],
        "once each, weighted": np.argsort(-(gumbel(words, 5) + np.log(p)))[:4],
    }
    reference = {name: value.astype(np.int32) for name, value in expected.items()}
    return Observed(run_draw(draw, p), reference)


@probe(source="jax-ml/jax@4a82fe94ded3")
def choice_among_impossible(env):
    """`choice` without replacement draws elements of weight 0 last, in order.

    The case asks for more draws than there are elements with a chance.
    """
    p = np.array([0, 0.5, 0, 0.5, 0], np.float32)
    result = run_draw(lambda key, p: jax.random.choice(key, 5, (5,), replace=False, p=p), p)
    return Observed(np.asarray(result)[2:], reference=np.array([0, 2, 4], np.int32))


@probe(source="jax-ml/jax@a60ead6fd1a0", deviations=[OLD_BIT_LAYOUT])
def categorical(env):
    """`categorical` takes the largest sum of logits and Gumbel numbers."""
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    result = run_draw(lambda key, logits: jax.random.categorical(key, logits, shape=(6,)), logits)
    expected = (gumbel(key_words(), 24).reshape(6, 4) + logits).argmax(1)
    return Observed(result, reference=expected.astype(np.int32))


NO_REPLACE_ARGUMENT = deviation(
    "jax<0.5.3",
    error="TypeError",
    match="unexpected keyword argument 'replace'",
    reason="the argument was added in 0.5.3",
    issue="jax-ml/jax@3f59fa688899",
)


@probe(source="jax-ml/jax@3f59fa688899", deviations=[NO_REPLACE_ARGUMENT])
def categorical_once_each(env):
    """`categorical` without replacement, from 0.5.3, takes the largest three, in order."""
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))

    def draw(key, logits):
        return jax.random.categorical(key, logits, shape=(3,), replace=False)

    expected = np.argsort(-(gumbel(key_words(), 4) + logits))[:3]
    return Observed(run_draw(draw, logits), reference=expected.astype(np.int32))


NO_MULTINOMIAL = deviation(
    "jax<0.5.3",
    error="AttributeError",
    match="multinomial",
    reason="the changelog lists multinomial under 0.5.1, from which it was rolled back",
    issue="jax-ml/jax#26524",
)


@probe(
    source="jax-ml/jax#26524",
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[NO_MULTINOMIAL],
)
def multinomial(env):
    """`multinomial` gives counts that add up to the trials; it was added in 0.5.3, not 0.5.1."""
    p = np.array([0.2, 0.3, 0.5], np.float32)
    many = np.tile(p, (50, 1))
    counts = run_draw(jax.random.multinomial, np.float32(1000), many)
    counts = np.asarray(counts, np.float64)
    observed = {"totals": np.unique(counts.sum(1)), "near": abs(counts.mean(0) / 1000 - p) < 0.01}
    return Observed(observed, reference={"totals": np.array([1000.0]), "near": np.ones(3, bool)})


SHAPE_OF_THE_RESULT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="shape was the shape of the result, contrary to the documentation",
    issue="jax-ml/jax#25688",
)


@probe(source="jax-ml/jax#25688", releases="jax>=0.5.3", deviations=[SHAPE_OF_THE_RESULT])
def shape_of_multinomial(env):
    """`multinomial(shape=(5, 3))` of three outcomes is (5, 3) up to 0.11.2, then (5, 3, 3).

    From 0.12.0 the shape excludes the axis of the outcomes, as documented. Broadcast p instead.
    """

    def draw(words, n, p):
        return jax.random.multinomial(jax.random.wrap_key_data(words), n, p, shape=(5, 3))

    result = jax.eval_shape(draw, key_words(), np.float32(10), np.ones(3, np.float32) / 3)
    return Observed(result.shape, reference=(5, 3, 3))


@probe(source="jax-ml/jax@e5f4be556412")
def refused_draws(env):
    """Draws that JAX refuses: integers of a float dtype, oversized samples, misfit weights."""
    key, two = jax.random.wrap_key_data(key_words()), np.ones(2, np.float32)
    observed = {
        "dtype": refusal(lambda: jax.random.randint(key, (2,), 0, 5, float), "integer dtypes"),
        "uniform": refusal(lambda: jax.random.uniform(key, (2,), int), "float", "floating"),
        "shape": refusal(lambda: jax.random.randint(key, (2,), np.zeros(3, int), 5), "shape"),
        "many": refusal(lambda: jax.random.choice(key, 3, (4,), replace=False), "larger sample"),
        "p": refusal(lambda: jax.random.choice(key, 3, (1,), p=two), "p must be None or"),
        "none": refusal(lambda: jax.random.choice(key, 0, (1,)), "greater than 0"),
    }
    expected = {
        "dtype": "TypeError: integer dtypes",
        "uniform": "ValueError: float",
        "shape": "ValueError: shape",
        "many": "ValueError: larger sample",
        "p": "ValueError: p must be None or",
        "none": "ValueError: greater than 0",
    }
    return Observed(observed, reference=expected)


BITS_OF_A_BYTE = deviation(
    params=["bits"],
    outcome="ok",
    reason="bits are drawn in words of 8 to 64 bits, and 4 are rounded up to 8",
)
NO_INTEGERS_OF_FOUR_BITS = deviation(
    "jax<0.7.2",
    params=["randint"],
    error="TypeError",
    match="randint only accepts",
    reason="integers of 4 bits were refused",
)


@probe(
    source="jax-ml/jax@a7b01146f219",
    params=["bits", "randint"],
    deviations=[BITS_OF_A_BYTE, NO_INTEGERS_OF_FOUR_BITS],
)
def draws_of_four_bits(env, name):
    """`jax.random.bits` of uint4 is silently uint8; `randint` of uint4 works from 0.7.2 on."""
    draws = {
        "bits": lambda key: jax.random.bits(key, (8,), jnp.uint4),
        "randint": lambda key: jax.random.randint(key, (8,), 0, 8, jnp.uint4),
    }
    return Observed(str(run_draw(draws[name]).dtype), reference="uint4")
