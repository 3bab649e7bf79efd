"""Special functions and their derivatives against SciPy."""

from __future__ import annotations

import jax
import numpy as np
import scipy.special

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import compare_function

defaults(source="jax-ml/jax@47ca51f47479", rtol=2e-4, atol=1e-5)

REAL = np.array([-2.5, -0.625, 0.375, 1.75])
POSITIVE = np.array([0.375, 0.75, 1.625, 4.5])
UNIT = np.array([0.125, 0.375, 0.625, 0.875])
FUNCTIONS = {
    "digamma": POSITIVE,
    "entr": POSITIVE,
    "erf": REAL,
    "erfc": REAL,
    "erfinv": UNIT,
    "exp1": POSITIVE,
    "expi": POSITIVE,
    "expit": REAL,
    "gamma": POSITIVE,
    "gammaln": POSITIVE,
    "i0": REAL,
    "i0e": REAL,
    "i1": REAL,
    "i1e": REAL,
    "log_ndtr": REAL,
    "logit": UNIT,
    "ndtr": REAL,
    "ndtri": UNIT,
    "spence": POSITIVE,
}
"""Points by function of one argument."""


@probe(params=[*FUNCTIONS])
def function(env, name):
    """A function of one argument and its derivative."""
    return compare_function(
        getattr(jax.scipy.special, name), getattr(scipy.special, name), FUNCTIONS[name]
    )


OF_TWO = {
    "betainc": (lambda s, x: s.betainc(2.5, 1.5, x), UNIT),
    "betaln": (lambda s, x: s.betaln(2.5, x), POSITIVE),
    "gammainc": (lambda s, x: s.gammainc(2.5, x), POSITIVE),
    "gammaincc": (lambda s, x: s.gammaincc(2.5, x), POSITIVE),
    "gammainc_of_order": (lambda s, x: s.gammainc(x, 1.5), POSITIVE),
    "hyp1f1": (lambda s, x: s.hyp1f1(1.5, 2.5, x), POSITIVE),
    "kl_div": (lambda s, x: s.kl_div(x, 1.5), POSITIVE),
    "multigammaln": (lambda s, x: s.multigammaln(x, 2), 1 + POSITIVE),
    "poch": (lambda s, x: s.poch(x, 1.5), POSITIVE),
    "polygamma": (lambda s, x: s.polygamma(2, x), POSITIVE),
    "rel_entr": (lambda s, x: s.rel_entr(x, 1.5), POSITIVE),
    "xlog1py": (lambda s, x: s.xlog1py(1.5, x), POSITIVE),
    "xlogy": (lambda s, x: s.xlogy(1.5, x), POSITIVE),
    "zeta": (lambda s, x: s.zeta(3.5, x), POSITIVE),
}
"""Functions with further arguments, which are fixed, and their points."""


@probe(params=[*OF_TWO])
def function_of_two(env, name):
    """A function of further arguments and its derivative."""
    fn, x = OF_TWO[name]
    return compare_function(lambda a: fn(jax.scipy.special, a), lambda a: fn(scipy.special, a), x)


@probe(source="jax-ml/jax@8beab51a678c", params=["dawsn", "erfcx"], releases="jax>=0.10.2")
def function_of_later_releases(env, name):
    """A function that began with 0.10.1 or 0.10.2, and its derivative."""
    x = {"dawsn": REAL, "erfcx": POSITIVE}[name]
    return compare_function(getattr(jax.scipy.special, name), getattr(scipy.special, name), x)


@probe(source="jax-ml/jax@f9cb95ca08fb", releases="jax>=0.5")
def fresnel(env):
    """The Fresnel integrals and the derivative of one."""
    x = REAL.astype(np.float32)
    value = jax.jit(jax.scipy.special.fresnel)(x)
    return Observed(value, scipy.special.fresnel(x.astype(np.float64)))


OVERFLOWS = deviation(
    params=["small"],
    outcome="ok",
    reason="the recurrence from order 50 down overflows in float32",
    issue="jax-ml/jax@3b1ddf2881cf",
)


@probe(
    source="jax-ml/jax@3b1ddf2881cf",
    params={"small": {"points": [0.375, 0.75, 1.625]}, "large": {"points": [9.5, 14.25]}},
    deviations=[OVERFLOWS],
)
def bessel_functions(env, points):
    """Bessel functions of the first kind, of orders 0 to 3, are NaN at small points in float32."""
    x = np.array(points, np.float32)
    value = jax.jit(lambda a: jax.scipy.special.bessel_jn(a, v=3, n_iter=50))(x)
    return Observed(value, np.stack([scipy.special.jv(n, x.astype(np.float64)) for n in range(4)]))


