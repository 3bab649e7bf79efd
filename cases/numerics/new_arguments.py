"""Arguments, methods and modes that functions of `jnp` and `lax` have from a later release on.

A program that uses one of them fails on the releases before. The references are computed by hand
or by NumPy functions that every release of NumPy has.
"""

from __future__ import annotations

import jax
import jax.image
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import f32

defaults(platforms=("cpu",))

SETS_WITH_A_SIZE = deviation(
    "jax<0.4.33",
    params=["intersect1d", "setxor1d"],
    error="TypeError",
    match="unexpected keyword argument 'size'",
    reason="the argument was added in 0.4.32, which was withdrawn",
    issue="jax-ml/jax@c2c116dc5cdc",
)
METHOD_OF_ISIN = deviation(
    "jax<0.4.33",
    params=["isin"],
    error="TypeError",
    match="unexpected keyword argument 'method'",
    reason="the argument was added in 0.4.32, which was withdrawn",
    issue="jax-ml/jax@25da7add37cd",
)
METHOD_OF_DIGITIZE = deviation(
    "jax<0.4.34",
    params=["digitize"],
    error="TypeError",
    reason="the argument was added in 0.4.34",
    issue="jax-ml/jax@affdca91e6c3",
)
AXES_OF_SIZE = deviation(
    "jax<0.7.1",
    params=["size"],
    error="TypeError",
    reason="the axis had to be a number",
    issue="jax-ml/jax@851e0716ba12",
)
DTYPE_OF_COV = deviation(
    "jax<0.8.1",
    params=["cov", "corrcoef"],
    error="TypeError",
    reason="the argument was added in 0.8.1",
    issue="jax-ml/jax@49f287ff8d01",
)
MEAN_OF_STD = deviation(
    "jax<0.8.1",
    params=["std", "nanvar"],
    error="TypeError",
    match="unexpected keyword argument 'mean'",
    reason="the argument was added in 0.8.1",
    issue="jax-ml/jax@84954db23741",
)
AXIS_OF_TOP_K = deviation(
    "jax<0.8.1",
    params=["top_k"],
    error="TypeError",
    match="unexpected keyword argument 'axis'",
    reason="the argument was added in 0.8.1",
    issue="jax-ml/jax@990c366fea71",
)
DTYPE_OF_ARGSORT = deviation(
    "jax<0.9.1",
    params=["argsort"],
    error="TypeError",
    reason="the argument was added in 0.9.1",
    issue="jax-ml/jax@2f8973ef36f6",
)
WEIGHTS_OF_QUANTILE = deviation(
    "jax<0.10",
    params=["quantile"],
    error="TypeError",
    match="unexpected keyword argument 'weights'",
    reason="the argument was added in 0.10.0",
    issue="jax-ml/jax@f3e5b9afaa69",
)
HERMITIAN_RANK = deviation(
    "jax<0.10.1",
    params=["matrix_rank"],
    error="TypeError",
    match="unexpected keyword argument 'hermitian'",
    reason="the argument was added in 0.10.1",
    issue="jax-ml/jax@aea73a6b392f",
)
WRAP_OF_TAKE_ALONG = deviation(
    "jax<0.10.2",
    params=["take_along_axis"],
    error="TypeError",
    match="unexpected keyword argument 'wrap_negative_indices'",
    reason="the argument was added in 0.10.2",
    issue="jax-ml/jax@3c174b941cd3",
)
SYMMETRIZED_CHOLESKY = deviation(
    "jax<0.6",
    params=["cholesky"],
    error="TypeError",
    match="unexpected keyword argument 'symmetrize_input'",
    reason="the argument was added in 0.6.0",
    issue="jax-ml/jax@96e63eaee8a4",
)
ONE_HOT_MODE = deviation(
    "jax<0.4.34",
    params=["one_hot"],
    error="ValueError",
    match="Unknown gather mode",
    reason="the mode was added in 0.4.34",
    issue="jax-ml/jax@ce21a12a07d0",
)
SIZE_OF_MASK_INDICES = deviation(
    "jax<0.4.34",
    params=["mask_indices"],
    error="TypeError",
    match="unexpected keyword argument 'size'",
    reason="the argument was added in 0.4.34",
    issue="jax-ml/jax@36782e831994",
)
SORTED_UNIQUE = deviation(
    "jax<0.5.3",
    params=["unique"],
    error="TypeError",
    match="unexpected keyword argument 'sorted'",
    reason="the argument was added in 0.5.3",
    issue="jax-ml/jax@6c5ef1a40486",
)
PERTURBED_PIVOTS = deviation(
    "jax<0.10",
    params=["tridiagonal_solve"],
    error="TypeError",
    match="unexpected keyword argument 'perturb_singular'",
    reason="the argument was added in 0.10.0",
    issue="jax-ml/jax@d206ac3c5b6e",
)
UNSTABLE_TOP_K = deviation(
    "jax<0.11",
    params=["unstable_top_k"],
    error="TypeError",
    match="unexpected keyword argument 'is_stable'",
    reason="the argument was added in 0.11.0",
    issue="jax-ml/jax@140a1aa305f6",
)
ARGUMENTS = {
    "one_hot": (
        lambda: jnp.take_along_axis(f32(1, 2, 3), np.array([2, 0]), 0, mode="one_hot"),
        f32(3, 1),
    ),
    "mask_indices": (
        lambda: jnp.mask_indices(2, jnp.triu, size=4),
        (np.int32([0, 0, 1, 0]), np.int32([0, 1, 1, 0])),
    ),
    "unique": (lambda: jnp.unique(f32(2, 1, 2), sorted=True), f32(1, 2)),
    "tridiagonal_solve": (
        # Without the argument, the zero on the diagonal makes an infinity.
        lambda: jnp.isfinite(
            lax.linalg.tridiagonal_solve(
                f32(0, 0), f32(0, 2), f32(0, 0), f32(1, 4)[:, None], perturb_singular=True
            )
        ),
        np.array([[True], [True]]),
    ),
    "unstable_top_k": (
        lambda: lax.top_k(f32(1, 3, 2), 2, is_stable=False),
        [f32(3, 2), np.int32([1, 2])],
    ),
    "intersect1d": (
        lambda: jnp.intersect1d(np.int32([1, 2, 3]), np.int32([2, 3, 4]), size=3),
        np.int32([2, 3, 2]),
    ),
    "setxor1d": (
        lambda: jnp.setxor1d(np.int32([1, 2, 3]), np.int32([2, 3, 4]), size=3),
        np.int32([1, 4, 1]),
    ),
    "isin": (
        lambda: jnp.isin(np.int32([1, 2, 3]), np.int32([2]), method="sort"),
        np.array([False, True, False]),
    ),
    "digitize": (
        lambda: jnp.digitize(f32(1, 2, 3), f32(2), method="sort"),
        np.int32([0, 1, 1]),
    ),
    "size": (lambda: jnp.size(np.zeros((2, 3, 4)), axis=(0, 1)), 6),
    "cov": (
        lambda: jnp.cov(np.float32([[1, 2], [3, 5]]), dtype=jnp.float16),
        np.float16([[0.5, 1], [1, 2]]),
    ),
    "corrcoef": (
        lambda: jnp.corrcoef(np.float32([[1, 2], [3, 5]]), dtype=jnp.float16),
        np.float16([[1, 1], [1, 1]]),
    ),
    "std": (lambda: jnp.std(f32(1, 2, 6), mean=f32(2)), np.float64(17 / 3) ** 0.5),
    "nanvar": (lambda: jnp.nanvar(f32(1, np.nan, 5), mean=f32(2)), np.float64(5)),
    "top_k": (
        lambda: lax.top_k(np.float32([[1, 2], [3, 0]]), 1, axis=0),
        [np.float32([[3, 2]]), np.int32([[1, 0]])],
    ),
    "argsort": (
        lambda: jnp.argsort(f32(3, 1, 2), dtype=jnp.int16),
        np.int16([1, 2, 0]),
    ),
    "quantile": (
        lambda: jnp.quantile(f32(1, 2, 4), 0.7, weights=f32(1, 2, 3), method="inverted_cdf"),
        np.float32(4),
    ),
    "matrix_rank": (
        lambda: jnp.linalg.matrix_rank(np.float32([[2, 2], [2, 2]]), hermitian=True),
        np.int32(1),
    ),
    "take_along_axis": (
        lambda: jnp.take_along_axis(
            np.int32([3, 1, 2]), np.array([-1, 1]), 0, mode="clip", wrap_negative_indices=False
        ),
        np.int32([3, 1]),
    ),
    "cholesky": (
        lambda: jnp.linalg.cholesky(np.float32([[4, 9], [2, 2]]), symmetrize_input=False),
        np.float32([[2, 0], [1, 1]]),
    ),
}


