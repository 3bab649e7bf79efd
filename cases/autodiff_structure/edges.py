"""Derivatives at infinity, at large and at equal numbers, and outside of the domain of a function.

NaN is recorded as -777.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import floats

defaults(platforms=("cpu",))

CURVES = {"erf": lax.erf, "erfc": lax.erfc, "ndtr": special.ndtr, "arctanh": jnp.arctanh}
INFINITY_TIMES_ZERO = deviation(
    "jax<0.12",
    params=["erf", "erfc", "ndtr"],
    outcome="ok",
    reason="infinity times the exponential of minus its square, which is 0, is NaN",
    issue="jax-ml/jax#25564",
)
QUOTIENT_OF_INFINITIES = deviation(
    "jax>=0.11.2",
    params=["arctanh"],
    outcome="ok",
    reason="the rule of the quotient 1 / (1 - x**2) divides infinity by infinity",
    issue="jax-ml/jax#40634",
)


def _replace_nan(x):
    return np.nan_to_num(np.asarray(x), nan=-777)


@probe(
    source="jax-ml/jax#25564",
    params={
        "erf": {"name": "erf"},
        "erfc": {"name": "erfc"},
        "ndtr": {"name": "ndtr"},
        "arctanh": {"name": "arctanh"},
    },
    deviations=[INFINITY_TIMES_ZERO, QUOTIENT_OF_INFINITIES],
)
def second_slope_at_infinity(env, name):
    """The second derivative of `erf`, `erfc` and `ndtr` at infinity is 0 from 0.12.0; before, NaN.

    That of `arctanh` was 0, the limit of its formula, and is NaN from 0.11.2 on. The function is
    NaN there, its first derivative 0 on all releases.
    """
    second = jax.jit(jax.vmap(jax.grad(jax.grad(CURVES[name]))))
    return Observed(_replace_nan(second(floats(-np.inf, np.inf))), floats(0, 0))


QUOTIENT_OF_COMPLEX_NUMBERS = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the logarithm was divided by a complex number",
    issue="jax-ml/jax@50670bd907f2",
)
RULE_OF_LOG2 = deviation(
    "jax>=0.11.2",
    params=["log2"],
    outcome="ok",
    reason="log2 has a rule of its own, which multiplies infinity by a complex number",
    issue="pearu/functional_algorithms#48",
)


@probe(
    source="pearu/functional_algorithms#48",
    params={"log2": {"name": "log2"}, "log10": {"name": "log10"}},
    deviations=[QUOTIENT_OF_COMPLEX_NUMBERS, RULE_OF_LOG2],
)
def slope_of_logarithms_at_a_complex_infinity(env, name):
    """The derivative of `log2` at complex(inf, inf) is 0 from 0.5.0 to 0.11.1, otherwise NaN.

    That of `log10` is 0 from 0.5.0 on.
    """
    z = np.complex64(complex(np.inf, np.inf))
    slope = np.asarray(jax.jit(jax.grad(lambda z: getattr(jnp, name)(z).real))(z))
    parts = _replace_nan([slope.real, slope.imag])
    return Observed(np.abs(parts), np.float32([0, 0]))


FINITE_OUTSIDE = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the formula of the derivative was used where the function is not defined",
    issue="jax-ml/jax#13941",
)


@probe(source="jax-ml/jax#13941", rtol=1e-5, deviations=[FINITE_OUTSIDE])
def slope_of_zeta_outside_of_its_domain(env):
    """The derivative of `zeta(0.5, q)` is NaN from 0.12.0 on, as the function; before, finite."""
    slope = jax.jit(jax.vmap(jax.grad(special.zeta, argnums=1)))
    result = _replace_nan(slope(floats(0.5, 3), floats(2, 2)))
    # -3 zeta(4, 2), and zeta(4, 2) is zeta(4) - 1.
    return Observed(result, np.array([-777, -3 * (np.pi**4 / 90 - 1)]))


NO_RULE_FOR_FREXP = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="frexp had no rule, so its mantissa was a constant to autodiff",
    issue="jax-ml/jax#28106",
)
SCALE_IS_FLUSHED = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the scale 2**-exponent is a denormal number of float16, which is flushed to zero",
    issue="jax-ml/jax#28106",
)


@probe(source="jax-ml/jax#28106", rtol=1e-2, deviations=[NO_RULE_FOR_FREXP, SCALE_IS_FLUSHED])
def slope_of_large_mantissas(env):
    """The derivative of the mantissa of a float16 above 16383 is 0 from 0.12.0 on.

    It is 2**-exponent, as from 0.6.1 to 0.11.2.
    """
    x = np.float16([65504, 20000, 1000])
    slope = jax.jit(jax.vmap(jax.grad(lambda x: jnp.frexp(x)[0])))(x)
    return Observed(slope, reference=2.0 ** -np.frexp(x)[1].astype(np.float64))


SORT_IS_NOT_STABLE = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the sort of the quantile is not stable",
    issue="jax-ml/jax#2779",
)


@probe(source="jax-ml/jax#2779", deviations=[SORT_IS_NOT_STABLE])
def slope_of_the_median_of_equal_numbers(env):
    """Among equal numbers, the derivative of `median` is no longer at the middle ones from 0.12.0.

    Its sum is 1 on all releases. That of 8 numbers is as before.
    """
    slope = np.asarray(jax.jit(jax.grad(jnp.median))(np.zeros(24, np.float32)))
    return Observed(
        {"sum": slope.sum(), "positions": np.flatnonzero(slope)},
        reference={"sum": 1.0, "positions": np.array([11, 12])},
    )


INFINITY_TIMES_ZERO_IN_A_VECTOR = deviation(
    "jax>=0.8,<0.11.2",
    outcome="ok",
    reason="the square overflowed, and infinity times 0 is NaN",
    issue="jax-ml/jax#40634",
)


@probe(source="jax-ml/jax#40634", deviations=[INFINITY_TIMES_ZERO_IN_A_VECTOR])
def second_slope_of_arccosh_far_out(env):
    """The second derivative of `arccosh` at 3e38, which is 0, is NaN from 0.8.0 to 0.11.1.

    It is so for an array under jit, not for a single element.
    """
    x = np.full(900, 3e38, np.float32)
    slope = lambda x: jax.jvp(jnp.arccosh, (x,), (jnp.ones_like(x),))[1].sum()  # noqa: E731 - short
    return Observed(_replace_nan(jax.jit(jax.grad(slope))(x)), np.zeros(900))


ZERO_TIMES_INFINITY = deviation(
    "jax>=0.4.30",
    params=["forward"],
    outcome="ok",
    reason="the derivative of the root at 0, infinity, is multiplied by the 0 of relu",
    issue="jax-ml/jax#6636",
)


@probe(
    source="jax-ml/jax#6636",
    params={"forward": {"mode": "jacfwd"}, "reverse": {"mode": "jacrev"}},
    deviations=[ZERO_TIMES_INFINITY],
)
def root_of_a_clipped_number(env, mode):
    """The derivative of `sqrt(relu(x))` where x is negative is 0; in forward mode it is NaN."""
    derivative = getattr(jax, mode)(lambda x: jnp.sqrt(jax.nn.relu(x)))(np.float32(-10))
    return Observed(_replace_nan(derivative), np.float32(0))


NAN_IN_ALL_ROWS = deviation(
    "jax>=0.4.30",
    params=["reverse"],
    outcome="ok",
    reason="the 0 that the other output is given is multiplied by NaN and added",
    issue="jax-ml/jax#14149",
)


@probe(
    source="jax-ml/jax#14149",
    params={"forward": {"mode": "jacfwd"}, "reverse": {"mode": "jacrev"}},
    deviations=[NAN_IN_ALL_ROWS],
)
def one_of_two_outputs_is_nan(env, mode):
    """The Jacobian of an output is finite where another output is NaN; with `jacrev` it is NaN."""
    f = lambda x: (jnp.mean(x), jnp.mean(jnp.sqrt(x)))  # noqa: E731
    finite, _ = getattr(jax, mode)(f)(floats(-1, -2))
    return Observed(_replace_nan(finite), np.float32([0.5, 0.5]))


ONE_LESS_A_ROUNDED_VALUE = deviation(
    params=["sigmoid", "tanh"],
    outcome="ok",
    reason="1 less the value, which is rounded to 1, is 0",
    issue="jax-ml/jax#40342",
)
SQUARE_OUT_OF_RANGE = deviation(
    params=["arctan2_far_out", "arctan2_near_zero"],
    outcome="ok",
    reason="the square of the radius is infinite or 0 in float32",
    issue="jax-ml/jax#37909",
)
LOGARITHM_CLIPPED = deviation(
    params=["log_ndtr"],
    outcome="ok",
    reason="the exponential of a difference of large numbers, of which few digits are left",
    issue="jax-ml/jax@7e480fa92309",
)
DIFFERENCE_OF_INFINITIES = deviation(
    params=["logaddexp"],
    outcome="ok",
    reason="infinity less infinity is NaN, which is taken for 0",
    issue="jax-ml/jax#18183",
)
TAILS = {
    "sigmoid": (jax.nn.sigmoid, 20, np.exp(-20.0)),
    "tanh": (jnp.tanh, 10, 4 * np.exp(-20.0)),
    "arctan2_far_out": (lambda x: jnp.arctan2(x, jnp.float32(1e20)), 1e20, 5e-21),
    "arctan2_near_zero": (lambda x: jnp.arctan2(x, jnp.float32(1e-23)), 1e-23, 5e22),
    "log_ndtr": (special.log_ndtr, -1e4, 1e4),
    "logaddexp": (lambda x: jnp.logaddexp(jnp.float32(np.inf), x), 0, 0),
}


@probe(
    source="jax-ml/jax#40342",
    params=[*TAILS],
    rtol=1e-4,
    deviations=[
        ONE_LESS_A_ROUNDED_VALUE,
        SQUARE_OUT_OF_RANGE,
        LOGARITHM_CLIPPED,
        DIFFERENCE_OF_INFINITIES,
    ],
)
def slope_in_the_tail(env, name):
    """A derivative in float32 is wrong far out on all releases, although its value is usual.

    That of `sigmoid` at 20 is 0, not 2e-9; that of `log_ndtr` at -10000 is 2981, not 10000.
    """
    fn, x, slope = TAILS[name]
    result = jax.jit(jax.grad(fn))(np.float32(x))
    return Observed(_replace_nan(result), np.float64(slope))


POWER_OF_ZERO = deviation(
    params=["gammainc", "gammaincc"],
    outcome="ok",
    reason="the exponential of (a - 1) log(x) - x, with 0 times minus infinity",
)
ZERO_TIMES_POLE = deviation(
    params=["third_of_square"],
    outcome="ok",
    reason="the factor 0 is multiplied by 0 to the power of -1, which is infinite",
)
VALUE_OVERFLOWS = deviation(
    params=["exp2"],
    outcome="ok",
    reason="the value, which is infinite, is multiplied by the logarithm of 2",
    issue="jax-ml/jax#40382",
)
ENDS = {
    "gammainc": (lambda x: special.gammainc(jnp.float32(1), x), 0, 1),
    "gammaincc": (lambda x: special.gammaincc(jnp.float32(1), x), 0, -1),
    "second_of_square": (jax.grad(lambda x: x**2.0), 0, 2),
    "third_of_square": (jax.grad(jax.grad(lambda x: x**2.0)), 0, 0),
    "exp2": (jnp.exp2, 128.25, 2 * np.log(2) * 2**127.25),
}


@probe(
    source="jax-ml/jax#40382",
    params=[*ENDS],
    rtol=1e-5,
    deviations=[POWER_OF_ZERO, ZERO_TIMES_POLE, VALUE_OVERFLOWS],
)
def slope_at_the_end(env, name):
    """A derivative is NaN or infinite at the end of a range on all releases, where it is finite.

    That of `gammainc(1, x)` at 0 and the third derivative of `x**2.0` at 0 are NaN. That of `exp2`
    is infinite where only the value overflows.
    """
    fn, x, slope = ENDS[name]
    result = jax.jit(jax.grad(fn))(np.float32(x))
    return Observed(_replace_nan(result), np.float64(slope))


DIFFERENCE_OF_EQUAL_EIGENVALUES = deviation(
    params=["second"],
    outcome="ok",
    reason="the derivative of an eigenvector divides by the difference of eigenvalues",
    issue="jax-ml/jax#21896",
)


@probe(
    source="jax-ml/jax#21896",
    params={"first": {"order": 1}, "second": {"order": 2}},
    deviations=[DIFFERENCE_OF_EQUAL_EIGENVALUES],
)
def sum_of_equal_eigenvalues(env, order):
    """The Hessian of the sum of `eigvalsh`, which is the trace, is NaN at equal eigenvalues."""
    derivative = jax.grad if order == 1 else jax.hessian
    result = derivative(lambda x: jnp.linalg.eigvalsh(x).sum())(np.eye(2, dtype=np.float32))
    exact = np.eye(2) if order == 1 else np.zeros((2, 2, 2, 2))
    return Observed(_replace_nan(result), exact)


STOPPED = {
    "shape": lambda x: jnp.zeros(lax.stop_gradient(3)) + x,
    "branch": lambda x: x if lax.stop_gradient(True) else -x,
    "range": lambda x: sum(x for _ in range(lax.stop_gradient(3))),
    "index": lambda x: [x, 2 * x][lax.stop_gradient(1)],
    "numpy": lambda x: np.add(lax.stop_gradient(np.int32(1)), 1) + x,
}
TRACED = deviation(
    "jax>=0.8.2",
    outcome="ok",
    reason="under jit the number is traced, like a float",
    issue="jax-ml/jax#33714",
)


@probe(source="jax-ml/jax#33714", params=[*STOPPED], deviations=[TRACED])
def whole_number_without_gradient(env, name):
    """Under jit, `stop_gradient(3)` is traced from 0.8.2 on, so it is no shape and no condition."""
    return Observed(refusal(lambda: jax.jit(STOPPED[name])(1.0)), reference="ran")
