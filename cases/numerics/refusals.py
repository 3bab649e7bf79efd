"""Refusals that became clearer, and options and objects that were refused or accepted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

COMPRESS_ASKED_FOR_A_BOOL = deviation(
    "jax<0.11",
    params=["compress"],
    outcome="ok",
    match="TracerBoolConversionError",
    reason="the condition was used as a Python bool",
    issue="jax-ml/jax@bbcf534ef2c4",
)
PATH_WITHOUT_A_MESSAGE = deviation(
    "jax<0.7.1",
    params=["einsum"],
    outcome="ok",
    reason="the error had no message",
    issue="jax-ml/jax@d405ce2aec2a",
)
TRANSPOSED_TWICE = deviation(
    "jax<0.4.34",
    params=["trace"],
    outcome="ok",
    match="TypeError",
    reason="the error was about a permutation",
    issue="jax-ml/jax@6072f97961c7",
)
VERIFIER_REFUSED = deviation(
    "jax<0.4.36",
    params=["pad"],
    outcome="ok",
    reason="the verifier of StableHLO refused the program",
    issue="jax-ml/jax@17825882d2bb",
)
ASSERTION_FAILED = deviation(
    "jax<0.7.2",
    params=["polygamma"],
    outcome="ok",
    match="AssertionError",
    reason="an assertion failed",
    issue="jax-ml/jax@b2dd054f2600",
)
INT4_NOT_LOWERED = deviation(
    "jax<0.7.2",
    params=["abs"],
    outcome="ok",
    reason="the program could not be lowered, or ran",
    issue="jax-ml/jax@d3998831f532",
)
GATHER_FROM_NOTHING = deviation(
    "jax<0.11.2",
    params=["median"],
    outcome="ok",
    match="TypeError",
    reason="the error was about a gather",
)
GATHER_FROM_NOTHING_BY_QUANTILE = deviation(
    params=["quantile"],
    outcome="ok",
    match="TypeError",
    reason="the error is about a gather",
)
SQUARE = np.ones((2, 2), np.float32)
REFUSED = {
    "compress": (
        lambda: jax.jit(jnp.compress)(np.array([True, False]), f32(1, 2)),
        ("ConcretizationTypeError", "size argument"),
    ),
    "einsum": (
        lambda: jnp.einsum("ij,ik,il->jkl", SQUARE, SQUARE, SQUARE, optimize=[(0, 1, 2)]),
        ("NotImplementedError", "3 or more operands"),
    ),
    "trace": (
        lambda: jnp.trace(np.ones((2, 2, 2), np.float32), axis1=1, axis2=-2),
        ("ValueError", "axis1 and axis2"),
    ),
    "pad": (lambda: lax.pad(f32(1, 2), f32(0), [(1, 0, 0)]), ("ValueError", "must be a scalar")),
    "polygamma": (
        lambda: jax.scipy.special.polygamma(1.0, 2.0),
        ("ValueError", "must be of integer type"),
    ),
    "abs": (lambda: lax.abs(jnp.asarray(f32(1, -2), jnp.int4)), ("TypeError", "narrow-width")),
    "median": (lambda: jnp.median(f32()), ("ValueError", "must be non-empty")),
    "quantile": (lambda: jnp.quantile(f32(), 0.5), ("ValueError", "must be non-empty")),
}


@probe(
    source="jax-ml/jax@17825882d2bb",
    params=[*REFUSED],
    deviations=[
        COMPRESS_ASKED_FOR_A_BOOL,
        PATH_WITHOUT_A_MESSAGE,
        TRANSPOSED_TWICE,
        VERIFIER_REFUSED,
        ASSERTION_FAILED,
        INT4_NOT_LOWERED,
        GATHER_FROM_NOTHING,
        GATHER_FROM_NOTHING_BY_QUANTILE,
    ],
)
def refused_argument(env, name):
    """A wrong argument is refused with an error that names it."""
    call, (error, words) = REFUSED[name]
    return Observed(refusal(call, words), reference=f"{error}: {words}")


NO_HALF_BYTES = deviation(
    "jax<0.5",
    error="ValueError",
    match="verifier errors",
    reason="the number of int4 in a byte was taken for 1",
    issue="jax-ml/jax@75f36dc3ea61",
)


@probe(source="jax-ml/jax@75f36dc3ea61", deviations=[NO_HALF_BYTES])
def bytes_viewed_as_int4(env):
    """`x.view(jnp.int4)` of bytes gives the lower and the upper half of each from 0.5.0 on."""
    result = jnp.asarray(np.int8([0x12, 0x34])).view(jnp.int4)
    return Observed(result.astype(np.int32), reference=np.int32([2, 1, 4, 3]))


SEARCHES = {
    "number_in_a_scalar": lambda: 1 in jnp.float32(1),
    "number_in_a_column": lambda: 1 in jnp.ones((2, 1)),
    "text": lambda: "a" in jnp.ones(2),
    "none": lambda: None in jnp.ones(2),
}


@probe(
    source="jax-ml/jax@c98c39cd6d1d",
    params=[*SEARCHES],
    records="up to 0.9.2, Python compares the elements one by one",
)
def search_in_an_array(env, name):
    """`value in x` is a single operation from 0.10.0 on, and refuses what is no number in a vector.

    Before, it was a loop of Python over the elements, to which all values are different from None
    and from a text.
    """
    results = []
    error = refusal(lambda: results.append(SEARCHES[name]()), "one-dimensional", "0-d", "None")
    return results or error


SUM_WITH_THE_TRANSPOSE = deviation(
    "jax<0.12",
    params=["cholesky", "eigh"],
    outcome="ok",
    match="TypeError",
    reason="the error was about the sum with the transpose",
)
VECTOR_HAS_TOO_FEW_AXES = deviation(
    "jax<0.12,>=0.5.1",
    params=["lu"],
    outcome="ok",
    match="TypeError",
    reason="the primitive refused the vector",
    issue="jax-ml/jax@a981e1c4b99b",
)
INDEX_OF_AN_AXIS = deviation(
    "jax<0.5.3",
    params=["svd"],
    outcome="ok",
    match="IndexError",
    reason="the shape was indexed before it was checked",
    issue="jax-ml/jax@a981e1c4b99b",
)
SHAPE_CHECKED_WHEN_LOWERED = deviation(
    "jax<0.5.1",
    params=["qr"],
    outcome="ok",
    match="ValueError",
    reason="the primitive had a check of its own",
    issue="jax-ml/jax@a981e1c4b99b",
)
WRONG_SHAPES = {
    "cholesky": (lambda: jnp.linalg.cholesky(np.ones((2, 3), np.float32)), "ValueError"),
    "eigh": (lambda: jnp.linalg.eigh(np.ones((2, 3), np.float32)), "ValueError"),
    "lu": (lambda: jax.scipy.linalg.lu(f32(1, 2, 3)), "ValueError"),
    "qr": (lambda: jnp.linalg.qr(f32(1, 2, 3)), "TypeError"),
    "svd": (lambda: jnp.linalg.svd(f32(1, 2, 3)), "TypeError"),
}


@probe(
    source="jax-ml/jax@a981e1c4b99b",
    params=[*WRONG_SHAPES],
    deviations=[
        SUM_WITH_THE_TRANSPOSE,
        VECTOR_HAS_TOO_FEW_AXES,
        INDEX_OF_AN_AXIS,
        SHAPE_CHECKED_WHEN_LOWERED,
    ],
)
def factorisation_of_a_wrong_shape(env, name):
    """The class of the error of a factorisation of a vector, or of two rows and three columns."""
    call, error = WRONG_SHAPES[name]
    return Observed(refusal(call), reference=f"{error}: ")


NUMBER_NOT_PROMOTED = deviation(
    "jax>=0.4.34",
    error="TypeError",
    match="must not be narrower than the original type",
    reason="the number is taken for int32, to which the result of int8 is too narrow",
    issue="jax-ml/jax@1cc96616baab",
)


@probe(source="jax-ml/jax@1cc96616baab", deviations=[NUMBER_NOT_PROMOTED])
def multiple_of_int8_numbers(env):
    """`jnp.dot` of a Python number and an int8 vector is an int8 vector, as `2 * x` is."""
    return Observed(jnp.dot(2, np.int8([3, 4])), reference=np.int8([6, 8]))
