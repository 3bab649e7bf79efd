"""Functions at hard points: zeros, infinities, NaN, negative integers, the last digits.

The references are mathematics (or, where that leaves a choice, NumPy and SciPy), as literals.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from conformance.kit import Observed, deviation, probe

from ._helpers import f32, inf, nan, numbered


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


@probe(source="jax-ml/jax#39707", platforms=("cpu",), x64=True, rtol=1e-12)
def log1p_of_a_half(env):
    """`log1p` in float64 between -0.53 and -0.28: up to 129 ulp off on CPU, upstream says."""
    x = np.linspace(-0.5, -0.3, 41)
    return Observed(jnp.log1p(x), reference=np.log1p(x.astype(np.longdouble)).astype(np.float64))


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
    return Observed(
        numbered(jnp.heaviside(f32(nan, 0, -1, 2), 0.5)), reference=numbered(f32(nan, 0.5, 0, 1))
    )


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
    made = {
        "xlogy": special.xlogy(f32(0, 0, 2, nan), f32(nan, 0, 1, 0)),
        "xlog1py": special.xlog1py(f32(0, 0, 2, nan), f32(nan, -1, 0, 0)),
    }
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
    made = {
        "floor_divide": jnp.floor_divide(f32(1, -1, 0, inf), f32(0, 0, 0, 0)),
        "divmod": jnp.divmod(f32(1, -1), f32(0, 0)),
        "rounded": jnp.floor_divide(f32(7, -7, 1), f32(2, 2, inf)),
    }
    wanted = {
        "floor_divide": f32(inf, -inf, nan, inf),
        "divmod": (f32(inf, -inf), f32(nan, nan)),
        "rounded": f32(3, -4, 0),
    }
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@e575f73fb673", platforms=("cpu",))
def integer_division(env):
    """Integers: floors and signs of the remainder as in Python, and what zero gives."""
    a, b = np.int32([7, -7, 7, -7]), np.int32([2, 2, -2, -2])
    made = {
        "floor": jnp.floor_divide(a, b),
        "mod": jnp.mod(a, b),
        "fmod": jnp.fmod(a, b),
        "towards zero": jax.lax.div(a, b),
        "by zero": jax.lax.div(np.int32([5, -5]), np.int32([0, 0])),
        "the least": jax.lax.div(np.int32([-(2**31)]), np.int32([-1])),
    }
    wanted = {
        "floor": [3, -4, -4, 3],
        "mod": [1, 1, -1, -1],
        "fmod": [1, -1, 1, -1],
        "towards zero": [3, -3, -3, 3],
        "by zero": [-1, -1],
        "the least": [-(2**31)],
    }
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
    a, x = f32(inf, 1, 0, 2), f32(1, inf, 1, 3)
    inside = 1 - 4 * np.exp(-3.0)
    made = {"lower": special.gammainc(a, x), "upper": special.gammaincc(a, x)}
    wanted = {"lower": f32(0, 1, 1, inside), "upper": f32(1, 0, 0, 1 - inside)}
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
    a, b = f32(0, 1, 2, 1), f32(1, 0, 3, inf)
    x = f32(0.5, 0.5, 0.25, 0.5)
    return Observed(
        numbered(special.betainc(a, b, x)), reference=numbered(f32(1, 0, 0.26171875, 1))
    )


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
    x = f32(-1, -2, 0, -0.0, -1.5, 4)
    reference = f32(nan, nan, inf, -inf, 4 * np.sqrt(np.pi) / 3, 6)
    return Observed(numbered(special.gamma(x)), reference=numbered(reference))


@probe(source="jax-ml/jax#18183", platforms=("cpu",), rtol=1e-6)
def logsumexp_with_infinities(env):
    """`logsumexp` of nothing, of infinities of either sign, of NaN, and with signs."""
    made = {
        "all -inf": special.logsumexp(f32(-inf, -inf)),
        "an inf": special.logsumexp(f32(inf, -inf)),
        "a nan": special.logsumexp(f32(nan, inf)),
        "weights": special.logsumexp(f32(1, 1000), b=f32(1, 0)),
        "cancels": special.logsumexp(f32(1, 1), b=f32(1, -1)),
        "logaddexp": jnp.logaddexp(f32(inf, -inf, 0), f32(inf, -inf, 0)),
        "softmax": jax.nn.softmax(f32(0, -inf)),
    }
    wanted = [-inf, inf, nan, 1, -inf, np.array([inf, -inf, np.log(2)]), np.array([1.0, 0])]
    return Observed(
        numbered(made), reference=numbered(dict(zip(made, map(np.float64, wanted), strict=True)))
    )


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
    made = jax.grad(lambda x: special.logsumexp(x, where=mask))(f32(1, inf))
    return Observed(made, reference=f32(1, 0))


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
    return Observed({"equal": bool(jnp.log10(f32(10))[0] == 1)}, reference={"equal": True})


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
    made = {
        "erfinv": special.erfinv(f32(1, -1, 0.5, 2)),
        "ndtri": special.ndtri(f32(0, 1, 0.5)),
        "logit": special.logit(f32(0, 1, 0.5)),
        "arctanh": jnp.arctanh(f32(1, -1, 2)),
        "digamma": special.digamma(f32(-1, 1, 2)),
        "zeta": special.zeta(f32(2, 1), f32(1, 1)),
        "expm1": jnp.expm1(f32(1e-10, -inf, 100)),
        "log1p": jnp.log1p(f32(1e-10, -1, inf)),
        "hypot": jnp.hypot(f32(3e20, inf), f32(4e20, nan)),
        "sinh": jnp.sinh(f32(1e-10, 89, -inf)),
    }
    euler = 0.5772156649015329
    wanted = {
        "erfinv": f32(inf, -inf, 0.4769362762044699, nan),
        "ndtri": f32(-inf, inf, 0),
        "logit": f32(-inf, inf, 0),
        "arctanh": f32(inf, -inf, nan),
        "digamma": f32(nan, -euler, 1 - euler),
        "zeta": f32(np.pi**2 / 6, inf),
        "expm1": f32(1e-10, -1, inf),
        "log1p": f32(1e-10, -inf, inf),
        "hypot": f32(5e20, inf),
        "sinh": f32(1e-10, np.sinh(89.0) if np.sinh(89.0) < 3.4e38 else inf, -inf),
    }
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax#6566", platforms=("cpu",))
def signs_of_zero(env):
    """Where a zero is negative: told by `signbit`."""
    zero = jnp.asarray(f32(-0.0))
    made = {
        "sqrt": jnp.sqrt(zero),
        "trunc": jnp.trunc(f32(-0.5)),
        "round": jnp.round(f32(-0.4)),
        "product": zero * f32(2),
        "plus zero": zero + f32(0),
        "abs": jnp.abs(zero),
        "sign": jnp.sign(zero),
        "arctan2": jnp.arctan2(zero, f32(-1)) / f32(4),
    }
    negative = {name: bool(np.signbit(np.asarray(value))[0]) for name, value in made.items()}
    wanted = dict.fromkeys(made, True) | {"plus zero": False, "abs": False}
    return Observed(negative, reference=wanted)


@probe(
    source="jax-ml/jax@f592173c6c07",
    platforms=("cpu",),
    rtol=5e-6,
    atol=1e-7,
    deviations=[
        deviation(
            outcome="ok",
            reason="the sign of a zero is not looked at: sqrt(-2-0j) is sqrt(-2+0j), and the like",
        )
    ],
)
def branch_cuts(env):
    """Complex functions on either side of their cuts: the sign of a zero decides."""
    above, below = complex(-2, 0.0), complex(-2, -0.0)
    right = np.array([complex(2, 0.0), complex(2, -0.0)], np.complex64)
    z = np.array([above, below, 2j, complex(0, -2), 0.5 + 0.25j], np.complex64)
    cuts = {"sqrt": z, "log": z, "arctanh": right, "arcsinh": z}
    made = {name: getattr(jnp, name)(points) for name, points in cuts.items()}
    with np.errstate(all="ignore"):
        wanted = {n: getattr(np, n)(x.astype(np.complex128)) for n, x in cuts.items()}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@42542feac61d",
    platforms=("cpu",),
)
def powers(env):
    """Powers at 0, 1, NaN and infinity, powers of integers, and the gradient at zero."""
    made = {
        "floats": jnp.power(f32(0, 0, 1, nan, -8, inf), f32(0, -1, nan, 0, 3, -1)),
        "integers": jnp.power(np.int32([2, 2, -2]), np.int32([31, 32, 3])),
        "gradient": jax.grad(lambda x: x**2.0)(np.float32(0)),
    }
    wanted = {
        "floats": f32(1, inf, 1, 1, -512, 0),
        "integers": np.int32([-(2**31), 0, -8]),
        "gradient": np.float64(0),
    }
    return Observed(numbered(made), reference=numbered(wanted))


@probe(
    source="jax-ml/jax@f592173c6c07",
    platforms=("cpu",),
    rtol=5e-6,
    atol=1e-7,
    deviations=[
        deviation(
            outcome="ok",
            reason="both sides of the cut give the value of one",
            issue="jax-ml/jax@f592173c6c07",
        )
    ],
)
def beyond_the_cut_of_arcsin(env):
    """`arcsin` and `arccos` at 2 + 0j and 2 - 0j should be conjugates: the sign of zero is lost."""
    z = np.array([complex(2, 0.0), complex(2, -0.0)], np.complex64)
    made = {"arcsin": jnp.arcsin(z), "arccos": jnp.arccos(z)}
    wanted = {name: getattr(np, name)(z.astype(np.complex128)) for name in made}
    return Observed(made, reference=wanted)
