"""Functions at hard points: zeros, infinities, NaN, negative integers, the last digits.

The references are mathematics or, where that leaves a choice, NumPy and SciPy: literals, or values
computed in a wider type.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy import special

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit import strategies as st
from conformance.kit.laws import check_same

from ._helpers import f32, inf, nan, replace_nan

defaults(platforms=("cpu",))

# Points on both sides of cuts along the real and the imaginary axis.
ON_CUTS = np.array(
    [complex(x, y) for x in (-2, 2) for y in (0.0, -0.0)]
    + [complex(x, y) for x in (0.0, -0.0) for y in (-2, 2)],
    np.complex64,
)


TANH_SATURATED_BELOW_ONE = deviation(
    "jax==0.7.1",
    outcome="ok",
    reason="tanh saturates below 1, in this release alone",
    issue="jax-ml/jax#23590",
)


@probe(source="jax-ml/jax#23590", x64=True, rtol=0, deviations=[TANH_SATURATED_BELOW_ONE])
def tanh_of_large_numbers(env):
    """`tanh` in float64 is 1 from 20 on; in 0.7.1 it was 0.9999999999999992."""
    result = jnp.tanh(np.array([20.0, 50.0, 1e300, -50.0, inf]))
    return Observed(result, reference=np.array([1.0, 1, 1, -1, 1]))


LOG1P_LOST_DIGITS = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="log1p lost digits between -0.53 and -0.28",
    issue="jax-ml/jax#39707",
)


@probe(source="jax-ml/jax#39707", x64=True, rtol=2e-15, deviations=[LOG1P_LOST_DIGITS])
def log1p_of_a_half(env):
    """`log1p` in float64 near 1 - sqrt(2) is accurate; up to 0.11.0, it was up to 129 ulp off."""
    x = 1 - np.sqrt(2) + np.array([-1e-3, -1e-4, 1e-4, 1e-3])
    return Observed(jnp.log1p(x), reference=np.log1p(x.astype(np.longdouble)).astype(np.float64))


LANCZOS_SUM_IN_FLOAT32 = deviation(
    "jax<0.12",
    outcome="ok",
    reason="gammaln was the Lanczos sum in float32, of which little is left near a root",
    issue="jax-ml/jax#21284",
)


@probe(source="jax-ml/jax#21284", deviations=[LANCZOS_SUM_IN_FLOAT32])
def logarithm_of_gamma_near_its_roots(env):
    """`gammaln` in float32 is right near 1 and 2, where it is small, from 0.12.0 on."""
    x = f32(0.999, 1.001, 1.999, 2.00001, 2.001)
    exact = scipy.special.gammaln(x.astype(np.float64))
    return Observed(special.gammaln(x), reference=exact)


NAN_TREATED_AS_ZERO = deviation(
    "jax<0.10.2",
    error="LawError",
    reason="NaN was treated as zero",
    issue="jax-ml/jax@88b3d133903d",
)


@probe(
    source="jax-ml/jax@88b3d133903d",
    given={
        "x": st.arrays("float32", 3, elements=st.just(nan) | st.integers(-2, 2)),
        "at_zero": st.arrays("float32", ()),
    },
    deviations=[NAN_TREATED_AS_ZERO],
)
def heaviside_of_nan(env, x, at_zero):
    """`heaviside` of NaN is NaN from 0.10.2 on; before, it was the value at zero."""
    check_same(jnp.heaviside(x, at_zero), np.heaviside(x, at_zero), rtol=0)


ZERO_TIMES_ANYTHING_WAS_ZERO = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="zero times any value was zero",
    issue="jax-ml/jax@60912d9674b3",
)


@probe(source="jax-ml/jax@60912d9674b3", deviations=[ZERO_TIMES_ANYTHING_WAS_ZERO])
def xlogy_of_nan(env):
    """`xlogy(0, nan)` is NaN from 0.10.2 on, as in SciPy; `xlogy(0, 0)` is 0 on every release."""

    @jax.jit
    def products(x, y, z):
        return {"xlogy": special.xlogy(x, y), "xlog1py": special.xlog1py(x, z)}

    result = products(f32(0, 0, 2, nan), f32(nan, 0, 1, 0), f32(nan, -1, 0, 0))
    return Observed(
        replace_nan(result), reference=replace_nan(dict.fromkeys(result, f32(nan, 0, 0, nan)))
    )


NO_FLOOR_OF_INFINITY = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="infinite quotients had no floor",
    issue="jax-ml/jax@e90fa10f79ba",
)


@probe(source="jax-ml/jax@e90fa10f79ba", deviations=[NO_FLOOR_OF_INFINITY])
def floor_of_a_division_by_zero(env):
    """`1.0 // 0.0` is infinite from 0.10.2 on, as in NumPy; before, it was NaN."""

    @jax.jit
    def divided(x, zero, y, z):
        return {
            "floor_divide": jnp.floor_divide(x, zero),
            "divmod": jnp.divmod(x, zero),
            "rounded": jnp.floor_divide(y, z),
        }

    floors = f32(inf, -inf, nan, inf)
    expected = {
        "floor_divide": floors,
        "divmod": (floors, f32(nan, nan, nan, nan)),
        "rounded": f32(3, -4, 0),
    }
    result = divided(f32(1, -1, 0, inf), f32(0, 0, 0, 0), f32(7, -7, 1), f32(2, 2, inf))
    return Observed(replace_nan(result), reference=replace_nan(expected))


@probe(
    source="jax-ml/jax@e575f73fb673",
    given={
        "a": st.arrays("int32", 3),
        "b": st.arrays("int32", 3, elements=st.integers(-9, -2) | st.integers(0, 9)),
    },
)
def integer_division(env, a, b):
    """Floors and remainders of integers are as in Python, and a division by zero gives -1."""
    divisor = np.where(b == 0, 1, b)
    floor, mod = np.divmod(np.int64(a), divisor)
    rest = np.fmod(np.int64(a), divisor)
    check_same(
        (jnp.floor_divide(a, divisor), jnp.mod(a, divisor), jnp.fmod(a, divisor)),
        (floor, mod, rest),
    )
    towards_zero = (np.int64(a) - rest) // divisor
    check_same(jax.lax.div(a, b), np.where(b == 0, -1, towards_zero))


NAN_AT_THE_BOUNDARY = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="the result was NaN at the boundary",
    issue="jax-ml/jax@82b2591b219e",
)
NAN_AT_INFINITE_PARAMETER = deviation(
    "jax>=0.5.3,<0.11",
    outcome="ok",
    reason="the result was NaN where the parameter is infinite",
    issue="jax-ml/jax@da23cf20a288",
)


@probe(
    source="jax-ml/jax@f608a8c502ae",
    rtol=1e-5,
    deviations=[NAN_AT_THE_BOUNDARY, NAN_AT_INFINITE_PARAMETER],
)
def incomplete_gamma(env):
    """`gammainc` is right at its boundary, (inf, 1), (1, inf), (0, 1), and at (2, 3) inside."""

    @jax.jit
    def both(a, x):
        return {"lower": special.gammainc(a, x), "upper": special.gammaincc(a, x)}

    inside = 1 - 4 * np.exp(-3.0)
    expected = {"lower": f32(0, 1, 1, inside), "upper": f32(1, 0, 0, 1 - inside)}
    result = both(f32(inf, 1, 0, 2), f32(1, inf, 1, 3))
    return Observed(replace_nan(result), reference=replace_nan(expected))


NAN_AT_ZERO_OR_INFINITY = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the result was NaN where a parameter is 0 or infinite",
    issue="jax-ml/jax@ab42a3e6382a",
)


@probe(source="jax-ml/jax@ab42a3e6382a", rtol=1e-5, deviations=[NAN_AT_ZERO_OR_INFINITY])
def incomplete_beta(env):
    """`betainc` with a parameter of 0 or infinity is its limit from 0.6.0 on, and NaN before."""
    result = jax.jit(special.betainc)(f32(0, 1, 2, 1), f32(1, 0, 3, inf), f32(0.5, 0.5, 0.25, 0.5))
    return Observed(replace_nan(result), reference=replace_nan(f32(1, 0, 0.26171875, 1)))


INFINITE_AT_POLES = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="gamma was infinite at negative integers",
    issue="scipy/scipy#21827",
)


@probe(source="scipy/scipy#21827", rtol=2e-6, deviations=[INFINITE_AT_POLES])
def gamma_at_its_poles(env):
    """`gamma` has no value at negative integers: NaN from 0.4.36 on, and -inf at -0."""
    result = jax.jit(special.gamma)(f32(-1, -2, 0, -0.0, -1.5, 4))
    reference = f32(nan, nan, inf, -inf, 4 * np.sqrt(np.pi) / 3, 6)
    return Observed(replace_nan(result), reference=replace_nan(reference))


NAN_AT_ZERO = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the pole at 0 was NaN, like those at negative integers",
    issue="jax-ml/jax#37763",
)


@probe(source="jax-ml/jax#37763", rtol=2e-6, deviations=[NAN_AT_ZERO])
def digamma_at_its_poles(env):
    """`digamma(0)` is -inf from 0.11.2 on, as in SciPy; at negative integers it is NaN."""
    result = jax.jit(special.digamma)(f32(0, -1, -2, 1))
    reference = np.float32(scipy.special.digamma([0.0, -1, -2, 1]))
    return Observed(replace_nan(result), reference=replace_nan(reference))


@probe(source="jax-ml/jax#18183", rtol=1e-6)
def logsumexp_with_infinities(env):
    """`logsumexp` is right for infinities of either sign, NaN, weights and cancelling signs."""

    @jax.jit
    def summed(rows, x, b, ones, signs):
        return {
            "-inf, inf, nan": special.logsumexp(rows, axis=1),
            "weights": special.logsumexp(x, b=b),
            "cancels": special.logsumexp(ones, b=signs),
            "logaddexp": jnp.logaddexp(rows[:, 0], rows[:, 0]),
            "softmax": jax.nn.softmax(f32(0, -inf) * ones),
        }

    rows = np.stack([f32(-inf, -inf), f32(inf, -inf), f32(nan, inf), f32(0, 0)])
    two = np.log(2)
    expected = {
        "-inf, inf, nan": np.array([-inf, inf, nan, two]),
        "weights": np.float64(1),
        "cancels": np.float64(-inf),
        "logaddexp": np.array([-inf, inf, nan, two]),
        "softmax": np.array([1.0, 0]),
    }
    result = summed(rows, f32(1, 1000), f32(1, 0), f32(1, 1), f32(1, -1))
    return Observed(replace_nan(result), reference=replace_nan(expected))


ZERO_TIMES_INFINITY = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the gradient was zero times infinity",
    issue="jax-ml/jax@f0392a1535d0",
)


@probe(source="jax-ml/jax@f0392a1535d0", deviations=[ZERO_TIMES_INFINITY])
def gradient_of_masked_logsumexp(env):
    """The gradient of `logsumexp(where=)` is 0 where masked: at inf, too, from 0.5.0 on."""
    mask = np.array([True, False])
    result = jax.jit(jax.grad(lambda x: special.logsumexp(x, where=mask)))(f32(1, inf))
    return Observed(replace_nan(result), reference=f32(1, 0))


LOG10_WAS_A_QUOTIENT = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="log10 was a quotient of logarithms, 1 ulp off",
    issue="jax-ml/jax@af032974ac7b",
)


@probe(source="jax-ml/jax@af032974ac7b", deviations=[LOG10_WAS_A_QUOTIENT])
def logarithm_of_ten(env):
    """`log10(10) == 1` holds from 0.7.2 on."""
    result = np.asarray(jnp.log10(f32(10)))
    return Observed({"equal": bool(result[0] == 1)}, reference={"equal": True})


POWER_OF_TEN_INFINITE = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the power of ten was infinite",
    issue="jax-ml/jax@7f64e44f349b",
)


@probe(source="jax-ml/jax@7f64e44f349b", deviations=[POWER_OF_TEN_INFINITE])
def rounding(env):
    """Halves round to even, and rounding to 50 decimals loses nothing from 0.8.0 on."""
    halves = f32(0.5, 1.5, 2.5, -0.5, 0.49999997, 8388609)
    result = {"halves": jnp.round(halves), "fifty": jnp.round(f32(1.5), 50)}
    return Observed(result, reference={"halves": f32(0, 2, 2, -0.0, 0, 8388609), "fifty": f32(1.5)})


POWER_OF_TEN_NOT_CONVERTED = deviation(
    "jax<0.8",
    params=["39"],
    error="TypeError",
    match="expected number, got int",
    reason="the power of ten is an int, which does not fit into 64 bits",
    issue="jax-ml/jax#32459",
)
STILL_NOT_CONVERTED = deviation(
    params=["35"],
    error="TypeError",
    match="expected number, got int",
    reason="the power of ten is an int, which does not fit into 64 bits",
    issue="jax-ml/jax#32459",
)


@probe(
    source="jax-ml/jax#32459",
    params={"35": {"decimals": 35}, "39": {"decimals": 39}},
    deviations=[POWER_OF_TEN_NOT_CONVERTED, STILL_NOT_CONVERTED],
)
def rounding_of_bfloat16(env, decimals):
    """`round` of bfloat16 to 39 decimals is a TypeError before 0.8.0, to 35 on all releases."""
    x = jnp.bfloat16(1.25)
    return Observed(jnp.round(x, decimals).astype(jnp.float32), reference=np.float32(1.25))


@probe(source="jax-ml/jax@2281455a4937", rtol=2e-6)
def inverses(env):
    """Inverse functions are right at the ends of their ranges, and small numbers do not vanish."""
    euler = 0.5772156649015329
    points = {
        special.erfinv: ([1, -1, 0.5, 2], [inf, -inf, 0.4769362762044699, nan]),
        special.ndtri: ([0, 1, 0.5], [-inf, inf, 0]),
        special.logit: ([0, 1, 0.5], [-inf, inf, 0]),
        jnp.arctanh: ([1, -1, 2], [inf, -inf, nan]),
        special.digamma: ([-1, 1, 2], [nan, -euler, 1 - euler]),
        special.zeta: ([2, 1], [1, 1], [np.pi**2 / 6, inf]),
        jnp.expm1: ([1e-10, -inf, 100], [1e-10, -1, inf]),
        jnp.log1p: ([1e-10, -1, inf], [1e-10, -inf, inf]),
        jnp.hypot: ([3e20, inf], [4e20, nan], [5e20, inf]),
        jnp.sinh: ([1e-10, 89, -inf], [1e-10, np.sinh(89.0), -inf]),
    }
    arguments = [[f32(*numbers) for numbers in row[:-1]] for row in points.values()]
    result = jax.jit(lambda xs: [f(*x) for f, x in zip(points, xs, strict=True)])(arguments)
    expected = [f32(*row[-1]) for row in points.values()]
    names = [f.__name__ for f in points]
    return Observed(
        replace_nan(dict(zip(names, result, strict=True))),
        reference=replace_nan(dict(zip(names, expected, strict=True))),
    )


@probe(source="jax-ml/jax#1627")
def signs_of_zero(env):
    """`signbit` shows which operations with zeros return a negative sign."""

    @jax.jit
    def zeros(zero, positive, two, third, one):
        return {
            "sqrt": jnp.sqrt(zero),
            "trunc": jnp.trunc(-third),
            "round": jnp.round(-third),
            "product": zero * two,
            "plus zero": zero + positive,
            "abs": jnp.abs(zero),
            "sign": jnp.sign(zero),
            "arctan2": jnp.arctan2(zero, -one),
        }

    result = zeros(*f32(-0.0, 0, 2, 0.33, 1))
    negative = {name: bool(np.signbit(np.asarray(value))) for name, value in result.items()}
    expected = dict.fromkeys(result, True) | {"plus zero": False, "abs": False}
    return Observed(negative, reference=expected)


DIVIDED_BY_AN_INFINITE_MODULUS = deviation(
    outcome="ok",
    reason="the number is divided by its modulus, which is infinite or overflows",
    issue="jax-ml/jax#25679",
)


@probe(
    source="jax-ml/jax#25679",
    params=["infinite", "huge"],
    deviations=[DIVIDED_BY_AN_INFINITE_MODULUS],
)
def sign_of_a_long_complex_number(env, name):
    """`jnp.sign` of a complex number is NaN if it is infinite, and 0 if its modulus overflows."""
    z = {"infinite": [inf, complex(0, -inf)], "huge": [3e38 + 3e38j, -3e38 + 3e38j]}[name]
    result = jax.jit(jnp.sign)(np.array(z, np.complex64))
    half = np.sqrt(0.5)
    exact = {"infinite": [1, -1j], "huge": [half + half * 1j, -half + half * 1j]}[name]
    return Observed(replace_nan(result), reference=np.complex128(exact))


OTHER_SIDE_OF_CUT = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="arctan",
    reason="half of the cut of arctan had the value of its other side",
    issue="jax-ml/jax#23587",
)


@probe(source="jax-ml/jax#23587", rtol=5e-6, atol=1e-7, deviations=[OTHER_SIDE_OF_CUT])
def branch_cuts(env):
    """The sign of a zero selects the side of the branch cuts of `log`, `arctanh` and `arctan`."""
    names = ("log", "arctanh", "arctan")
    result = jax.jit(lambda z: {name: getattr(jnp, name)(z) for name in names})(ON_CUTS)
    return Observed(result, reference={n: getattr(np, n)(np.complex128(ON_CUTS)) for n in names})


UPPER_SIDE_OF_CUT = deviation(
    "jax>=0.5",
    outcome="ok",
    reason="both sides of the cut have the value of the upper side",
    issue="jax-ml/jax#39110",
)


@probe(source="jax-ml/jax#39110", deviations=[UPPER_SIDE_OF_CUT])
def complex_square_roots(env):
    """`sqrt(complex(-4, -0.0))` is -2j, the conjugate of `sqrt(-4)`, up to 0.4.38; then 2j."""
    z = np.array([complex(-4, 0.0), complex(-4, -0.0), 2j, -2j], np.complex64)
    return Observed(jax.jit(jnp.sqrt)(z), reference=np.array([2j, -2j, 1 + 1j, 1 - 1j]))


@probe(source="jax-ml/jax#14397")
def powers(env):
    """Powers are right at 0, 1, NaN and infinity, and for integers.

    The gradient of 1 + x + x**2 at zero is right, too.
    """

    @jax.jit
    def raised(x, y, i, j, zero):
        gradient = jax.grad(lambda x: (x ** jnp.arange(3)).sum())(zero)
        return {"floats": jnp.power(x, y), "integers": jnp.power(i, j), "gradient": gradient}

    expected = {
        "floats": f32(1, inf, 1, 1, -512, 0),
        "integers": np.int32([-(2**31), 0, -8]),
        "gradient": np.float64(1),
    }
    floats = f32(0, 0, 1, nan, -8, inf), f32(0, -1, nan, 0, 3, -1)
    integers = np.int32([2, 2, -2]), np.int32([31, 32, 3])
    result = raised(*floats, *integers, np.float32(0))
    return Observed(replace_nan(result), reference=replace_nan(expected))


OLD_ARCSIN_FORMULA = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="another formula was wrong on one side of each cut",
    issue="openxla/stablehlo#2357",
)
SIGN_OF_ZERO_LOST = deviation(
    "jax>=0.4.31",
    outcome="ok",
    reason="both sides of a cut have the value of the same side",
    issue="openxla/stablehlo#2357",
)


@probe(
    source="openxla/stablehlo#2357",
    rtol=5e-6,
    atol=1e-7,
    deviations=[OLD_ARCSIN_FORMULA, SIGN_OF_ZERO_LOST],
)
def beyond_the_cut_of_arcsin(env):
    """`arcsin` should have conjugate values at 2 + 0j and 2 - 0j, but the sign of zero is lost.

    The same holds for `arccos`, `arcsinh` and `arccosh`.
    """
    names = ("arcsin", "arccos", "arcsinh", "arccosh")
    result = jax.jit(lambda z: {name: getattr(jnp, name)(z) for name in names})(ON_CUTS)
    return Observed(result, reference={n: getattr(np, n)(np.complex128(ON_CUTS)) for n in names})


@probe(
    source="jax-ml/jax#18183",
    given={"x": st.arrays("float32", (2, 3), elements=st.floats(-1000, 1000, width=16))},
)
def logsumexp_far_out(env, x):
    """`logsumexp` works where exponentials overflow or vanish: it takes the largest out."""
    exact = scipy.special.logsumexp(np.float64(x), axis=1)
    check_same(special.logsumexp(x, axis=1), exact, rtol=1e-6, atol=1e-6)


@probe(
    source="jax-ml/jax@c22bba2f9c23",
    given={"x": st.arrays("float32", 3), "low": st.integers(-9, 9), "high": st.integers(-9, 9)},
)
def clipped_to_less_than_nothing(env, x, low, high):
    """`clip` with a minimum above its maximum returns the maximum, as in NumPy."""
    check_same(jnp.clip(x, low, high), np.clip(x, low, high).astype(np.float32), rtol=0)


PRODUCT_WITH_NAN_NOT_WRITTEN = deviation(
    "jax==0.6.2",
    outcome="ok",
    reason="the result of a product with NaN was never written: uninitialised memory",
    issue="jax-ml/jax#29537",
)


@probe(source="jax-ml/jax#29537", x64=True, deviations=[PRODUCT_WITH_NAN_NOT_WRITTEN])
def exponential_of_a_product_with_nan(env):
    """`exp(x * nan)` in float64 under jit is NaN; on 0.6.2 it was uninitialised memory."""
    result = jax.jit(lambda x: jnp.exp(x * nan))(np.ones(64))
    # Some numbers in uninitialised memory may be NaN by chance, so all must be.
    return Observed(np.isnan(result).all(), reference=True)


RESULT_NOT_WRITTEN = deviation(
    "jax<0.11.2",
    params=["float32", "bfloat16"],
    outcome="ok",
    reason="the result was never written: uninitialised memory",
    issue="jax-ml/jax#29537",
)
FLOAT16_RESULT_NOT_WRITTEN = deviation(
    "jax>=0.5.1,<0.11.2",
    params=["float16"],
    outcome="ok",
    reason="the result was never written: uninitialised memory",
    issue="jax-ml/jax#29537",
)


@probe(
    source="jax-ml/jax#29537",
    params={
        "float32": {"dtype": "float32"},
        "bfloat16": {"dtype": "bfloat16"},
        "float16": {"dtype": "float16"},
    },
    deviations=[RESULT_NOT_WRITTEN, FLOAT16_RESULT_NOT_WRITTEN],
)
def exponential_of_nan_by_dtype(env, dtype):
    """`exp(x * nan)` under jit is NaN; on a CPU, up to 0.11.1, it is uninitialised memory."""
    result = jax.jit(lambda x: jnp.exp(x * nan))(jnp.ones(64, dtype))
    return Observed(bool(jnp.isnan(result).all()), reference=True)


NEGATIVE_VARIANCE = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the variance, mean of squares less square of the mean, was negative",
    issue="jax-ml/jax#30426",
)


@probe(source="jax-ml/jax#30426", deviations=[NEGATIVE_VARIANCE])
def standardised_constant(env):
    """`nn.standardize` of three equal numbers is finite from 0.8.2 on.

    Before, it was NaN for the number of this case.
    """
    x = f32(-11, -11, -11) + np.float32(3e-6)
    return Observed(np.isfinite(jax.jit(jax.nn.standardize)(x)), reference=np.ones(3, bool))


NAN_OF_DISCARDED_BRANCH = deviation(
    "jax<0.4.36",
    error="FloatingPointError",
    match="invalid value",
    reason="debug_nans took the NaN of a discarded branch for a NaN of the result",
    issue="jax-ml/jax#24939",
)


@probe(source="jax-ml/jax#24939", deviations=[NAN_OF_DISCARDED_BRANCH])
def density_beside_its_support(env):
    """`stats.gamma.pdf` below its support is 0, under `debug_nans`, too, from 0.4.36 on."""
    with jax.debug_nans(True):
        return Observed(jax.scipy.stats.gamma.pdf(0.0, 1.0, 1.0), reference=np.float64(0))


PROBABILITY_DIVIDED_BY_SCALE = deviation(
    "jax<0.10.1",
    error="LawError",
    reason="ppf divided the probability by the scale instead of multiplying the result",
    issue="jax-ml/jax#36757",
)


@probe(
    source="jax-ml/jax#36757",
    releases="jax>=0.5.1",
    given={
        "q": st.arrays("float32", 2, elements=st.floats(0.125, 0.875, width=32)),
        "scale": st.arrays("float32", 2, elements=st.floats(0.5, 8, width=32)),
    },
    deviations=[PROBABILITY_DIVIDED_BY_SCALE],
)
def median_of_an_exponential(env, q, scale):
    """`stats.expon.ppf(q, scale=s)` is -s log(1 - q) from 0.10.1 on.

    Before, it was wrong for all scales but 1.
    """
    result = jax.scipy.stats.expon.ppf(q, scale=scale)
    check_same(result, -np.float64(scale) * np.log1p(-np.float64(q)))


DERIVATIVE_MASKED = deviation(
    "jax>=0.4.30",
    outcome="ok",
    reason="a term whose weight is 0 is masked together with its derivative",
    issue="jax-ml/jax#22398",
)


@probe(source="jax-ml/jax#22398", deviations=[DERIVATIVE_MASKED])
def gradient_by_a_weight_of_zero(env):
    """The derivative of `logsumexp(a, b=b)` by a weight of 0 is wrong on every release: it is 0.

    It is exp(a - logsumexp), as for weights near 0. For weights that may be 0, use
    `log(sum(b * exp(a - max)))`.
    """
    slopes = jax.jit(jax.grad(lambda b: special.logsumexp(f32(0, 0), b=b)))(f32(1, 0))
    return Observed(slopes, reference=np.ones(2))


NO_LIMIT_OF_EXPONENTIAL_INTEGRALS = deviation(
    "jax<0.12",
    outcome="ok",
    reason="no formula covered infinity, and expn(2, 0) took n - 1 for n",
    issue="jax-ml/jax#38519",
)


@probe(source="jax-ml/jax#38519", rtol=2e-6, deviations=[NO_LIMIT_OF_EXPONENTIAL_INTEGRALS])
def exponential_integrals(env):
    """`expn` and `exp1` are 0 at infinity from 0.12.0 on; before, they were NaN.

    `expi(0)` is -inf, not NaN, and `expn(2, 0)` is 1, not 0.5. `expi(inf)` is NaN on every release.
    """

    @jax.jit
    def integrals(n, x, y):
        return {"expn": special.expn(n, x), "exp1": special.exp1(x), "expi": special.expi(y)}

    n, x, y = np.int32([1, 2, 2, 3]), f32(inf, inf, 0, 0.5), f32(-inf, 0, 1, -1)
    expected = {
        "expn": scipy.special.expn(n, x.astype(np.float64)),
        "exp1": scipy.special.exp1(x.astype(np.float64)),
        "expi": scipy.special.expi(y.astype(np.float64)),
    }
    return Observed(replace_nan(integrals(n, x, y)), reference=replace_nan(expected))


DIFFERENCE_OF_ROUNDED_NUMBERS = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the divergence was a difference of rounded numbers, of which little is left",
)


@probe(source="jax-ml/jax#21782", rtol=2e-3, deviations=[DIFFERENCE_OF_ROUNDED_NUMBERS])
def divergence_of_close_numbers(env):
    """`kl_div(1, 1.0001)` in float32 is 5e-9 from 0.12.0 on; before, it was 0."""
    p, q = f32(1, 0.7, 2), f32(1.0001, 0.70021, 1)
    exact = scipy.special.kl_div(p.astype(np.float64), q.astype(np.float64))
    return Observed(jax.jit(special.kl_div)(p, q), reference=exact)


ROUNDED_LOGARITHM_TIMES_P = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="the logarithm of the quotient was a difference, whose rounding was multiplied by p",
)
PRODUCT_OVERFLOWED = deviation(
    "jax>=0.10.2,<0.12",
    outcome="ok",
    reason="a product overflowed",
)


@probe(source="jax-ml/jax#21782", deviations=[ROUNDED_LOGARITHM_TIMES_P, PRODUCT_OVERFLOWED])
def divergence_of_large_numbers(env):
    """`kl_div(p, p)` is 0 from 0.12.0 on; at 1e30 it was 1.6e24 before 0.10.2.

    At 3e38 it was -inf, and NaN from 0.10.2 to 0.11.2.
    """
    p = f32(3e38, 1e30, 2)
    return Observed(replace_nan(jax.jit(special.kl_div)(p, p)), reference=f32(0, 0, 0))


SINE_OF_INFINITY = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="it was the sine of infinity divided by infinity",
    issue="jax-ml/jax@29b9cde99aa4",
)


@probe(source="jax-ml/jax@29b9cde99aa4", rtol=1e-6, deviations=[SINE_OF_INFINITY])
def sinc_of_infinity(env):
    """`sinc` of infinity is 0, its limit, from 0.11.1 on; before, it was NaN, as it is in NumPy."""
    result = jax.jit(jnp.sinc)(f32(inf, -inf, 0.5))
    return Observed(replace_nan(result), reference=replace_nan(f32(0, 0, 2 / np.pi)))


ARGUMENT_ROUNDED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="x times pi was rounded before the sine was taken",
)


@probe(source="jax-ml/jax#34139", rtol=1e-6, deviations=[ARGUMENT_ROUNDED])
def sinc_of_integers(env):
    """`sinc` of an integer other than 0 is exactly 0 from 0.12.0 on; before, it was near 3e-8."""
    result = jax.jit(jnp.sinc)(f32(0, 1, 2, 100, 1e6, 0.5, 1000.5))
    reference = np.array([1, 0, 0, 0, 0, 1 / (0.5 * np.pi), 1 / (1000.5 * np.pi)])
    return Observed(result, reference=reference)


WEIGHT_OF_ZERO_FIRST = deviation(
    "jax<0.12",
    outcome="ok",
    reason="what is outside of the domain was infinite, and so was NaN",
)


@probe(source="jax-ml/jax@818e7d92a4b8", deviations=[WEIGHT_OF_ZERO_FIRST])
def relative_entropy_of_nan(env):
    """`rel_entr` of NaN is NaN from 0.12.0 on, as in SciPy; before, it was infinite."""
    p, q = f32(nan, nan, 1, -1, 0, 2), f32(0, 1, nan, 1, 0, 1)
    result = jax.jit(special.rel_entr)(p, q)
    return Observed(replace_nan(result), reference=replace_nan(scipy.special.rel_entr(p, q)))


DENORMAL_TAKEN_FOR_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the logarithm of gamma took a denormal number for zero, a pole",
)


@probe(source="jax-ml/jax#21284", rtol=1e-5, deviations=[DENORMAL_TAKEN_FOR_ZERO])
def logarithm_of_beta_near_its_pole(env):
    """`betaln(1, b)` of a denormal b is -log(b) from 0.12.0 on; before, it was infinite."""
    a, b = f32(1, 2, 1, 3), f32(1e-40, 1e-39, 0.5, 2)
    exact = scipy.special.betaln(a.astype(np.float64), b.astype(np.float64))
    return Observed(jax.jit(special.betaln)(a, b), reference=exact)


ROOT_OF_A_FLUSHED_NUMBER = deviation(
    "jax<0.10",
    outcome="ok",
    reason="a denormal number was flushed to zero, whose logarithm stands for its cube root",
)
NEGATIVE_ROOT = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="the approximation of the cube root ends at denormal numbers, with the wrong sign",
)


@probe(
    source="jax-ml/jax@ce79c7ddbf55",
    rtol=1e-2,
    deviations=[ROOT_OF_A_FLUSHED_NUMBER, NEGATIVE_ROOT],
)
def cube_root_of_denormal_numbers(env):
    """`cbrt` of a denormal number in float32 is wrong on every release, by a factor of 50.

    Since 0.10.0 it is negative for a positive number, too.
    """
    x = f32(1e-40, -1e-40, 1e-38, 1e-37)
    return Observed(jax.jit(jnp.cbrt)(x), reference=np.cbrt(x.astype(np.float64)))


ROUNDED_LOGARITHM_OF_THE_FACTOR = deviation(
    outcome="ok",
    reason="the logarithm of a factor is a difference of large numbers, of which no digit is left",
    issue="jax-ml/jax#38457",
)


@probe(source="jax-ml/jax#38457", deviations=[ROUNDED_LOGARITHM_OF_THE_FACTOR])
def incomplete_gamma_of_large_numbers(env):
    """`gammainc` and `gammaincc` in float32 do not add up to 1 for parameters from 1e5 on.

    `gammainc(1e7, 1e7)` is 3522 up to 0.11.2, then 0.0004; it is a half. So are the distribution
    functions of `chi2` and `poisson` with a large mean.
    """
    a = f32(10, 1e3, 1e5, 1e7)
    lower, upper = jax.jit(lambda a: (special.gammainc(a, a), special.gammaincc(a, a)))(a)
    are_one = np.abs(np.asarray(lower) + np.asarray(upper) - 1) < 0.03
    return Observed(are_one, reference=np.ones(4, bool))


VARIANCE_CANCELS = [
    deviation(
        "jax<0.8.2",
        outcome="ok",
        reason="the difference of two large numbers is negative, and its root NaN",
        issue="jax-ml/jax#30426",
    ),
    deviation(
        "jax>=0.8.2",
        outcome="ok",
        reason="the difference of two large numbers is no variance",
    ),
]


@probe(source="jax-ml/jax#30426", deviations=VARIANCE_CANCELS)
def standardised_large_numbers(env):
    """`nn.standardize` of 1e6, 1e6 + 1 and 1e6 + 2 ends with 1.2, in no release.

    It ends with NaN up to 0.8.1, then with 316; from 0.12.0 on, with 0.006. The value of this case
    is the order of magnitude.
    """
    last = np.asarray(jax.nn.standardize(f32(1e6, 1e6 + 1, 1e6 + 2)))[-1]
    return Observed(np.floor(np.log10(last)), reference=np.float32(0))


POINTS_AFTER_0_12 = {
    "expn": (lambda: special.expn(np.int32(-1), f32(2)), nan),
    "gammaln": (lambda: special.gammaln(f32(1e-42)), scipy.special.gammaln(f32(1e-42) + 0.0)),
    "rel_entr": (lambda: special.rel_entr(f32(inf), f32(1)), inf),
}
WRONG_BEFORE_0_12 = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the formula does not hold there",
)


@probe(
    source="jax-ml/jax@818e7d92a4b8",
    params=[*POINTS_AFTER_0_12],
    deviations=[WRONG_BEFORE_0_12],
)
def at_the_edge(env, name):
    """Three functions are right at an edge of their domain from 0.12.0 on.

    Before, `expn` of a negative order was a number, as if it were defined; `gammaln` of a denormal
    number was infinite; `rel_entr(inf, 1)` was NaN.
    """
    function, expected = POINTS_AFTER_0_12[name]
    return Observed(replace_nan(function()), replace_nan(f32(expected).reshape(1)))


STARTED_AT_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the sum started with zero times the point, which is NaN",
    issue="jax-ml/jax@603bb3c5ca28",
)


@probe(source="jax-ml/jax@603bb3c5ca28", deviations=[STARTED_AT_ZERO])
def polynomials_at_infinity(env):
    """`polyval` at infinity is the limit from 0.12.0 on; before, it was NaN, as in NumPy.

    A constant polynomial is its constant there.
    """
    at = jax.jit(jnp.polyval)
    result = at(f32(2, 1), f32(inf, -inf)), at(f32(5), f32(inf, nan))
    return Observed(replace_nan(result), reference=(f32(inf, -inf), f32(5, 5)))


LOOPED_TOGETHER = deviation(
    "jax<0.12",
    outcome="ok",
    reason="all elements went on until the last of them had converged",
    issue="jax-ml/jax@6842e98ca156",
)


@probe(source="jax-ml/jax@6842e98ca156", deviations=[LOOPED_TOGETHER])
def incomplete_beta_next_to_another(env):
    """An element of `betainc` does not depend on the elements next to it, from 0.12.0 on.

    Before, `betainc(2, 3, 0.5)` was 0.6874998 alone and 0.6875007 next to an element that
    takes more steps. It is 0.6875.
    """
    function = jax.jit(special.betainc)
    alone = function(f32(2), f32(3), f32(0.5))[0]
    together = function(f32(2, 1e4), f32(3, 1e4), f32(0.5, 0.5))[0]
    return Observed(alone == together, reference=True)


TABLES_BEFORE_INFINITY = deviation(
    outcome="ok",
    reason="at a point of the table, 0 is multiplied by the infinite slope",
)


@probe(source="jax-ml/jax#3949", deviations=[TABLES_BEFORE_INFINITY])
def interpolation_before_infinity(env):
    """`jnp.interp` at a point of its table is NaN if the next value is infinite, not in NumPy."""
    x, points, values = f32(0.5, 1, 1.5, 2), f32(0, 1, 2), f32(1, 2, inf)
    return Observed(
        replace_nan(jax.jit(jnp.interp)(x, points, values)), reference=np.interp(x, points, values)
    )
