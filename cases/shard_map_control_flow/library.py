"""Library functions that have a loop or a branch inside, called on shards.

Nobody who writes `jnp.interp` thinks of control flow. With the check on, what the function starts
its loop from has to vary like what comes out, and up to 0.5.3 each primitive inside needed a
rule. So functions broke, and were mended one by one, release by release. With the check off all
of them work, on every release. References are NumPy's or closed forms.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import SHARDS, P, by_shard, called, mapped, numbers

TABLE = np.float32([0.25, 0.75, 1.0, 1.25])
KEYS = np.arange(2 * SHARDS, dtype=np.uint32).reshape(SHARDS, 2)
"""A key for each shard, as the two words that it is made of."""


@probe(
    source="jax-ml/jax#28334",
    devices=4,
    deviations=[
        deviation(
            "jax==0.6.0",
            error="ValueError",
            match="Primitive reduce requires varying manual axes to match",
            reason="the index that the reduction starts from did not vary",
            issue="jax-ml/jax#28334",
        )
    ],
)
def place_of_the_maximum(env):
    """`argmax` of each shard: its reduction started from an index that does not vary."""
    u = numbers(env)
    seen = called(env, lambda u: jnp.argmax(u)[None], u)
    return Observed(seen, by_shard(lambda u: [u.argmax()], u).astype(np.int32))


@probe(
    source="jax-ml/jax#29881",
    devices=4,
    params={
        "scan": {"method": "scan"},
        "compare_all": {"method": "compare_all"},
    },
    deviations=[
        deviation(
            "jax>=0.6,<0.7",
            params=("scan",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="the bounds of the search started as constants",
            issue="jax-ml/jax#29881",
        )
    ],
)
def sorted_places(env, method):
    """`searchsorted` in a sorted shard: by default a loop whose bounds start as constants."""
    u = np.sort(numbers(env))
    seen = called(env, lambda u: jnp.searchsorted(u, u + 0.05, method=method), u)
    return Observed(seen, by_shard(lambda u: np.searchsorted(u, u + 0.05), u).astype(np.int32))


@probe(
    source="jax-ml/jax#29881",
    xla_flags=["--xla_backend_optimization_level=0"],
    devices=4,
    deviations=[
        deviation(
            "jax>=0.6,<0.7",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="the search for the drawn weight is a loop whose bounds started as constants",
            issue="jax-ml/jax#29881",
        )
    ],
)
def drawn_by_weight(env):
    """`random.choice` with weights, a key for each shard: what is drawn without shard_map, too."""
    u = numbers(env)
    draw = jax.jit(lambda key, u: jax.random.choice(key, u, (4,), p=u / u.sum()))
    seen = called(env, lambda key, u: draw(key[0], u), KEYS, u, in_specs=(P("x"), P("x")))
    alone = [draw(KEYS[i], part) for i, part in enumerate(np.split(u, SHARDS))]
    return Observed(seen, np.concatenate(alone))


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    params={
        "interp": {"which": "interp"},
        "histogram": {"which": "histogram"},
    },
    deviations=[
        deviation(
            "jax>=0.6,<0.8",
            error="ValueError",
            match="Primitive lt_to requires varying manual axes to match",
            reason="a comparison within the search did not make its sides vary alike",
        )
    ],
)
def looked_up_in_a_table(env, which):
    """Interpolation and counts: a search in a table that is the same on every shard."""
    u = numbers(env)

    def look(np_, u):
        if which == "interp":
            return np_.interp(u, TABLE, TABLE**2)
        return np_.histogram(u, bins=4, range=(0.5, 1.5))[0]

    seen = called(env, lambda u: look(jnp, u).astype(jnp.float32), u)
    return Observed(seen, by_shard(lambda u: look(np, u), u).astype(np.float64))


@probe(
    source="jax-ml/jax#24418",
    devices=4,
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the replication check knew no cond; switch it off there",
            issue="jax-ml/jax#24418",
        ),
        deviation(
            "jax>=0.6,<0.8",
            error="ValueError",
            match="Primitive lt_to requires varying manual axes to match",
            reason="the choice of its order is a search in a table of constants",
        ),
    ],
)
def matrix_exponential(env):
    """`expm` of a matrix of each shard: a `cond` for each squaring, a switch for the order."""
    u = numbers(env)
    seen = called(env, lambda u: jnp.diagonal(jsp.linalg.expm(jnp.diag(4 * u))), u)
    return Observed(seen, np.exp(4 * np.float64(u)))


@probe(
    source="jax-ml/jax#30157",
    devices=4,
    params={
        "inv": {"which": "inv"},
        "solve": {"which": "solve"},
    },
    deviations=[
        deviation(
            "jax==0.4.30",
            params=("inv", "solve"),
            error="NotImplementedError",
            match="No replication rule for custom_linear_solve",
            reason="the replication check knew no custom_linear_solve; switch it off there",
            issue="jax-ml/jax#20162",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=("inv",),
            error="TypeError",
            match="cotangent type does not match function output",
            reason="a right side of constants, the identity, was not made varying",
            issue="jax-ml/jax#30157",
        ),
    ],
)
def linear_algebra(env, which):
    """Inverse and solution with a matrix of each shard: `custom_linear_solve` inside."""
    u = numbers(env)

    def compute(np_, u):
        matrix = np_.outer(u, u) + np_.eye(4)
        if which == "inv":
            return np_.linalg.inv(matrix)[0]
        return np_.linalg.solve(matrix, u)

    seen = called(env, lambda u: compute(jnp, u), u)
    return Observed(seen, by_shard(lambda u: compute(np, u), u))


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    params={"lower": {"upper": False}},
    deviations=[
        deviation(
            "jax>=0.6,<0.7",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        )
    ],
)
def incomplete_gamma(env, upper):
    """The incomplete gamma function at 1, that is an exponential: a series in a while loop."""
    u = numbers(env)
    fn = jsp.special.gammaincc if upper else jsp.special.gammainc
    seen = called(env, lambda u: fn(1.0, u), u)
    decay = np.exp(-np.float64(u))
    return Observed(seen, decay if upper else 1 - decay)


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    deviations=[
        deviation(
            "jax>=0.6,<0.12",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        )
    ],
)
def incomplete_beta(env):
    """The incomplete beta function of 1 and 2: 2x - x**2, by a continued fraction in a loop."""
    u = numbers(env) / 2
    seen = called(env, lambda u: jsp.special.betainc(1.0, 2.0, u), u)
    x = np.float64(u)
    return Observed(seen, 2 * x - x**2)


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        ),
    ],
)
def exponential_integral(env):
    """Ei by its series, against the series itself: pieces chosen by a loop over branches."""
    u = numbers(env)
    seen = called(env, jsp.special.expi, u)
    x = np.float64(u)
    series = sum(x**k / (k * math.factorial(k)) for k in range(1, 30))
    return Observed(seen, np.euler_gamma + np.log(x) + series)


@probe(
    source="jax-ml/jax#31080",
    devices=4,
    params={
        "gamma": {"which": "gamma"},
        "poisson": {"which": "poisson"},
        "binomial": {"which": "binomial"},
    },
    deviations=[
        deviation(
            "jax<0.6",
            params=("poisson", "binomial"),
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6,<0.7.1",
            params=("gamma",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="the loop until acceptance started from constants",
            issue="jax-ml/jax#31080",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=("poisson",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="the loop until acceptance started from constants",
        ),
        deviation(
            "jax>=0.6",
            params=("binomial",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="the loop until acceptance starts from constants",
        ),
    ],
)
def rejection_sampler(env, which):
    """Samplers that repeat until accepted, a key for each shard: whether one can be lowered.

    What is refused is refused then, and to compile a loop of rejections takes a second.
    """
    u = 4 * numbers(env)
    draw = {
        "gamma": jax.random.gamma,
        "poisson": jax.random.poisson,
        "binomial": lambda key, u: jax.random.binomial(key, 9.0, u / 8),
    }[which]
    drawn = mapped(env, lambda key, u: draw(key[0], u), (P("x"), P("x")))
    seen = jax.jit(drawn).lower(KEYS, u).out_info
    whole = {"poisson": "int32"}.get(which, "float32")
    return Observed([str(seen.dtype), *seen.shape], [whole, *u.shape])


@probe(
    source="jax-ml/jax#20162",
    devices=4,
    params={
        "cg": {"which": "cg"},
        "gmres": {"which": "gmres"},
    },
    deviations=[
        deviation(
            "jax==0.4.30",
            error="NotImplementedError",
            match="No replication rule for custom_linear_solve",
            reason="the replication check knew no custom_linear_solve; switch it off there",
            issue="jax-ml/jax#20162",
        ),
        deviation(
            "jax==0.4.31",
            params=("cg", "gmres"),
            error="XlaRuntimeError",
            match="Inconsistent while sharding|RET_CHECK",
            reason="lowering gave the loop's parts shardings that XLA's verifier took for a clash",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=("cg",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        ),
        deviation(
            "jax>=0.6",
            params=("gmres",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        ),
    ],
)
def krylov_solver(env, which):
    """Iterative solution of a diagonal system of each shard: a while in a custom_linear_solve."""
    u = numbers(env)
    solve = getattr(jsp.sparse.linalg, which)
    seen = called(env, lambda u: solve(lambda y: (1 + u) * y, u)[0], u)
    return Observed(seen, np.float64(u) / (1 + np.float64(u)))


@probe(
    source="jax-ml/jax#29965",
    devices=4,
    deviations=[
        deviation(
            "jax>=0.6,<0.7",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="zeros_like did not take over what its argument varies over",
            issue="jax-ml/jax#29965",
        )
    ],
)
def polynomial(env):
    """`polyval` of each shard's coefficients: Horner's rule as a scan that starts from zeros."""
    u = numbers(env)
    return Observed(called(env, lambda u: jnp.polyval(u, u), u), by_shard(np.polyval, u, u))


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        ),
    ],
)
def matrix_square_root(env):
    """`sqrtm` of a diagonal matrix of each shard: a Schur form, then a loop over columns."""
    u = numbers(env)
    seen = called(env, lambda u: jnp.diagonal(jsp.linalg.sqrtm(jnp.diag(u))).real, u)
    return Observed(seen, np.sqrt(np.float64(u)))


@probe(
    source="jax-ml/jax#27664",
    devices=4,
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6",
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop inside starts from a constant; switch the check off there",
        ),
    ],
)
def differential_equation(env):
    """`odeint` of exponential decay, each shard its own initial values and its own step sizes."""
    from jax.experimental.ode import odeint  # noqa: PLC0415 - heavy, and may be gone one day

    u = numbers(env)
    seen = called(env, lambda u: odeint(lambda y, _: -y, u, jnp.float32([0.0, 1.0]))[-1], u)
    return Observed(seen, np.float64(u) / np.e)


@probe(
    source="jax-ml/jax@b8f00f256e90",
    devices=4,
    deviations=[
        deviation(
            "jax>=0.6,<0.8", error="AssertionError", reason="its rule asserted that nothing varies"
        )
    ],
)
def bits_of_each_shard(env):
    """`rng_bit_generator` with a state of each shard: the same bits as without shard_map."""
    keys = np.arange(16, dtype=np.uint32).reshape(4, 4)
    bits = lambda key: lax.rng_bit_generator(key, (4,), dtype=jnp.uint32)[1]  # noqa: E731
    seen = called(env, lambda key: bits(key[0]), keys)
    return Observed(seen, np.concatenate([bits(key) for key in keys]))
