"""Linear algebra and transforms: shapes, conventions, and matrices that are none too good."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import f32, inf, nan, numbered


@probe(
    source="jax-ml/jax@051abafd6d99",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="ok",
            reason="b of two dimensions was a batch of vectors",
            issue="jax-ml/jax@051abafd6d99",
        )
    ],
)
def solve_with_a_square_right_side(env):
    """Two systems and a 2x2 right side: a matrix for each since 0.5.0, a vector for each before.

    Nothing fails where all the sizes agree. Write `b[..., None]`.
    """

    @jax.jit
    def solve(a, b):
        return {"as it is": jnp.linalg.solve(a, b), "vectors": jnp.linalg.solve(a, b[..., None])}

    a = np.stack([np.diag(f32(1, 2)), np.diag(f32(4, 8))])
    b = f32(1, 2, 3, 4).reshape(2, 2)
    wanted = {
        "as it is": np.stack([b / f32(1, 2)[:, None], b / f32(4, 8)[:, None]]),
        "vectors": f32(1, 1, 0.75, 0.5).reshape(2, 2, 1),
    }
    return Observed(solve(a, b), reference=wanted)


@probe(
    source="jax-ml/jax@cf3207c475fc",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.1",
            outcome="ok",
            reason="zero divided by the largest singular value",
            issue="jax-ml/jax@cf3207c475fc",
        )
    ],
)
def least_squares_of_zero(env):
    """`lstsq` with a matrix of zeros: the solution of least norm is 0, NaN up to 0.8.0."""
    solve = jax.jit(lambda a, b: jnp.linalg.lstsq(a, b)[0])
    made = solve(np.zeros((3, 2), np.float32), np.ones(3, np.float32))
    return Observed(made, reference=f32(0, 0))


@probe(
    source="jax-ml/jax@897e1a1310be",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5.3",
            outcome="ok",
            reason="the largest of no numbers",
            issue="jax-ml/jax@897e1a1310be",
        )
    ],
)
def norms_of_the_empty(env):
    """Norms of an empty matrix that are sums or maxima are 0 from 0.5.3; some were refused."""
    empty, words = np.zeros((0, 3), np.float32), ("zero-size array",)
    orders = {"none": None, "fro": "fro", "two": 2, "nuclear": "nuc", "inf": np.inf}
    made = {
        name: refusal(lambda order=order: jnp.linalg.norm(empty, ord=order), *words)
        for name, order in orders.items()
    }
    return Observed(made, reference=dict.fromkeys(orders, "ran"))


@probe(source="jax-ml/jax@aaaee63ac588", platforms=("cpu",), rtol=1e-6)
def norms(env):
    """Norms of a matrix by their definitions, and of a vector whose squares overflow or are 0."""

    @jax.jit
    def norms(a, cube, zeros):
        return {
            "fro": jnp.linalg.norm(a),
            "two": jnp.linalg.norm(a, 2),
            "nuclear": jnp.linalg.norm(a, "nuc"),
            "one": jnp.linalg.norm(a, 1),
            "inf": jnp.linalg.norm(a, inf),
            "axes": jnp.linalg.vector_norm(cube, axis=(0, 1)),
            "gradient at 0": jax.grad(jnp.linalg.norm)(zeros),
        }

    a = f32(3, 0, 4, 5).reshape(2, 2)
    # The singular values of this matrix: the roots of 45 and of 5.
    two, nuclear = np.sqrt(45), np.sqrt(45) + np.sqrt(5)
    wanted = {"fro": np.sqrt(50), "two": two, "nuclear": nuclear, "one": 7.0, "inf": 9.0}
    wanted = {name: np.float64(value) for name, value in wanted.items()}
    wanted |= {"axes": np.array([2.0, 2]), "gradient at 0": np.array([nan, nan])}
    made = norms(a, np.ones((2, 2, 2), np.float32), f32(0, 0))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax#3589", platforms=("cpu",))
def matrices_that_are_not_good(env):
    """Not positive definite: NaN. Singular: a determinant of 0. An error is never raised."""

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
    factor, nothing = f32(2, 0, 1, 2).reshape(2, 2), np.tril(np.full((2, 2), nan, np.float32))
    wanted = {
        "cholesky": nothing,
        "cholesky of a batch": np.stack([factor, nothing]),
        "upper": factor.T,
        "determinant": np.float32(0),
        "sign": (np.float32(0), np.float32(-inf)),
    }
    made = tried(good, bad, np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32))
    return Observed(numbered(made), reference=numbered(wanted))


@probe(source="jax-ml/jax@1f9301782975", platforms=("cpu",), rtol=1e-5, atol=1e-6)
def factorisations(env):
    """Shapes and products of QR, SVD, eigh and LU for a matrix that is not square."""

    @jax.jit
    def factors(a, square, ones):
        return {
            "qr": jnp.linalg.qr(a),
            "svd": jnp.linalg.svd(a, full_matrices=False),
            "eigh": jnp.linalg.eigh(square),
            "lu": jax.scipy.linalg.lu(a),
            "rank": jnp.linalg.matrix_rank(ones),
        }

    a = f32(2, 1, 0, 3, 1, 1).reshape(3, 2)
    square = a.T @ a
    made = jax.tree_util.tree_map(np.asarray, factors(a, square, np.ones((2, 3), np.float32)))
    (q, r), (u, s, v), (w, x), (p, low, up) = (made[n] for n in ("qr", "svd", "eigh", "lu"))
    products = {"qr": q @ r, "svd": (u * s) @ v, "eigh": (x * w) @ x.T, "lu": p @ low @ up}
    whole = jax.eval_shape(lambda a: (jnp.linalg.qr(a, "complete")[0], jnp.linalg.svd(a)[0]), a)
    shapes = [value.shape for value in (*whole, s)]
    wanted = {name: np.float64(square if name == "eigh" else a) for name in products}
    return Observed(
        {"products": products, "shapes": shapes, "values": w, "rank": made["rank"]},
        reference={
            "products": wanted,
            "shapes": [(3, 3), (3, 3), (2,)],
            "values": np.linalg.eigvalsh(square.astype(np.float64)),
            "rank": np.int32(1),
        },
    )


@probe(
    source="jax-ml/jax@8d91e7bcbfd7",
    platforms=("cpu",),
    rtol=1e-3,
    atol=1e-4,
    deviations=[
        deviation(
            "jax<0.10",
            error="NotImplementedError",
            match="Unimplemented case of QR",
            reason="the rule came with 0.10.0",
            issue="jax-ml/jax@8d91e7bcbfd7",
        )
    ],
)
def derivative_of_a_wide_qr(env):
    """The derivative of QR of a wide matrix, from 0.10.0: against a difference in float64."""
    a, b = f32(2, 1, 1, 0, 3, 1).reshape(2, 3), f32(0, 1, 0, 1, 0, 1).reshape(2, 3)
    made = jax.jit(lambda a, b: jax.jvp(lambda a: abs(jnp.linalg.qr(a)[1]), (a,), (b,))[1])(a, b)
    step = 1e-6 * b.astype(np.float64)
    after, before = (abs(np.linalg.qr(m)[1]) for m in (a + step, a - step))
    return Observed(made, reference=(after - before) / 2e-6)


@probe(
    source="jax-ml/jax@f3b4d7b57e76",
    platforms=("cpu",),
    deviations=[
        deviation("jax<0.8", outcome="ok", reason="a plain tuple", issue="jax-ml/jax@f3b4d7b57e76")
    ],
)
def names_of_results(env):
    """Results with names: `eigh`, `svd`, `qr`, and `eig` since 0.8.0."""
    a = np.eye(2, dtype=np.float32)
    names = ("eigh", "svd", "qr", "eig")
    fields = {name: jax.eval_shape(getattr(jnp.linalg, name), a) for name in names}
    made = {name: list(getattr(value, "_fields", ())) for name, value in fields.items()}
    values = ["eigenvalues", "eigenvectors"]
    wanted = {"eigh": values, "svd": ["U", "S", "Vh"], "qr": ["Q", "R"], "eig": values}
    return Observed(made, reference=wanted)


@probe(
    source="jax-ml/jax@d219f03b589a",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.12",
            error="ValueError",
            match="Dimension must be 3",
            reason="deprecated with 0.11.0, as in NumPy 2.5; take a determinant",
            issue="jax-ml/jax#40876",
        )
    ],
)
def cross_in_the_plane(env):
    """`cross` of vectors of the plane: a number up to 0.11, refused from 0.12.0."""
    return Observed(jnp.cross(f32(1, 2), f32(3, 5)), reference=np.float32(-1))


@probe(
    source="jax-ml/jax@d219f03b589a",
    platforms=("cpu",),
)
def cross_in_space(env):
    """`cross` in space, of a batch of vectors, in rows and in columns."""
    turn = np.array([1, 2, 0])

    @jax.jit
    def crossed(x, y):
        return {"basis": jnp.cross(x, x[turn]), "axis": jnp.cross(y, y[:, turn], axis=0)}

    x = np.eye(3, dtype=np.float32)
    wanted = {"basis": x[[2, 0, 1]], "axis": np.cross(x, x[:, turn], axis=0)}
    return Observed(crossed(x, x), reference=wanted)


@probe(
    source="jax-ml/jax@1e1f1e0d7aaf",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="integers became float32",
            issue="jax-ml/jax@1e1f1e0d7aaf",
        )
    ],
)
def power_of_an_integer_matrix(env):
    """`matrix_power` of integers is of integers since 0.6.1: exact beyond 2**24."""
    made = jnp.linalg.matrix_power(np.int32([[3, 0], [0, 1]]), 17)
    return Observed(made, reference=np.int32([[129140163, 0], [0, 1]]))


@probe(
    source="jax-ml/jax@3f98c57f7b3f",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.36",
            outcome="ok",
            reason="the input was flattened",
            issue="jax-ml/jax@3f98c57f7b3f",
        )
    ],
)
def batch_of_toeplitz(env):
    """`toeplitz` of a 2x2 input makes two matrices since 0.4.36; one of 4x4 before."""
    made = jax.jit(jax.scipy.linalg.toeplitz)(f32(1, 2, 3, 4).reshape(2, 2))
    return Observed(made, reference=f32(1, 2, 2, 1, 3, 4, 4, 3).reshape(2, 2, 2))


@probe(
    source="jax-ml/jax#25606",
    platforms=("cpu",),
    atol=1e-4,
    deviations=[
        deviation(
            "jax<0.5",
            error="ValueError",
            match="only supports 1D, 2D, and 3D FFTs",
            reason="three axes were the limit",
            issue="jax-ml/jax#25606",
        )
    ],
)
def fft_of_four_axes(env):
    """`fftn` over four axes, and back: from 0.5.0."""

    @jax.jit
    def transformed(x):
        there = jnp.fft.fftn(x)
        return {"there": there, "real": jnp.fft.rfftn(x), "back": jnp.fft.ifftn(there)}

    x = env.rng(7).normal(size=(2, 3, 2, 4)).astype(np.float32)
    wanted = {"there": np.fft.fftn(x), "real": np.fft.rfftn(x), "back": x.astype(np.complex128)}
    return Observed(transformed(x), reference=wanted)


@probe(source="jax-ml/jax#31618", platforms=("cpu",), atol=1e-5)
def fft_of_short_inputs(env):
    """Lengths of one, two and three, odd inverses, padding and cutting."""
    x, z = f32(3, 1, 4, 1, 5), np.array([2 + 3j, 1 + 1j], np.complex64)

    def transformed(fft, x, z):
        return {
            "one": fft.fft(x, n=1),
            "padded": fft.rfft(x[:2], n=5),
            "odd": fft.irfft(z, n=3),
            "default": fft.irfft(z),
            "ortho": fft.fft(x, norm="ortho"),
            "hermitian": fft.hfft(z, n=3),
        }

    made = jax.jit(lambda x, z: transformed(jnp.fft, x, z))(x, z)
    return Observed(made, reference=transformed(np.fft, x.astype(np.float64), z))


@probe(
    source="jax-ml/jax#31618",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="an empty result, or an error of the compiler",
            issue="jax-ml/jax#31618",
        )
    ],
)
def fft_of_no_length(env):
    """A length of zero is refused, as in NumPy, since 0.7.2."""
    seen = refusal(lambda: jnp.fft.fft(f32(1, 2), n=0), "Shape should be positive")
    return Observed(seen, reference="ValueError: Shape should be positive")


@probe(
    source="jax-ml/jax#29426",
    platforms=("cpu",),
    rtol=1e-5,
    atol=1e-5,
    deviations=[
        deviation(
            "jax<0.10", outcome="ok", reason="all axes, not the last two", issue="jax-ml/jax#29426"
        )
    ],
)
def dct_over_the_last_axes(env):
    """`dctn(s=)` of two lengths transforms the last two axes, since 0.10.0."""
    x = f32(*range(8)).reshape(2, 2, 2)
    made = jax.jit(lambda x: jax.scipy.fft.dctn(x, s=(2, 2)))(x)
    angle = np.pi * np.outer(np.arange(2), 2 * np.arange(2) + 1) / 4
    return Observed(
        made, reference=np.einsum("ia,jb,xab->xij", 2 * np.cos(angle), 2 * np.cos(angle), x)
    )


@probe(source="jax-ml/jax@67dc16fc24fb", platforms=("cpu",), rtol=1e-6, atol=1e-6)
def norms_of_fft(env):
    """`fft` and `ifft` by their norms: which way is divided by the length, or both by its root."""
    norms = ("backward", "ortho", "forward")
    x = f32(1, 2, 3, 5)
    made = jax.jit(lambda x: {n: (jnp.fft.fft(x, norm=n), jnp.fft.ifft(x, norm=n)) for n in norms})
    return Observed(made(x), {n: (np.fft.fft(x, norm=n), np.fft.ifft(x, norm=n)) for n in norms})


@probe(
    source="jax-ml/jax@25cc94ce6db6",
    platforms=("cpu",),
    rtol=1e-5,
    atol=1e-6,
    deviations=[
        deviation(
            "jax<0.10",
            error="NotImplementedError",
            match="Calculation of eigenvectors is not implemented",
            reason="eigenvalues only",
            issue="jax-ml/jax@25cc94ce6db6",
        )
    ],
)
def eigenvectors_of_a_tridiagonal(env):
    """`eigh_tridiagonal(..., eigvals_only=False)` gives eigenvectors, too, since 0.10.0."""
    d, e = f32(1, 2, 3), f32(0.5, 0.5)
    values, vectors = jax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=False)
    rebuilt = (vectors * values) @ vectors.T
    return Observed(rebuilt, reference=np.diag(d) + np.diag(e, 1) + np.diag(e, -1))


@probe(
    source="jax-ml/jax@47e6da3332be",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="zeros on the diagonal were left out when it was inverted",
            issue="jax-ml/jax@47e6da3332be",
        )
    ],
)
def singular_triangles(env):
    """A batch of triangular systems without solution: no finite numbers since 0.4.31.

    One system alone was right on all releases, and so is where a row has a solution.
    """
    solve = jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True))
    a = f32(1, 0, 1, 0, 0, 0, 0, 0).reshape(2, 2, 2)
    seen = jax.jit(solve)(a, np.ones((2, 2), np.float32))
    return Observed(np.isfinite(seen), reference=np.array([[True, False], [False, False]]))


@probe(
    source="jax-ml/jax#39103",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.10.2",
            outcome="ok",
            reason="the last row got another one's product: a miscompiled loop",
            issue="jax-ml/jax#39103",
        )
    ],
)
def many_small_products(env):
    """A matrix times each of 32,769 rows, squared and summed: on 0.10.2 the last row is wrong."""
    rows, eye = np.zeros((32_769, 3), np.float32), np.eye(3, dtype=np.float32)
    rows[:, 0] = np.arange(len(rows))
    norms = jax.jit(jax.vmap(lambda row: ((eye @ row) ** 2).sum()))(rows)
    return Observed(norms[-3:], reference=rows[-3:, 0].astype(np.float64) ** 2)


@probe(
    source="jax-ml/jax#39103",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.9.1,<0.11",
            outcome="ok",
            reason="the last row got another one's sum: a miscompiled loop",
            issue="jax-ml/jax#39103",
        )
    ],
)
def many_small_sums(env):
    """The same without the squares, unlike the report: wrong from 0.9.1 to 0.10.2."""
    rows, eye = np.zeros((32_769, 3), np.float32), np.eye(3, dtype=np.float32)
    rows[:, 0] = np.arange(len(rows))
    sums = jax.jit(jax.vmap(lambda row: (eye @ row).sum()))(rows)
    return Observed(sums[-3:], reference=rows[-3:, 0].astype(np.float64))


@probe(
    source="jax-ml/jax#31619",
    platforms=("cpu",),
    rtol=0,
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="transformed and back: the error is that of the largest number",
            issue="jax-ml/jax#31619",
        )
    ],
)
def convolution_with_one_number(env):
    """`fftconvolve` of (1e8, 1, 2, 3) with (1,): the numbers themselves, since 0.7.2.

    Before, the small ones were lost: (1e8, -1, 0, 1) here. So it was with a column and a row.
    """
    x = f32(1e8, 1, 2, 3)
    convolved = jax.jit(jax.scipy.signal.fftconvolve)
    return Observed(
        (convolved(x, f32(1)), convolved(x[:, None], x[None, :2])), (x, np.outer(x, x[:2]))
    )


@probe(
    source="jax-ml/jax#24073",
    platforms=("cpu",),
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="that of the first column alone",
            issue="jax-ml/jax#24073",
        )
    ],
)
def covariances_of_two_fits(env):
    """`polyfit(x, y, 1, cov=True)` of two columns: a covariance for each, since 0.6.1."""
    x = np.arange(6, dtype=np.float32)
    y = np.stack([x**2, np.sin(x)], axis=1)
    fit = jax.jit(lambda x, y: jnp.polyfit(x, y, 1, cov=True)[1])
    return Observed(fit(x, y), np.polyfit(np.float64(x), np.float64(y), 1, cov=True)[1])


@probe(
    source="jax-ml/jax#32994",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.33",
            error="ValueError",
            match="axis .* out of bounds",
            reason="an offset that was no number was taken for an axis",
            issue="jax-ml/jax#32994",
        ),
        deviation(
            "jax>=0.4.33,<0.8.1",
            error="ConcretizationTypeError",
            match="argument `offset`",
            reason="the offset had to be static, for no reason",
            issue="jax-ml/jax#32994",
        ),
    ],
)
def triangle_of_a_traced_offset(env):
    """`jnp.tri(3, k=k)` under jit, of an offset that is an argument: since 0.8.1."""
    return Observed(jax.jit(lambda k: jnp.tri(3, k=k))(1), np.tri(3, k=1, dtype=np.float32))
