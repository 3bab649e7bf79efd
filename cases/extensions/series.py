"""`jet`, the derivatives of higher order of a function along a curve, through functions of jnp."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

BRANCH_FOR_EACH_PLATFORM = deviation(
    "jax>=0.5",
    params=["diag"],
    error="KeyError",
    match="cond",
    reason="the diagonal of a square is a `cond` by platform, for which jet has no rule",
    issue="jax-ml/jax@1719986aaa3f",
)
SELECTIONS = {"diag": lambda n, x: n.diag(x), "trace": lambda n, x: n.trace(x)}


@probe(
    source="jax-ml/jax@1719986aaa3f", params=[*SELECTIONS], deviations=[BRANCH_FOR_EACH_PLATFORM]
)
def series_of_a_square(env, name):
    """The series of the diagonal of x * x is the diagonal of the series."""
    x, one = np.float32([[1, 2], [3, 4]]), np.ones((2, 2), np.float32)
    select = SELECTIONS[name]
    observed = jet(lambda x: select(jnp, x * x), (x,), ([one, 0 * one],))
    exact = select(np, x * x), [select(np, 2 * x), select(np, 2 * one)]
    return Observed(observed, reference=exact)


def hypotenuse(x):
    """Return the first derivatives of `hypot(x, 1)` as numbers."""
    s = np.sqrt(x * x + 1)
    return s, [x / s, s**-3, -3 * x * s**-5]


def power_of_two(x):
    """Return the first derivatives of `2 ** x` as numbers."""
    return 2**x, [np.log(2) ** n * 2**x for n in (1, 2, 3)]


LIBRARY = {
    "hypot": (lambda x: jnp.hypot(x, np.float32(1)), hypotenuse),
    "exp2": (jnp.exp2, power_of_two),
}


NO_RULE_FOR_EXP2 = deviation(
    "jax<0.11.2",
    params=["exp2"],
    error="KeyError",
    match="exp2",
    reason="jet had no rule for the primitive",
)
HYPOT_IS_A_PRIMITIVE = deviation(
    "jax>=0.12",
    params=["hypot"],
    error="AttributeError",
    match="process_primitive",
    reason="the function has a custom derivative, which jet cannot trace",
)


@probe(
    source="jax-ml/jax@1719986aaa3f",
    params=[*LIBRARY],
    deviations=[NO_RULE_FOR_EXP2, HYPOT_IS_A_PRIMITIVE],
)
def series_of_a_function(env, name):
    """The series of a function along a line is its derivatives."""
    f, exact = LIBRARY[name]
    observed = jet(f, (np.float32(1.5),), (np.float32([1, 0, 0]).tolist(),))
    return Observed(observed, reference=exact(np.float64(1.5)))
