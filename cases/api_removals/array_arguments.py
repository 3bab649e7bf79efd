"""Arguments that `jax.numpy` no longer accepts, and results of other types or in other containers.

Each case is code as users write it, with the value that it is meant to compute. A removed spelling
raises an error, and most such errors name the replacement. A few changes are silent: `None` was an
array of nan, and the meaning of a matrix on the right-hand side of `solve` changed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROWS, describe_refusal, expect_refusal, ignore_warnings

defaults(platforms=("cpu",))


NONE_BECAME_NAN = deviation(
    "jax<0.6",
    outcome="ok",
    reason="None became nan, with a FutureWarning, also within a list",
    issue="jax-ml/jax@9c58a112b3e3",
)


@probe(source="jax-ml/jax@9c58a112b3e3", deviations=[NONE_BECAME_NAN])
def none_for_an_array(env):
    """`jnp.array(None)` is a ValueError from 0.6.0; before, it is nan, which spreads silently.

    Code that passes on an optional argument fails late. Test for None where the argument comes in.
    """
    calls = {
        "array": lambda: jnp.array(None),
        "asarray": lambda: jnp.asarray(None),
        "within_a_list": lambda: jnp.array([1.0, None]),
    }
    words = "None is not a valid value for jnp.array"
    outcomes = {name: describe_refusal(call, words) for name, call in calls.items()}
    return Observed(outcomes, dict.fromkeys(calls, expect_refusal("ValueError")))


CLIPS = {
    "a_min_a_max": lambda x: jnp.clip(x, a_min=1, a_max=3),
    "a": lambda x: jnp.clip(a=x, min=1, max=3),
}


OLD_CLIP_KEYWORDS_REMOVED = deviation(
    "jax>=0.10",
    error="TypeError",
    match="clip",
    reason="the old keywords were removed; NumPy still has them",
    issue="jax-ml/jax@e1375a7dc1a5",
)


@probe(
    source="jax-ml/jax@e1375a7dc1a5",
    params={"a_min_a_max": {"how": "a_min_a_max"}, "a": {"how": "a"}},
    deviations=[OLD_CLIP_KEYWORDS_REMOVED],
)
def clip_keywords(env, how):
    """`jnp.clip(x, a_min=, a_max=)` is a TypeError from 0.10.0, although NumPy still accepts it.

    Positional bounds work on every release; `min=` and `max=` require NumPy 2.1 if the same code
    also calls NumPy.
    """
    return Observed(CLIPS[how](ROWS), np.clip(ROWS, 1, 3))


@probe(source="jax-ml/jax@e1375a7dc1a5")
def clip_on_every_release(env):
    """`jnp.clip` by position, or with `min=`, `max=` or both, works on every release."""
    results = {
        "by_position": jnp.clip(ROWS, 1, 3),
        "min_max": jnp.clip(ROWS, min=1, max=3),
        "upper_only": jnp.clip(ROWS, max=3),
    }
    both = np.clip(ROWS, 1, 3)
    upper = np.clip(ROWS, None, 3)
    return Observed(results, {"by_position": both, "min_max": both, "upper_only": upper})


INTERPOLATION_REMOVED_WITH_HINT = deviation(
    "jax>=0.8,<0.9",
    params=("quantile", "percentile", "nanquantile", "nanpercentile"),
    error="TypeError",
    match="argument interpolation was removed.* Use method instead",
    reason="removed, and the message names the replacement",
    issue="jax-ml/jax@77af61c3120a",
)
INTERPOLATION_REMOVED_WITHOUT_HINT = deviation(
    "jax>=0.9",
    params=("quantile", "percentile", "nanquantile", "nanpercentile"),
    error="TypeError",
    match="interpolation|<class 'str'>",
    reason="removed with its hint: the error reports only that a str is not an array",
    issue="jax-ml/jax@d6944d3d89ff",
)


@probe(
    source="jax-ml/jax@77af61c3120a",
    params={
        "quantile": {"name": "quantile", "at": 0.5},
        "percentile": {"name": "percentile", "at": 50.0},
        "nanquantile": {"name": "nanquantile", "at": 0.5},
        "nanpercentile": {"name": "nanpercentile", "at": 50.0},
        "method": {"name": "quantile", "at": 0.5, "keyword": "method"},
    },
    deviations=[INTERPOLATION_REMOVED_WITH_HINT, INTERPOLATION_REMOVED_WITHOUT_HINT],
)
def quantile_interpolation(env, name, at, keyword="interpolation"):
    """`interpolation=` of quantiles is a TypeError from 0.8.0, which names `method` up to 0.8.3.

    From 0.9.0 the keyword reaches jit, which calls the string a problematic value.
    """
    result = getattr(jnp, name)(np.float32([4, 1, 3, 2, 5, 0]), at, **{keyword: "lower"})
    return Observed(result, np.float64(2.0))


SQUARE_SIDE_IS_A_MATRIX = deviation(
    "jax>=0.5",
    params=("as_many_rows",),
    outcome="ok",
    reason="a (2, 2) right-hand side is now one matrix for both systems",
    issue="jax-ml/jax@051abafd6d99",
)
BATCH_OF_VECTORS_REFUSED = deviation(
    "jax>=0.5",
    params=("more_rows",),
    error="ValueError",
    match="Invalid shapes for solve",
    reason="a batch of vectors is no longer accepted as the right-hand side",
    issue="jax-ml/jax@051abafd6d99",
)


@probe(
    source="jax-ml/jax@051abafd6d99",
    params={
        "as_many_rows": {"rows": 2, "explicit": False},
        "more_rows": {"rows": 3, "explicit": False},
        "explicit": {"rows": 2, "explicit": True},
    },
    deviations=[SQUARE_SIDE_IS_A_MATRIX, BATCH_OF_VECTORS_REFUSED],
)
def batch_of_right_hand_sides(env, rows, explicit):
    """From 0.5.0 `solve` refuses a batch of vectors, or silently takes the batch as a matrix.

    `solve(a, b[..., None])[..., 0]` means a batch of vectors before and after this change.
    """
    a = np.stack([np.eye(2) * (k + 2.0) for k in range(rows)]).astype(np.float32)
    b = np.arange(1, 1 + 2 * rows, dtype=np.float32).reshape(rows, 2)
    with ignore_warnings():
        x = jnp.linalg.solve(a, b[..., None])[..., 0] if explicit else jnp.linalg.solve(a, b)
    return Observed(x, b.astype(np.float64) / (np.arange(rows)[:, None] + 2))


NUMERIC_MASK_REFUSED = deviation(
    "jax>=0.8",
    params=("sum_of_floats", "sum_of_ints", "max_of_ints"),
    error="ValueError",
    match="where must be None or a boolean array",
    reason="a mask of numbers is refused, after a DeprecationWarning since 0.4.36",
    issue="jax-ml/jax@d369bb0e1d78",
)


@probe(
    source="jax-ml/jax@d369bb0e1d78",
    params={
        "sum_of_floats": {"reduce": "sum", "dtype": "float32"},
        "sum_of_ints": {"reduce": "sum", "dtype": "int32"},
        "max_of_ints": {"reduce": "max", "dtype": "int32"},
        "sum_of_bools": {"reduce": "sum", "dtype": "bool"},
    },
    deviations=[NUMERIC_MASK_REFUSED],
)
def mask_of_numbers(env, reduce, dtype):
    """`where=` of a reduction must be boolean from 0.8.0; before, any number was a mask.

    Convert a mask of floats, such as a padding mask, with `mask.astype(bool)`; a weight of 0.5
    counted in full.
    """
    mask = np.array([1, 0, 2, 0, 1, 0]).astype(dtype)
    with ignore_warnings():
        result = getattr(jnp, reduce)(ROWS, where=mask, initial=0)
    return Observed(result, np.float64({"sum": 6, "max": 4}[reduce]))


DTYPES = {
    "astype": lambda like: jnp.float32(ROWS).astype(like),
    "creation": lambda like: jnp.ones(6, dtype=like),
    "of_it": lambda like: jnp.float32(ROWS).astype(like.dtype),
}


ARRAY_AS_DTYPE_REFUSED = deviation(
    "jax>=0.8",
    params=("astype", "creation"),
    error="ValueError",
    match="Passing an array as a dtype argument is no longer supported",
    reason="an array is no longer accepted in place of its dtype, deprecated since 0.4.30",
    issue="jax-ml/jax@9d5932a19083",
)


@probe(
    source="jax-ml/jax@9d5932a19083",
    params={
        "astype": {"how": "astype"},
        "creation": {"how": "creation"},
        "of_it": {"how": "of_it"},
    },
    deviations=[ARRAY_AS_DTYPE_REFUSED],
)
def array_for_a_dtype(env, how):
    """`x.astype(y)` with an array `y` is a ValueError from 0.8.0: write `y.dtype`."""
    with ignore_warnings():
        result = DTYPES[how](jnp.zeros(2, jnp.int32))
    expected = np.ones(6) if how == "creation" else ROWS
    return Observed(result, expected.astype(np.int32))


TRIMMED = {
    "array": ([0, 1, 2, 0], True, [1, 2]),
    "list": ([0, 1, 2, 0], False, [1, 2]),
    "matrix": ([[0, 0, 0], [0, 1, 0], [0, 2, 0]], True, [[1], [2]]),
}


TRIM_ZEROS_REFUSES_LISTS = deviation(
    "jax>=0.8",
    params=("list",),
    error="TypeError",
    match="trim_zeros requires ndarray or scalar arguments",
    reason="lists are refused, after a DeprecationWarning since 0.4.34",
    issue="jax-ml/jax@45bd03bb0fcf",
)
MATRIX_NOT_TRIMMED = deviation(
    "jax<0.8",
    params=("matrix",),
    outcome="ok",
    reason="a matrix was emptied, or cut by its first axis, instead of trimmed",
    issue="jax-ml/jax@2714469397c1",
)


@probe(
    source="jax-ml/jax@45bd03bb0fcf",
    params={
        "array": {"of": "array"},
        "list": {"of": "list"},
        "matrix": {"of": "matrix"},
    },
    deviations=[TRIM_ZEROS_REFUSES_LISTS, MATRIX_NOT_TRIMMED],
)
def trimmed_zeros(env, of):
    """From 0.8.0 `jnp.trim_zeros` trims a matrix as NumPy 2.2 does, and refuses a list.

    The changelog of 0.8.0 states both that other ranks raise an error and that they are supported.
    They are supported.
    """
    value, as_array, expected = TRIMMED[of]
    with ignore_warnings():
        result = jnp.trim_zeros(np.int32(value) if as_array else value)
    return Observed(result, np.int32(expected))


PRECISION_IS_KEYWORD_ONLY = deviation(
    "jax>=0.9",
    params=("by_position",),
    error="TypeError",
    match="dot\\(\\) takes 2 positional arguments but 3 were given",
    reason="precision is keyword-only, deprecated by position since 0.7.1",
    issue="jax-ml/jax@f314722eda76",
)


@probe(
    source="jax-ml/jax@f314722eda76",
    params={"by_position": {"keyword": False}, "by_keyword": {"keyword": True}},
    deviations=[PRECISION_IS_KEYWORD_ONLY],
)
def precision_of_dot(env, keyword):
    """`lax.dot(a, b, precision)` is a TypeError from 0.9.0: `precision` is keyword-only."""
    with ignore_warnings():
        exactly = lax.Precision.HIGHEST
        result = lax.dot(ROWS, ROWS, precision=exactly) if keyword else lax.dot(ROWS, ROWS, exactly)
    return Observed(result, np.float64(55))


COMPLEX = {
    "clip": lambda z: jnp.clip(z, 1, 3),
    "hypot": lambda z: jnp.hypot(z, 1.0),
    "fabs": jnp.fabs,
}


COMPLEX_NUMBERS_ACCEPTED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the functions returned a value: they compared real parts or took moduli",
    issue="jax-ml/jax@8bcd28862122",
)


@probe(
    source="jax-ml/jax@8bcd28862122",
    params={
        "clip": {"name": "clip"},
        "hypot": {"name": "hypot"},
        "fabs": {"name": "fabs"},
    },
    deviations=[COMPLEX_NUMBERS_ACCEPTED],
)
def complex_where_order_is_needed(env, name):
    """clip, hypot and fabs of complex numbers are errors from 0.4.33; before, they gave a number.

    The changelog lists the change under 0.4.32, which was withdrawn.
    """
    outcome = describe_refusal(lambda: COMPLEX[name](np.complex64([1 + 2j, 5 - 1j])), "omplex")
    return Observed(outcome, expect_refusal("TypeError" if name == "fabs" else "ValueError"))


INITIAL_REMOVED_WITH_MESSAGE = deviation(
    "jax>=0.4.36,<0.6",
    error="TypeError",
    match="The initial argument to jax.nn.(log_)?softmax was removed",
    reason="initial was removed, with an error message for this argument",
    issue="jax-ml/jax@e9acaa848491",
)
INITIAL_REMOVED = deviation(
    "jax>=0.6",
    error="TypeError",
    match="unexpected keyword argument 'initial'",
    reason="initial was removed without a trace",
    issue="jax-ml/jax@b271a67bbc04",
)


@probe(
    source="jax-ml/jax@b271a67bbc04",
    params={
        "softmax": {"name": "softmax"},
        "log_softmax": {"name": "log_softmax"},
    },
    deviations=[INITIAL_REMOVED_WITH_MESSAGE, INITIAL_REMOVED],
)
def initial_of_softmax(env, name):
    """`initial=` of softmax had no effect up to 0.4.35, and is a TypeError from 0.4.36: omit it."""
    with ignore_warnings():
        result = getattr(jax.nn, name)(ROWS, initial=0.0)
    exact = np.exp(ROWS.astype(np.float64)) / np.exp(ROWS.astype(np.float64)).sum()
    return Observed(result, exact if name == "softmax" else np.log(exact))


WEAK_TYPE_REQUIRED = deviation(
    "jax<0.4.35",
    outcome="ok",
    reason="an array without dimensions was a scalar only if its type was weak",
    issue="jax-ml/jax@45f0e9ad683d",
)


@probe(source="jax-ml/jax@45f0e9ad683d", deviations=[WEAK_TYPE_REQUIRED])
def scalars(env):
    """`isscalar` of an array without dimensions is True since 0.4.35, unlike in NumPy.

    Arrays silently take a branch that is meant for Python numbers. Use `isinstance(x, float)`.
    """
    values = {
        "number": 1.0,
        "from a number": jnp.asarray(1.0),
        "from NumPy": jnp.asarray(np.float32(1)),
        "of NumPy": np.array(1.0),
        "of one element": jnp.ones(1),
    }
    observed = {name: jnp.isscalar(value) for name, value in values.items()}
    return Observed(observed, dict.fromkeys(values, True) | {"of one element": False})


POSITIONAL_CALLS = {
    "copy_of_array": lambda: jnp.array(ROWS, np.float32, True),
    "accuracy_of_exp": lambda: jnp.log(lax.exp(ROWS, None)),
}


COPY_IS_KEYWORD_ONLY = deviation(
    "jax>=0.12",
    params=("copy_of_array",),
    error="TypeError",
    match="takes from 1 to 2 positional arguments but 3 were given",
    reason="copy is keyword-only, as in NumPy, deprecated by position since 0.10.1",
    issue="jax-ml/jax#40878",
)
NO_ACCURACY_ARGUMENT = deviation(
    "jax<0.6",
    params=("accuracy_of_exp",),
    error="TypeError",
    match="takes 1 positional argument but 2 were given",
    reason="lax.exp had no argument accuracy",
    issue="jax-ml/jax@fa2a8cafba10",
)
ACCURACY_IS_KEYWORD_ONLY = deviation(
    "jax>=0.9.2",
    params=("accuracy_of_exp",),
    error="TypeError",
    match="takes 1 positional argument but 2 were given",
    reason="accuracy is keyword-only",
    issue="jax-ml/jax@fa2a8cafba10",
)


@probe(
    source="jax-ml/jax@74ac1aff1920",
    rtol=1e-5,
    params={
        "copy_of_array": {"of": "copy_of_array"},
        "accuracy_of_exp": {"of": "accuracy_of_exp"},
    },
    deviations=[COPY_IS_KEYWORD_ONLY, NO_ACCURACY_ARGUMENT, ACCURACY_IS_KEYWORD_ONLY],
)
def argument_by_position(env, of):
    """`copy` of `jnp.array` is keyword-only from 0.12.0, `accuracy` of `lax.exp` from 0.9.2."""
    with ignore_warnings():
        return Observed(POSITIONAL_CALLS[of](), ROWS.astype(np.float64))


SEVERAL = {
    "atleast_1d": lambda: jnp.atleast_1d(1.0, 2.0),
    "atleast_2d": lambda: jnp.atleast_2d(1.0, 2.0),
    "unstack": lambda: jnp.unstack(ROWS),
}


ATLEAST_RETURNED_A_LIST = deviation(
    "jax<0.12",
    params=("atleast_1d", "atleast_2d"),
    outcome="ok",
    reason="the result was a list, as in NumPy before 2.0",
    issue="jax-ml/jax#19531",
)


@probe(
    source="jax-ml/jax#19531",
    params={
        "atleast_1d": {"name": "atleast_1d"},
        "atleast_2d": {"name": "atleast_2d"},
        "unstack": {"name": "unstack"},
    },
    deviations=[ATLEAST_RETURNED_A_LIST],
)
def several_arrays(env, name):
    """Functions of `jnp` that return several arrays return them as a tuple, as NumPy 2 does."""
    return Observed(type(SEVERAL[name]()).__name__, "tuple")


BROADCAST_RETURNED_A_LIST = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the result was a list, as in NumPy before 2.0",
    issue="jax-ml/jax#39789",
)


@probe(source="jax-ml/jax#39789", deviations=[BROADCAST_RETURNED_A_LIST])
def arrays_of_one_shape(env):
    """`broadcast_arrays` and `meshgrid` return a tuple from 0.11.1, as NumPy 2 does."""
    results = {
        "broadcast_arrays": jnp.broadcast_arrays(ROWS, 1.0),
        "meshgrid": jnp.meshgrid(ROWS, ROWS),
    }
    types = {name: type(arrays).__name__ for name, arrays in results.items()}
    return Observed(types, dict.fromkeys(results, "tuple"))


NEGATIVE_AXES_REFUSED = deviation(
    "jax<0.11",
    error="TypeError",
    match="isn't a permutation",
    reason="permute_dims passed negative axes to lax unchanged",
    issue="jax-ml/jax@e3052b2cb2b5",
)


@probe(source="jax-ml/jax@e3052b2cb2b5", deviations=[NEGATIVE_AXES_REFUSED])
def negative_axes_of_permute_dims(env):
    """`jnp.permute_dims(x, (-1, 0))` works from 0.11.0, as it always did with `jnp.transpose`."""
    x = ROWS.reshape(2, 3)
    return Observed(jnp.permute_dims(x, (-1, 0)), x.T.astype(np.float64))


HALVES_REFUSED_AT_LOWERING = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="float16 was a NotImplementedError at lowering",
    issue="jax-ml/jax@be2f36d07e25",
)


@probe(source="jax-ml/jax@be2f36d07e25", deviations=[HALVES_REFUSED_AT_LOWERING])
def factorisations_of_halves(env):
    """A factorisation of float16 is a TypeError from 0.11.1, which lists the accepted dtypes."""
    half, words = np.eye(2, dtype=np.float16), "does not accept dtype float16"
    names = ("cholesky", "qr", "eigh", "svd")
    outcomes = {
        name: describe_refusal(lambda: getattr(lax.linalg, name)(half), words) for name in names
    }
    return Observed(outcomes, dict.fromkeys(names, expect_refusal("TypeError")))


COMPLEX_RANGE_ACCEPTED = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the result was the range of the real parts, if any: empty from 0 to 5 by 1 + 1j",
    issue="jax-ml/jax#32542",
)


@probe(source="jax-ml/jax#32542", deviations=[COMPLEX_RANGE_ACCEPTED])
def complex_range(env):
    """`jnp.arange` of complex numbers is a ValueError since 0.10.0; its result was meaningless."""
    outcome = describe_refusal(lambda: jnp.arange(0, 5, 1 + 1j), "complex start/stop/step")
    return Observed(outcome, expect_refusal("ValueError"))


ROWS_OF_LISTS_REFUSED = deviation(
    "jax>=0.10",
    error="TypeError",
    match="requires ndarray or scalar arguments, got <class 'list'>",
    reason="lists are refused, after a DeprecationWarning",
    issue="jax-ml/jax@e1375a7dc1a5",
)


@probe(
    source="jax-ml/jax@e1375a7dc1a5",
    params={
        "atleast_1d": {"name": "atleast_1d"},
        "atleast_2d": {"name": "atleast_2d"},
        "atleast_3d": {"name": "atleast_3d"},
        "column_stack": {"name": "column_stack"},
        "hstack": {"name": "hstack"},
        "vstack": {"name": "vstack"},
    },
    deviations=[ROWS_OF_LISTS_REFUSED],
)
def rows_of_lists(env, name):
    """`jnp.vstack([[1, 2], [3, 4]])` and the like are a TypeError from 0.10.0, unlike in NumPy.

    `stack`, `dstack` and `concatenate` always refused lists; `array` and `block` always accepted
    them.
    """
    rows = [[1, 2], [3, 4]]
    with ignore_warnings():
        result = getattr(jnp, name)(rows)
    return Observed(result, getattr(np, name)(np.int32(rows)))


MEMBERS_OF_OTHER_TYPES_REFUSED = deviation(
    "jax>=0.10",
    params=["none", "text"],
    error="TypeError",
    match="Array.__contains__: unsupported operand type",
    reason="`in` accepts numbers only",
    issue="jax-ml/jax#26779",
)
MEMBERS_WITH_AXES_REFUSED = deviation(
    "jax>=0.10",
    params=["column", "one_element"],
    error="ValueError",
    match="Array.__contains__: (search array must be one-dimensional|query value must be a scalar)",
    reason="`in` looks for a scalar in a vector only",
    issue="jax-ml/jax#26779",
)
MEMBERS = {
    "none": lambda: None in jnp.float32([0, 1, 2]),
    "text": lambda: "one" in jnp.float32([0, 1, 2]),
    "one_element": lambda: np.float32([1]) in jnp.float32([0, 1, 2]),
    "column": lambda: 1.0 in jnp.float32([[0], [1], [2]]),
}


@probe(
    source="jax-ml/jax#26779",
    params=[*MEMBERS],
    deviations=[MEMBERS_OF_OTHER_TYPES_REFUSED, MEMBERS_WITH_AXES_REFUSED],
)
def membership(env, name):
    """`None in x` and `"one" in x` are a TypeError from 0.10.0; before, they were False.

    The old implementation compared the elements one after the other.
    """
    return Observed(MEMBERS[name](), reference=name in ("one_element", "column"))


OTHER_BYTE_ORDER = {
    "array": lambda: jnp.array(ROWS.astype(">i4")),
    "astype": lambda: jnp.asarray(ROWS).astype(">i4"),
    "creation": lambda: jnp.full(6, 7, dtype=">f4"),
}
ARRAY_OF_OTHER_BYTE_ORDER_REFUSED = deviation(
    "jax>=0.10",
    params=["array"],
    error="TypeError",
    match="is not a valid JAX array type|Error interpreting argument to stage as a JAX value",
    reason="only dtypes in the byte order of the machine are accepted",
    issue="jax-ml/jax@66a99fe93ad8",
)
DTYPE_OF_OTHER_BYTE_ORDER_REFUSED = deviation(
    "jax>=0.7.2",
    params=["astype", "creation"],
    error="TypeError",
    match="JAX only supports number, bool, and string dtypes, got dtype >",
    reason="only dtypes in the byte order of the machine are accepted",
    issue="jax-ml/jax@a44d2cb43962",
)


@probe(
    source="jax-ml/jax@a44d2cb43962",
    params=[*OTHER_BYTE_ORDER],
    deviations=[ARRAY_OF_OTHER_BYTE_ORDER_REFUSED, DTYPE_OF_OTHER_BYTE_ORDER_REFUSED],
)
def byte_order(env, name):
    """Big-endian integers, as in many files, are a TypeError from 0.10.0 on.

    As the dtype of a new array, or of `astype`, they are a TypeError from 0.7.2 on. Before, the
    result had the byte order of the machine. Big-endian floats were never accepted as an array.
    """
    expected = np.full(6, 7, np.float32) if name == "creation" else np.int32(ROWS)
    return Observed(OTHER_BYTE_ORDER[name](), reference=expected)


LISTS_OF_NUMBERS_MULTIPLIED = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="lists were converted",
    issue="jax-ml/jax@4e30a08e8458",
)


@probe(source="jax-ml/jax@4e30a08e8458", deviations=[LISTS_OF_NUMBERS_MULTIPLIED])
def einsum_of_lists(env):
    """`jnp.einsum` of lists is a TypeError from 0.5.1 on, unlike in NumPy."""
    outcome = describe_refusal(
        lambda: jnp.einsum("i,i", [1.0, 2.0], [3.0, 4.0]), "got <class 'list'>"
    )
    return Observed(outcome, expect_refusal("TypeError"))


FACTORS = {
    "lu": lambda: lax.linalg.lu(np.eye(2, dtype=np.float32)),
    "tridiagonal": lambda: lax.linalg.tridiagonal(np.eye(2, dtype=np.float32)),
}
LU_IN_A_LIST = deviation(
    "jax>=0.5.1",
    params=["lu"],
    outcome="ok",
    reason="the results of the primitive are returned as they are",
    issue="jax-ml/jax@126909b62ad6",
)
TRIDIAGONAL_IN_A_LIST = deviation(
    "jax>=0.5.1",
    params=["tridiagonal"],
    outcome="ok",
    reason="the results of the primitive are returned as they are",
    issue="jax-ml/jax@14afb732419d",
)


@probe(
    source="jax-ml/jax@126909b62ad6",
    params=[*FACTORS],
    deviations=[LU_IN_A_LIST, TRIDIAGONAL_IN_A_LIST],
)
def container_of_factors(env, name):
    """`lax.linalg.lu` and `lax.linalg.tridiagonal` return a list from 0.5.1, before a tuple.

    A branch of `lax.cond` that returns it no longer matches a branch that returns a tuple.
    """
    return Observed(type(FACTORS[name]()).__name__, "tuple")
