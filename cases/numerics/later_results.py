"""Calls whose result changed: a value in place of an error, a refusal in place of a value."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32

defaults(platforms=("cpu",))

SUBTRACTION_WAS_MISSING = deviation(
    "jax<0.4.35",
    error="AttributeError",
    match="has no attribute 'subtract'",
    reason="the method was added in 0.4.35",
    issue="jax-ml/jax@4cf33c023969",
)


@probe(source="jax-ml/jax@4cf33c023969", deviations=[SUBTRACTION_WAS_MISSING])
def subtraction_at_an_index(env):
    """`x.at[i].subtract(y)` is new in 0.4.35; before, it was an AttributeError."""
    x = jnp.asarray(f32(1, 2, 3))
    return Observed(x.at[np.array([1, 1])].subtract(f32(5, 1)), reference=f32(1, -4, 3))


OVERFLOW_OF_NUMPY = deviation(
    "jax<0.8.2",
    error="OverflowError",
    match="out of bounds for uint8",
    reason="NumPy made the range",
    issue="jax-ml/jax@c71327c925a7",
)


@probe(source="jax-ml/jax@c71327c925a7", deviations=[OVERFLOW_OF_NUMPY])
def range_below_zero(env):
    """`jnp.arange(-3, 3, dtype=jnp.uint8)` silently starts at 253; before, it was an error."""
    result = jnp.arange(-3, 3, dtype=np.uint8)
    return Observed(result, reference=np.uint8([253, 254, 255, 0, 1, 2]))


STEPS_OF_ONE = deviation(
    "jax>=0.8.2",
    outcome="ok",
    reason="the start alone is rounded, and the range counts from there",
    issue="jax-ml/jax@c71327c925a7",
)


@probe(source="jax-ml/jax@c71327c925a7", deviations=[STEPS_OF_ONE])
def whole_range_from_a_fraction(env):
    """`jnp.arange(-0.5, 2.5, dtype=int)` is silently 0, 1, 2 from 0.8.2 on.

    Before, it was 0, 0, 0, as in NumPy, whose step is int(0.5) - int(-0.5).
    """
    return Observed(jnp.arange(-0.5, 2.5, dtype=int), reference=np.array([0, 0, 0]))


MODE_IGNORED = deviation(
    "jax<0.9.1",
    params=["mode"],
    outcome="ok",
    match="ran",
    reason="the mode was not read for an index that is a number",
    issue="jax-ml/jax@b088d3a0717b",
)
NEWSHAPE_ACCEPTED = deviation(
    "jax<0.4.36",
    params=["newshape"],
    outcome="ok",
    match="ran",
    reason="the argument was deprecated",
    issue="jax-ml/jax@a7039a275ecb",
)
OLD_NAMES_OF_BETA = deviation(
    "jax<0.4.36",
    params=["beta"],
    outcome="ok",
    match="ran",
    reason="the arguments were deprecated",
    issue="jax-ml/jax@d698da610a34",
)
OTHER_TOLERANCE_READ = deviation(
    "jax<0.8.0",
    params=["pinv", "matrix_rank"],
    outcome="ok",
    match="ran",
    reason="of the two tolerances, the deprecated argument was read",
    issue="jax-ml/jax@1f9301782975",
)
TRUTH_AS_OFFSET = deviation(
    "jax<0.8.1",
    params=["tri"],
    outcome="ok",
    match="ran",
    reason="the offset was compared with the difference of two positions",
    issue="jax-ml/jax@075494cd61b1",
)
REFUSED = {
    "mode": (
        lambda: jnp.asarray(f32(1, 2)).at[0].get(mode="nearest"),
        ("ValueError", "Unknown gather mode"),
    ),
    "newshape": (lambda: jnp.reshape(f32(1, 2), newshape=(2, 1)), ("TypeError", "newshape")),
    "beta": (lambda: jax.scipy.special.beta(x=1.0, y=2.0), ("TypeError", "'x'")),
    "pinv": (
        lambda: jnp.linalg.pinv(f32(1)[None], 0.5, rcond=0.2),
        ("ValueError", "only one of rtol and rcond"),
    ),
    "tri": (lambda: jnp.tri(3, k=True), ("TypeError", "must be an integer")),
    "matrix_rank": (
        lambda: jnp.linalg.matrix_rank(f32(1)[None], 0.5, tol=0.2),
        ("ValueError", "only one of tol or rtol"),
    ),
}


@probe(
    source="jax-ml/jax@a7039a275ecb",
    params=[*REFUSED],
    deviations=[
        MODE_IGNORED,
        NEWSHAPE_ACCEPTED,
        OLD_NAMES_OF_BETA,
        OTHER_TOLERANCE_READ,
        TRUTH_AS_OFFSET,
    ],
)
def refused_from_some_release_on(env, name):
    """A misspelt mode, or a removed argument, is refused from some release on."""
    call, (error, words) = REFUSED[name]
    return Observed(refusal(call, words), reference=f"{error}: {words}")


FRACTION_ACCEPTED = deviation(
    "jax>=0.6.1",
    outcome="ok",
    reason="the number is the end of a range, which may be a fraction",
    issue="jax-ml/jax@8d2e9a853a2b",
)


@probe(source="jax-ml/jax@8d2e9a853a2b", deviations=[FRACTION_ACCEPTED])
def fraction_of_frequencies(env):
    """`jnp.fft.fftfreq(2.5)` is silently three numbers from 0.6.1; before, it was a TypeError.

    In NumPy it is a ValueError.
    """
    return Observed(refusal(lambda: jnp.fft.fftfreq(2.5), "integer"), "TypeError: integer")


NEGATIVE_NUMBER_ACCEPTED = deviation(
    "jax>=0.8.2",
    outcome="ok",
    reason="a negative number of elements is none",
)


@probe(source="jax-ml/jax@1e8c9384f018", deviations=[NEGATIVE_NUMBER_ACCEPTED])
def negative_number_of_frequencies(env):
    """`jnp.fft.fftfreq(-1)` is silently an empty array from 0.8.2; before, it was a TypeError."""
    return Observed(refusal(lambda: jnp.fft.fftfreq(-1), "nonnegative"), "TypeError: nonnegative")


LIMITS_OF_A_NUMBER = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="a number of Python stood for its dtype, float64",
)


@probe(source="jax-ml/jax@fc258c399be0", deviations=[LIMITS_OF_A_NUMBER])
def limits_of_a_number(env):
    """`jnp.finfo` of a Python float is a TypeError from 0.4.33; before, that of float64."""
    return Observed(refusal(lambda: jnp.finfo(3.0), "data type"), "TypeError: data type")


ROWS_MULTIPLIED = deviation(
    "jax>=0.5.1",
    outcome="ok",
    reason="a sequence of one matrix is unpacked into its rows",
    issue="jax-ml/jax@7d81547f913d",
)


@probe(source="jax-ml/jax@7d81547f913d", deviations=[ROWS_MULTIPLIED])
def product_of_one_matrix(env):
    """`jnp.linalg.multi_dot([x])` is silently the product of the rows of x from 0.5.1 on.

    For two rows it is a number. Before, it was a ValueError, as in NumPy.
    """
    x = f32(1, 2, 3, 4).reshape(2, 2)
    outcome = refusal(lambda: jnp.linalg.multi_dot([x]), "at least two arrays")
    return Observed(outcome, "ValueError: at least two arrays")


COMPLEX_NUMBERS_CLIPPED = deviation(
    "jax>=0.8.2",
    outcome="ok",
    match="ValueError: complex",
    reason="the variance is kept from below 0 by a clip",
    issue="jax-ml/jax@c13c96b65634",
)


@probe(source="jax-ml/jax@c13c96b65634", deviations=[COMPLEX_NUMBERS_CLIPPED])
def standardized_complex_numbers(env):
    """`jax.nn.standardize` of complex numbers is a ValueError about `clip` from 0.8.2 on."""
    x = np.array([1 + 1j, 2 - 1j, 3], np.complex64)
    return Observed(refusal(lambda: jax.nn.standardize(x), "complex"), reference="ran")


AXIS_AS_AN_ARRAY = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="ran",
    reason="an array without dimensions was read as a number",
    issue="jax-ml/jax@e7d3785b18c6",
)


@probe(source="jax-ml/jax@e7d3785b18c6", deviations=[AXIS_AS_AN_ARRAY])
def axis_of_a_cumulative_sum_as_an_array(env):
    """`jnp.cumsum(x, axis=np.array(0))` is a ValueError from 0.4.33 on."""
    outcome = refusal(lambda: jnp.cumsum(f32(1, 2), axis=np.array(0)), "Non-hashable static")
    return Observed(outcome, "ValueError: Non-hashable static")


NARROWER_DTYPE_ACCEPTED = deviation(
    "jax<0.4.34",
    outcome="ok",
    match="ran",
    reason="the product was cast to the dtype",
    issue="jax-ml/jax@1cc96616baab",
)


@probe(source="jax-ml/jax@1cc96616baab", deviations=[NARROWER_DTYPE_ACCEPTED])
def multiple_in_a_narrower_dtype(env):
    """`jnp.dot` of a number and a vector refuses a narrower dtype from 0.4.34 on."""
    x = np.ones(2, np.int32)
    outcome = refusal(lambda: jnp.dot(x[0], x, preferred_element_type=np.int8), "narrower")
    return Observed(outcome, "TypeError: narrower")


TEXT_REFUSED = deviation(
    "jax>=0.4.35,<0.4.36",
    error="TypeError",
    match="not a valid JAX array type",
    reason="the text was converted to an array",
    issue="jax-ml/jax@45f0e9ad683d",
)


@probe(source="jax-ml/jax@0140a98e3478", deviations=[TEXT_REFUSED])
def text_as_a_scalar(env):
    """`jnp.isscalar("abc")` is True, as in NumPy; in 0.4.35 it was a TypeError."""
    return Observed(np.array(jnp.isscalar("abc")), reference=np.array(True))


RESHAPED = {
    "shape": lambda f: jax.eval_shape(f, f32(1, 2, 3)),
    "unused": lambda f: jax.jit(lambda x: [x, f(x)][0])(f32(1, 2, 3)),
    "jaxpr": lambda f: jax.make_jaxpr(jax.vmap(f))(f32(1, 2, 3)[None]),
}
SIZES_NOT_COMPARED = deviation(
    "jax>=0.8.2",
    outcome="ok",
    reason="the rule of the shape lost its check of the sizes with that of dynamic shapes",
    issue="jax-ml/jax@75697ef8680b",
)


@probe(source="jax-ml/jax@75697ef8680b", params=[*RESHAPED], deviations=[SIZES_NOT_COMPARED])
def reshape_to_another_size(env, name):
    """`lax.reshape(x, (4,))` of three numbers is silently traced from 0.8.2 on.

    It is an error only when it is compiled; before, it was a TypeError at once.
    """
    ending = refusal(lambda: RESHAPED[name](lambda x: lax.reshape(x, (4,))), "total size")
    return Observed(ending, reference="TypeError: total size")


NARROWED_SILENTLY = deviation(
    "jax<0.8.0",
    outcome="ok",
    reason="the result was narrowed without a word",
    issue="jax-ml/jax@9b6df1dce451",
)


@probe(source="jax-ml/jax@9b6df1dce451", deviations=[NARROWED_SILENTLY])
def warning_of_a_wide_dtype(env):
    """With 64 bits off, `jnp.result_type("float64")` is float32, with a warning from 0.8.0 on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dtype = jnp.result_type("float64")
    words = "Explicitly requested dtype float64"
    observed = {"dtype": str(dtype), "warned": any(words in str(w.message) for w in caught)}
    return Observed(observed, reference={"dtype": "float32", "warned": True})


