"""Arguments that `jax.numpy` takes no more, and results in other containers or of other types.

Each case is code as users have it, with the value that it is meant to compute. Where a spelling
was withdrawn it raises, and most such errors say what to write instead. A few changes are silent:
`None` was an array of nan, and a matrix on the right of `solve` changed its meaning.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

from ._helpers import ROWS, quiet, refusal, refused


@probe(
    source="jax-ml/jax@9c58a112b3e3",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="None was taken for nan, with a FutureWarning, also within a list",
            issue="jax-ml/jax@9c58a112b3e3",
        )
    ],
)
def none_for_an_array(env):
    """`jnp.array(None)` is refused from 0.6.0; before it is nan, and that goes on silently.

    Code that passes an optional argument through finds out late. Test for None where it comes in.
    """
    makes = {
        "array": lambda: jnp.array(None),
        "asarray": lambda: jnp.asarray(None),
        "within_a_list": lambda: jnp.array([1.0, None]),
    }
    told = "None is not a valid value for jnp.array"
    ended = {name: refusal(make, told) for name, make in makes.items()}
    return Observed(ended, dict.fromkeys(makes, refused("ValueError")))


CLIPS = {
    "a_min_a_max": lambda x: jnp.clip(x, a_min=1, a_max=3),
    "a": lambda x: jnp.clip(a=x, min=1, max=3),
}


@probe(
    source="jax-ml/jax@e1375a7dc1a5",
    platforms=("cpu",),
    params={"a_min_a_max": {"how": "a_min_a_max"}, "a": {"how": "a"}},
    deviations=[
        deviation(
            "jax>=0.10",
            error="TypeError",
            match="clip",
            reason="the old names are gone; NumPy still has them",
            issue="jax-ml/jax@e1375a7dc1a5",
        )
    ],
)
def clip_keywords(env, how):
    """`jnp.clip(x, a_min=, a_max=)` is a TypeError from 0.10.0, though NumPy goes on taking them.

    By position it works everywhere; `min=` and `max=` need NumPy 2.1 on the other side.
    """
    return Observed(CLIPS[how](ROWS), np.clip(ROWS, 1, 3))


@probe(source="jax-ml/jax@e1375a7dc1a5", platforms=("cpu",))
def clip_on_every_release(env):
    """`jnp.clip` by position, or with `min=` and `max=`, one of them or both: it always worked."""
    found = {
        "by_position": jnp.clip(ROWS, 1, 3),
        "min_max": jnp.clip(ROWS, min=1, max=3),
        "upper_only": jnp.clip(ROWS, max=3),
    }
    both = np.clip(ROWS, 1, 3)
    upper = np.clip(ROWS, None, 3)
    return Observed(found, {"by_position": both, "min_max": both, "upper_only": upper})


@probe(
    source="jax-ml/jax@77af61c3120a",
    platforms=("cpu",),
    params={
        "quantile": {"name": "quantile", "at": 0.5},
        "percentile": {"name": "percentile", "at": 50.0},
        "nanquantile": {"name": "nanquantile", "at": 0.5},
        "nanpercentile": {"name": "nanpercentile", "at": 50.0},
        "method": {"name": "quantile", "at": 0.5, "keyword": "method"},
    },
    deviations=[
        deviation(
            "jax>=0.8,<0.9",
            params=("quantile", "percentile", "nanquantile", "nanpercentile"),
            error="TypeError",
            match="argument interpolation was removed.* Use method instead",
            reason="removed, and the message says what to write",
            issue="jax-ml/jax@77af61c3120a",
        ),
        deviation(
            "jax>=0.9",
            params=("quantile", "percentile", "nanquantile", "nanpercentile"),
            error="TypeError",
            match="interpolation|<class 'str'>",
            reason="the hint went with the argument: what is told is that a str is no array",
            issue="jax-ml/jax@d6944d3d89ff",
        ),
    ],
)
def quantile_interpolation(env, name, at, keyword="interpolation"):
    """`interpolation=` of the quantiles: a TypeError from 0.8.0, that names `method` till 0.9.0.

    From 0.9.0 the keyword reaches jit, which calls the string a problematic value.
    """
    found = getattr(jnp, name)(np.float32([4, 1, 3, 2, 5, 0]), at, **{keyword: "lower"})
    return Observed(found, np.float64(2.0))


@probe(
    source="jax-ml/jax@051abafd6d99",
    platforms=("cpu",),
    params={
        "as_many_rows": {"rows": 2, "explicit": False},
        "more_rows": {"rows": 3, "explicit": False},
        "explicit": {"rows": 2, "explicit": True},
    },
    deviations=[
        deviation(
            "jax>=0.5",
            params=("as_many_rows",),
            outcome="ok",
            reason="(2, 2) on the right is one matrix for both systems now",
            issue="jax-ml/jax@051abafd6d99",
        ),
        deviation(
            "jax>=0.5",
            params=("more_rows",),
            error="ValueError",
            match="Invalid shapes for solve",
            reason="a batch of vectors is no right hand side any more",
            issue="jax-ml/jax@051abafd6d99",
        ),
    ],
)
def batch_of_right_hand_sides(env, rows, explicit):
    """`solve` of a batch with as many vectors: from 0.5.0 refused, or silently a matrix.

    `solve(a, b[..., None])[..., 0]` means a batch of vectors on both sides.
    """
    a = np.stack([np.eye(2) * (k + 2.0) for k in range(rows)]).astype(np.float32)
    b = np.arange(1, 1 + 2 * rows, dtype=np.float32).reshape(rows, 2)
    with quiet():
        x = jnp.linalg.solve(a, b[..., None])[..., 0] if explicit else jnp.linalg.solve(a, b)
    return Observed(x, b.astype(np.float64) / (np.arange(rows)[:, None] + 2))


@probe(
    source="jax-ml/jax@d369bb0e1d78",
    platforms=("cpu",),
    params={
        "sum_of_floats": {"reduce": "sum", "dtype": "float32"},
        "sum_of_ints": {"reduce": "sum", "dtype": "int32"},
        "max_of_ints": {"reduce": "max", "dtype": "int32"},
        "sum_of_bools": {"reduce": "sum", "dtype": "bool"},
    },
    deviations=[
        deviation(
            "jax>=0.8",
            params=("sum_of_floats", "sum_of_ints", "max_of_ints"),
            error="ValueError",
            match="where must be None or a boolean array",
            reason="a mask of numbers is refused, after a DeprecationWarning since 0.4.36",
            issue="jax-ml/jax@d369bb0e1d78",
        )
    ],
)
def mask_of_numbers(env, reduce, dtype):
    """`where=` of a reduction must be boolean from 0.8.0; before any number was a mask.

    A mask of floats, as padding masks are, becomes `mask.astype(bool)`; a weight of 0.5 counted
    in full.
    """
    mask = np.array([1, 0, 2, 0, 1, 0]).astype(dtype)
    with quiet():
        found = getattr(jnp, reduce)(ROWS, where=mask, initial=0)
    return Observed(found, np.float64({"sum": 6, "max": 4}[reduce]))


DTYPES = {
    "astype": lambda like: jnp.float32(ROWS).astype(like),
    "creation": lambda like: jnp.ones(6, dtype=like),
    "of_it": lambda like: jnp.float32(ROWS).astype(like.dtype),
}


@probe(
    source="jax-ml/jax@9d5932a19083",
    platforms=("cpu",),
    params={
        "astype": {"how": "astype"},
        "creation": {"how": "creation"},
        "of_it": {"how": "of_it"},
    },
    deviations=[
        deviation(
            "jax>=0.8",
            params=("astype", "creation"),
            error="ValueError",
            match="Passing an array as a dtype argument is no longer supported",
            reason="an array stood for its dtype, deprecated since 0.4.30",
            issue="jax-ml/jax@9d5932a19083",
        )
    ],
)
def array_for_a_dtype(env, how):
    """`x.astype(y)` with an array `y` is refused from 0.8.0: write `y.dtype`."""
    with quiet():
        found = DTYPES[how](jnp.zeros(2, jnp.int32))
    expected = np.ones(6) if how == "creation" else ROWS
    return Observed(found, expected.astype(np.int32))


TRIMMED = {
    "array": ([0, 1, 2, 0], True, [1, 2]),
    "list": ([0, 1, 2, 0], False, [1, 2]),
    "matrix": ([[0, 0, 0], [0, 1, 0], [0, 2, 0]], True, [[1], [2]]),
}


@probe(
    source="jax-ml/jax@45bd03bb0fcf",
    platforms=("cpu",),
    params={
        "array": {"of": "array"},
        "list": {"of": "list"},
        "matrix": {"of": "matrix"},
    },
    deviations=[
        deviation(
            "jax>=0.8",
            params=("list",),
            error="TypeError",
            match="trim_zeros requires ndarray or scalar arguments",
            reason="lists are refused, after a DeprecationWarning since 0.4.34",
            issue="jax-ml/jax@45bd03bb0fcf",
        ),
        deviation(
            "jax<0.8",
            params=("matrix",),
            outcome="ok",
            reason="a matrix was not trimmed but emptied or cut by its first axis",
            issue="jax-ml/jax@2714469397c1",
        ),
    ],
)
def trimmed_zeros(env, of):
    """`jnp.trim_zeros`: from 0.8.0 a matrix is trimmed as NumPy 2.2 does it, a list is refused.

    The changelog of 0.8.0 says both that other ranks raise and that they are supported. They are.
    """
    value, as_array, expected = TRIMMED[of]
    with quiet():
        found = jnp.trim_zeros(np.int32(value) if as_array else value)
    return Observed(found, np.int32(expected))


@probe(
    source="jax-ml/jax@f314722eda76",
    platforms=("cpu",),
    params={"by_position": {"keyword": False}, "by_keyword": {"keyword": True}},
    deviations=[
        deviation(
            "jax>=0.9",
            params=("by_position",),
            error="TypeError",
            match="dot\\(\\) takes 2 positional arguments but 3 were given",
            reason="precision is keyword-only, deprecated by position since 0.7.1",
            issue="jax-ml/jax@f314722eda76",
        )
    ],
)
def precision_of_dot(env, keyword):
    """`lax.dot(a, b, precision)`: by keyword alone from 0.9.0."""
    with quiet():
        exactly = lax.Precision.HIGHEST
        found = lax.dot(ROWS, ROWS, precision=exactly) if keyword else lax.dot(ROWS, ROWS, exactly)
    return Observed(found, np.float64(55))


COMPLEX = {
    "clip": lambda z: jnp.clip(z, 1, 3),
    "hypot": lambda z: jnp.hypot(z, 1.0),
    "fabs": jnp.fabs,
}


@probe(
    source="jax-ml/jax@8bcd28862122",
    platforms=("cpu",),
    params={
        "clip": {"name": "clip"},
        "hypot": {"name": "hypot"},
        "fabs": {"name": "fabs"},
    },
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            reason="some value came out, by comparing real parts or by taking moduli",
            issue="jax-ml/jax@8bcd28862122",
        )
    ],
)
def complex_where_order_is_needed(env, name):
    """clip, hypot and fabs of complex numbers raise from 0.4.33; before they gave some number.

    The changelog has it in 0.4.32, which was withdrawn.
    """
    ended = refusal(lambda: COMPLEX[name](np.complex64([1 + 2j, 5 - 1j])), "omplex")
    return Observed(ended, refused("TypeError" if name == "fabs" else "ValueError"))


@probe(
    source="jax-ml/jax@b271a67bbc04",
    platforms=("cpu",),
    params={
        "softmax": {"name": "softmax"},
        "log_softmax": {"name": "log_softmax"},
    },
    deviations=[
        deviation(
            "jax>=0.4.36,<0.6",
            error="TypeError",
            match="The initial argument to jax.nn.(log_)?softmax was removed",
            reason="removed with a message of its own",
            issue="jax-ml/jax@e9acaa848491",
        ),
        deviation(
            "jax>=0.6",
            error="TypeError",
            match="unexpected keyword argument 'initial'",
            reason="removed without a trace",
            issue="jax-ml/jax@b271a67bbc04",
        ),
    ],
)
def initial_of_softmax(env, name):
    """`initial=` of softmax did nothing up to 0.4.35, and is a TypeError since: leave it out."""
    with quiet():
        found = getattr(jax.nn, name)(ROWS, initial=0.0)
    exact = np.exp(ROWS.astype(np.float64)) / np.exp(ROWS.astype(np.float64)).sum()
    return Observed(found, exact if name == "softmax" else np.log(exact))


@probe(
    source="jax-ml/jax@45f0e9ad683d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.35",
            outcome="ok",
            reason="one of no dimensions counted if its type was weak",
            issue="jax-ml/jax@45f0e9ad683d",
        )
    ],
)
def scalars(env):
    """`isscalar` of an array of no dimensions: True since 0.4.35, unlike NumPy's.

    A branch for Python numbers is silently taken by arrays, too. Ask `isinstance(x, float)`.
    """
    asked = {
        "number": 1.0,
        "from a number": jnp.asarray(1.0),
        "from NumPy": jnp.asarray(np.float32(1)),
        "of NumPy": np.array(1.0),
        "of one element": jnp.ones(1),
    }
    seen = {name: jnp.isscalar(value) for name, value in asked.items()}
    return Observed(seen, dict.fromkeys(asked, True) | {"of one element": False})


PLACES = {
    "copy_of_array": lambda: jnp.array(ROWS, np.float32, True),
    "accuracy_of_exp": lambda: jnp.log(lax.exp(ROWS, None)),
}


@probe(
    source="jax-ml/jax@74ac1aff1920",
    platforms=("cpu",),
    rtol=1e-5,
    params={
        "copy_of_array": {"of": "copy_of_array"},
        "accuracy_of_exp": {"of": "accuracy_of_exp"},
    },
    deviations=[
        deviation(
            "jax>=0.12",
            params=("copy_of_array",),
            error="TypeError",
            match="takes from 1 to 2 positional arguments but 3 were given",
            reason="by keyword only, as in NumPy, and deprecated since 0.10.1",
            issue="jax-ml/jax#40878",
        ),
        deviation(
            "jax<0.6",
            params=("accuracy_of_exp",),
            error="TypeError",
            match="takes 1 positional argument but 2 were given",
            reason="there was none",
            issue="jax-ml/jax@fa2a8cafba10",
        ),
        deviation(
            "jax>=0.9.2",
            params=("accuracy_of_exp",),
            error="TypeError",
            match="takes 1 positional argument but 2 were given",
            reason="by keyword only",
            issue="jax-ml/jax@fa2a8cafba10",
        ),
    ],
)
def argument_by_position(env, of):
    """`copy` of `jnp.array` by keyword alone from 0.12.0, `accuracy` of `lax.exp` from 0.9.2."""
    with quiet():
        return Observed(PLACES[of](), ROWS.astype(np.float64))


SEVERAL = {
    "atleast_1d": lambda: jnp.atleast_1d(1.0, 2.0),
    "atleast_2d": lambda: jnp.atleast_2d(1.0, 2.0),
    "unstack": lambda: jnp.unstack(ROWS),
}


@probe(
    source="jax-ml/jax#19531",
    platforms=("cpu",),
    params={
        "atleast_1d": {"name": "atleast_1d"},
        "atleast_2d": {"name": "atleast_2d"},
        "unstack": {"name": "unstack"},
    },
    deviations=[
        deviation(
            "jax<0.12",
            params=("atleast_1d", "atleast_2d"),
            outcome="ok",
            reason="a list, as in NumPy before 2.0",
            issue="jax-ml/jax#19531",
        )
    ],
)
def several_arrays(env, name):
    """Functions of `jnp` that return several arrays, return a tuple of them as NumPy 2 does."""
    return Observed(type(SEVERAL[name]()).__name__, "tuple")


@probe(
    source="jax-ml/jax#39789",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="a list, as in NumPy before 2.0",
            issue="jax-ml/jax#39789",
        )
    ],
)
def arrays_of_one_shape(env):
    """`broadcast_arrays` and `meshgrid` return a tuple as NumPy 2 does, from 0.11.1 on."""
    found = {
        "broadcast_arrays": jnp.broadcast_arrays(ROWS, 1.0),
        "meshgrid": jnp.meshgrid(ROWS, ROWS),
    }
    kinds = {name: type(arrays).__name__ for name, arrays in found.items()}
    return Observed(kinds, dict.fromkeys(found, "tuple"))


@probe(
    source="jax-ml/jax@e3052b2cb2b5",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11",
            error="TypeError",
            match="isn't a permutation",
            reason="they went to lax as they were",
            issue="jax-ml/jax@e3052b2cb2b5",
        )
    ],
)
def negative_axes_of_permute_dims(env):
    """`jnp.permute_dims(x, (-1, 0))`, as `jnp.transpose` always took it: from 0.11.0."""
    x = ROWS.reshape(2, 3)
    return Observed(jnp.permute_dims(x, (-1, 0)), x.T.astype(np.float64))


@probe(
    source="jax-ml/jax@be2f36d07e25",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            reason="a NotImplementedError when it is lowered",
            issue="jax-ml/jax@be2f36d07e25",
        )
    ],
)
def factorisations_of_halves(env):
    """Factorisations of float16 are a TypeError from 0.11.1, which tells what is accepted."""
    half, words = np.eye(2, dtype=np.float16), "does not accept dtype float16"
    names = ("cholesky", "qr", "eigh", "svd")
    told = {name: refusal(lambda: getattr(lax.linalg, name)(half), words) for name in names}
    return Observed(told, dict.fromkeys(names, refused("TypeError")))


@probe(
    source="jax-ml/jax#32542",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="the range of the real parts, if any: of 0 to 5 by 1 + 1j nothing",
            issue="jax-ml/jax#32542",
        )
    ],
)
def complex_range(env):
    """`jnp.arange` of complex numbers is a ValueError since 0.10.0; it gave whatever."""
    ended = refusal(lambda: jnp.arange(0, 5, 1 + 1j), "complex start/stop/step")
    return Observed(ended, refused("ValueError"))


@probe(
    source="jax-ml/jax@e1375a7dc1a5",
    platforms=("cpu",),
    params={
        "atleast_1d": {"name": "atleast_1d"},
        "atleast_2d": {"name": "atleast_2d"},
        "atleast_3d": {"name": "atleast_3d"},
        "column_stack": {"name": "column_stack"},
        "hstack": {"name": "hstack"},
        "vstack": {"name": "vstack"},
    },
    deviations=[
        deviation(
            "jax>=0.10",
            error="TypeError",
            match="requires ndarray or scalar arguments, got <class 'list'>",
            reason="lists are refused, after a DeprecationWarning",
            issue="jax-ml/jax@e1375a7dc1a5",
        )
    ],
)
def rows_of_lists(env, name):
    """`jnp.vstack([[1, 2], [3, 4]])` and its like are a TypeError from 0.10.0; NumPy takes them.

    `stack`, `dstack` and `concatenate` always refused lists, `array` and `block` always took them.
    """
    rows = [[1, 2], [3, 4]]
    with quiet():
        found = getattr(jnp, name)(rows)
    return Observed(found, getattr(np, name)(np.int32(rows)))
