"""Functions at hard points: zeros, infinities, NaN, negative integers, the last digits.

The references are mathematics (or, where that leaves a choice, NumPy and SciPy), as literals.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy import special

from conformance.kit import Observed, deviation, probe

from ._helpers import f32, inf, nan, numbered

ON_CUTS = np.array(
    [complex(x, y) for x in (-2, 2) for y in (0.0, -0.0)]
    + [complex(x, y) for x in (0.0, -0.0) for y in (-2, 2)],
    np.complex64,
)


@probe(
    source="jax-ml/jax#23590",
    platforms=("cpu",),
    x64=True,
    rtol=0,
    deviations=[
        deviation(
            "jax==0.7.1",
            outcome="ok",
            reason="saturates below 1, in this release alone",
            issue="jax-ml/jax#23590",
        )
    ],
)
def tanh_of_large_numbers(env):
    """`tanh` in float64 is 1 from 20 on; it was 0.9999999999999992 in 0.7.1."""
    made = jnp.tanh(np.array([20.0, 50.0, 1e300, -50.0, inf]))
    return Observed(made, reference=np.array([1.0, 1, 1, -1, 1]))


@probe(
    source="jax-ml/jax#39707",
    platforms=("cpu",),
    x64=True,
    rtol=2e-15,
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="digits were lost between -0.53 and -0.28",
            issue="jax-ml/jax#39707",
        )
    ],
)
def log1p_of_a_half(env):
    """`log1p` in float64 around 1 - sqrt(2), where it was up to 129 ulp off, up to 0.11.0."""
    x = 1 - np.sqrt(2) + np.array([-1e-3, -1e-4, 1e-4, 1e-3])
    return Observed(jnp.log1p(x), reference=np.log1p(x.astype(np.longdouble)).astype(np.float64))


@probe(
    source="jax-ml/jax#21284",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.12",
            outcome="ok",
            reason="Lanczos' sum in float32, of which little is left near a root",
            issue="jax-ml/jax#21284",
        )
    ],
)
def logarithm_of_gamma_near_its_roots(env):
    """`gammaln` in float32 near 1 and 2, where it is small: right from 0.12.0 on."""
    x = f32(0.999, 1.001, 1.999, 2.00001, 2.001)
    exact = scipy.special.gammaln(x.astype(np.float64))
    return Observed(special.gammaln(x), reference=exact)


@probe(
    source="jax-ml/jax@88b3d133903d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.2",
            outcome="ok",
            reason="NaN was taken for zero",
            issue="jax-ml/jax@88b3d133903d",
        )
    ],
)
def heaviside_of_nan(env):
    """`heaviside` of NaN is NaN since 0.10.2; the value at zero before."""
    made = jax.jit(jnp.heaviside)(f32(nan, 0, -1, 2), np.float32(0.5))
    return Observed(numbered(made), reference=numbered(f32(nan, 0.5, 0, 1)))


@probe(
    source="jax-ml/jax@60912d9674b3",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.2",
            outcome="ok",
            reason="zero times anything was zero",
            issue="jax-ml/jax@60912d9674b3",
        )
    ],
)
def xlogy_of_nan(env):
    """`xlogy(0, nan)` is NaN since 0.10.2, as in SciPy; `xlogy(0, 0)` is 0 as ever."""

    @jax.jit
    def products(x, y, z):
        return {"xlogy": special.xlogy(x, y), "xlog1py": special.xlog1py(x, z)}

    made = products(f32(0, 0, 2, nan), f32(nan, 0, 1, 0), f32(nan, -1, 0, 0))
    return Observed(numbered(made), reference=numbered(dict.fromkeys(made, f32(nan, 0, 0, nan))))


@probe(
    source="jax-ml/jax@e90fa10f79ba",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10.2",
            outcome="ok",
            reason="infinite quotients had no floor",
            issue="jax-ml/jax@e90fa10f79ba",
        )
    ],
)
def floor_of_a_division_by_zero(env):
    """`1.0 // 0.0` is infinite since 0.10.2, as in NumPy; NaN before."""

    @jax.jit
    def divided(x, zero, y, z):
        return {
            "floor_divide": jnp.floor_divide(x, zero),
            "divmod": jnp.divmod(x, zero),
            "rounded": jnp.floor_divide(y, z),
        }

    floors = f32(inf, -inf, nan, inf)
    wanted = {
        "floor_divide": floors,
        "divmod": (floors, f32(nan, nan, nan, nan)),
        "rounded": f32(3, -4, 0),
    }
    made = divided(f32(1, -1, 0, inf), f32(0, 0, 0, 0), f32(7, -7, 1), f32(2, 2, inf))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@e575f73fb673", platforms=("cpu",))
def integer_division(env):
    """Integers: floors and signs of the remainder as in Python, and what zero gives."""

    @jax.jit
    def divided(a, b, c, d):
        return {
            "floor": jnp.floor_divide(a, b),
            "mod": jnp.mod(a, b),
            "fmod": jnp.fmod(a, b),
            "towards zero": jax.lax.div(a, b),
            "at the edge": jax.lax.div(c, d),
        }

    wanted = {
        "floor": [3, -4, -4, 3],
        "mod": [1, 1, -1, -1],
        "fmod": [1, -1, 1, -1],
        "towards zero": [3, -3, -3, 3],
        "at the edge": [-1, -1, -(2**31)],
    }
    signs = np.int32([7, -7, 7, -7]), np.int32([2, 2, -2, -2])
    made = divided(*signs, np.int32([5, -5, -(2**31)]), np.int32([0, 0, -1]))
    return Observed(made, reference={name: np.int32(value) for name, value in wanted.items()})


@probe(
    source="jax-ml/jax@f608a8c502ae",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.5.3",
            outcome="ok",
            reason="NaN at the boundary",
            issue="jax-ml/jax@82b2591b219e",
        ),
        deviation(
            "jax>=0.5.3,<0.11",
            outcome="ok",
            reason="NaN where the parameter is infinite",
            issue="jax-ml/jax@da23cf20a288",
        ),
    ],
)
def incomplete_gamma(env):
    """`gammainc` at its boundary: (inf, 1), (1, inf), (0, 1), and (2, 3) inside."""

    @jax.jit
    def both(a, x):
        return {"lower": special.gammainc(a, x), "upper": special.gammaincc(a, x)}

    inside = 1 - 4 * np.exp(-3.0)
    wanted = {"lower": f32(0, 1, 1, inside), "upper": f32(1, 0, 0, 1 - inside)}
    made = both(f32(inf, 1, 0, 2), f32(1, inf, 1, 3))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(
    source="jax-ml/jax@ab42a3e6382a",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="NaN where a parameter is 0 or infinite",
            issue="jax-ml/jax@ab42a3e6382a",
        )
    ],
)
def incomplete_beta(env):
    """`betainc` where a parameter is 0 or infinite: its limit since 0.6.0, NaN before."""
    made = jax.jit(special.betainc)(f32(0, 1, 2, 1), f32(1, 0, 3, inf), f32(0.5, 0.5, 0.25, 0.5))
    return Observed(numbered(made), reference=numbered(f32(1, 0, 0.26171875, 1)))


@probe(
    source="scipy/scipy#21827",
    platforms=("cpu",),
    rtol=2e-6,
    deviations=[
        deviation(
            "jax<0.4.36",
            outcome="ok",
            reason="infinite at negative integers",
            issue="scipy/scipy#21827",
        )
    ],
)
def gamma_at_its_poles(env):
    """`gamma` has no value at negative integers: NaN since 0.4.36, and -inf at -0."""
    made = jax.jit(special.gamma)(f32(-1, -2, 0, -0.0, -1.5, 4))
    reference = f32(nan, nan, inf, -inf, 4 * np.sqrt(np.pi) / 3, 6)
    return Observed(numbered(made), reference=numbered(reference))


@probe(source="jax-ml/jax#18183", platforms=("cpu",), rtol=1e-6)
def logsumexp_with_infinities(env):
    """`logsumexp` of nothing, of infinities of either sign, of NaN, and with signs."""

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
    wanted = {
        "-inf, inf, nan": np.array([-inf, inf, nan, two]),
        "weights": np.float64(1),
        "cancels": np.float64(-inf),
        "logaddexp": np.array([-inf, inf, nan, two]),
        "softmax": np.array([1.0, 0]),
    }
    made = summed(rows, f32(1, 1000), f32(1, 0), f32(1, 1), f32(1, -1))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(
    source="jax-ml/jax@f0392a1535d0",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5", outcome="ok", reason="zero times infinity", issue="jax-ml/jax@f0392a1535d0"
        )
    ],
)
def gradient_of_masked_logsumexp(env):
    """The gradient of `logsumexp(where=)` is 0 where masked: also at inf, since 0.5.0."""
    mask = np.array([True, False])
    made = jax.jit(jax.grad(lambda x: special.logsumexp(x, where=mask)))(f32(1, inf))
    return Observed(numbered(made), reference=f32(1, 0))


@probe(
    source="jax-ml/jax@af032974ac7b",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="a quotient of logarithms, 1 ulp off",
            issue="jax-ml/jax@af032974ac7b",
        )
    ],
)
def logarithm_of_ten(env):
    """`log10(10) == 1`, since 0.7.2."""
    made = np.asarray(jnp.log10(f32(10)))
    return Observed({"equal": bool(made[0] == 1)}, reference={"equal": True})


@probe(
    source="jax-ml/jax@7f64e44f349b",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="the power of ten was infinite",
            issue="jax-ml/jax@7f64e44f349b",
        )
    ],
)
def rounding(env):
    """Halves are rounded to even, and to 50 decimals nothing is lost, since 0.8.0."""
    halves = f32(0.5, 1.5, 2.5, -0.5, 0.49999997, 8388609)
    made = {"halves": jnp.round(halves), "fifty": jnp.round(f32(1.5), 50)}
    return Observed(made, reference={"halves": f32(0, 2, 2, -0.0, 0, 8388609), "fifty": f32(1.5)})


@probe(source="jax-ml/jax@2281455a4937", platforms=("cpu",), rtol=2e-6)
def inverses(env):
    """Inverse functions at the ends of their ranges, and small numbers that must not vanish."""
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
    given = [[f32(*numbers) for numbers in row[:-1]] for row in points.values()]
    made = jax.jit(lambda xs: [f(*x) for f, x in zip(points, xs, strict=True)])(given)
    wanted = [f32(*row[-1]) for row in points.values()]
    names = [f.__name__ for f in points]
    return Observed(
        numbered(dict(zip(names, made, strict=True))),
        reference=numbered(dict(zip(names, wanted, strict=True))),
    )


@probe(source="jax-ml/jax#1627", platforms=("cpu",))
def signs_of_zero(env):
    """Where a zero is negative: told by `signbit`."""

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

    made = zeros(*f32(-0.0, 0, 2, 0.33, 1))
    negative = {name: bool(np.signbit(np.asarray(value))) for name, value in made.items()}
    wanted = dict.fromkeys(made, True) | {"plus zero": False, "abs": False}
    return Observed(negative, reference=wanted)


@probe(
    source="jax-ml/jax#23587",
    platforms=("cpu",),
    rtol=5e-6,
    atol=1e-7,
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            match="arctan",
            reason="half of the cut of arctan had the value of its other side",
            issue="jax-ml/jax#23587",
        )
    ],
)
def branch_cuts(env):
    """`log`, `arctanh` and `arctan` on either side of their cuts: the sign of a zero decides."""
    names = ("log", "arctanh", "arctan")
    made = jax.jit(lambda z: {name: getattr(jnp, name)(z) for name in names})(ON_CUTS)
    return Observed(made, reference={n: getattr(np, n)(np.complex128(ON_CUTS)) for n in names})


@probe(
    source="jax-ml/jax#39110",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.5",
            outcome="ok",
            reason="both sides of the cut give the value of the upper one",
            issue="jax-ml/jax#39110",
        )
    ],
)
def complex_square_roots(env):
    """`sqrt(complex(-4, -0.0))` is -2j, the conjugate of `sqrt(-4)`, up to 0.4.38; then 2j."""
    z = np.array([complex(-4, 0.0), complex(-4, -0.0), 2j, -2j], np.complex64)
    return Observed(jax.jit(jnp.sqrt)(z), reference=np.array([2j, -2j, 1 + 1j, 1 - 1j]))


@probe(
    source="jax-ml/jax#14397",
    platforms=("cpu",),
)
def powers(env):
    """Powers at 0, 1, NaN and infinity, of integers, and the gradient of 1 + x + x**2 at zero."""

    @jax.jit
    def raised(x, y, i, j, zero):
        gradient = jax.grad(lambda x: (x ** jnp.arange(3)).sum())(zero)
        return {"floats": jnp.power(x, y), "integers": jnp.power(i, j), "gradient": gradient}

    wanted = {
        "floats": f32(1, inf, 1, 1, -512, 0),
        "integers": np.int32([-(2**31), 0, -8]),
        "gradient": np.float64(1),
    }
    floats = f32(0, 0, 1, nan, -8, inf), f32(0, -1, nan, 0, 3, -1)
    integers = np.int32([2, 2, -2]), np.int32([31, 32, 3])
    made = raised(*floats, *integers, np.float32(0))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(
    source="openxla/stablehlo#2357",
    platforms=("cpu",),
    rtol=5e-6,
    atol=1e-7,
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="another formula: wrong on one side of each cut",
            issue="openxla/stablehlo#2357",
        ),
        deviation(
            "jax>=0.4.31",
            outcome="ok",
            reason="both sides of a cut give the value of one",
            issue="openxla/stablehlo#2357",
        ),
    ],
)
def beyond_the_cut_of_arcsin(env):
    """`arcsin` and its kin at 2 + 0j and 2 - 0j should be conjugates: the sign of zero is lost."""
    names = ("arcsin", "arccos", "arcsinh", "arccosh")
    made = jax.jit(lambda z: {name: getattr(jnp, name)(z) for name in names})(ON_CUTS)
    return Observed(made, reference={n: getattr(np, n)(np.complex128(ON_CUTS)) for n in names})


@probe(source="jax-ml/jax#18183", platforms=("cpu",), rtol=1e-6)
def logsumexp_far_out(env):
    """`logsumexp` of what has no exponential, or none that is seen: the largest is taken out."""
    x = f32(1000, 1000, -1000, -1000).reshape(2, 2)
    made = jax.jit(lambda x: special.logsumexp(x, axis=1))(x)
    return Observed(made, reference=np.array([1000 + np.log(2), -1000 + np.log(2)]))


@probe(source="jax-ml/jax@c22bba2f9c23", platforms=("cpu",))
def clipped_to_less_than_nothing(env):
    """`clip` to a smallest value that is above the largest: the largest counts, as in NumPy."""
    made = jax.jit(lambda x: jnp.clip(x, 4, 2))(f32(1, 3, 5))
    return Observed(made, reference=np.full(3, 2.0))


@probe(
    source="jax-ml/jax#29537",
    platforms=("cpu",),
    x64=True,
    deviations=[
        deviation(
            "jax==0.6.2",
            outcome="ok",
            reason="the result of a product with NaN was never written: what lay in memory",
            issue="jax-ml/jax#29537",
        )
    ],
)
def exponential_of_a_product_with_nan(env):
    """`exp(x * nan)` in float64 under jit is NaN: on 0.6.2 it was whatever lay in memory."""
    made = jax.jit(lambda x: jnp.exp(x * nan))(np.ones(64))
    # Some of what lies in memory may be NaN by chance.
    return Observed(np.isnan(made).all(), reference=True)


@probe(
    source="jax-ml/jax#29537",
    platforms=("cpu",),
    params={
        "float32": {"dtype": "float32"},
        "bfloat16": {"dtype": "bfloat16"},
        "float16": {"dtype": "float16"},
    },
    deviations=[
        deviation(
            "jax<0.11.2",
            params=["float32", "bfloat16"],
            outcome="ok",
            reason="the result was never written: what lay in memory",
            issue="jax-ml/jax#29537",
        ),
        deviation(
            "jax>=0.5.1,<0.11.2",
            params=["float16"],
            outcome="ok",
            reason="the result was never written: what lay in memory",
            issue="jax-ml/jax#29537",
        ),
    ],
)
def exponential_of_nan_by_dtype(env, dtype):
    """`exp(x * nan)` under jit is NaN; on a CPU, up to 0.11.1, it is what lies in memory."""
    made = jax.jit(lambda x: jnp.exp(x * nan))(jnp.ones(64, dtype))
    return Observed(bool(jnp.isnan(made).all()), reference=True)


@probe(
    source="jax-ml/jax#30426",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="the variance, mean of squares less square of the mean, was below zero",
            issue="jax-ml/jax#30426",
        )
    ],
)
def standardised_constant(env):
    """`nn.standardize` of three equal numbers is finite since 0.8.2: NaN before, here."""
    x = f32(-11, -11, -11) + np.float32(3e-6)
    return Observed(np.isfinite(jax.jit(jax.nn.standardize)(x)), reference=np.ones(3, bool))


@probe(
    source="jax-ml/jax#24939",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            error="FloatingPointError",
            match="invalid value",
            reason="the NaN of a branch that is thrown away was taken for one of the result",
            issue="jax-ml/jax#24939",
        )
    ],
)
def density_beside_its_support(env):
    """`stats.gamma.pdf` below its support is 0, also under `debug_nans`, since 0.4.36."""
    with jax.debug_nans(True):
        return Observed(jax.scipy.stats.gamma.pdf(0.0, 1.0, 1.0), reference=np.float64(0))


@probe(
    source="jax-ml/jax#36757",
    platforms=("cpu",),
    releases="jax>=0.5.1",
    deviations=[
        deviation(
            "jax<0.10.1",
            outcome="ok",
            reason="the probability was divided by the scale, not the result multiplied",
            issue="jax-ml/jax#36757",
        )
    ],
)
def median_of_an_exponential(env):
    """`stats.expon.ppf(0.5, scale=s)` is s log 2 since 0.10.1: wrong for all scales but 1."""
    scales = f32(0.5, 1, 2)
    medians = jax.jit(lambda s: jax.scipy.stats.expon.ppf(0.5, scale=s))(scales)
    return Observed(medians, reference=np.float64(scales) * np.log(2))


@probe(
    source="jax-ml/jax#22398",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.4.30",
            outcome="ok",
            reason="a term whose weight is 0 is masked, and its derivative with it",
            issue="jax-ml/jax#22398",
        )
    ],
)
def gradient_by_a_weight_of_zero(env):
    """The derivative of `logsumexp(a, b=b)` by a weight b that is 0 is not: on every release it is.

    It is exp(a - logsumexp), as next to 0. Weights that may be 0: `log(sum(b * exp(a - max)))`.
    """
    slopes = jax.jit(jax.grad(lambda b: special.logsumexp(f32(0, 0), b=b)))(f32(1, 0))
    return Observed(slopes, reference=np.ones(2))
