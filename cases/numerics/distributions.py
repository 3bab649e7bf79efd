"""Probability distributions at the ends of their support and of their parameters, as in SciPy."""

from __future__ import annotations

import jax
import numpy as np
import scipy.stats
from jax.scipy import stats

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32, inf, nan, replace_nan

defaults(platforms=("cpu",))


TANGENT_AT_ITS_POLES = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the formula, a tangent, was used for all q: at its poles rounding decides the sign",
    issue="jax-ml/jax#38318",
)


@probe(source="jax-ml/jax#38318", rtol=1e-5, deviations=[TANGENT_AT_ITS_POLES])
def quantiles_of_cauchy(env):
    """`cauchy.ppf` is -inf at 0, inf at 1 and NaN outside [0, 1] from 0.12.0 on.

    Before, in float32, it was 2e7 at 0, with the wrong sign, and finite outside.
    """

    @jax.jit
    def quantiles(q):
        return {"ppf": stats.cauchy.ppf(q), "isf": stats.cauchy.isf(q)}

    q = f32(0, 1, -0.5, 1.5, 0.75, nan)
    expected = {"ppf": f32(-inf, inf, nan, nan, 1, nan), "isf": f32(inf, -inf, nan, nan, -1, nan)}
    return Observed(replace_nan(quantiles(q)), reference=replace_nan(expected))


ZERO_TIMES_LOGARITHM_OF_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="zero was multiplied by the logarithm of zero",
    issue="jax-ml/jax#40152",
)


@probe(source="jax-ml/jax#40152", rtol=1e-6, deviations=[ZERO_TIMES_LOGARITHM_OF_ZERO])
def density_of_chi2_at_zero(env):
    """`chi2.pdf(0, 2)` is 1/2 from 0.12.0 on, and NaN before."""
    density = jax.jit(lambda x: stats.chi2.pdf(x, 2))(f32(0, 1))
    return Observed(replace_nan(density), reference=np.exp(-np.array([0, 0.5])) / 2)


EDGES_EXCLUDED = deviation(
    outcome="ok",
    reason="all points with a 0 are taken to be outside of the support",
    issue="jax-ml/jax#38520",
)


@probe(source="jax-ml/jax#38520", rtol=1e-6, deviations=[EDGES_EXCLUDED])
def density_of_dirichlet_at_an_edge(env):
    """`dirichlet.logpdf` of a point with a 0 is -inf on all releases; that is right above 1 only.

    Where the parameter of the 0 is 1, the density is finite, and below 1 infinite.
    """
    point = f32(0, 0.5, 0.5)
    density = jax.jit(stats.dirichlet.logpdf)
    result = [density(point, f32(a, 1, 1)) for a in (1, 0.5, 2)]
    return Observed(np.stack(result), reference=np.array([np.log(2), inf, -inf]))


SUM_OF_ALL_ROWS = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the sum of the counts was that of all rows",
    issue="jax-ml/jax#38605",
)


@probe(source="jax-ml/jax#38605", rtol=2e-6, deviations=[SUM_OF_ALL_ROWS])
def rows_of_multinomial_counts(env):
    """`multinomial.pmf` of a batch of counts is that of each row from 0.12.0 on.

    Before, it was 0 for all rows. Use `jax.vmap` there.
    """
    counts, p = np.array([[2, 3, 5], [1, 4, 5], [1, 1, 1]]), f32(0.2, 0.3, 0.5)
    result = jax.jit(lambda x: stats.multinomial.pmf(x, 10, p))(counts)
    exact = scipy.stats.multinomial.pmf(counts[:2], 10, [0.2, 0.3, 0.5])
    return Observed(result, reference=np.append(exact, 0.0))


QUANTILE_OF_THE_COMPLEMENT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the quantile of 1 - q was taken, which rounds to 1",
)


@probe(source="jax-ml/jax#17199", rtol=2e-6, deviations=[QUANTILE_OF_THE_COMPLEMENT])
def upper_quantiles_of_the_normal(env):
    """`norm.isf(1e-10)` is 6.36 in float32 from 0.12.0 on; before, it was infinite."""
    q = f32(1e-10, 1e-20, 0.25)
    result = jax.jit(stats.norm.isf)(q)
    return Observed(result, reference=scipy.stats.norm.isf(q.astype(np.float64)))


