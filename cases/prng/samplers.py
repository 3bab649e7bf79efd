"""From bits to numbers: each sampler against its formula, in float64 on known bits.

A sampler is a formula over a uniform stream. The stream is known (`layout`), so the formula can
be checked exactly, without statistics. All samplers changed their values in 0.5.0, with the bits;
some changed once more, with their formula. Some cases with several samplers disable
compiler optimisation: it would take most of the time, and tolerances are wide.
"""

from __future__ import annotations

import inspect
import math
from statistics import NormalDist

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import between, bits, gumbel, key_words, normal, run_draw, split, unit

defaults(platforms=("cpu",))


def call_sampler(key, name, *args, **kwargs):
    """Return eight numbers of a sampler."""
    return getattr(jax.random, name)(key, *args, shape=(8,), **kwargs)


def draw_eight(name, *args, **kwargs):
    """Return eight numbers of a sampler for the key of SEED."""
    return run_draw(lambda key: call_sampler(key, name, *args, **kwargs))


OLD_BIT_LAYOUT = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the bits are those of the old layout",
    issue="jax-ml/jax#18480",
)


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=0, deviations=[OLD_BIT_LAYOUT])
def uniform(env):
    """`uniform` takes its mantissa from the top bits of a word; bfloat16 takes a byte, not two."""
    expected = {
        "float32": unit(key_words(), 8),
        "float16": unit(key_words(), 8, 16, 10),
        "bfloat16": unit(key_words(), 8, 8, 7),
    }
    result = run_draw(
        lambda key: {name: call_sampler(key, "uniform", dtype=name) for name in expected}
    )
    return Observed(result, reference=expected)


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=1e-5, deviations=[OLD_BIT_LAYOUT])
def uniform_in_a_range(env):
    """`uniform` between bounds is scaled from [0, 1).

    A dtype that is not a float is refused (`refused_draws`).
    """
    result = draw_eight("uniform", minval=-2.0, maxval=3.0)
    return Observed(result, reference=5 * unit(key_words(), 8) - 2)


@probe(source="jax-ml/jax@a60ead6fd1a0", x64=True, rtol=0, deviations=[OLD_BIT_LAYOUT])
def uniform_of_64(env):
    """`uniform` in float64 takes 52 bits of a 64-bit word."""
    return Observed(draw_eight("uniform", dtype="float64"), unit(key_words(), 8, 64, 52))


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=1e-5, deviations=[OLD_BIT_LAYOUT])
def normal_by_inversion(env):
    """`normal` is the quantile function of the standard library at the uniform numbers."""
    return Observed(draw_eight("normal"), reference=normal(key_words(), 8))


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=1e-5, deviations=[OLD_BIT_LAYOUT])
def complex_normal(env):
    """A complex normal number has total variance 1, half of it in each part, from two keys."""
    real, imaginary = (normal(key, 8) for key in split(key_words()))
    result = draw_eight("normal", dtype=np.complex64)
    return Observed(result, reference=(real + 1j * imaginary) / np.sqrt(2))


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=1e-5, deviations=[OLD_BIT_LAYOUT])
def truncated_normal(env):
    """`truncated_normal` inverts between the error functions of its bounds."""
    a, b = (np.float32(math.erf(x / np.sqrt(2))) for x in (-1.0, 2.0))
    u = between(unit(key_words(), 8), a, b)
    expected = np.array([NormalDist().inv_cdf((x + 1) / 2) for x in u])
    return Observed(draw_eight("truncated_normal", -1.0, 2.0), reference=expected)


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=2e-5, deviations=[OLD_BIT_LAYOUT])
def by_inversion(env):
    """Eight distributions are each a formula of one uniform (or normal) number."""
    u, info = unit(key_words(), 8), np.finfo(np.float32)
    v, x, c = (between(u, low) for low in (-1 + info.epsneg, info.tiny, info.eps))
    expected = {
        "exponential": ((), -np.log1p(-u)),
        "laplace": ((), np.sign(v) * np.log1p(-abs(v))),
        "cauchy": ((), np.tan(np.pi * (c - 0.5))),
        "logistic": ((), np.log(x) - np.log1p(-x)),
        "rayleigh": ((2.0,), 2 * np.sqrt(-2 * np.log(u))),
        "weibull_min": ((2.0, 3.0), 2 * (-np.log1p(-u)) ** (1 / 3)),
        "pareto": ((3.0,), np.exp(-np.log1p(-u) / 3)),
        "lognormal": ((0.5,), np.exp(0.5 * normal(key_words(), 8))),
    }
    result = run_draw(
        lambda key: {n: call_sampler(key, n, *given) for n, (given, _) in expected.items()}
    )
    return Observed(result, reference={name: value for name, (_, value) in expected.items()})


