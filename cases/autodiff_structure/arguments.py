"""Results of functions that do not fit to the arguments of `jvp` and its relatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))

PAIR = np.float32([1, 2])
TRANSFORMS = {
    "jvp": lambda f: jax.jvp(f, (PAIR,), (PAIR,), has_aux=True),
    "jacfwd": lambda f: jax.jacfwd(f, has_aux=True)(PAIR),
}
RESULTS = {
    "array_of_two": lambda x: x * x,
    "array_of_three": lambda x: jnp.concatenate([x, x[:1]]),
    "number": lambda x: x.sum(),
}
ANY_PAIR_IS_UNPACKED = deviation(
    "jax>=0.10.2",
    outcome="ok",
    reason="the result is unpacked without a check: an array of two is taken for a pair",
    issue="jax-ml/jax@d19916fe372a",
)


@probe(source="jax-ml/jax@d19916fe372a", params=[*TRANSFORMS], deviations=[ANY_PAIR_IS_UNPACKED])
def auxiliary_value_is_missing(env, name):
    """With `has_aux=True`, functions that return no pair are refused."""
    outcomes = {
        kind: refusal(lambda f=f: TRANSFORMS[name](f), "two-element") for kind, f in RESULTS.items()
    }
    return Observed(outcomes, dict.fromkeys(RESULTS, "TypeError: two-element"))


REFUSED_BY_A_GENERATOR = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="the error came from the generators of jax: a RuntimeError before 0.4.36, then a "
    "StopIteration",
    issue="jax-ml/jax@d19916fe372a",
)


@probe(source="jax-ml/jax@d19916fe372a", deviations=[REFUSED_BY_A_GENERATOR])
def position_given_twice(env):
    """`argnums=(0, 0)` of `jax.grad` is a TypeError."""
    gradient = jax.grad(lambda x, y: x * y, argnums=(0, 0))
    return Observed(refusal(lambda: gradient(2.0, 3.0)), "TypeError: ")