COUNT_CHECKED_BEFORE_SHIFT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="k, not k - loc, had to be an integer",
)


@probe(source="jax-ml/jax#20891", rtol=2e-6, deviations=[COUNT_CHECKED_BEFORE_SHIFT])
def shifted_poisson(env):
    """`poisson.pmf(k, mu, loc)` is positive where k - loc is an integer, from 0.12.0 on.

    Before, it was positive where k is an integer.
    """
    result = jax.jit(lambda k: stats.poisson.pmf(k, 2.0, loc=0.5))(f32(2.5, 2, 3))
    return Observed(result, reference=np.array([scipy.stats.poisson.pmf(2, 2.0), 0, 0]))


ZERO_CONCENTRATION_EXCLUDED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="a concentration of 0 was treated as invalid",
    issue="jax-ml/jax#38621",
)


@probe(source="jax-ml/jax#38621", rtol=1e-6, deviations=[ZERO_CONCENTRATION_EXCLUDED])
def von_mises_without_concentration(env):
    """`vonmises.pdf(x, 0)` is the density of the circle, 1 / 2 pi, from 0.12.0; NaN before."""
    density = jax.jit(stats.vonmises.pdf)(f32(0, 1, 1), f32(0, 0, -1))
    reference = np.array([0.5 / np.pi, 0.5 / np.pi, nan])
    return Observed(replace_nan(density), reference=replace_nan(reference))


NAN_FAILED_EVERY_COMPARISON = deviation(
    "jax<0.12",
    outcome="ok",
    reason="NaN fails every comparison, and got the default of the selection",
    issue="jax-ml/jax#38317",
)
FUNCTIONS_OF_NAN = {
    "uniform_cdf": {"name": "uniform.cdf", "args": ()},
    "uniform_pdf": {"name": "uniform.pdf", "args": ()},
    "truncnorm_cdf": {"name": "truncnorm.cdf", "args": (-1.0, 2.0)},
}


@probe(
    source="jax-ml/jax#38606",
    params=FUNCTIONS_OF_NAN,
    rtol=2e-6,
    deviations=[NAN_FAILED_EVERY_COMPARISON],
)
def probability_of_nan(env, name, args):
    """The functions of `uniform` and `truncnorm` return NaN for NaN from 0.12.0 on.

    Before, they returned 0 or 1, so that a NaN in a model stayed unnoticed.
    """
    distribution, function = name.split(".")
    fn = getattr(getattr(stats, distribution), function)
    exact = getattr(getattr(scipy.stats, distribution), function)
    result = jax.jit(lambda x: fn(x, *args))(f32(nan, 0.5))
    reference = exact(np.array([nan, 0.5]), *args)
    return Observed(replace_nan(result), reference=replace_nan(reference))


ONE_BRANCH_OVERFLOWED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the branch that is not selected overflowed, and its derivative was infinite",
)


@probe(source="jax-ml/jax@2d25a7430ad6", rtol=1e-6, deviations=[ONE_BRANCH_OVERFLOWED])
def slope_of_the_laplace_cdf(env):
    """The derivative of `laplace.cdf` far out is 0 from 0.12.0 on, and NaN before."""
    slopes = jax.jit(jax.vmap(jax.grad(stats.laplace.cdf)))(f32(-200, -1, 1, 200))
    reference = np.exp(-np.array([200.0, 1, 1, 200])) / 2
    return Observed(replace_nan(slopes), reference=reference.astype(np.float32))


UNDERFLOW_OF_THE_PROBABILITIES = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the derivative of the entropy is infinite where a probability underflows to 0",
    issue="jax-ml/jax#40969",
)


@probe(
    source="jax-ml/jax#40969",
    releases="jax>=0.8.2",
    rtol=2e-3,
    deviations=[UNDERFLOW_OF_THE_PROBABILITIES],
)
def slope_of_the_poisson_entropy(env):
    """The derivative of `poisson.entropy` for a large mean is finite from 0.12.0; NaN before."""
    slopes = jax.jit(jax.vmap(jax.grad(stats.poisson.entropy)))(f32(20, 200))
    # The entropy is log(2 pi e mu) / 2 - 1 / (12 mu) - 1 / (24 mu**2) - ...
    mu = np.array([20.0, 200])
    return Observed(replace_nan(slopes), reference=0.5 / mu + 1 / (12 * mu**2) + 1 / (12 * mu**3))


