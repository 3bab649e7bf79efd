"""`jax_numpy_rank_promotion` and `jax_numpy_dtype_promotion`: what they refuse, and where."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import call_outcome, floats

defaults(platforms=("cpu",))


def ones(*shape):
    """Return ones as float32."""
    return np.ones(shape, np.float32)


MATRICES = np.tile(np.diag(floats(1, 2)), (3, 1, 1))
add_scalars = jnp.vectorize(jnp.add, signature="(),()->()")

REFUSED = {
    "add": lambda: jnp.add(ones(2, 3), ones(3)),
    "vectorize": lambda: add_scalars(ones(2, 3), ones(3)),
}
ACCEPTED = {
    "where": lambda: jnp.where(ones(2, 3) > 0, ones(3), 0),
    "update": lambda: jnp.ones((2, 3)).at[:].add(ones(3)),
    "eigh": lambda: jax.jvp(jnp.linalg.eigh, (MATRICES,), (MATRICES,)),
}
VECTORIZE_NOT_CHECKED = deviation(
    "jax<0.4.31",
    params=["vectorize"],
    outcome="ok",
    reason="vectorize did not check the option",
    issue="jax-ml/jax#22305",
)


@probe(source="jax-ml/jax#22305", params=[*REFUSED], deviations=[VECTORIZE_NOT_CHECKED])
def ranks_refused(env, name):
    """`numpy_rank_promotion="raise"` refuses a matrix with a vector, in `vectorize` from 0.4.31."""
    with jax.numpy_rank_promotion("raise"):
        return Observed(call_outcome(REFUSED[name]), "ValueError")


PROMOTED_INSIDE = deviation(
    "jax<0.5.3",
    params=["eigh"],
    outcome="ok",
    reason="the derivative of eigh promotes ranks",
    issue="jax-ml/jax@6bd99207d518",
)


@probe(source="jax-ml/jax#7208", params=[*ACCEPTED], deviations=[PROMOTED_INSIDE])
def ranks_accepted(env, name):
    """`numpy_rank_promotion="raise"` accepts scalars and what library functions do inside.

    The derivative of `eigh` of several matrices is accepted from 0.5.3.
    """
    with jax.numpy_rank_promotion("raise"):
        return Observed(call_outcome(ACCEPTED[name]), "ran")


@probe(source="jax-ml/jax#22077")
def ranks_warned(env):
    """`"warn"` warns with the shapes; `jax.config.update` refuses an unknown value."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with jax.numpy_rank_promotion("warn"):
            REFUSED["add"]()
    texts = [
        str(w.message).partition(". ")[0] for w in caught if "rank promotion" in str(w.message)
    ]
    unknown = call_outcome(lambda: jax.numpy_rank_promotion("error").__enter__())
    text = "Following NumPy automatic rank promotion for add on shapes (2, 3) (3,)"
    return Observed(
        {"texts": texts, "unknown": unknown}, {"texts": [text], "unknown": "ValueError"}
    )


STRICT = {
    "integer and float": lambda: jnp.add(np.int32(1), floats(1)),
    "integer and Python float": lambda: jnp.add(np.int32(1), 1.0),
    "where": lambda: jnp.where(True, floats(1), np.int32(2)),
    "update": lambda: jnp.zeros(2).at[0].set(np.int32(1)),
    "dot": lambda: jnp.dot(ones(2), np.ones(2, np.int32)),
}
LENIENT = {
    "float and Python number": lambda: jnp.add(floats(1), 1),
    "power": lambda: jnp.power(floats(2), np.int32(2)),
    "integers by Python number": lambda: jnp.arange(3) / 2,
    "sum of bool": lambda: jnp.ones(3, bool).sum(),
}


@probe(source="jax-ml/jax#10824", params={"refused": {"ran": False}, "accepted": {"ran": True}})
def dtypes(env, ran):
    """`numpy_dtype_promotion="strict"` refuses mixed dtypes, also in updates and branches.

    It accepts Python numbers of a lesser kind, integer powers, and conversions within functions.
    """
    with jax.numpy_dtype_promotion("strict"):
        calls = LENIENT if ran else STRICT
        observed = {name: call_outcome(call) for name, call in calls.items()}
    return Observed(observed, dict.fromkeys(observed, "ran" if ran else "TypePromotionError"))