ANGLES_PAIRED_WITH_DEGREES = deviation(
    params=["one_degree"],
    outcome="ok",
    reason="the i-th degree reads the polynomial of the i-th angle, also where it is broadcast",
    issue="jax-ml/jax#40651",
)


@probe(
    source="jax-ml/jax#40651",
    params={"one_degree": {"count": 1}, "degree_of_each": {"count": 4}},
    releases="jax>=0.5",
    deviations=[ANGLES_PAIRED_WITH_DEGREES],
)
def spherical_harmonics(env, count):
    """`sph_harm_y` of one degree and several angles is silently wrong after the first angle."""
    theta, phi = np.linspace(0.1, 3, 4).astype(np.float32), np.zeros(4, np.float32)
    degrees, orders = np.full(count, 3), np.zeros(count, int)
    value = jax.scipy.special.sph_harm_y(degrees, orders, theta, phi)
    x = np.cos(theta.astype(np.float64))
    return Observed(value.real, reference=np.sqrt(7 / np.pi) / 4 * (5 * x**3 - 3 * x))


RECIPROCAL_FLUSHED = deviation(
    outcome="ok",
    reason="the reciprocal of the argument is denormal, and taken for zero",
    issue="jax-ml/jax#40652",
)


@probe(source="jax-ml/jax#40652", deviations=[RECIPROCAL_FLUSHED])
def spence_of_large_numbers(env):
    """`spence` of numbers above 8.5e37 is NaN in float32."""
    x = np.array([8e37, 1e38, 3e38], np.float32)
    value = jax.jit(jax.scipy.special.spence)(x)
    return Observed(np.nan_to_num(value, nan=-777), scipy.special.spence(x.astype(np.float64)))


EXPONENTIAL_OVERFLOWED = deviation(
    outcome="ok",
    reason="the exponential of the argument overflows before it is multiplied by a small number",
    issue="jax-ml/jax#39771",
)


@probe(source="jax-ml/jax#39771", deviations=[EXPONENTIAL_OVERFLOWED])
def bessel_function_of_large_numbers(env):
    """`i0` of 91 is finite in float32, about 1.4e38; JAX returns infinity."""
    x = np.array([80, 91], np.float32)
    value = jax.scipy.special.i0(x)
    return Observed(value, scipy.special.i0(x.astype(np.float64)))


PRODUCT_WITH_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the complementary error function is denormal there, and taken for zero",
    issue="jax-ml/jax#38607",
)


@probe(source="jax-ml/jax#38607", rtol=1e-5, releases="jax>=0.10.1", deviations=[PRODUCT_WITH_ZERO])
def scaled_error_function(env):
    """`erfcx` of numbers near 9.3, about 0.06, is right from 0.12.0 on; before, it was 0."""
    x = np.array([9.1, 9.2, 9.3, 10], np.float32)
    value = jax.jit(jax.scipy.special.erfcx)(x)
    return Observed(value, scipy.special.erfcx(x.astype(np.float64)))


DIFFERENCE_OF_INFINITIES = deviation(
    outcome="ok",
    reason="the logarithm of beta is a difference of infinities",
    issue="jax-ml/jax#39105",
)


@probe(source="jax-ml/jax#39105", deviations=[DIFFERENCE_OF_INFINITIES])
def beta_of_infinity(env):
    """`beta(2, inf)` is 0; JAX returns NaN on all releases."""
    a, b = np.array([[2, np.inf], [np.inf, np.inf], [1, 2]], np.float32).T
    value = jax.jit(jax.scipy.special.beta)(a, b)
    return Observed(np.nan_to_num(value, nan=-777), np.array([0, 0, 0.5]))


POLYNOMIAL_OUT_OF_ITS_RANGE = deviation(
    "jax<0.8.2",
    params=["large"],
    outcome="ok",
    reason="a polynomial for numbers near 4 was used for all numbers above",
    issue="jax-ml/jax#33081",
)


@probe(
    source="jax-ml/jax#33081",
    releases="jax>=0.8",
    params={"small": {"points": [0.375, 1.625, 3.5]}, "large": {"points": [20, 100, 10000]}},
    deviations=[POLYNOMIAL_OUT_OF_ITS_RANGE],
)
def sine_and_cosine_integrals(env, points):
    """`sici` of large numbers is right from 0.8.2 on; in 0.8.0 and 0.8.1, it was far off."""
    x = np.array(points, np.float32)
    value = jax.jit(jax.scipy.special.sici)(x)
    return Observed(value, scipy.special.sici(x.astype(np.float64)))