LOGARITHM_OF_A_COMPLEMENT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="it was log1p(-exp(-x)), and exp(-x) rounds to 1 for small x",
)


@probe(
    source="jax-ml/jax#36757",
    releases="jax>=0.5.1",
    rtol=2e-6,
    deviations=[LOGARITHM_OF_A_COMPLEMENT],
)
def logarithm_of_the_exponential_cdf(env):
    """`expon.logcdf(1e-10)` is -23 from 0.12.0 on; before, it was infinite."""
    x = f32(1e-10, 1e-3, 2)
    result = jax.jit(stats.expon.logcdf)(x)
    return Observed(result, reference=np.log(-np.expm1(-x.astype(np.float64))))


OUTSIDE_OF_THE_SUPPORT = deviation(
    params=["poisson", "binom", "wrapcauchy"],
    outcome="ok",
    reason="comparisons with NaN are false, so it is taken to be outside of the support",
    issue="jax-ml/jax#38317",
)
GAMMA_OUTSIDE_OF_THE_SUPPORT = deviation(
    "jax>=0.4.36",
    params=["gamma"],
    outcome="ok",
    reason="comparisons with NaN are false, so it is taken to be outside of the support",
    issue="jax-ml/jax#38317",
)
DENSITIES = {
    "gamma": lambda x: stats.gamma.pdf(x, 2.0),
    "poisson": lambda x: stats.poisson.pmf(x, 3.0),
    "binom": lambda x: stats.binom.pmf(x, 5.0, 0.3),
    "wrapcauchy": lambda x: stats.wrapcauchy.pdf(x, 0.5),
}


@probe(
    source="jax-ml/jax#38317",
    params=[*DENSITIES],
    deviations=[OUTSIDE_OF_THE_SUPPORT, GAMMA_OUTSIDE_OF_THE_SUPPORT],
)
def density_of_nan(env, name):
    """The density of NaN is NaN in SciPy; in JAX it is 0 for some distributions.

    That of `gamma` is 0 from 0.4.36 on.
    """
    return Observed(replace_nan(jax.jit(DENSITIES[name])(f32(nan))), reference=f32(-777))


DIFFERENCE_OF_INFINITIES = deviation(
    params=["gamma", "chi2"],
    outcome="ok",
    reason="infinity is subtracted from the logarithm of infinity",
    issue="jax-ml/jax#38316",
)
ENDS_OUTSIDE_OF_THE_DOMAIN = deviation(
    params=["gumbel_r", "gumbel_l"],
    outcome="ok",
    reason="probabilities of 0 and 1 are taken to be invalid",
    issue="jax-ml/jax@c20e1ee246ab",
)
ENDS = {
    "gamma": (lambda: stats.gamma.logpdf(f32(inf), 2.0), [-inf]),
    "chi2": (lambda: stats.chi2.logpdf(f32(inf), 4.0), [-inf]),
    "gumbel_r": (lambda: stats.gumbel_r.ppf(f32(0, 1)), [-inf, inf]),
    "gumbel_l": (lambda: stats.gumbel_l.ppf(f32(0, 1)), [-inf, inf]),
}


@probe(
    source="jax-ml/jax#38316",
    params=[*ENDS],
    releases="jax>=0.7",
    deviations=[DIFFERENCE_OF_INFINITIES, ENDS_OUTSIDE_OF_THE_DOMAIN],
)
def limit_at_the_end_of_the_support(env, name):
    """The logarithm of a density at infinity is -inf, and the quantiles of 0 and 1 are infinite.

    JAX returns NaN on all releases.
    """
    call, limits = ENDS[name]
    return Observed(replace_nan(call()), reference=np.array(limits))


LOGARITHMS_OF_GAMMA_CANCEL = deviation(
    outcome="ok",
    reason="the difference of two logarithms of gamma, both of them large, loses its digits",
)
LARGE_PARAMETERS = {
    "t": (lambda s, x: s.t.pdf(x(1), x(1e10)), 0.24197072),
    "binom": (lambda s, x: s.binom.pmf(x(3), x(1e6), x(1e-6)), 0.0613132),
    "nbinom": (lambda s, x: s.nbinom.pmf(x(3), x(1e6), x(1 - 1e-6)), 0.0613133),
    "beta": (lambda s, x: s.beta.cdf(x(0.5), x(1e5), x(1e5)), 0.5),
}


