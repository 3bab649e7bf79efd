"""Arguments that a function makes arrays of, or broadcasts, before it computes with them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

WRAPPED = deviation(
    "jax>=0.5.1",
    outcome="ok",
    reason="the number is an int32 before it is cast to uint8",
    issue="jax-ml/jax@a69f9dcc19cf",
)
FILLED = {
    "setdiff1d": lambda: jnp.setdiff1d(np.uint8([1, 2]), np.uint8([1]), size=2, fill_value=-1),
    "unique": lambda: jnp.unique(np.uint8([1, 2]), size=3, fill_value=-1),
}


@probe(source="jax-ml/jax@a69f9dcc19cf", params=[*FILLED], deviations=[WRAPPED])
def negative_fill_value(env, name):
    """A `fill_value` of -1 for an array of uint8 is silently 255 from 0.5.1 on.

    Before, it was an OverflowError.
    """
    return Observed(refusal(FILLED[name], "uint8"), reference="OverflowError: uint8")


DEFAULT_IS_INT32 = deviation(
    "jax>=0.6",
    error="OverflowError",
    match="too large to convert to int32",
    reason="the default is made an array before the dtype of the choices is known",
    issue="jax-ml/jax@a34c46287558",
)


@probe(source="jax-ml/jax@a34c46287558", deviations=[DEFAULT_IS_INT32])
def large_default_of_a_selection(env):
    """An integer beyond int32 as the default of `jnp.select` of float32 numbers."""
    observed = jnp.select([np.array([True, False])], [f32(1, 2)], 10**10)
    return Observed(observed, reference=f32(1, 1e10))


LISTS_REFUSED = deviation(
    "jax>=0.6",
    outcome="ok",
    match="TypeError",
    reason="each part must be an array or a number",
    issue="jax-ml/jax@7f4e8c56fe0b",
)


@probe(source="jax-ml/jax@7f4e8c56fe0b", deviations=[LISTS_REFUSED])
def depth_stack_of_lists(env):
    """`jnp.dstack` of lists is a TypeError from 0.6.0 on."""
    outcome = refusal(lambda: jnp.dstack([[1, 2], [3, 4]]), "ndarray or scalar")
    return Observed(outcome, reference="ran")


MASKS_BROADCAST_THE_NUMBERS = deviation(
    "jax>=0.5",
    outcome="ok",
    reason="the numbers are masked before they are reduced, and broadcast by that",
    issue="jax-ml/jax@f0392a1535d0",
)


@probe(source="jax-ml/jax@f0392a1535d0", deviations=[MASKS_BROADCAST_THE_NUMBERS])
def more_masks_than_numbers(env):
    """`logsumexp` of a vector with a matrix as `where` broadcasts the vector from 0.5.0 on.

    Before, it was a TypeError.
    """
    masks = np.array([[True, False], [True, True], [True, True]])
    try:
        observed = len(jax.nn.logsumexp(f32(0, 0), axis=-1, where=masks))
    except TypeError:
        observed = "TypeError"
    return Observed(observed, reference="TypeError")
