"""From bits to numbers: each sampler against its formula, in float64 on known bits.

A sampler is a formula over a uniform stream. The stream is known (`layout`), so the formula can
be checked exactly, without statistics. All of them changed their values at 0.5.0, with the bits;
some changed once more, with their formula. Where one program holds several samplers, the compiler
is told not to optimise: it would take most of the time, and tolerances are wide.
"""

from __future__ import annotations

import inspect
import math
from statistics import NormalDist

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import between, bits, drawn, gumbel, normal, seeded, split, unit


def eight(key, name, *args, **kwargs):
    """Return eight numbers of a sampler."""
    return getattr(jax.random, name)(key, *args, shape=(8,), **kwargs)


def sampled(name, *args, **kwargs):
    """Return eight numbers of a sampler for the key of SEED."""
    return drawn(lambda key: eight(key, name, *args, **kwargs))


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
    wanted = {
        "float32": unit(seeded(), 8),
        "float16": unit(seeded(), 8, 16, 10),
        "bfloat16": unit(seeded(), 8, 8, 7),
    }
    made = drawn(lambda key: {name: eight(key, "uniform", dtype=name) for name in wanted})
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
    made = sampled("uniform", minval=-2.0, maxval=3.0)
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
    return Observed(sampled("uniform", dtype="float64"), unit(seeded(), 8, 64, 52))


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
    return Observed(sampled("normal"), reference=normal(seeded(), 8))


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
    made = sampled("normal", dtype=np.complex64)
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
    return Observed(sampled("truncated_normal", -1.0, 2.0), reference=wanted)


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
    made = drawn(lambda key: {n: eight(key, n, *given) for n, (given, _) in wanted.items()})
    return Observed(made, reference={name: value for name, (_, value) in wanted.items()})


@probe(source="jax-ml/jax@b8b690e594f0", platforms=("cpu",), rtol=1e-5)
def gumbel_modes(env):
    """`gumbel` by one uniform number, or by two (`high`) so that rare events are not cut off."""
    require_mode(env, "gumbel")
    high, low = unit(seeded(), 16).reshape(2, 8)
    x = np.where(high >= 0.5, high, high + 2.0**-23 * low + 2.0**-47)
    wanted = {"low": gumbel(seeded(), 8), "high": -np.log(-np.log1p(-x))}
    made = drawn(lambda key: {mode: eight(key, "gumbel", mode=mode) for mode in wanted})
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
    return Observed(sampled("gumbel", mode="highest"), reference=-np.log(-np.log1p(-x)))


@probe(source="jax-ml/jax@6c56d651e5e4", platforms=("cpu",))
def fine_bernoulli(env):
    """`bernoulli` resolves probabilities to 2**-23; mode `high` (from 0.6.1) to 2**-46.

    Each p lies halfway between its uniform number and the next: above it for one number, and by
    chance for two.
    """
    require_mode(env, "bernoulli")
    high, low = unit(seeded(), 16).reshape(2, 8)
    p = np.where(high < 0.5, high + 2.0**-24, 0).astype(np.float32)
    wanted = {"low": high < 0.5, "high": (high < 0.5) & (low < 0.5)}
    made = drawn(lambda key, p: {m: jax.random.bernoulli(key, p, mode=m) for m in wanted}, p)
    return Observed(made, reference=wanted)


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

    def draw(key):
        return {
            "bernoulli": eight(key, "bernoulli", 0.3),
            "rademacher": eight(key, "rademacher", dtype=np.int32),
        }

    u = unit(seeded(), 8)
    signs = np.where(u < 0.5, 1, -1).astype(np.int32)
    return Observed(drawn(draw), reference={"bernoulli": u < np.float32(0.3), "rademacher": signs})


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
    return Observed(sampled("geometric", 0.3), reference=wanted.astype(np.int32))


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
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

    def draw(key, *given):
        points = jax.random.multivariate_normal
        return {m: points(key, *given, (3,), np.float32, m) for m in ("cholesky", "eigh", "svd")}

    made = drawn(draw, mean.astype(np.float32), cov.astype(np.float32))
    made = {method: np.asarray(value) for method, value in made.items()}
    # Signs and order of the columns of the other two factors are the solver's: lengths are not.
    for method in ("eigh", "svd"):
        away = made[method] - mean
        made[method] = np.einsum("ni,ij,nj->n", away, np.linalg.inv(cov), away).astype(np.float32)
    z = normal(seeded(), 6).reshape(3, 2)
    lengths = (z**2).sum(1)
    wanted = {"cholesky": mean + z @ np.linalg.cholesky(cov).T, "eigh": lengths, "svd": lengths}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@a60ead6fd1a0",
    platforms=("cpu",),
    xla_flags=["--xla_backend_optimization_level=0"],
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
    made = drawn(lambda key: {name: eight(key, name, *given[name]) for name in wanted})
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax#9263",
    platforms=("cpu",),
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
    """Samplers by rejection have no formula: their means over 5,000, within a twentieth.

    Their programs are large and nothing hangs on the last digits, so they are not optimised.
    """
    sampler = getattr(jax.random, name)
    made = drawn(lambda key, *args: sampler(key, *args, shape=(5000, 2)), *np.float32(given))
    return Observed(np.asarray(made, np.float64).mean(0), reference=np.array(means))


@probe(
    source="jax-ml/jax#36562",
    xla_flags=["--xla_backend_optimization_level=0"],
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.10",
            error="ValueError",
            match="is not found in mesh",
            reason="the bits of several keys were given a sharding without their mesh",
            issue="jax-ml/jax#36562",
        )
    ],
)
def categories_in_sharded_lanes(env):
    """`vmap(categorical)` of keys and logits over an explicit axis: refused up to 0.9.2."""
    logits = env.rng(1).random((2, 10)).astype(np.float32)
    sample = jax.jit(jax.vmap(jax.random.categorical))
    keys = jax.jit(lambda: jax.random.split(jax.random.key(0), 2))()
    whole = np.asarray(sample(keys, logits))
    mesh = env.mesh(2, "x", explicit=True)
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    with env.compat.set_mesh(mesh):
        lanes = sample(jax.device_put(keys, rows), jax.device_put(logits, rows))
    return Observed(lanes, reference=whole)
