"""From bits to numbers: each sampler against its formula, in float64 on known bits.

A sampler is a formula over a uniform stream. The stream is known (`layout`), so the formula can
be checked exactly, without statistics. All of them changed their values at 0.5.0, with the bits;
some changed once more, with their formula.
"""

from __future__ import annotations

import inspect
import math
from statistics import NormalDist

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import SEED, between, bits, gumbel, normal, seeded, split, unit


def drawn(name, *args, **kwargs):
    """Return eight numbers of a sampler."""
    return getattr(jax.random, name)(jax.random.key(SEED), *args, shape=(8,), **kwargs)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=0,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def uniform(env):
    """`uniform`: the mantissa is the top bits of a word; bfloat16 takes a byte, not two."""
    made = {name: drawn("uniform", dtype=name) for name in ("float32", "float16", "bfloat16")}
    wanted = {
        "float32": unit(seeded(), 8),
        "float16": unit(seeded(), 8, 16, 10),
        "bfloat16": unit(seeded(), 8, 8, 7),
    }
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def uniform_in_a_range(env):
    """`uniform` between bounds: scaled from [0, 1), and refused if not of a float type."""
    made = drawn("uniform", minval=-2.0, maxval=3.0)
    return Observed(made, reference=5 * unit(seeded(), 8) - 2)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    x64=True,
    rtol=0,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def uniform_of_64(env):
    """`uniform` in float64: 52 bits of a 64-bit word."""
    return Observed(drawn("uniform", dtype="float64"), unit(seeded(), 8, 64, 52))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def normal_by_inversion(env):
    """`normal`: the quantile function of the standard library at the uniform numbers."""
    return Observed(drawn("normal"), reference=normal(seeded(), 8))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def complex_normal(env):
    """A complex normal number has variance 1 in all, half of it in each part, from two keys."""
    real, imaginary = (normal(key, 8) for key in split(seeded()))
    made = drawn("normal", dtype=np.complex64)
    return Observed(made, reference=(real + 1j * imaginary) / np.sqrt(2))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def truncated_normal(env):
    """`truncated_normal`: by inversion between the error functions of its bounds."""
    a, b = (np.float32(math.erf(x / np.sqrt(2))) for x in (-1.0, 2.0))
    u = between(unit(seeded(), 8), a, b)
    wanted = np.array([NormalDist().inv_cdf((x + 1) / 2) for x in u])
    return Observed(drawn("truncated_normal", -1.0, 2.0), reference=wanted)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=2e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def by_inversion(env):
    """Eight distributions that are one formula of one uniform (or normal) number."""
    u, info = unit(seeded(), 8), np.finfo(np.float32)
    v, x, c = (between(u, low) for low in (-1 + info.epsneg, info.tiny, info.eps))
    wanted = {
        "exponential": ((), -np.log1p(-u)),
        "laplace": ((), np.sign(v) * np.log1p(-abs(v))),
        "cauchy": ((), np.tan(np.pi * (c - 0.5))),
        "logistic": ((), np.log(x) - np.log1p(-x)),
        "rayleigh": ((2.0,), 2 * np.sqrt(-2 * np.log(u))),
        "weibull_min": ((2.0, 3.0), 2 * (-np.log1p(-u)) ** (1 / 3)),
        "pareto": ((3.0,), np.exp(-np.log1p(-u) / 3)),
        "lognormal": ((0.5,), np.exp(0.5 * normal(seeded(), 8))),
    }
    made = {name: drawn(name, *given) for name, (given, _) in wanted.items()}
    return Observed(made, reference={name: value for name, (_, value) in wanted.items()})


@probe(source="jax-ml/jax@b8b690e594f0", platforms=("cpu",), rtol=1e-5)
def gumbel_modes(env):
    """`gumbel` by one uniform number, or by two (`high`) so that rare events are not cut off."""
    require_mode(env, "gumbel")
    high, low = unit(seeded(), 16).reshape(2, 8)
    x = np.where(high >= 0.5, high, high + 2.0**-23 * low + 2.0**-47)
    wanted = {"low": gumbel(seeded(), 8), "high": -np.log(-np.log1p(-x))}
    made = {mode: drawn("gumbel", mode=mode) for mode in wanted}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@8c21dae3703b",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.10",
            error="ValueError",
            match="valid mode for gumbel",
            reason="the mode came with 0.10.0",
            issue="jax-ml/jax@8c21dae3703b",
        )
    ],
)
def gumbel_of_64_bits(env):
    """Mode `highest`, from 0.10.0: two words are one number of 64 bits; refused before."""
    require_mode(env, "gumbel")
    high, low = bits(seeded(), 16).astype(np.float64).reshape(2, 8)
    x = (high + low / 2**32) / 2**32
    return Observed(drawn("gumbel", mode="highest"), reference=-np.log(-np.log1p(-x)))