SMALLEST_IS_EPSILON = deviation(
    "jax<0.7",
    outcome="ok",
    reason="the smallest uniform number was the distance of 1 to the next number",
    issue="jax-ml/jax#29857",
)


@probe(source="jax-ml/jax#29857", deviations=[SMALLEST_IS_EPSILON])
def tail_of_the_logistic(env):
    """In bfloat16, `logistic` has numbers below -80 from 0.7.0 on; before, none is below -5.

    The smallest uniform number is the least normal one, whose logarithm is -87. The largest result
    is 4.8 on all releases.
    """
    result = run_draw(lambda key: jax.random.logistic(key, (100_000,), "bfloat16"))
    lowest, highest = (float(np.asarray(bound(result), np.float32)) for bound in (np.min, np.max))
    return Observed(
        {"below -80": lowest < -80, "above 5": highest > 5},
        reference={"below -80": True, "above 5": False},
    )


@probe(source="jax-ml/jax@b8b690e594f0", rtol=1e-5)
def gumbel_modes(env):
    """`gumbel` uses one uniform number, or two (`high`) so that rare events are not cut off."""
    require_mode(env, "gumbel")
    high, low = unit(key_words(), 16).reshape(2, 8)
    x = np.where(high >= 0.5, high, high + 2.0**-23 * low + 2.0**-47)
    expected = {"low": gumbel(key_words(), 8), "high": -np.log(-np.log1p(-x))}
    result = run_draw(
        lambda key: {mode: call_sampler(key, "gumbel", mode=mode) for mode in expected}
    )
    return Observed(result, reference=expected)


NO_HIGHEST_MODE = deviation(
    "jax<0.10",
    error="ValueError",
    match="valid mode for gumbel",
    reason="the mode was added in 0.10.0",
    issue="jax-ml/jax@8c21dae3703b",
)


@probe(source="jax-ml/jax@8c21dae3703b", rtol=1e-5, deviations=[NO_HIGHEST_MODE])
def gumbel_of_64_bits(env):
    """Mode `highest` joins two words into a number of 64 bits from 0.10.0; refused before."""
    require_mode(env, "gumbel")
    high, low = bits(key_words(), 16).astype(np.float64).reshape(2, 8)
    x = (high + low / 2**32) / 2**32
    return Observed(draw_eight("gumbel", mode="highest"), reference=-np.log(-np.log1p(-x)))


@probe(source="jax-ml/jax@6c56d651e5e4")
def fine_bernoulli(env):
    """`bernoulli` resolves probabilities to 2**-23; mode `high` (from 0.6.1) to 2**-46.

    Each nonzero p lies halfway between its uniform number and the next. A draw of one number is
    below p; in a draw of two numbers, the second number decides.
    """
    require_mode(env, "bernoulli")
    high, low = unit(key_words(), 16).reshape(2, 8)
    p = np.where(high < 0.5, high + 2.0**-24, 0).astype(np.float32)
    expected = {"low": high < 0.5, "high": (high < 0.5) & (low < 0.5)}
    result = run_draw(lambda key, p: {m: jax.random.bernoulli(key, p, mode=m) for m in expected}, p)
    return Observed(result, reference=expected)


