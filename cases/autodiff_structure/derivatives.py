"""Derivatives against closed forms: what jax has got wrong, refused, or silently set to zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import floats, slopes


@probe(
    source="jax-ml/jax#28106",
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="frexp had no rule: its mantissa was a constant to autodiff",
            issue="jax-ml/jax#28106",
        )
    ],
)
def mantissa(env):
    """The derivative of the mantissa of `frexp` is 2**-exponent; up to 0.6.0 it was 0, silently."""
    return Observed(slopes(lambda x: jnp.frexp(x)[0], 0.75, 5, -3), np.array([1, 1 / 8, 1 / 4]))


@probe(
    source="jax-ml/jax#37992",
    deviations=[
        deviation(
            "jax<0.12",
            outcome="ok",
            reason="at 0 the argument itself is chosen, to keep its sign, and slope 1 with it",
            issue="jax-ml/jax#37992",
        )
    ],
)
def ldexp_at_zero(env):
    """The derivative of `ldexp(x, 3)` is 8, at 0 too: there it was 1 up to 0.11.2."""
    return Observed(slopes(lambda x: jnp.ldexp(x, 3), 0), np.array([8.0]))


TAILS = {
    "expm1": (lax.expm1, -20, np.exp),
    "logistic": (lax.logistic, 20, lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "tanh": (lax.tanh, 10, lambda x: 1 / np.cosh(x) ** 2),
    "acosh": (lax.acosh, 1e20, lambda x: 1 / x),
    "asinh": (lax.asinh, 1e20, lambda x: 1 / x),
}


@probe(
    source="jax-ml/jax#39794",
    params={
        "expm1": {"name": "expm1"},
        "logistic": {"name": "logistic"},
        "tanh": {"name": "tanh"},
        "acosh": {"name": "acosh"},
        "asinh": {"name": "asinh"},
    },
    deviations=[
        deviation(
            "jax<0.12",
            params=["expm1"],
            outcome="ok",
            reason="1 is added to expm1(x), which is -1 already",
            issue="jax-ml/jax#39794",
        ),
        deviation(
            params=["logistic", "tanh"],
            outcome="ok",
            reason="the result, rounded to 1, is taken from 1",
            issue="jax-ml/jax#40385",
        ),
        deviation(
            "jax<0.11.2",
            params=["acosh"],
            outcome="ok",
            reason="x is squared, which overflows",
            issue="jax-ml/jax#40634",
        ),
        deviation(
            "jax<0.12",
            params=["asinh"],
            outcome="ok",
            reason="x is squared, which overflows",
            issue="jax-ml/jax#40634",
        ),
    ],
)
def slope_far_out(env, name):
    """A small slope far out is 0 where jax computes it from the rounded result, or squares x.

    Well above the smallest float32, and a chain of functions would see it: it stops training.
    """
    fn, x, exact = TAILS[name]
    return Observed(slopes(fn, x), exact(np.array([x], np.float64)))


@probe(source="jax-ml/jax@893b483e3f13")
def slope_far_out_accurately(env):
    """With `accuracy=lax.AccuracyMode.HIGHEST`, from 0.7.2 on, such slopes are right."""
    if not hasattr(lax, "AccuracyMode"):
        env.unsupported("lax has no AccuracyMode here")
    highest, seen, exact = lax.AccuracyMode.HIGHEST, [], []
    for name in ("expm1", "logistic", "tanh"):
        fn, x, known = TAILS[name]
        seen.append(slopes(lambda x, fn=fn: fn(x, accuracy=highest), x))
        exact.append(known(np.array([x], np.float64)))
    return Observed(seen, exact)


@probe(
    source="jax-ml/jax#39801",
    params={"second_of_tanh": {"name": "tanh"}, "first_of_i0": {"name": "i0"}},
    deviations=[
        deviation(
            "jax<0.11.2",
            params=["second_of_tanh"],
            outcome="ok",
            reason="the difference of 1 + tanh(x) and 1 - tanh(x) is taken, both rounded to 1",
            issue="jax-ml/jax#39801",
        ),
        deviation(
            "jax<0.11.2",
            params=["first_of_i0"],
            outcome="ok",
            reason="the slopes of its factors, rounded to 1 and -1, are added",
            issue="jax-ml/jax#39797",
        ),
    ],
)
def slope_near_zero(env, name):
    """The second derivative of `tanh`, the first of `i0`: up to 0.11.1 they are 0 near 0."""
    fn, exact = {"tanh": (jax.grad(jnp.tanh), -2.0), "i0": (jnp.i0, 0.5)}[name]
    return Observed(slopes(fn, 1e-10), exact * np.array([1e-10]))


@probe(
    source="jax-ml/jax#40628",
    deviations=[
        deviation(
            "jax<0.11.2",
            outcome="ok",
            reason="exp(|x|) has the slope 1 at 0, and so had its product with i0e",
            issue="jax-ml/jax#40628",
        )
    ],
)
def slope_of_i0_at_zero(env):
    """It is even, so its slope at 0 is 0: of `jax.scipy.special.i0` it was 1 up to 0.11.1."""
    special = jax.scipy.special
    seen = [slopes(fn, 0) for fn in (special.i0, special.i0e, jnp.i0)]
    return Observed(seen, [np.zeros(1)] * 3)


@probe(
    source="jax-ml/jax@8d91e7bcbfd7",
    params={"tall": {"mode": "reduced"}, "complete": {"mode": "complete"}},
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.10",
            params=["complete"],
            error="NotImplementedError",
            match="Unimplemented case of QR decomposition derivative",
            reason="only tall, reduced factorisations had a derivative",
            issue="jax-ml/jax@8d91e7bcbfd7",
        )
    ],
)
def qr(env, mode):
    """The sum of squares of R is that of A, so its gradient is 2A: reduced, and complete @0.10."""
    a = env.rng(4).normal(size=(3, 2)).astype(np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.qr(a, mode=mode)[1] ** 2)))
    return Observed(fn(a), 2.0 * a.astype(np.float64))


@probe(
    source="jax-ml/jax#508",
    params={"square": {"rows": 2}, "tall": {"rows": 3}},
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.8.1",
            params=["square"],
            error="NotImplementedError",
            match="not implemented for full matrices",
            reason="refused by the flag alone, whatever the shape",
            issue="jax-ml/jax@d79c1c43fe8c",
        ),
        deviation(
            params=["tall"],
            error="NotImplementedError",
            match="not implemented for full matrices",
            reason="the added columns of U are not determined by the matrix",
            issue="jax-ml/jax#508",
        ),
    ],
)
def full_svd(env, rows):
    """Gradient by singular values with `full_matrices=True`, the default: of square ones @0.8.1.

    Ask for `full_matrices=False`, or `compute_uv=False`, and every release has it.
    """
    a = env.rng(5).normal(size=(rows, 2)).astype(np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.svd(a)[1] ** 2)))
    return Observed(fn(a), 2.0 * a.astype(np.float64))


@probe(
    source="jax-ml/jax@167a48f67786",
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.5",
            error="NotImplementedError",
            match="Differentiation rule for 'tridiagonal_solve' not implemented",
            reason="no rule",
            issue="jax-ml/jax@167a48f67786",
        )
    ],
)
def tridiagonal(env):
    """Gradient through `tridiagonal_solve`: by right side and diagonal, as of the dense matrix."""
    low, mid, up, b = floats(0, 0.5, 0.6), floats(2, 3, 4), floats(0.1, 0.2, 0), floats(1, 2, 3)
    dense = np.diag(np.float64(mid)) + np.diag(low[1:], -1) + np.diag(up[:-1], 1)

    def fn(mid, b):
        return lax.linalg.tridiagonal_solve(low, mid, up, b[:, None])[0, 0]

    row = np.linalg.inv(dense)[0]
    return Observed(jax.jit(jax.grad(fn, (0, 1)))(mid, b), (-row * np.linalg.solve(dense, b), row))


@probe(source="jax-ml/jax#2748")
def eigenvalues(env):
    """Eigenvalues of a general matrix have derivatives: of the sum of their squares, 2A^T."""
    a = np.array([[2, 1], [0.5, 3]], np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 2).real))
    return Observed(fn(a), 2.0 * a.T.astype(np.float64))


@program(source="jax-ml/jax#2748", platforms=("cpu",))
def eigenvectors(env):
    """Eigenvectors of a general matrix have no derivative, and the message says why."""
    a = np.array([[2, 1], [0.5, 3]], np.float32)
    fn = jax.grad(lambda a: jnp.sum(jnp.abs(jnp.linalg.eig(a)[1])))
    refused = raises("NotImplementedError", match="erivatives of .*eigenvectors are")
    return Program(fn, args=(a,), reference=refused)


@probe(
    source="jax-ml/jax@12dc6d3bfbca",
    rtol=1e-3,
    atol=1e-4,
    deviations=[
        deviation(
            "jax<0.10.1",
            error="TypeError",
            match="unexpected keyword argument 'enable_eigvec_derivs'",
            reason="no derivative of eigenvectors, asked for or not",
            issue="jax-ml/jax#2748",
        )
    ],
)
def eigenvectors_asked_for(env):
    """`lax.linalg.eig(..., enable_eigvec_derivs=True)`: forward mode meets the derived equation.

    What AV = VW says of the derivatives: dA V + A dV = dV W + V dW.
    """
    a, da = np.array([[2, 1], [0.5, 3]], np.float32), np.array([[1, -1], [2, 0.5]], np.float32)

    def fn(a):
        return lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)

    (w, v), (dw, dv) = jax.jit(lambda a, da: jax.jvp(lambda a: tuple(fn(a)), (a,), (da,)))(a, da)
    w, v, dw, dv = map(np.asarray, (w, v, dw, dv))
    return Observed(da @ v + a @ dv, (dv * w + v * dw).astype(np.complex128))


@probe(
    source="jax-ml/jax#31994",
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.8",
            error="ValueError",
            match="Reverse-mode differentiation does not work for lax.while_loop",
            reason="its series is a loop, and it had no rule",
            issue="jax-ml/jax#30195",
        )
    ],
)
def hypergeometric(env):
    """Gradient of `hyp2f1(1, 1, 2, z)`, which is -log(1 - z) / z, by its argument."""
    if not hasattr(jax.scipy.special, "hyp2f1"):
        env.unsupported("jax.scipy.special has no hyp2f1 here")
    z = 0.5
    fn = jax.jit(jax.grad(lambda z: jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, z)))
    return Observed(fn(np.float32(z)), 1 / (z * (1 - z)) + np.log(1 - z) / z**2)


@probe(
    source="jax-ml/jax#23271",
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            reason="the rule takes the last pivot of LU for the one that may be 0",
            issue="jax-ml/jax#2380",
        ),
        deviation(
            "jax>=0.11.1",
            outcome="ok",
            reason="3 by 3 goes by LU again, for accuracy, and has its rule",
            issue="jax-ml/jax#39905",
        ),
    ],
)
def determinant(env):
    """The gradient of the determinant of a singular matrix: its cofactors, one of them not 0.

    It is all zero, silently, where a zero pivot comes before the last. The closed formulas for
    2 by 2 and 3 by 3 were right until 0.11.1. Of larger matrices it is wrong on all releases.
    """
    seen = jax.jit(jax.grad(lambda a: jnp.linalg.det(a).sum()))(
        np.stack([np.diag(floats(1, 2, 0)), np.diag(floats(0, 1, 2))])
    )
    return Observed(np.abs(seen), np.stack([np.diag([0.0, 0, 2]), np.diag([2.0, 0, 0])]))


@probe(source="jax-ml/jax#2542", rtol=1e-4)
def cumulative(env):
    """Jacobians of sort and of cumulative operations, written out, also at a 0."""
    x, e = floats(2, 0, 3), np.exp(np.float64([2, 0, 3]))
    fns = [jnp.sort, jnp.cumsum, jnp.cumprod, lax.cummax, lax.cumlogsumexp]
    seen = jax.jit(lambda x: [jax.jacrev(f)(x) for f in fns])(x)
    wanted = [
        [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [0, 2, 0], [0, 6, 0]],
        [[1, 0, 0], [1, 0, 0], [0, 0, 1]],
        np.tril(e / np.cumsum(e)[:, None]),
    ]
    return Observed(seen, [np.array(w, np.float64) for w in wanted])


@probe(source="jax-ml/jax#2342")
def kinks(env):
    """What stands for a derivative at a kink or a tie: conventions that code relies on.

    `maximum` halves at a tie, `relu` takes 0, `abs` the right side, `max` and `median` share.
    """
    scalar = {
        "relu": jax.nn.relu,
        "relu6": jax.nn.relu6,
        "maximum": lambda x: jnp.maximum(x, 0),
        "where": lambda x: jnp.where(x > 0, x, 0),
        "abs": jnp.abs,
        "clip": lambda x: jnp.clip(x, 0, 1),
        "sign": jnp.sign,
        "round": jnp.round,
    }
    tied = {"max": jnp.max, "median": jnp.median, "sort": lambda x: jnp.sort(x)[0]}
    at_zero, at_tie = jax.jit(
        lambda x, y: (
            {name: jax.grad(f)(x) for name, f in scalar.items()},
            {name: jax.grad(f)(y) for name, f in tied.items()},
        )
    )(np.float32(0), floats(1.5, 1, 1.5, 1))
    half = {"maximum": 0.5, "abs": 1.0, "clip": 0.5}
    smooth = {name: np.float64(half.get(name, 0)) for name in scalar}
    shared = {"max": [0.5, 0, 0.5, 0], "median": [0.5, 0, 0, 0.5], "sort": [0, 1, 0, 0]}
    return Observed(
        at_zero | at_tie, smooth | {name: np.array(row, np.float64) for name, row in shared.items()}
    )


@probe(
    source="jax-ml/jax#39429",
    deviations=[
        deviation(
            "jax<0.5.3",
            error="NotImplementedError",
            match="Differentiation rule for 'optimization_barrier' not implemented",
            reason="no rule",
            issue="jax-ml/jax#27174",
        ),
        deviation(
            "jax>=0.5.3,<0.11.1",
            outcome="ok",
            reason="a zero tangent was made an array, and 0 * inf is NaN",
            issue="jax-ml/jax#39429",
        ),
    ],
)
def beside_a_barrier(env):
    """Gradient at 0 of x, taken out of an `optimization_barrier` beside log(x) that nobody uses."""
    if not hasattr(lax, "optimization_barrier"):
        env.unsupported("lax has no optimization_barrier here")
    fn = lambda x: lax.optimization_barrier((jnp.log(x), x))[1]  # noqa: E731 - short
    return Observed(slopes(fn, 0), np.array([1.0]))


@probe(
    source="jax-ml/jax#29342",
    rtol=1e-4,
    deviations=[
        deviation(
            "jax<0.7",
            error="InvalidInputException|TypeError",
            match="ad_util.Zero'>'? is not a valid JAX type",
            reason="a cotangent that is symbolically zero was handed to the solver",
            issue="jax-ml/jax#29342",
        )
    ],
)
def one_of_two_solutions(env):
    """Gradient by one of two vectors that `custom_linear_solve` solves for together."""
    a, b = np.array([[2, 1], [1, 3]], np.float32), floats(1, 1)

    def fn(b):
        both = lambda f, x: tuple(map(f, x))  # noqa: E731 - short
        x, _ = lax.custom_linear_solve(
            lambda x: both(lambda y: a @ y, x),
            (b, b),
            lambda _, b: both(lambda y: jnp.linalg.solve(a, y), b),
            symmetric=True,
        )
        return x[0]

    return Observed(jax.jit(jax.grad(fn))(b), np.linalg.inv(a.astype(np.float64))[0])
