"""Library functions with a loop or a branch inside, called on shards.

A user of `jnp.interp` does not think of control flow. With the check on, the start of the loop in
a function must vary as its result does, and up to 0.5.3 each primitive inside needed a rule. So
functions broke, and were repaired one after another, release by release. With the check off all
of them work on every release. References are from NumPy, or closed forms.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, P, apply_by_shard, call_mapped, map_shards, numbers

defaults(devices=4)

TABLE = np.float32([0.25, 0.75, 1.0, 1.25])
KEYS = np.arange(2 * SHARDS, dtype=np.uint32).reshape(SHARDS, 2)
"""A key for each shard, as two words."""


START_INDEX_DOES_NOT_VARY = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="Primitive reduce requires varying manual axes to match",
    reason="the index that the reduction starts from did not vary",
    issue="jax-ml/jax#28334",
)


@probe(source="jax-ml/jax#28334", deviations=[START_INDEX_DOES_NOT_VARY])
def place_of_the_maximum(env):
    """`argmax` of each shard is a reduction that started from an index that does not vary."""
    u = numbers(env)
    observed = call_mapped(env, lambda u: jnp.argmax(u)[None], u)
    return Observed(observed, apply_by_shard(lambda u: [u.argmax()], u).astype(np.int32))


SEARCH_STARTS_FROM_CONSTANTS = deviation(
    "jax>=0.6,<0.7",
    params=("scan",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the bounds of the search started as constants",
    issue="jax-ml/jax#29881",
)


@probe(
    source="jax-ml/jax#29881",
    params={
        "scan": {"method": "scan"},
        "compare_all": {"method": "compare_all"},
    },
    deviations=[SEARCH_STARTS_FROM_CONSTANTS],
)
def sorted_places(env, method):
    """`searchsorted` in a sorted shard is by default a loop whose bounds start as constants."""
    u = np.sort(numbers(env))
    observed = call_mapped(env, lambda u: jnp.searchsorted(u, u + 0.05, method=method), u)
    return Observed(
        observed, apply_by_shard(lambda u: np.searchsorted(u, u + 0.05), u).astype(np.int32)
    )


CHOICE_STARTS_FROM_CONSTANTS = deviation(
    "jax>=0.6,<0.7",
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the search for the weight is a loop whose bounds started as constants",
    issue="jax-ml/jax#29881",
)


@probe(
    source="jax-ml/jax#29881",
    xla_flags=["--xla_backend_optimization_level=0"],
    deviations=[CHOICE_STARTS_FROM_CONSTANTS],
)
def drawn_by_weight(env):
    """`random.choice` with weights and a key for each shard draws the same as without shard_map."""
    u = numbers(env)
    draw = jax.jit(lambda key, u: jax.random.choice(key, u, (4,), p=u / u.sum()))
    observed = call_mapped(env, lambda key, u: draw(key[0], u), KEYS, u, in_specs=(P("x"), P("x")))
    unsharded = [draw(KEYS[i], part) for i, part in enumerate(np.split(u, SHARDS))]
    return Observed(observed, np.concatenate(unsharded))


COMPARED_VALUES_VARY_DIFFERENTLY = deviation(
    "jax>=0.6,<0.8",
    error="ValueError",
    match="Primitive lt_to requires varying manual axes to match",
    reason="a comparison in the search did not make both sides vary over the same axes",
)


@probe(
    source="jax-ml/jax#27664",
    params={
        "interp": {"which": "interp"},
        "histogram": {"which": "histogram"},
    },
    deviations=[COMPARED_VALUES_VARY_DIFFERENTLY],
)
def looked_up_in_a_table(env, which):
    """`interp` and `histogram` search in a table that is the same on every shard."""
    u = numbers(env)

    def look_up(np_, u):
        if which == "interp":
            return np_.interp(u, TABLE, TABLE**2)
        return np_.histogram(u, bins=4, range=(0.5, 1.5))[0]

    observed = call_mapped(env, lambda u: look_up(jnp, u).astype(jnp.float32), u)
    return Observed(observed, apply_by_shard(lambda u: look_up(np, u), u).astype(np.float64))


NO_RULE_FOR_COND = deviation(
    "jax<0.4.36",
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the replication check had no rule for cond; switch it off in these releases",
    issue="jax-ml/jax#24418",
)
ORDER_SEARCHED_IN_CONSTANTS = deviation(
    "jax>=0.6,<0.8",
    error="ValueError",
    match="Primitive lt_to requires varying manual axes to match",
    reason="expm chooses its order by a search in a table of constants",
)


@probe(
    source="jax-ml/jax#24418", rtol=1e-4, deviations=[NO_RULE_FOR_COND, ORDER_SEARCHED_IN_CONSTANTS]
)
def matrix_exponential(env):
    """`expm` of a matrix of each shard has a `cond` for each squaring, a switch for the order."""
    u = numbers(env)
    observed = call_mapped(env, lambda u: jnp.diagonal(jsp.linalg.expm(jnp.diag(4 * u))), u)
    return Observed(observed, np.exp(4 * np.float64(u)))


NO_RULE_FOR_LINEAR_SOLVE = deviation(
    "jax==0.4.30",
    params=("inv", "solve"),
    error="NotImplementedError",
    match="No replication rule for custom_linear_solve",
    reason="the replication check had no rule for custom_linear_solve; switch it off in 0.4.30",
    issue="jax-ml/jax#20162",
)
IDENTITY_NOT_MARKED = deviation(
    "jax>=0.6,<0.7",
    params=("inv",),
    error="TypeError",
    match="cotangent type does not match function output",
    reason="the right side, the constant identity, was not marked as varying",
    issue="jax-ml/jax#30157",
)


@probe(
    source="jax-ml/jax#30157",
    params={
        "inv": {"which": "inv"},
        "solve": {"which": "solve"},
    },
    deviations=[NO_RULE_FOR_LINEAR_SOLVE, IDENTITY_NOT_MARKED],
)
def linear_algebra(env, which):
    """`inv` and `solve` with a matrix of each shard have a `custom_linear_solve` inside."""
    u = numbers(env)

    def compute(np_, u):
        matrix = np_.outer(u, u) + np_.eye(4)
        if which == "inv":
            return np_.linalg.inv(matrix)[0]
        return np_.linalg.solve(matrix, u)

    observed = call_mapped(env, lambda u: compute(jnp, u), u)
    return Observed(observed, apply_by_shard(lambda u: compute(np, u), u))


GAMMAINC_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.7",
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the function starts from a constant; switch the check off in these releases",
)


@probe(
    source="jax-ml/jax#27664",
    params={"lower": {"upper": False}},
    deviations=[GAMMAINC_LOOP_STARTS_FROM_CONSTANT],
)
def incomplete_gamma(env, upper):
    """The incomplete gamma function at 1, an exponential, is a series in a while loop."""
    u = numbers(env)
    fn = jsp.special.gammaincc if upper else jsp.special.gammainc
    observed = call_mapped(env, lambda u: fn(1.0, u), u)
    decay = np.exp(-np.float64(u))
    return Observed(observed, decay if upper else 1 - decay)


BETAINC_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.12",
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the function starts from a constant; switch the check off in these releases",
)


@probe(source="jax-ml/jax#27664", deviations=[BETAINC_LOOP_STARTS_FROM_CONSTANT])
def incomplete_beta(env):
    """The incomplete beta function of 1 and 2, 2x - x**2, is a continued fraction in a loop."""
    u = numbers(env) / 2
    observed = call_mapped(env, lambda u: jsp.special.betainc(1.0, 2.0, u), u)
    x = np.float64(u)
    return Observed(observed, 2 * x - x**2)


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)
LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6",
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the function starts from a constant; switch the check off in these releases",
)


@probe(source="jax-ml/jax#27664", deviations=[NO_RULE_FOR_WHILE, LOOP_STARTS_FROM_CONSTANT])
def exponential_integral(env):
    """`expi` chooses its pieces by a loop over branches; the reference is the series of Ei."""
    u = numbers(env)
    observed = call_mapped(env, jsp.special.expi, u)
    x = np.float64(u)
    series = sum(x**k / (k * math.factorial(k)) for k in range(1, 30))
    return Observed(observed, np.euler_gamma + np.log(x) + series)


NO_RULE_FOR_WHILE_IN_SAMPLER = deviation(
    "jax<0.6",
    params=("poisson", "binomial"),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)
GAMMA_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.7.1",
    params=("gamma",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the loop until acceptance started from constants",
    issue="jax-ml/jax#31080",
)
POISSON_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.7",
    params=("poisson",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the loop until acceptance started from constants",
)
BINOMIAL_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6",
    params=("binomial",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the loop until acceptance starts from constants",
)


@probe(
    source="jax-ml/jax#31080",
    params={
        "gamma": {"which": "gamma"},
        "poisson": {"which": "poisson"},
        "binomial": {"which": "binomial"},
    },
    deviations=[
        NO_RULE_FOR_WHILE_IN_SAMPLER,
        GAMMA_LOOP_STARTS_FROM_CONSTANT,
        POISSON_LOOP_STARTS_FROM_CONSTANT,
        BINOMIAL_LOOP_STARTS_FROM_CONSTANT,
    ],
)
def rejection_sampler(env, which):
    """Samplers that repeat until acceptance, with a key for each shard, are lowered or refused.

    A refusal comes at lowering, and to compile a rejection loop takes a second.
    """
    u = 4 * numbers(env)
    draw = {
        "gamma": jax.random.gamma,
        "poisson": jax.random.poisson,
        "binomial": lambda key, u: jax.random.binomial(key, 9.0, u / 8),
    }[which]
    mapped_draw = map_shards(env, lambda key, u: draw(key[0], u), (P("x"), P("x")))
    observed = jax.jit(mapped_draw).lower(KEYS, u).out_info
    dtype = {"poisson": "int32"}.get(which, "float32")
    return Observed([str(observed.dtype), *observed.shape], [dtype, *u.shape])


NO_RULE_FOR_KRYLOV_SOLVE = deviation(
    "jax==0.4.30",
    error="NotImplementedError",
    match="No replication rule for custom_linear_solve",
    reason="the replication check had no rule for custom_linear_solve; switch it off in 0.4.30",
    issue="jax-ml/jax#20162",
)
LOOP_SHARDINGS_REFUSED = deviation(
    "jax==0.4.31",
    params=("cg", "gmres"),
    error="XlaRuntimeError",
    match="Inconsistent while sharding|RET_CHECK",
    reason="lowering gave parts of the loop shardings that XLA's verifier took to be inconsistent",
)
CG_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.7",
    params=("cg",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the function starts from a constant; switch the check off in these releases",
)
GMRES_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6",
    params=("gmres",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the function starts from a constant; switch the check off in these releases",
)


@probe(
    source="jax-ml/jax#20162",
    params={
        "cg": {"which": "cg"},
        "gmres": {"which": "gmres"},
    },
    deviations=[
        NO_RULE_FOR_KRYLOV_SOLVE,
        LOOP_SHARDINGS_REFUSED,
        CG_LOOP_STARTS_FROM_CONSTANT,
        GMRES_LOOP_STARTS_FROM_CONSTANT,
    ],
)
def krylov_solver(env, which):
    """`cg` and `gmres` solve a diagonal system of each shard by a while in custom_linear_solve."""
    u = numbers(env)
    solve = getattr(jsp.sparse.linalg, which)
    observed = call_mapped(env, lambda u: solve(lambda y: (1 + u) * y, u)[0], u)
    return Observed(observed, np.float64(u) / (1 + np.float64(u)))


ZEROS_LIKE_FORGETS_AXES = deviation(
    "jax>=0.6,<0.7",
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="zeros_like forgets the axes over which its argument varies",
    issue="jax-ml/jax#29965",
)


@probe(source="jax-ml/jax#29965", deviations=[ZEROS_LIKE_FORGETS_AXES])
def polynomial(env):
    """`polyval` with the coefficients of each shard is a scan that starts from zeros.

    The scan is Horner's rule.
    """
    u = numbers(env)
    return Observed(
        call_mapped(env, lambda u: jnp.polyval(u, u), u), apply_by_shard(np.polyval, u, u)
    )


@probe(source="jax-ml/jax#27664", deviations=[NO_RULE_FOR_WHILE, LOOP_STARTS_FROM_CONSTANT])
def matrix_square_root(env):
    """`sqrtm` of a diagonal matrix of each shard is a Schur form and then a loop over columns."""
    u = numbers(env)
    observed = call_mapped(env, lambda u: jnp.diagonal(jsp.linalg.sqrtm(jnp.diag(u))).real, u)
    return Observed(observed, np.sqrt(np.float64(u)))


@probe(source="jax-ml/jax#27664", deviations=[NO_RULE_FOR_WHILE, LOOP_STARTS_FROM_CONSTANT])
def differential_equation(env):
    """`odeint` of exponential decay has initial values and step sizes for each shard."""
    from jax.experimental.ode import odeint  # noqa: PLC0415 - slow to import, and may be removed

    u = numbers(env)
    observed = call_mapped(
        env, lambda u: odeint(lambda y, _: -y, u, jnp.float32([0.0, 1.0]))[-1], u
    )
    return Observed(observed, np.float64(u) / np.e)


VARYING_STATE_ASSERTION = deviation(
    "jax>=0.6,<0.8",
    error="AssertionError",
    reason="the rule of rng_bit_generator asserted that its state does not vary",
)


@probe(source="jax-ml/jax@b8f00f256e90", deviations=[VARYING_STATE_ASSERTION])
def bits_of_each_shard(env):
    """`rng_bit_generator` with a state of each shard gives the same bits as without shard_map."""
    keys = np.arange(16, dtype=np.uint32).reshape(4, 4)
    bits = lambda key: lax.rng_bit_generator(key, (4,), dtype=jnp.uint32)[1]  # noqa: E731
    observed = call_mapped(env, lambda key: bits(key[0]), keys)
    return Observed(observed, np.concatenate([bits(key) for key in keys]))
