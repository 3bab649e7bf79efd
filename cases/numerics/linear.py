"""Linear algebra and transforms: shapes, conventions, and singular or indefinite matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
import scipy.linalg

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit import strategies as st
from conformance.kit.endings import refusal
from conformance.kit.laws import check_same

from ._helpers import f32, inf, nan, replace_nan

defaults(platforms=("cpu",))


MATRIX_READ_AS_VECTORS = deviation(
    "jax<0.5",
    error="LawError",
    reason="a two-dimensional b was a batch of vectors",
    issue="jax-ml/jax@051abafd6d99",
)


@probe(
    source="jax-ml/jax@051abafd6d99",
    given={
        "d": st.arrays("float32", (2, 2), elements=st.integers(1, 8)),
        "b": st.arrays("float32", (2, 2)),
    },
    deviations=[MATRIX_READ_AS_VECTORS],
)
def solve_with_a_square_right_side(env, d, b):
    """`solve` reads a 2x2 right side of two systems as a matrix for each system from 0.5.0 on.

    Before, it was a vector for each system. No error is raised where all sizes agree. Write
    `b[..., None]` for vectors.
    """
    a = d[:, None] * np.eye(2, dtype=np.float32)
    check_same(jnp.linalg.solve(a, b[..., None]), (b / d)[..., None])
    check_same(jnp.linalg.solve(a, b), b / d[..., None])


ZERO_SINGULAR_VALUE = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="zero was divided by the largest singular value",
    issue="jax-ml/jax@cf3207c475fc",
)


@probe(source="jax-ml/jax@cf3207c475fc", deviations=[ZERO_SINGULAR_VALUE])
def least_squares_of_zero(env):
    """`lstsq` with a matrix of zeros returns 0, the solution of least norm.

    Up to 0.8.0, the result was NaN.
    """
    solve = jax.jit(lambda a, b: jnp.linalg.lstsq(a, b)[0])
    result = solve(np.zeros((3, 2), np.float32), np.ones(3, np.float32))
    return Observed(result, reference=f32(0, 0))


MAXIMUM_OF_NOTHING = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="the norm took the maximum of no numbers",
    issue="jax-ml/jax@897e1a1310be",
)


@probe(source="jax-ml/jax@897e1a1310be", deviations=[MAXIMUM_OF_NOTHING])
def norms_of_the_empty(env):
    """Norms of an empty matrix that are sums or maxima are 0 from 0.5.3 on; some were refused."""
    empty, message = np.zeros((0, 3), np.float32), "zero-size array"
    orders = {"none": None, "fro": "fro", "two": 2, "nuclear": "nuc", "inf": np.inf}
    result = {
        name: refusal(lambda order=order: jnp.linalg.norm(empty, ord=order), message)
        for name, order in orders.items()
    }
    return Observed(result, reference=dict.fromkeys(orders, "ran"))


@probe(source="jax-ml/jax@aaaee63ac588", given={"a": st.arrays("float32", (2, 2))})
def norms(env, a):
    """Norms of a matrix follow their definitions, by singular values or sums."""
    for order in ("fro", 2, "nuc", 1, inf):
        exact = np.linalg.norm(np.float64(a), order)
        check_same(jnp.linalg.norm(a, order), exact, rtol=1e-5, atol=1e-5)


@probe(source="jax-ml/jax#3589")
def matrices_that_are_not_good(env):
    """Decompositions of bad matrices never raise an error.

    A matrix that is not positive definite gives NaN, and a singular matrix a determinant of 0.
    """

    @jax.jit
    def tried(good, bad, ones, zeros):
        return {
            "cholesky": jnp.linalg.cholesky(bad),
            "cholesky of a batch": jnp.linalg.cholesky(jnp.stack([good, -good])),
            "upper": jnp.linalg.cholesky(good, upper=True),
            "determinant": jnp.linalg.det(ones),
            "sign": tuple(jnp.linalg.slogdet(zeros)),
        }

    good, bad = f32(4, 2, 2, 5).reshape(2, 2), f32(1, 2, 2, 1).reshape(2, 2)
    factor, undefined = f32(2, 0, 1, 2).reshape(2, 2), np.tril(np.full((2, 2), nan, np.float32))
    expected = {
        "cholesky": undefined,
        "cholesky of a batch": np.stack([factor, undefined]),
        "upper": factor.T,
        "determinant": np.float32(0),
        "sign": (np.float32(0), np.float32(-inf)),
    }
    result = tried(good, bad, np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32))
    return Observed(replace_nan(result), reference=replace_nan(expected))


@probe(source="jax-ml/jax@1f9301782975", given={"a": st.arrays("float32", (3, 2))})
def factorisations(env, a):
    """The factors of QR, SVD and LU of any 3x2 matrix, and of `eigh`, have the right products."""
    # Of small integers, so that each number of the square is exact.
    a = np.round(a)
    square = a.T @ a
    (q, r), (u, s, v), (p, low, up), (w, x) = jax.tree_util.tree_map(np.asarray, factors(a, square))
    close = {"rtol": 1e-4, "atol": 1e-3}
    check_same(
        {"qr": q @ r, "svd": (u * s) @ v, "lu": p @ low @ up, "eigh": (x * w) @ x.T},
        {"qr": a, "svd": a, "lu": a, "eigh": square},
        **close,
    )
    check_same((q.T @ q, v @ v.T, x.T @ x), (np.eye(2),) * 3, **close)
    check_same(w, np.linalg.eigvalsh(np.float64(square)), **close)


@jax.jit
def factors(a, square):
    """Return QR, SVD and LU of a matrix, and the eigenvectors of another."""
    svd = jnp.linalg.svd(a, full_matrices=False)
    return jnp.linalg.qr(a), svd, jax.scipy.linalg.lu(a), jnp.linalg.eigh(square)


NO_RULE_FOR_WIDE_QR = deviation(
    "jax<0.10",
    error="NotImplementedError",
    match="Unimplemented case of QR",
    reason="the rule was added in 0.10.0",
    issue="jax-ml/jax@8d91e7bcbfd7",
)


@probe(source="jax-ml/jax@8d91e7bcbfd7", rtol=1e-3, atol=1e-4, deviations=[NO_RULE_FOR_WIDE_QR])
def derivative_of_a_wide_qr(env):
    """QR of a wide matrix has a derivative from 0.10.0 on: it equals a float64 difference."""
    # R is unique only up to the signs of its rows, so compare its absolute value.
    a, b = f32(2, 1, 1, 0, 3, 1).reshape(2, 3), f32(0, 1, 0, 1, 0, 1).reshape(2, 3)
    result = jax.jit(lambda a, b: jax.jvp(lambda a: abs(jnp.linalg.qr(a)[1]), (a,), (b,))[1])(a, b)
    step = 1e-6 * b.astype(np.float64)
    after, before = (abs(np.linalg.qr(m)[1]) for m in (a + step, a - step))
    return Observed(result, reference=(after - before) / 2e-6)


EIG_RETURNED_A_TUPLE = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the result of eig was a plain tuple",
    issue="jax-ml/jax@f3b4d7b57e76",
)


@probe(source="jax-ml/jax@f3b4d7b57e76", deviations=[EIG_RETURNED_A_TUPLE])
def names_of_results(env):
    """The results of `eigh`, `svd`, `qr`, and from 0.8.0 on of `eig`, have named fields."""
    a = np.eye(2, dtype=np.float32)
    names = ("eigh", "svd", "qr", "eig")
    fields = {name: jax.eval_shape(getattr(jnp.linalg, name), a) for name in names}
    result = {name: list(getattr(value, "_fields", ())) for name, value in fields.items()}
    values = ["eigenvalues", "eigenvectors"]
    expected = {"eigh": values, "svd": ["U", "S", "Vh"], "qr": ["Q", "R"], "eig": values}
    return Observed(result, reference=expected)


PLANE_VECTORS_REFUSED = deviation(
    "jax>=0.12",
    error="ValueError",
    match="Dimension must be 3",
    reason="deprecated in 0.11.0, as in NumPy 2.5; use a determinant",
    issue="jax-ml/jax#40876",
)


@probe(source="jax-ml/jax@d219f03b589a", deviations=[PLANE_VECTORS_REFUSED])
def cross_in_the_plane(env):
    """`cross` of vectors in the plane is a number up to 0.11, and refused from 0.12.0 on."""
    return Observed(jnp.cross(f32(1, 2), f32(3, 5)), reference=np.float32(-1))


@probe(
    source="jax-ml/jax@d219f03b589a",
    given={"x": st.arrays("float32", (2, 3)), "y": st.arrays("float32", (2, 3))},
)
def cross_in_space(env, x, y):
    """`cross` of a batch of vectors in space works for vectors in rows and in columns."""
    exact = np.cross(np.float64(x), y)
    # The products of which each number is a difference are at most 64.
    check_same(jnp.cross(x, y), exact, atol=1e-4)
    check_same(jnp.cross(x.T, y.T, axis=0), exact.T, atol=1e-4)


INTEGERS_BECAME_FLOAT32 = deviation(
    "jax<0.6.1",
    error="LawError",
    reason="integers became float32",
    issue="jax-ml/jax@1e1f1e0d7aaf",
)


@probe(
    source="jax-ml/jax@1e1f1e0d7aaf",
    given={"a": st.arrays("int32", (2, 2), elements=st.integers(-9, 9)), "n": st.integers(0, 20)},
    deviations=[INTEGERS_BECAME_FLOAT32],
)
def power_of_an_integer_matrix(env, a, n):
    """`matrix_power` of integers returns integers from 0.6.1 on: exact beyond 2**24."""
    check_same(jnp.linalg.matrix_power(a, n), np.linalg.matrix_power(a, n))


BOOLEANS_COUNTED = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="booleans became float32, so entries counted the paths",
    issue="jax-ml/jax#28603",
)


@probe(source="jax-ml/jax#28603", deviations=[BOOLEANS_COUNTED])
def power_of_a_boolean_matrix(env):
    """`matrix_power` of booleans is boolean from 0.6.1 on, as in NumPy; before, it was float32."""
    step = np.array([[True, True], [False, True]])
    return Observed(jnp.linalg.matrix_power(step, 3), reference=np.linalg.matrix_power(step, 3))


INPUT_FLATTENED = deviation(
    "jax<0.4.36",
    error="LawError",
    reason="toeplitz flattened its input",
    issue="jax-ml/jax@3f98c57f7b3f",
)


@probe(
    source="jax-ml/jax@3f98c57f7b3f",
    given={"c": st.arrays("float32", (2, 3))},
    deviations=[INPUT_FLATTENED],
)
def batch_of_toeplitz(env, c):
    """`toeplitz` of two rows makes two matrices from 0.4.36 on, and a 6x6 matrix before."""
    check_same(jax.scipy.linalg.toeplitz(c), np.stack([scipy.linalg.toeplitz(row) for row in c]))


THREE_AXES_AT_MOST = deviation(
    "jax<0.5",
    error="ValueError",
    match="only supports 1D, 2D, and 3D FFTs",
    reason="an FFT had at most three axes",
    issue="jax-ml/jax#25606",
)


@probe(
    source="jax-ml/jax#25606",
    given={"x": st.arrays("float32", (2, 3, 2, 4))},
    deviations=[THREE_AXES_AT_MOST],
)
def fft_of_four_axes(env, x):
    """`fftn`, `rfftn` and `ifftn` transform four axes from 0.5.0 on."""
    spectrum, real, back = transform_all_axes(x)
    check_same((spectrum, real), (np.fft.fftn(x), np.fft.rfftn(x)), atol=1e-3)
    check_same(back, x.astype(np.complex64), atol=1e-5)


@jax.jit
def transform_all_axes(x):
    """Return both spectra of an array, and the inverse of the first."""
    spectrum = jnp.fft.fftn(x)
    return spectrum, jnp.fft.rfftn(x), jnp.fft.ifftn(spectrum)


@probe(
    source="jax-ml/jax#31618",
    given={"x": st.arrays("float32", 5), "z": st.arrays("complex64", 2)},
)
def fft_of_short_inputs(env, x, z):
    """Transforms of short inputs are as in NumPy: odd inverses, padding and truncation, too."""
    check_same(transform_short(x, z), transform(np.fft, np.float64(x), z), atol=1e-4)


def transform(fft, x, z):
    """Return transforms by `numpy.fft` or `jax.numpy.fft`."""
    return {
        "one": fft.fft(x, n=1),
        "padded": fft.rfft(x[:2], n=5),
        "odd": fft.irfft(z, n=3),
        "default": fft.irfft(z),
        "ortho": fft.fft(x, norm="ortho"),
        "hermitian": fft.hfft(z, n=3),
    }


@jax.jit
def transform_short(x, z):
    """Return transforms by JAX."""
    return transform(jnp.fft, x, z)


ZERO_LENGTH_NOT_REFUSED = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the result was empty, or an error of the compiler",
    issue="jax-ml/jax#31618",
)


@probe(source="jax-ml/jax#31618", deviations=[ZERO_LENGTH_NOT_REFUSED])
def fft_of_no_length(env):
    """A transform of length zero is refused from 0.7.2 on, as in NumPy."""
    outcome = refusal(lambda: jnp.fft.fft(f32(1, 2), n=0), "Shape should be positive")
    return Observed(outcome, reference="ValueError: Shape should be positive")


ALL_AXES_TRANSFORMED = deviation(
    "jax<0.10",
    error="LawError",
    reason="dctn transformed all axes, not the last two",
    issue="jax-ml/jax#16909",
)


@probe(
    source="jax-ml/jax#16909",
    given={"x": st.arrays("float32", (2, 2, 2))},
    deviations=[ALL_AXES_TRANSFORMED],
)
def dct_over_the_last_axes(env, x):
    """`dctn(s=)` with two lengths transforms the last two axes from 0.10.0 on."""
    cosines = 2 * np.cos(np.pi * np.outer(np.arange(2), 2 * np.arange(2) + 1) / 4)
    exact = np.einsum("ia,jb,xab->xij", cosines, cosines, x)
    check_same(jax.scipy.fft.dctn(x, s=(2, 2)), exact, atol=1e-4)


@probe(
    source="jax-ml/jax@67dc16fc24fb",
    given={
        "x": st.arrays("complex64", 4),
        "norm": st.sampled_from(["backward", "ortho", "forward"]),
    },
)
def norms_of_fft(env, x, norm):
    """The norm of `fft` and `ifft` decides which direction is divided by the length.

    The norm `ortho` divides both directions by the square root of the length.
    """
    there, back = jnp.fft.fft(x, norm=norm), jnp.fft.ifft(x, norm=norm)
    check_same((there, back), (np.fft.fft(x, norm=norm), np.fft.ifft(x, norm=norm)), atol=1e-4)
    check_same(jnp.fft.ifft(there, norm=norm), x, atol=1e-5)


EIGENVALUES_ONLY = deviation(
    "jax<0.10",
    error="NotImplementedError",
    match="Calculation of eigenvectors is not implemented",
    reason="only eigenvalues were implemented",
    issue="jax-ml/jax@25cc94ce6db6",
)


@probe(source="jax-ml/jax@25cc94ce6db6", rtol=1e-5, atol=1e-6, deviations=[EIGENVALUES_ONLY])
def eigenvectors_of_a_tridiagonal(env):
    """`eigh_tridiagonal(..., eigvals_only=False)` returns eigenvectors, too, from 0.10.0 on."""
    d, e = f32(1, 2, 3), f32(0.5, 0.5)
    values, vectors = jax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=False)
    rebuilt = (vectors * values) @ vectors.T
    return Observed(rebuilt, reference=np.diag(d) + np.diag(e, 1) + np.diag(e, -1))


ZEROS_NOT_INVERTED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="zeros were left out when the diagonal was inverted",
    issue="jax-ml/jax@47e6da3332be",
)


@probe(source="jax-ml/jax@47e6da3332be", deviations=[ZEROS_NOT_INVERTED])
def singular_triangles(env):
    """A batch of triangular systems without solution has no finite results from 0.4.31 on.

    A single system was right on all releases, and so is a row that has a solution.
    """
    solve = jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True))
    a = f32(1, 0, 1, 0, 0, 0, 0, 0).reshape(2, 2, 2)
    solutions = jax.jit(solve)(a, np.ones((2, 2), np.float32))
    return Observed(np.isfinite(solutions), reference=np.array([[True, False], [False, False]]))


MISCOMPILED_PRODUCTS = deviation(
    "jax==0.10.2",
    outcome="ok",
    reason="a miscompiled loop gave the last row the product of another row",
    issue="jax-ml/jax#39103",
)


@probe(source="jax-ml/jax#39103", deviations=[MISCOMPILED_PRODUCTS])
def many_small_products(env):
    """A matrix times each of 32,769 rows, squared and summed, has a wrong last row on 0.10.2."""
    # The fault shows for some numbers of rows from 32,769 on.
    rows, eye = np.zeros((32_769, 3), np.float32), np.eye(3, dtype=np.float32)
    rows[:, 0] = np.arange(len(rows))
    norms = jax.jit(jax.vmap(lambda row: ((eye @ row) ** 2).sum()))(rows)
    return Observed(norms[-3:], reference=rows[-3:, 0].astype(np.float64) ** 2)


MISCOMPILED_SUMS = deviation(
    "jax>=0.9.1,<0.11",
    outcome="ok",
    reason="a miscompiled loop gave the last row the sum of another row",
    issue="jax-ml/jax#39103",
)


@probe(source="jax-ml/jax#39103", deviations=[MISCOMPILED_SUMS])
def many_small_sums(env):
    """A matrix times each of 32,769 rows, summed, has a wrong last row from 0.9.1 to 0.10.2.

    Unlike in the report, the products are not squared.
    """
    rows, eye = np.zeros((32_769, 3), np.float32), np.eye(3, dtype=np.float32)
    rows[:, 0] = np.arange(len(rows))
    sums = jax.jit(jax.vmap(lambda row: (eye @ row).sum()))(rows)
    return Observed(sums[-3:], reference=rows[-3:, 0].astype(np.float64))


ERROR_OF_LARGEST_NUMBER = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the numbers were transformed and back, with the error of the largest number",
    issue="jax-ml/jax#31619",
)


@probe(source="jax-ml/jax#31619", rtol=0, deviations=[ERROR_OF_LARGEST_NUMBER])
def convolution_with_one_number(env):
    """`fftconvolve` of (1e8, 1, 2, 3) with (1,) returns the numbers themselves from 0.7.2 on.

    Before, the small numbers were lost: (1e8, -1, 0, 1) here. A column and a row had the same
    error.
    """
    x = f32(1e8, 1, 2, 3)
    convolved = jax.jit(jax.scipy.signal.fftconvolve)
    return Observed(
        (convolved(x, f32(1)), convolved(x[:, None], x[None, :2])), (x, np.outer(x, x[:2]))
    )


COVARIANCE_OF_FIRST_COLUMN = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the covariance was that of the first column alone",
    issue="jax-ml/jax#24073",
)


@probe(source="jax-ml/jax#24073", rtol=1e-4, deviations=[COVARIANCE_OF_FIRST_COLUMN])
def covariances_of_two_fits(env):
    """`polyfit(x, y, 1, cov=True)` of two columns has a covariance for each from 0.6.1 on."""
    x = np.arange(6, dtype=np.float32)
    y = np.stack([x**2, np.sin(x)], axis=1)
    fit = jax.jit(lambda x, y: jnp.polyfit(x, y, 1, cov=True)[1])
    return Observed(fit(x, y), np.polyfit(np.float64(x), np.float64(y), 1, cov=True)[1])


OFFSET_TAKEN_FOR_AN_AXIS = deviation(
    "jax<0.4.33",
    error="ValueError",
    match="axis .* out of bounds",
    reason="an offset that was not a number was taken for an axis",
    issue="jax-ml/jax#32994",
)
OFFSET_HAD_TO_BE_STATIC = deviation(
    "jax>=0.4.33,<0.8.1",
    error="ConcretizationTypeError",
    match="argument `offset`",
    reason="the offset had to be static, without a reason",
    issue="jax-ml/jax#32994",
)


@probe(source="jax-ml/jax#32994", deviations=[OFFSET_TAKEN_FOR_AN_AXIS, OFFSET_HAD_TO_BE_STATIC])
def triangle_of_a_traced_offset(env):
    """`jnp.tri(3, k=k)` under jit accepts an argument as the offset from 0.8.1 on."""
    return Observed(jax.jit(lambda k: jnp.tri(3, k=k))(1), np.tri(3, k=1, dtype=np.float32))


SIGN_OF_ZERO_IS_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the vectors of an eigenvalue of 0 were multiplied by its sign, which is 0",
    issue="numpy/numpy#31347",
)


@probe(source="numpy/numpy#31347", atol=1e-6, deviations=[SIGN_OF_ZERO_IS_ZERO])
def svd_of_a_singular_hermitian_matrix(env):
    """`svd(hermitian=True)` of a singular matrix has orthogonal factors from 0.12.0 on.

    Before, the right vectors of the singular value 0 were zeros.
    """
    u, s, vh = jax.jit(lambda a: jnp.linalg.svd(a, hermitian=True))(np.diag(f32(2, 0)))
    products = {"left": np.asarray(u).T @ u, "right": vh @ np.asarray(vh).T}
    return Observed(
        {**products, "values": s}, {"left": np.eye(2), "right": np.eye(2), "values": f32(2, 0)}
    )


ZERO_DIVIDED_BY_ZERO = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="0 was divided by 0",
)


@probe(source="numpy/numpy#8090", deviations=[ZERO_DIVIDED_BY_ZERO])
def condition_of_zeros(env):
    """`linalg.cond` of a matrix of zeros is infinite from 0.11.2 on, as in NumPy; NaN before."""
    matrices = np.stack([np.zeros((2, 2)), np.diag([1, 0]), np.diag([2, 1]), np.full((2, 2), nan)])
    result = jax.jit(jnp.linalg.cond)(matrices.astype(np.float32))
    return Observed(replace_nan(result), reference=replace_nan(f32(inf, inf, 2, nan)))


FOR_A_SINGLE_MATRIX = deviation(
    "jax<0.12",
    error="ValueError",
    match="unpack|shape|expected",
    reason="lu was written for a single matrix",
)


@probe(source="jax-ml/jax@dfdc2e380634", atol=1e-6, deviations=[FOR_A_SINGLE_MATRIX])
def factors_of_several_matrices(env):
    """`jax.scipy.linalg.lu` factors a batch of matrices from 0.12.0 on; before, a ValueError."""
    a = np.stack([np.eye(2), [[0, 1], [2, 3]]]).astype(np.float32)
    p, lower, upper = jax.jit(jax.scipy.linalg.lu)(a)
    return Observed(np.asarray(p) @ np.asarray(lower) @ np.asarray(upper), reference=a)


STANDARD_PROBLEM_ONLY = deviation(
    "jax<0.12",
    error="NotImplementedError",
    match="Only the b=None case",
    reason="only the standard problem was implemented",
)


@probe(source="jax-ml/jax@1c2cff15d254", rtol=1e-5, deviations=[STANDARD_PROBLEM_ONLY])
def generalised_eigenvalues(env):
    """`jax.scipy.linalg.eigh(a, b)` solves A v = w B v from 0.12.0 on."""
    a, b = np.array([[2, 1], [1, 3]], np.float32), np.diag(f32(1, 2))
    result = jax.jit(lambda a, b: jax.scipy.linalg.eigh(a, b, eigvals_only=True))(a, b)
    return Observed(result, reference=np.array([1.0, 2.5]))


INTEGERS_WERE_FLOATS = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="integers became float32",
    issue="jax-ml/jax@6c690e77a13a",
)


@probe(source="jax-ml/jax@6c690e77a13a", deviations=[INTEGERS_WERE_FLOATS])
def polynomial_of_integers(env):
    """`polyval` of integers is an integer from 0.10.1 on, as in NumPy; it may overflow silently.

    In eight bits the polynomial of this case is 211 at 200. Before, it was float32, and 40,403.
    """
    p = np.array([1, 2, 3])
    result = [jnp.polyval(p.astype(t), np.array([200], t)) for t in ("int32", "uint8")]
    return Observed(result, reference=[np.int32([40403]), np.uint8([211])])


LAYOUT_REFUSED = deviation(
    "jax>=0.7",
    error="XlaRuntimeError|JaxRuntimeError",
    match="IsMonotonicWithDim0Major",
    reason="the partitioned program gives the transform an array in column order",
)


@probe(source="jax-ml/jax#16909", devices=4, rtol=1e-5, deviations=[LAYOUT_REFUSED])
def inverse_cosines_of_a_sharded_axis(env):
    """`idct` along a sharded axis is an internal error of the compiled program."""
    mesh = env.mesh((4,), ("x",))
    spec = jax.sharding.PartitionSpec(None, "x")
    x = env.rng(0).random((2, 8), np.float32)
    placed = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    result = jax.jit(lambda x: jax.scipy.fft.idct(x + 1))(placed)
    return Observed(result, reference=scipy.fft.idct(x.astype(np.float64) + 1))


NO_DOT_OF_TWO_DIMENSIONS = deviation(
    "jax>=0.5.1,<0.7.2",
    error="XlaRuntimeError",
    match="UNIMPLEMENTED: Dot with multiple contracting dimensions",
    reason="XLA contracted the width 1, too, and had no such product of bfloat16",
    issue="jax-ml/jax#24047",
)


@probe(source="jax-ml/jax#24047", rtol=2e-2, deviations=[NO_DOT_OF_TWO_DIMENSIONS])
def attention_of_width_one(env):
    """`dot_product_attention` of bfloat16 with heads of width 1 fails from 0.5.1 to 0.7.1."""
    if not hasattr(jax.nn, "dot_product_attention"):
        env.unsupported("nn has no dot_product_attention here")
    value = np.array([[[[1.0], [2.0]], [[3.0], [6.0]]]])
    # All scores are 0: the result is the mean over both positions.
    zeros = jnp.zeros(value.shape, jnp.bfloat16)
    result = jax.jit(jax.nn.dot_product_attention)(
        jnp.asarray(value, jnp.bfloat16), zeros, jnp.asarray(value, jnp.bfloat16)
    )
    return Observed(
        result.astype(jnp.float32), reference=np.array([[[[2.0], [4.0]], [[2.0], [4.0]]]])
    )


DETERMINANT_OF_INFINITIES = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the determinant was the difference of two infinite products",
    issue="jax-ml/jax#26347",
)
LOGARITHM_OF_AN_OVERFLOW = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="the logarithm is that of the determinant, which overflows",
    issue="jax-ml/jax#26347",
)


@probe(source="jax-ml/jax#26347", deviations=[DETERMINANT_OF_INFINITIES, LOGARITHM_OF_AN_OVERFLOW])
def determinant_beyond_float32(env):
    """A determinant of -1e40 is -inf in float32, and its logarithm by `slogdet` finite."""
    matrix = np.array([[1e20, 2e20], [3e20, 5e20]], np.float32)
    sign, logarithm = jnp.linalg.slogdet(matrix)
    value = replace_nan((jnp.linalg.det(matrix), sign, logarithm))
    return Observed(value, reference=(f32(-inf)[0], f32(-1)[0], np.float64(np.log(1e40))))


ALL_DIFFERENCES_NAN = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="1 was added to the differences of equal eigenvalues, which rounds for large ones",
    issue="jax-ml/jax#40141",
)


@probe(source="jax-ml/jax#40141", deviations=[ALL_DIFFERENCES_NAN])
def derivative_of_large_eigenvalues(env):
    """The derivative of the eigenvectors is finite if eigenvalues beyond 2**24 differ."""
    matrix = np.diag(f32(2**24, 2**24 + 2, 2**24 + 4))
    tangent = jax.jacfwd(lambda m: jnp.linalg.eigh(m)[1].sum())(matrix)
    return Observed(bool(np.isfinite(tangent).all()), reference=True)


THRESHOLD_EXCLUDES_THE_LARGEST = deviation(
    params=["rank"],
    outcome="ok",
    reason="the largest singular value always counts",
    issue="jax-ml/jax#28618",
)
SCALED_NUMBERS_OVERFLOWED = deviation(
    params=["exponential"],
    outcome="ok",
    reason="the number of squarings is limited to 16, and then the result is NaN",
    issue="jax-ml/jax#13985",
)
LIMITS = {
    # All singular values are at most twice the largest.
    "rank": (lambda a: jnp.linalg.matrix_rank(a, rtol=2.0), 1, np.int32(0)),
    "exponential": (jax.scipy.linalg.expm, -1e6, np.zeros((2, 2))),
}


@probe(
    source="jax-ml/jax#28618",
    params=[*LIMITS],
    deviations=[THRESHOLD_EXCLUDES_THE_LARGEST, SCALED_NUMBERS_OVERFLOWED],
)
def beyond_a_limit(env, name):
    """`matrix_rank(rtol=2)` of ones is 0, and `expm` of a large negative matrix is 0.

    JAX returns 1, and NaN, on all releases.
    """
    fn, scale, expected = LIMITS[name]
    value = np.asarray(jax.jit(fn)(scale * f32(2, 1, 1, 2).reshape(2, 2)))
    return Observed(replace_nan(value) if value.dtype.kind == "f" else value, expected)


UPPER_TRIANGLE_COUNTED = deviation(
    "jax<0.11.2",
    outcome="ok",
    match="gradient",
    reason="the rule took the derivative of the upper triangle, which is not read, for a half",
    issue="jax-ml/jax@78fd9e1a10b1",
)


@probe(source="jax-ml/jax@78fd9e1a10b1", rtol=1e-5, deviations=[UPPER_TRIANGLE_COUNTED])
def gradient_of_a_lower_triangle(env):
    """The gradient of `lax.linalg.cholesky(a, symmetrize_input=False)` is right from 0.11.2 on.

    The function reads the lower triangle alone. Before, the gradient was silently spread over both
    triangles, and wrong: 0.42 and -0.08 for an element whose derivative is 0.35.
    """
    a = f32(4, 7, 1, 3).reshape(2, 2)

    def total(a):
        return jax.lax.linalg.cholesky(a, symmetrize_input=False).sum()

    value, gradient = jax.jit(jax.value_and_grad(total))(a)
    # The factor of [[p, .], [q, r]] is [[s, 0], [q / s, t]].
    p, q, r = 4.0, 1.0, 3.0
    s, t = np.sqrt(p), np.sqrt(r - q**2 / p)
    by_p = 1 / (2 * s) - q / (2 * p * s) + q**2 / (2 * t * p**2)
    expected = np.array([[by_p, 0], [1 / s - q / (p * t), 1 / (2 * t)]])
    return Observed(
        {"value": value, "gradient": gradient},
        reference={"value": np.float64(s + q / s + t), "gradient": expected},
    )
