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
        "lax.": "betainc igamma igammac lgamma random_gamma_grad",
        "jax.scipy.special.": "beta betainc betaln exp1 expi factorial gamma gammainc gammaincc "
        "gammaln hyp1f1 kl_div multigammaln poch spence",
        "jax.scipy.stats.": "beta.cdf beta.logpdf beta.pdf beta.sf betabinom.logpmf betabinom.pmf "
        "binom.logpmf binom.pmf chi2.cdf chi2.sf gamma.cdf gamma.logsf gamma.sf gennorm.cdf "
        "nbinom.logpmf nbinom.pmf poisson.cdf poisson.logpmf poisson.pmf truncnorm.sf",
        "jax.random.": "beta binomial categorical chisquare choice double_sided_maxwell f gamma "
        "generalized_normal geometric loggamma maxwell permutation poisson randint t triangular "
        "wald weibull_min",
        "jax.scipy.linalg.": "cho_solve expm lu polar solve sqrtm",
        "jnp.": "argwhere digitize flatnonzero histogram nanmedian nonzero unique unique_values "
        "linalg.det linalg.inv linalg.lstsq linalg.solve",
        "jax.nn.": "dot_product_attention",
    }.items()
    for name in (prefix + each for each in names.split())
)
"""Operations that take more than a tenth of a second of CPU to compile, measured on 0.12.0.1: a
third of a second on average, the others 0.03 s. They are drawn less often, or most of a
campaign's time would be theirs."""