@probe(
    source="jax-ml/jax@84954db23741",
    params=[*ARGUMENTS],
    deviations=[
        SETS_WITH_A_SIZE,
        METHOD_OF_ISIN,
        METHOD_OF_DIGITIZE,
        SYMMETRIZED_CHOLESKY,
        AXES_OF_SIZE,
        DTYPE_OF_COV,
        MEAN_OF_STD,
        AXIS_OF_TOP_K,
        DTYPE_OF_ARGSORT,
        WEIGHTS_OF_QUANTILE,
        HERMITIAN_RANK,
        WRAP_OF_TAKE_ALONG,
        ONE_HOT_MODE,
        SIZE_OF_MASK_INDICES,
        SORTED_UNIQUE,
        PERTURBED_PIVOTS,
        UNSTABLE_TOP_K,
    ],
)
def later_argument(env, name):
    """A function of `jnp` or `lax` takes an argument from some release on, a TypeError before."""
    call, expected = ARGUMENTS[name]
    return Observed(call(), reference=expected)


NO_BYTESWAP = deviation(
    "jax<0.10",
    params=["byteswap"],
    error="AttributeError",
    match="has no attribute 'byteswap'",
    reason="the method was added in 0.10.0",
    issue="jax-ml/jax@7a8b01340768",
)
SUBTRACT_WAS_A_FUNCTION = deviation(
    "jax<0.4.35",
    params=["subtract"],
    error="AttributeError",
    match="has no attribute",
    reason="`subtract` was a jitted function",
    issue="jax-ml/jax@6467d039250d",
)
LOGADDEXP_WAS_A_FUNCTION = deviation(
    "jax<0.4.36",
    params=["logaddexp"],
    error="AttributeError",
    reason="`logaddexp` was a function",
    issue="jax-ml/jax@e9864c69da9a",
)
NEGATIVE_WAS_A_FUNCTION = deviation(
    "jax<0.4.34",
    params=["negative"],
    error="AttributeError",
    match="has no attribute",
    reason="`negative` was a jitted function",
    issue="jax-ml/jax@6229511f6a77",
)
METHODS = {
    "negative": (
        lambda: jnp.negative.at(f32(1, 2), np.array([0]), inplace=False),
        f32(-1, 2),
    ),
    "byteswap": (lambda: jnp.asarray(np.int16([1, 2])).byteswap(), np.int16([256, 512])),
    "subtract": (
        lambda: jnp.subtract.at(f32(1, 2, 3), np.array([0, 0]), f32(5, 1), inplace=False),
        f32(-5, 2, 3),
    ),
    "logaddexp": (
        lambda: jnp.logaddexp.outer(f32(0), f32(0, 1)),
        np.logaddexp(np.float64([[0]]), np.float64([[0, 1]])),
    ),
}