def require_mode(env, name):
    """Mark the case as unsupported if a sampler has no modes yet."""
    if "mode" not in inspect.signature(getattr(jax.random, name)).parameters:
        env.unsupported(f"{name} has no modes")


@probe(source="jax-ml/jax@a60ead6fd1a0", rtol=0, deviations=[OLD_BIT_LAYOUT])
def bernoulli_and_rademacher(env):
    """`bernoulli` tests a uniform number against p.

    `rademacher` is the sign of the same test with one half: 1 below, -1 otherwise.
    """

    def draw(key):
        return {
            "bernoulli": call_sampler(key, "bernoulli", 0.3),
            "rademacher": call_sampler(key, "rademacher", dtype=np.int32),
        }

    u = unit(key_words(), 8)
    signs = np.where(u < 0.5, 1, -1).astype(np.int32)
    return Observed(
        run_draw(draw), reference={"bernoulli": u < np.float32(0.3), "rademacher": signs}
    )


@probe(source="jax-ml/jax@66cbb499c5aa", deviations=[OLD_BIT_LAYOUT])
def geometric(env):
    """`geometric` counts trials: the floor of a ratio of logarithms, plus one."""
    expected = np.floor(np.log(unit(key_words(), 8)) / np.log1p(-0.3)) + 1
    return Observed(draw_eight("geometric", 0.3), reference=expected.astype(np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    xla_flags=["--xla_backend_optimization_level=0"],
    rtol=1e-4,
    atol=1e-5,
    deviations=[OLD_BIT_LAYOUT],
)
def multivariate_normal(env):
    """`multivariate_normal` multiplies normal numbers by a factor of the covariance.

    The method selects the factor.
    """
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])

    def draw(key, *given):
        points = jax.random.multivariate_normal
        return {m: points(key, *given, (3,), np.float32, m) for m in ("cholesky", "eigh", "svd")}

    result = run_draw(draw, mean.astype(np.float32), cov.astype(np.float32))
    result = {method: np.asarray(value) for method, value in result.items()}
    # The solver chooses signs and order of the columns of these factors, but not the lengths.
    for method in ("eigh", "svd"):
        away = result[method] - mean
        result[method] = np.einsum("ni,ij,nj->n", away, np.linalg.inv(cov), away).astype(np.float32)
    z = normal(key_words(), 6).reshape(3, 2)
    lengths = (z**2).sum(1)
    expected = {"cholesky": mean + z @ np.linalg.cholesky(cov).T, "eigh": lengths, "svd": lengths}
    return Observed(result, reference=expected)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    xla_flags=["--xla_backend_optimization_level=0"],
    rtol=1e-4,
    atol=1e-5,
    deviations=[OLD_BIT_LAYOUT],
)
def mixtures(env):
    """`triangular`, `wald` and `maxwell` are formulas of several numbers."""
    u, first, second = unit(key_words(), 8), *split(key_words())
    rise, fall = np.sqrt(0.3 * u), 1 - np.sqrt((1 - u) * 0.7)
    y = normal(first, 8) ** 2
    x = 1 + y / 2 - np.sqrt(4 * y + y**2) / 2
    expected = {
        "triangular": np.where(u < 0.3, rise, fall),
        "wald": np.where(unit(second, 8) <= 1 / (1 + x), x, 1 / x),
        "maxwell": np.linalg.norm(normal(key_words(), 24).reshape(8, 3), axis=1),
    }
    given = {"triangular": (0.0, 0.3, 1.0), "wald": (1.0,), "maxwell": ()}
    result = run_draw(
        lambda key: {name: call_sampler(key, name, *given[name]) for name in expected}
    )
    return Observed(result, reference=expected)


