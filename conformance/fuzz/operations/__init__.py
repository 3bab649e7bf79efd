"""The table of operations that programs are made of."""

from __future__ import annotations

from typing import Final

from conformance.fuzz.operations.control_flow import CONTROL_FLOW
from conformance.fuzz.operations.elementwise import ELEMENTWISE
from conformance.fuzz.operations.functions import FUNCTIONS
from conformance.fuzz.operations.indexing import INDEXING
from conformance.fuzz.operations.linear_algebra import LINEAR_ALGEBRA
from conformance.fuzz.operations.rearrangement import REARRANGEMENTS
from conformance.fuzz.operations.reductions import REDUCTIONS

OPERATIONS: Final = (
    *ELEMENTWISE, *REDUCTIONS, *REARRANGEMENTS, *INDEXING, *LINEAR_ALGEBRA, *FUNCTIONS,
    *CONTROL_FLOW,
)  # fmt: skip
"""All operations; the simplest first: Hypothesis shrinks towards them."""
COSTLY: Final = frozenset(
    name
    for prefix, names in {
        "lax.": "igamma igammac random_gamma_grad betainc",
        "jax.scipy.special.": "expi exp1 gammainc gammaincc beta betaln betainc poch hyp1f1",
        "jax.scipy.stats.": "beta.cdf beta.sf beta.logcdf betabinom.pmf betabinom.logpmf",
        "jax.random.": "beta binomial chisquare choice double_sided_maxwell f gamma loggamma "
        "generalized_normal permutation poisson t wald",
        "jax.scipy.linalg.": "expm polar sqrtm",
        "jnp.": "interp digitize histogram unique unique_values linalg.inv linalg.det",
    }.items()
    for name in (prefix + each for each in names.split())
)
"""Operations that take more than a tenth of a second to compile, measured on 0.12.0.1. They
are drawn less often, or most of a campaign's time would be theirs."""
