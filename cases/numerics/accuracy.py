"""Errors of functions in units in the last place (ULP), with a reason for each budget.

Budgets for CPUs are the errors observed on the newest release, plus one or two ULP for processors
that round at other places; releases with larger errors have deviations. Budgets for GPUs and TPUs
are upstream's own bounds over all numbers and generations, as of September 2026; they were not
tried with this file. Where there is no budget, the tolerance of the dtype holds.

References are computed by NumPy in a wider type, or by SciPy in float64.
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
"""The range of numbers for each elementary function, away from zeros that a rounded x moves."""
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


def spread_arguments(ranges, dtype):
    """Return 61 numbers of each range, by name of the function."""
    return {name: np.linspace(*ends, 61).astype(dtype) for name, ends in ranges.items()}


def compare_functions(env, module, exact, x, wide):
    """Run functions as one program, and return their values with the references.

    Args:
        env: Environment of the case.
        module: Module of jax with the functions.
        exact: Module with the reference functions.
        x: Arguments, by name of the function.
        wide: Dtype in which the references are computed.
    """
    if env.compile_only:
        env.unsupported("accuracy is about values, and a compile-only cell computes none")
    result = jax.jit(lambda x: {name: getattr(module, name)(x[name]) for name in x})(x)
    exact_values = {name: getattr(exact, name)(x[name].astype(wide)) for name in x}
    return Observed(
        result, {name: value.astype(np.float64) for name, value in exact_values.items()}
    )


CBRT_WAS_A_POWER = deviation(
    "jax<0.10",
    outcome="ok",
    match="cbrt.* 4 ulp",
    reason="cbrt was computed as a power, 4 ulp off",
    issue="jax-ml/jax@ce79c7ddbf55",
)
EXPM1_INACCURATE = deviation(
    "jax<0.12",
    outcome="ok",
    match="expm1.* 4 ulp",
    platform="cpu",
    reason="expm1 was 4 ulp off",
    issue="jax-ml/jax@ce79c7ddbf55",
)


@probe(
    source="jax-ml/jax@ce79c7ddbf55",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 0, leaves=("sqrt",), reason="an instruction that rounds correctly"),
        budget("cpu", 4, leaves=("exp2",), reason="exp of a product that is already rounded"),
        budget("cpu", 3, leaves=("tanh",), reason="a quotient of two polynomials"),
        budget("cpu", 2, reason="polynomials in float32, with one or two more roundings"),
        budget(
            "gpu",
            69,
            leaves=("exp2",),
            reason="exp of a product that is already rounded",
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
            reason="the fast exponential of the hardware; 2 with lax.AccuracyMode.HIGHEST",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget(
            "tpu",
            6213,
            reason="the fast logarithm and exponential, near 1 and 0, of TPU v2 to v5e",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
    ],
    deviations=[CBRT_WAS_A_POWER, EXPM1_INACCURATE],
)
def elementary(env):
    """Elementary functions in float32 are accurate: `cbrt` from 0.10.0, `expm1` from 0.12.0 on."""
    return compare_functions(env, jnp, np, spread_arguments(RANGES, np.float32), np.float64)


LOG1P_LOST_DIGITS = deviation(
    "jax<0.11.1",
    outcome="ok",
    match="arctanh.* 38 ulp",
    reason="arctanh uses log1p, which lost digits between -0.53 and -0.28",
    issue="jax-ml/jax#39707",
)


@probe(
    source="jax-ml/jax#39707",
    platforms=("cpu", "gpu"),
    x64=True,
    budgets=[
        budget("cpu", 0, leaves=("sqrt",), reason="an instruction that rounds correctly"),
        budget("cpu", 4, leaves=("exp2",), reason="exp of a product that is already rounded"),
        budget("cpu", 3, leaves=("cbrt", "arctan", "tanh"), reason="one more step or quotient"),
        budget("cpu", 2, reason="polynomials in float64, with one or two more roundings"),
        budget(
            "gpu",
            719,
            leaves=("exp2",),
            reason="exp of a product that is already rounded",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("gpu", 4, reason="NVIDIA's libdevice", source="jax-ml/jax@ce79c7ddbf55"),
    ],
    deviations=[LOG1P_LOST_DIGITS],
)
def elementary_in_double(env):
    """Elementary functions in float64 are accurate; `arctanh` was 38 ulp off up to 0.11.0."""
    return compare_functions(env, jnp, np, spread_arguments(RANGES, np.float64), np.longdouble)


@probe(
    source="jax-ml/jax@ce79c7ddbf55",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 8, leaves=("exp2",), reason="exp of a product already rounded to bfloat16"),
        budget(
            "cpu", 2, reason="computed in float32 and rounded once, with a factor before or after"
        ),
        budget(
            "gpu",
            101,
            leaves=("exp2",),
            reason="exp of a product already rounded to bfloat16",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("gpu", 2, reason="the same as on a CPU", source="jax-ml/jax@ce79c7ddbf55"),
        budget(
            "tpu",
            75,
            leaves=("exp2",),
            reason="exp of a product already rounded to bfloat16",
            source="jax-ml/jax@ce79c7ddbf55",
        ),
        budget("tpu", 1, reason="computed in float32", source="jax-ml/jax@ce79c7ddbf55"),
    ],
)
def elementary_in_half(env):
    """In bfloat16, elementary functions except `exp2` are float32 functions, rounded once."""
    return compare_functions(env, jnp, np, spread_arguments(RANGES, jnp.bfloat16), np.float64)


LANCZOS_SUM_IN_FLOAT32 = deviation(
    "jax<0.12",
    outcome="ok",
    match="gammaln",
    platform="cpu",
    reason="gammaln was the Lanczos sum in float32",
    issue="jax-ml/jax#21284",
)


@probe(
    source="jax-ml/jax#21284",
    platforms=("cpu", "gpu", "tpu"),
    budgets=[
        budget("cpu", 12, leaves=("i1e",), reason="a Chebyshev series in float32, with a factor x"),
        budget("cpu", 6, leaves=("digamma", "erfc"), reason="a sum of terms with both signs"),
        budget("cpu", 3, leaves=("erf", "erfinv", "i0e", "ndtri"), reason="polynomials"),
        budget("cpu", 2, reason="a polynomial, or exp and a quotient"),
        budget(
            "gpu",
            67,
            leaves=("erfc", "erfinv"),
            reason="exp of a rounded square; 5 with lax.AccuracyMode.HIGHEST",
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
    deviations=[LANCZOS_SUM_IN_FLOAT32],
)
def special_functions(env):
    """Special functions in float32 are accurate: `gammaln` from 0.12.0 on.

    Up to 0.11.2, `gammaln` was up to 22 ulp off for these arguments.
    """
    return compare_functions(
        env, special, scipy.special, spread_arguments(SPECIAL, np.float32), np.float64
    )
