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
