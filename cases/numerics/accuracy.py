"""How far functions and sums are from the truth, in units in the last place, and why.

Budgets for CPUs are what was seen on the newest release, and one or two more for processors that
round elsewhere; releases that were worse say so. Those for GPUs and TPUs are upstream's own bounds
over all numbers and generations, as of September 2026, and were not tried with this file. Where
there is none the tolerance of the dtype holds.

The truth is NumPy in a wider type, or SciPy in float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy import special

from conformance.kit import Observed, budget, deviation, probe

RANGES = {
    "sqrt": (1e-6, 1e6),
    "cbrt": (-1e6, 1e6),
    "exp": (-10, 10),
    "exp2": (-10, 10),
    "expm1": (-2, 2),
    "log": (0.01, 100),
    "log2": (0.01, 100),
    "log10": (0.01, 100),
    "log1p": (-0.9, 10),
    "sin": (-3, 3),
    "cos": (-1.5, 1.5),
    "tan": (-1.5, 1.5),
    "arcsin": (-1, 1),
    "arccos": (-1, 0.99),
    "arctan": (-10, 10),
    "sinh": (-5, 5),
    "cosh": (-5, 5),
    "tanh": (-5, 5),
    "arcsinh": (-10, 10),
    "arccosh": (1.1, 10),
    "arctanh": (-0.99, 0.99),
}
"""Elementary functions, and between which numbers: away from zeros that a rounded x moves."""
SPECIAL = {
    "erf": (-3, 3),
    "erfc": (-3, 3),
    "erfinv": (-0.99, 0.99),
    "expit": (-10, 10),
    "gammaln": (3, 30),
    "digamma": (3, 30),
    "i0e": (-10, 10),
    "i1e": (-10, 10),
    "ndtri": (0.01, 0.4),
}


def spread(ranges, dtype):
    """Return 61 numbers of each range, by name of the function."""
    return {name: np.linspace(*ends, 61).astype(dtype) for name, ends in ranges.items()}


def told(env, of, exact, x, wide):
    """Return functions of numbers, run as one program, with what they should be.

    Args:
        env: Of the case.
        of: Module of jax that has the functions.
        exact: Module that has them, too.
        x: Numbers, by name of the function.
        wide: Dtype that the truth is computed in.
    """
    if env.compile_only:
        env.unsupported("accuracy is of values, and nothing runs here")
    made = jax.jit(lambda x: {name: getattr(of, name)(x[name]) for name in x})(x)
    true = {name: getattr(exact, name)(x[name].astype(wide)) for name in x}
    return Observed(made, {name: value.astype(np.float64) for name, value in true.items()})


@probe(
    source="jax-ml/jax@ce79c7ddbf55",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 0, leaves=("sqrt",), reason="an instruction, correctly rounded"),
        budget("cpu", 4, leaves=("exp2",), reason="exp of a product that is rounded before"),
        budget("cpu", 3, leaves=("tanh",), reason="a quotient of two polynomials"),
        budget("cpu", 2, reason="polynomials in float32, rounded once or twice more"),
        budget(
            "gpu",
            69,
            leaves=("exp2",),
            reason="exp of a product that is rounded before",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "gpu",
            6,
            leaves=("tanh",),
            reason="a quotient of two polynomials",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("gpu", 4, reason="NVIDIA's libdevice", source="jax-ml/jax@ce79c7ddbf55"),
        budget(
            "tpu",
            7,
            leaves=("sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
            reason="polynomials and roots of the vector unit",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "tpu",
            142,
            leaves=("exp", "exp2", "cosh"),
            reason="the fast exponential of the hardware; lax.AccuracyMode.HIGHEST has 2",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "tpu",
            6213,
            reason="the fast logarithm and exponential, near 1 and 0, of a v2 to v5e",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
    ],
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            match="cbrt.* 4 ulp",
            reason="the cube root was a power: 4 ulp off",
            issue="jax-ml/jax@ce79c7ddbf55",
        ),
        deviation(
            "jax<0.12",
            outcome="ok",
            match="expm1.* 4 ulp",
            reason="expm1 was 4 ulp off",
            issue="jax-ml/jax@ce79c7ddbf55",
        ),
    ],
)
def elementary(env):
    """Elementary functions in float32: `cbrt` is right since 0.10.0, `expm1` since 0.12.0."""
    return told(env, jnp, np, spread(RANGES, np.float32), np.float64)


@probe(
    source="jax-ml/jax#39707",
    platforms=("cpu", "gpu"),
    x64=True,
    budgets=[
        budget("cpu", 0, leaves=("sqrt",), reason="an instruction, correctly rounded"),
        budget("cpu", 4, leaves=("exp2",), reason="exp of a product that is rounded before"),
        budget("cpu", 3, leaves=("cbrt", "arctan", "tanh"), reason="a step, or a quotient, more"),
        budget("cpu", 2, reason="polynomials in float64, rounded once or twice more"),
        budget(
            "gpu",
            719,
            leaves=("exp2",),
            reason="exp of a product that is rounded before",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("gpu", 4, reason="NVIDIA's libdevice", source="jax-ml/jax@ce79c7ddbf55"),
    ],
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            match="arctanh.* 38 ulp",
            reason="log1p, of which it is made, lost digits between -0.53 and -0.28",
            issue="jax-ml/jax#39707",
        )
    ],
)
def elementary_in_double(env):
    """Elementary functions in float64: `arctanh` was 38 ulp off up to 0.11.0."""
    return told(env, jnp, np, spread(RANGES, np.float64), np.longdouble)


@probe(
    source="jax-ml/jax@ce79c7ddbf55",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 8, leaves=("exp2",), reason="exp of a product rounded to bfloat16 before"),
        budget("cpu", 2, reason="computed in float32 and rounded once, a factor before or after"),
        budget(
            "gpu",
            101,
            leaves=("exp2",),
            reason="exp of a product rounded to bfloat16 before",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("gpu", 2, reason="as on a CPU", source="jax-ml/jax@ce79c7ddbf55"),
        budget(
            "tpu",
            75,
            leaves=("exp2",),
            reason="exp of a product rounded to bfloat16 before",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("tpu", 1, reason="computed in float32", source="jax-ml/jax@ce79c7ddbf55"),
    ],
)
def elementary_in_half(env):
    """Elementary functions in bfloat16: all but `exp2` are computed in float32, rounded once."""
    return told(env, jnp, np, spread(RANGES, jnp.bfloat16), np.float64)


@probe(
    source="jax-ml/jax#21284",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 12, leaves=("i1e",), reason="a Chebyshev series in float32, x before it"),
        budget("cpu", 6, leaves=("digamma", "erfc"), reason="a sum of terms of both signs"),
        budget("cpu", 3, leaves=("erf", "erfinv", "i0e", "ndtri"), reason="polynomials"),
        budget("cpu", 2, reason="a polynomial, or exp and a quotient"),
        budget(
            "gpu",
            67,
            leaves=("erfc", "erfinv"),
            reason="exp of a rounded square; lax.AccuracyMode.HIGHEST has 5",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "gpu",
            16,
            leaves=("erf", "expit", "i0e", "i1e", "ndtri"),
            reason="polynomials and Chebyshev series, as on a CPU",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "tpu",
            427,
            leaves=("erfc", "erfinv", "expit", "ndtri"),
            reason="the fast logarithm and exponential of the hardware",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "tpu",
            16,
            leaves=("erf", "i0e", "i1e"),
            reason="polynomials and Chebyshev series, as on a CPU",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
    ],
    deviations=[
        deviation(
            "jax<0.12",
            outcome="ok",
            match="gammaln",
            reason="Lanczos' sum in float32",
            issue="jax-ml/jax#21284",
        )
    ],
)
def special_functions(env):
    """Special functions in float32: `gammaln` was up to 22 ulp off, here, until 0.11.2."""
    return told(env, special, scipy.special, spread(SPECIAL, np.float32), np.float64)