@probe(
    source="jax-ml/jax@6467d039250d",
    params=[*METHODS],
    deviations=[
        NO_BYTESWAP,
        SUBTRACT_WAS_A_FUNCTION,
        LOGADDEXP_WAS_A_FUNCTION,
        NEGATIVE_WAS_A_FUNCTION,
    ],
)
def later_method(env, name):
    """`x.byteswap`, `jnp.subtract.at` and `jnp.logaddexp.outer` are an AttributeError before."""
    call, expected = METHODS[name]
    return Observed(call(), reference=expected)


NO_PIVOTS = deviation(
    "jax<0.5",
    error="NotImplementedError",
    match="pivoting=True",
    reason="only the factorisation without pivots existed",
    issue="jax-ml/jax@c89be05b5bcf",
)


@probe(source="jax-ml/jax@c89be05b5bcf", deviations=[NO_PIVOTS])
def pivoted_factorisation(env):
    """`jax.scipy.linalg.qr(pivoting=True)` works from 0.5.0 on, a NotImplementedError before."""
    x = np.float32([[1, 2], [3, 4]])
    q, r, pivots = jax.jit(lambda x: jax.scipy.linalg.qr(x, pivoting=True))(x)
    # The column with the larger norm comes first.
    return Observed(
        {"product": np.asarray(q) @ np.asarray(r), "pivots": pivots},
        reference={"product": np.float64(x[:, ::-1]), "pivots": np.int32([1, 0])},
    )


NO_AREAS = deviation(
    "jax<0.10.1",
    params=["area"],
    error="ValueError",
    match="Unknown resize method",
    reason="the method was added in 0.10.1",
    issue="jax-ml/jax@dd42d820d046",
)


NO_KERNEL_OF_PYTORCH = deviation(
    "jax<0.10",
    params=["cubic"],
    error="ValueError",
    match="Unknown resize method",
    reason="the method was added in 0.10.0",
    issue="jax-ml/jax@da10dfca8554",
)
RESIZED = {
    "area": {"method": "area", "antialias": True, "expected": (1.5, 5.5)},
    # Halfway between two pixels, the kernel with -0.75 weighs -0.09375, 0.59375, 0.59375, -0.09375.
    "cubic": {"method": "cubic-pytorch", "antialias": False, "expected": (1.5, 5.5)},
}


@probe(
    source="jax-ml/jax@dd42d820d046",
    params=RESIZED,
    rtol=1e-5,
    deviations=[NO_AREAS, NO_KERNEL_OF_PYTORCH],
)
def image_resized_by(env, method, antialias, expected):
    """`jax.image.resize` knows `area` from 0.10.1 on, and `cubic-pytorch` from 0.10.0 on."""
    x = np.arange(8, dtype=np.float32)
    result = jax.image.resize(x, (2,), method, antialias=antialias)
    return Observed(result, reference=np.float64(expected))