MATRIX_NOT_TRANSPOSED = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the rule of the transpose did not exchange the diagonals",
    issue="jax-ml/jax@167a48f67786",
)


@probe(source="jax-ml/jax@167a48f67786", rtol=1e-4, deviations=[MATRIX_NOT_TRANSPOSED])
def transpose_of_a_tridiagonal_solve(env):
    """The transpose of the solution as a function of the right side.

    It solves the transposed system. Up to 0.4.38 it silently solved the system itself.
    """
    lower, diagonal, upper, right = f32(0, 1, 2), f32(4, 5, 6), f32(3, 1, 0), f32(1, 2, 3)[:, None]

    def solve(right):
        return lax.linalg.tridiagonal_solve(lower, diagonal, upper, right)

    (observed,) = jax.linear_transpose(solve, right)(right)
    matrix = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:2], 1)
    return Observed(observed, reference=np.linalg.solve(matrix.T.astype(np.float64), right))


NUMPY_PADS = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the pads were computed by NumPy and not converted",
    issue="jax-ml/jax@6ce4314fc1b6",
)


@probe(source="jax-ml/jax@6ce4314fc1b6", releases="jax>=0.7", deviations=[NUMPY_PADS])
def types_of_pads(env):
    """`lax.padtype_to_pads` of shapes in NumPy arrays returns integers of Python."""
    pads = lax.padtype_to_pads(np.array([10, 10]), np.array([5, 5]), np.array([1, 1]), "SAME")
    return Observed([type(n).__name__ for pair in pads for n in pair], ["int"] * 4)


NEGATIVE_SIZE = deviation(
    "jax>=0.9",
    outcome="ok",
    reason="the primitive for tiles does not check its repetitions",
    issue="jax-ml/jax@c396a367803f",
)


@probe(source="jax-ml/jax@c396a367803f", releases="jax>=0.7", deviations=[NEGATIVE_SIZE])
def negative_repetitions(env):
    """`jnp.tile` with a negative number of repetitions is refused by a check of JAX."""
    outcome = refusal(lambda: jnp.tile(np.ones(3, np.float32), -1), "nonnegative", "Invalid type")
    return Observed(outcome, "TypeError: nonnegative")
