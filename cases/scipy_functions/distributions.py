"""The distributions of `jax.scipy.stats` against SciPy."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import scipy.stats

from conformance.kit import Observed, defaults, deviation, probe

defaults(source="jax-ml/jax@46c6a9170f58", rtol=1e-4, atol=1e-5)

REAL = np.array([-2.5, -0.75, 0.25, 1.5], np.float32)
POSITIVE = np.array([0.25, 0.75, 1.5, 4.0], np.float32)
UNIT = np.array([0.125, 0.375, 0.625, 0.875], np.float32)
COUNTS = np.array([0, 1, 2, 5], np.float32)
TRIALS = np.array([1, 2, 3, 6], np.float32)
SHARED = ("pdf", "logpdf", "cdf")
"""Functions of nearly every distribution."""
DISTRIBUTIONS = {
    "beta": (UNIT, (2.0, 3.0), (*SHARED, "logcdf", "sf", "logsf")),
    "cauchy": (REAL, (0.5, 2.0), (*SHARED, "logcdf", "sf", "logsf", "ppf", "isf")),
    "chi2": (POSITIVE, (3.0,), (*SHARED, "logcdf", "sf", "logsf")),
    "expon": (POSITIVE, (0.0, 2.0), ("pdf", "logpdf")),
    "gamma": (POSITIVE, (2.5,), (*SHARED, "logcdf", "sf", "logsf")),
    "gennorm": (REAL, (1.5,), SHARED),
    "laplace": (REAL, (0.5, 2.0), SHARED),
    "logistic": (REAL, (), (*SHARED, "sf", "ppf", "isf")),
    "norm": (REAL, (0.5, 2.0), (*SHARED, "logcdf", "sf", "logsf", "ppf", "isf")),
    "pareto": (1 + POSITIVE, (2.5,), ("pdf", "logpdf")),
    "t": (REAL, (4.0,), ("pdf", "logpdf")),
    "truncnorm": (REAL / 2, (-2.0, 3.0), (*SHARED, "logcdf", "sf", "logsf")),
    "uniform": (REAL, (-1.0, 3.0), ("pdf", "cdf", "ppf")),
    "vonmises": (REAL, (1.5,), ("pdf", "logpdf")),
    "wrapcauchy": (POSITIVE, (0.5,), ("pdf", "logpdf")),
    "bernoulli": (np.array([0, 1], np.float32), (0.25,), ("pmf", "logpmf", "cdf")),
    "betabinom": (COUNTS, (8, 2.0, 3.0), ("pmf", "logpmf")),
    "binom": (COUNTS, (8, 0.25), ("pmf", "logpmf")),
    "geom": (TRIALS, (0.25,), ("pmf", "logpmf")),
    "nbinom": (COUNTS, (3, 0.25), ("pmf", "logpmf")),
    "poisson": (COUNTS, (2.5,), ("pmf", "logpmf", "cdf")),
}
"""Points, parameters and functions by distribution."""


def evaluate(distribution, x, parameters, functions):
    """Return the results of functions of a distribution; quantiles are of `UNIT`."""
    points = {"ppf": UNIT, "isf": UNIT}
    return {
        name: getattr(distribution, name)(points.get(name, x), *parameters) for name in functions
    }


@probe(params=[*DISTRIBUTIONS])
def distribution(env, name):
    """Densities, distribution functions and quantiles are those of SciPy."""
    given = DISTRIBUTIONS[name]
    module = importlib.import_module(f"jax.scipy.stats.{name}")
    value = jax.jit(lambda x: evaluate(module, x, *given[1:]))(given[0])
    x = given[0].astype(np.float64)
    return Observed(value, evaluate(getattr(scipy.stats, name), x, *given[1:]))


@probe(source="jax-ml/jax@c20e1ee246ab", params=["gumbel_l", "gumbel_r"], releases="jax>=0.7")
def gumbel(env, name):
    """The Gumbel distributions are those of SciPy."""
    functions = (*SHARED, "logcdf", "sf", "logsf", "ppf")
    module = importlib.import_module(f"jax.scipy.stats.{name}")
    value = jax.jit(lambda x: evaluate(module, x, (0.5, 2.0), functions))(REAL)
    return Observed(
        value, evaluate(getattr(scipy.stats, name), REAL.astype(float), (0.5, 2.0), functions)
    )


CONTINUOUS = {
    "beta": (UNIT, (2.0, 3.0)),
    "cauchy": (REAL, (0.5, 2.0)),
    "chi2": (POSITIVE, (3.0,)),
    "expon": (POSITIVE, (0.0, 2.0)),
    "gamma": (POSITIVE, (2.5,)),
    "gennorm": (REAL, (1.5,)),
    "laplace": (REAL, (0.5, 2.0)),
    "logistic": (REAL, ()),
    "norm": (REAL, (0.5, 2.0)),
    "pareto": (1 + POSITIVE, (2.5,)),
    "t": (REAL, (4.0,)),
    "truncnorm": (REAL / 2, (-2.0, 3.0)),
    "vonmises": (REAL, (1.5,)),
    "wrapcauchy": (POSITIVE, (0.5,)),
}
STEP = 1e-5


@probe(rtol=1e-3, atol=1e-4)
def scores(env):
    """The derivative of each log-density with respect to the point is that of SciPy."""

    def differentiate(name, x, parameters):
        module = importlib.import_module(f"jax.scipy.stats.{name}")
        return jax.grad(lambda a: module.logpdf(a, *parameters).sum())(x)

    def reference(name, x, parameters):
        density = getattr(scipy.stats, name).logpdf
        x = x.astype(np.float64)
        return (density(x + STEP, *parameters) - density(x - STEP, *parameters)) / (2 * STEP)

    points = {name: x for name, (x, _) in CONTINUOUS.items()}
    value = jax.jit(
        lambda points: {
            name: differentiate(name, x, CONTINUOUS[name][1]) for name, x in points.items()
        }
    )(points)
    return Observed(value, {name: reference(name, *given) for name, given in CONTINUOUS.items()})


@probe()
def multivariate(env):
    """Densities of the Dirichlet, multinomial and multivariate normal distribution."""
    stats = jax.scipy.stats
    mean, simplex = np.array([0.5, -1.0], np.float32), np.array([0.25, 0.25, 0.5], np.float32)
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
    points = np.array([[0.0, 0.0], [1.0, -2.0]], np.float32)

    def run(s, real):
        mean_, simplex_, points_ = real(mean), real(simplex), real(points)
        return {
            "dirichlet": s.dirichlet.logpdf(simplex_, real(np.array([2.0, 3.0, 1.5], np.float32))),
            "multinomial": s.multinomial.logpmf(np.array([1, 0, 3]), 4, simplex_),
            "normal": s.multivariate_normal.logpdf(points_, mean_, real(covariance)),
        }

    value = jax.jit(lambda: run(stats, lambda a: a))()
    return Observed(value, run(scipy.stats, lambda a: a.astype(np.float64)))


@probe(source="jax-ml/jax@0788d5708a45")
def kernel_density(env):
    """A kernel density estimate: densities, an integral over a box, and the product of two."""
    data = np.array([-1.0, 0.5, 0.75, 2.0, 3.5])
    points = np.array([-0.5, 0.5, 1.5])

    def run(stats, data, points):
        first, second = stats.gaussian_kde(data), stats.gaussian_kde(2 * data, "silverman")
        return {
            "density": first(points),
            "logpdf": second.logpdf(points),
            "integral": first.integrate_box_1d(-1, 1),
            "product": first.integrate_kde(second),
        }

    few = data.astype(np.float32), points.astype(np.float32)
    return Observed(
        jax.jit(lambda d, p: run(jax.scipy.stats, d, p))(*few), run(scipy.stats, data, points)
    )


@probe()
def order_statistics(env):
    """Mode, ranks and standard error of a matrix with ties, along an axis."""
    matrix = np.array([[3, 1, 2, 1], [0, 0, 5, 2], [3, 4, 2, 1]], np.float32)

    def run(stats, a):
        mode = stats.mode(a, axis=0)
        return {
            "mode": mode.mode.astype(np.float32),
            "count": mode.count.astype(np.float32),
            "ranks": stats.rankdata(a[0]).astype(np.float32),
            "dense_ranks": stats.rankdata(a[0], method="dense").astype(np.float32),
            "standard_error": stats.sem(a, axis=1).astype(np.float32),
        }

    return Observed(jax.jit(lambda a: run(jax.scipy.stats, a))(matrix), run(scipy.stats, matrix))


RESHAPED_TO_THE_ARGUMENT = deviation(
    "jax<0.9.1",
    error="TypeError",
    match="cannot reshape array",
    reason="a negative axis was not found among the axes that remain",
    issue="jax-ml/jax#34488",
)


@probe(source="jax-ml/jax#34488", deviations=[RESHAPED_TO_THE_ARGUMENT])
def modes_along_the_last_axis(env):
    """`jax.scipy.stats.mode` accepts a negative axis."""
    matrix = np.float32([[3, 1, 1], [2, 5, 2]])
    result = jax.jit(lambda a: jax.scipy.stats.mode(a, axis=-1))(matrix)
    return Observed(result.mode, reference=np.float32([1, 2]))