@probe(
    source="jax-ml/jax@30d1a8a80f60",
    params=[*LARGE_PARAMETERS],
    rtol=1e-3,
    deviations=[LOGARITHMS_OF_GAMMA_CANCEL],
)
def probability_with_large_parameters(env, name):
    """Some probabilities in float32 are silently wrong by a sixth or more for large parameters.

    `t.pdf(1, 1e10)` is 0.6, and the density of the normal distribution, its limit, 0.24.
    """
    function, expected = LARGE_PARAMETERS[name]
    return Observed(jax.jit(lambda: function(stats, np.float32))(), reference=np.array(expected))


FRACTIONS_ARE_NOT_EXCLUDED = deviation(
    outcome="ok", reason="the formula, which has a value for fractions, is not masked"
)
COUNTS = {
    "binom": lambda s, k: s.binom.pmf(k, 5, np.float32(0.5)),
    "geom": lambda s, k: s.geom.pmf(k, np.float32(0.5)),
    "nbinom": lambda s, k: s.nbinom.pmf(k, np.float32(2), np.float32(0.5)),
    "betabinom": lambda s, k: s.betabinom.pmf(k, 5, np.float32(1), np.float32(2)),
}


@probe(source="jax-ml/jax@30d1a8a80f60", params=[*COUNTS], deviations=[FRACTIONS_ARE_NOT_EXCLUDED])
def probability_of_a_fraction(env, name):
    """A count cannot be 2.5, so its probability is 0 in SciPy, and in JAX for `poisson` alone."""
    counts = f32(2, 2.5)
    return Observed(
        jax.jit(lambda: COUNTS[name](stats, counts))(), reference=COUNTS[name](scipy.stats, counts)
    )


ZERO_TIMES_INFINITY = deviation(
    outcome="ok",
    reason="a term 0 * log(0) has the right value and the derivative 0 * infinity",
)
SLOPES_AT_AN_EDGE = {
    "bernoulli": (lambda p: stats.bernoulli.logpmf(0, p), 0, -1),
    "binom": (lambda p: stats.binom.logpmf(0, 5, p), 0, -5),
    "poisson": (lambda mean: stats.poisson.logpmf(0, mean), 0, -1),
    "geom": (lambda p: stats.geom.logpmf(1, p), 1, 1),
    "nbinom": (lambda p: stats.nbinom.logpmf(0, 1, p), 1, 1),
    "gamma": (lambda x: stats.gamma.logpdf(x, 1), 0, -1),
    "beta": (lambda x: stats.beta.logpdf(x, 1, 1), 0, 0),
}


@probe(
    source="jax-ml/jax@30d1a8a80f60", params=[*SLOPES_AT_AN_EDGE], deviations=[ZERO_TIMES_INFINITY]
)
def slope_at_an_edge(env, name):
    """The derivative of a log-density is NaN where a term is 0 * log(0), as at a probability of 0.

    The density itself is right there, and so are finite differences of it.
    """
    function, at, slope = SLOPES_AT_AN_EDGE[name]
    result = jax.jit(jax.grad(function))(np.float32(at))
    return Observed(replace_nan(result), reference=np.array(float(slope)))


LAST_COUNT_LOST = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the end of the support was not shifted, and a parameter of 0 was not refused",
    issue="jax-ml/jax@3a0e4376cded",
)


@probe(source="jax-ml/jax@3a0e4376cded", deviations=[LAST_COUNT_LOST])
def shifted_beta_binomial(env):
    """`betabinom.pmf` with `loc=1` includes the last count, and is NaN for a parameter of 0."""
    a, b = f32(2, 2, 2, 2, 0), f32(3, 3, 3, 3, 1)
    result = jax.jit(lambda k: stats.betabinom.pmf(k, 5, a, b, loc=1))(f32(0, 5, 6, 7, 2))
    rounded = np.round(np.float64(replace_nan(result)), 4)
    return Observed(rounded, reference=np.array([0, 0.119, 0.0476, 0, -777]))