@probe(
    source="jax-ml/jax#9263",
    rtol=0.05,
    xla_flags=["--xla_backend_optimization_level=0"],
    params={
        "gamma": {"name": "gamma", "given": ((2, 5),), "means": (2.0, 5.0)},
        "poisson": {"name": "poisson", "given": ((3, 100),), "means": (3.0, 100.0)},
        "binomial": {
            "name": "binomial",
            "given": ((10, 40), (0.3, 0.5)),
            "means": (3.0, 20.0),
        },
    },
)
def means_by_rejection(env, name, given, means):
    """Samplers by rejection have means within a twentieth of the expected, over 5,000 draws.

    They have no formula. Their programs are large and nothing depends on the last digits, so they
    are not optimised.
    """
    sampler = getattr(jax.random, name)
    result = run_draw(lambda key, *args: sampler(key, *args, shape=(5000, 2)), *np.float32(given))
    return Observed(np.asarray(result, np.float64).mean(0), reference=np.array(means))


SHARDING_WITHOUT_MESH = deviation(
    "jax<0.10",
    error="ValueError",
    match="is not found in mesh",
    reason="the bits of several keys got a sharding without their mesh",
    issue="jax-ml/jax#36562",
)


@probe(
    source="jax-ml/jax#36562",
    xla_flags=["--xla_backend_optimization_level=0"],
    devices=2,
    releases="jax>=0.6.1",
    deviations=[SHARDING_WITHOUT_MESH],
)
def categories_in_sharded_lanes(env):
    """`vmap(categorical)` accepts keys and logits over an explicit axis from 0.10.0.

    It was refused up to 0.9.2.
    """
    logits = env.rng(1).random((2, 10)).astype(np.float32)
    sample = jax.jit(jax.vmap(jax.random.categorical))
    keys = jax.jit(lambda: jax.random.split(jax.random.key(0), 2))()
    whole = np.asarray(sample(keys, logits))
    mesh = env.mesh(2, "x", explicit=True)
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    with env.compat.set_mesh(mesh):
        lanes = sample(jax.device_put(keys, rows), jax.device_put(logits, rows))
    return Observed(lanes, reference=whole)


SOME_ARE_ZERO = deviation(
    outcome="ok",
    reason="a candidate that is NaN is converted to 0",
    issue="jax-ml/jax#38459",
)


@probe(source="jax-ml/jax#38459", deviations=[SOME_ARE_ZERO])
def poisson_of_an_infinite_rate(env):
    """`poisson` of an infinite rate returns the largest integer; on all releases some are 0."""
    result = run_draw(lambda key: jax.random.poisson(key, np.inf, (64,)))
    return Observed(np.unique(result), reference=np.array([2**31 - 1], np.int32))


ALL_AT_THE_UPPER_BOUND = deviation(
    "jax<0.7.1",
    outcome="ok",
    reason="the probabilities of both bounds are rounded to 1",
    issue="jax-ml/jax#10951",
)
ALL_AT_THE_LOWER_BOUND = deviation(
    "jax>=0.7.1,<0.10.1",
    outcome="ok",
    reason="the probabilities of both bounds are rounded below 1",
    issue="jax-ml/jax#10951",
)
ALL_AT_THE_UPPER_BOUND_AGAIN = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="the probabilities of both bounds are rounded to 1",
    issue="jax-ml/jax#10951",
)


@probe(
    source="jax-ml/jax#10951",
    rtol=1e-2,
    deviations=[ALL_AT_THE_UPPER_BOUND, ALL_AT_THE_LOWER_BOUND, ALL_AT_THE_UPPER_BOUND_AGAIN],
)
def truncated_normal_far_out(env):
    """All numbers of `truncated_normal` between 6 and 7 are equal: 7, or 6 from 0.7.1 to 0.10.0."""
    # Under an outer jit the bounds are constants, whose probabilities are computed by other code.
    result = jax.random.truncated_normal(jax.random.key(0), 6.0, 7.0, (64,))
    least, several = np.min(result), len(np.unique(result)) > 1
    return Observed({"several": several, "least": least}, {"several": True, "least": np.float64(6)})