@probe(source="jax-ml/jax@6c56d651e5e4", platforms=("cpu",))
def fine_bernoulli(env):
    """`bernoulli` resolves probabilities to 2**-23; mode `high` (from 0.6.1) to 2**-46.

    Each p lies halfway between its uniform number and the next: above it for one number, and by
    chance for two.
    """
    require_mode(env, "bernoulli")
    high, low = unit(seeded(), 16).reshape(2, 8)
    p = np.where(high < 0.5, high + 2.0**-24, 0).astype(np.float32)
    made = {m: jax.random.bernoulli(jax.random.key(SEED), p, mode=m) for m in ("low", "high")}
    return Observed(made, reference={"low": high < 0.5, "high": (high < 0.5) & (low < 0.5)})


def require_mode(env, name):
    """End the case where a sampler has no modes yet."""
    if "mode" not in inspect.signature(getattr(jax.random, name)).parameters:
        env.unsupported(f"{name} has no modes")


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=0,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def bernoulli_and_rademacher(env):
    """`bernoulli` is a uniform number below p, `rademacher` its sign at one half."""
    u = unit(seeded(), 8)
    made = {"bernoulli": drawn("bernoulli", 0.3), "rademacher": drawn("rademacher", dtype=int)}
    wanted = {"bernoulli": u < np.float32(0.3), "rademacher": np.where(u < 0.5, 1, -1)}
    return Observed(made, reference={k: np.asarray(v, made[k].dtype) for k, v in wanted.items()})


@probe(
    source="jax-ml/jax@66cbb499c5aa",
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
def geometric(env):
    """`geometric` counts trials: the floor of a ratio of logarithms, plus one."""
    wanted = np.floor(np.log(unit(seeded(), 8)) / np.log1p(-0.3)) + 1
    return Observed(drawn("geometric", 0.3), reference=wanted.astype(np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-4,
    atol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def multivariate_normal(env):
    """A factor of the covariance times normal numbers; which factor, the method says."""
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    z = normal(seeded(), 6).reshape(3, 2)
    made = {
        method: np.asarray(drawn_from(mean, cov, method)) for method in ("cholesky", "eigh", "svd")
    }
    # Signs and order of the columns of the other two factors are the solver's: lengths are not.
    for method in ("eigh", "svd"):
        away = made[method] - mean
        made[method] = np.einsum("ni,ij,nj->n", away, np.linalg.inv(cov), away).astype(np.float32)
    lengths = (z**2).sum(1)
    wanted = {"cholesky": mean + z @ np.linalg.cholesky(cov).T, "eigh": lengths, "svd": lengths}
    return Observed(made, reference=wanted)


def drawn_from(mean, cov, method):
    """Return three points of a multivariate normal distribution."""
    given = (mean.astype(np.float32), cov.astype(np.float32), (3,), np.float32, method)
    return jax.random.multivariate_normal(jax.random.key(SEED), *given)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    rtol=1e-4,
    atol=1e-5,
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="the bits are those of the old layout",
            issue="jax-ml/jax#18480",
        )
    ],
)
def mixtures(env):
    """`triangular`, `wald`, `maxwell`: formulas of several numbers."""
    u, first, second = unit(seeded(), 8), *split(seeded())
    rise, fall = np.sqrt(0.3 * u), 1 - np.sqrt((1 - u) * 0.7)
    y = normal(first, 8) ** 2
    x = 1 + y / 2 - np.sqrt(4 * y + y**2) / 2
    wanted = {
        "triangular": np.where(u < 0.3, rise, fall),
        "wald": np.where(unit(second, 8) <= 1 / (1 + x), x, 1 / x),
        "maxwell": np.linalg.norm(normal(seeded(), 24).reshape(8, 3), axis=1),
    }
    given = {"triangular": (0.0, 0.3, 1.0), "wald": (1.0,), "maxwell": ()}
    made = {name: drawn(name, *given[name]) for name in wanted}
    return Observed(made, reference=wanted)


@probe(source="jax-ml/jax#9263", platforms=("cpu",), rtol=0.05)
def means_by_rejection(env):
    """Samplers by rejection have no formula: their means over 10,000, within a twentieth."""
    key, one = jax.random.key(SEED), np.float32
    made = {
        "gamma": jax.random.gamma(key, one(2), (10000,)),
        "poisson": jax.random.poisson(key, one(3), (10000,)),
        "poisson, large": jax.random.poisson(key, one(100), (10000,)),
        "binomial": jax.random.binomial(key, one(10), one(0.3), (10000,)),
    }
    means = {name: np.asarray(value, np.float64).mean() for name, value in made.items()}
    wanted = {"gamma": 2.0, "poisson": 3.0, "poisson, large": 100.0, "binomial": 3.0}
    return Observed(means, reference=wanted)
