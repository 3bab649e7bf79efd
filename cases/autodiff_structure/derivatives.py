"""Derivatives compared with closed forms: some were wrong, refused, or silently set to zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import floats, slopes

NO_RULE_FOR_FREXP = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="frexp had no rule, so its mantissa was a constant to autodiff",
    issue="jax-ml/jax#28106",
)


@probe(source="jax-ml/jax#28106", deviations=[NO_RULE_FOR_FREXP])
def mantissa(env):
    """The derivative of the mantissa of `frexp` is 2**-exponent.

    Up to 0.6.0 it was 0, silently.
    """
    return Observed(slopes(lambda x: jnp.frexp(x)[0], 0.75, 5, -3), np.array([1, 1 / 8, 1 / 4]))


ARGUMENT_RETURNED_AT_ZERO = deviation(
    "jax<0.12",
    outcome="ok",
    reason="at 0 jax selects the argument itself, to keep its sign, and with it the slope 1",
    issue="jax-ml/jax#37992",
)


@probe(source="jax-ml/jax#37992", deviations=[ARGUMENT_RETURNED_AT_ZERO])
def ldexp_at_zero(env):
    """The derivative of `ldexp(x, 3)` is 8, also at 0, where it was 1 up to 0.11.2."""
    return Observed(slopes(lambda x: jnp.ldexp(x, 3), 0), np.array([8.0]))


TAILS = {
    "expm1": (lax.expm1, -20, np.exp),
    "logistic": (lax.logistic, 20, lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "tanh": (lax.tanh, 10, lambda x: 1 / np.cosh(x) ** 2),
    "acosh": (lax.acosh, 1e20, lambda x: 1 / x),
    "asinh": (lax.asinh, 1e20, lambda x: 1 / x),
}


ONE_ADDED_TO_RESULT = deviation(
    "jax<0.12",
    params=["expm1"],
    outcome="ok",
    reason="1 is added to expm1(x), which is already -1",
    issue="jax-ml/jax#39794",
)
RESULT_SUBTRACTED_FROM_ONE = deviation(
    params=["logistic", "tanh"],
    outcome="ok",
    reason="the result, rounded to 1, is subtracted from 1",
    issue="jax-ml/jax#40385",
)
SQUARE_OVERFLOWS = deviation(
    "jax<0.11.2",
    params=["acosh"],
    outcome="ok",
    reason="x is squared, which overflows",
    issue="jax-ml/jax#40634",
)
SQUARE_OVERFLOWS_IN_ASINH = deviation(
    "jax<0.12",
    params=["asinh"],
    outcome="ok",
    reason="x is squared, which overflows",
    issue="jax-ml/jax#40634",
)


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
        ONE_ADDED_TO_RESULT,
        RESULT_SUBTRACTED_FROM_ONE,
        SQUARE_OVERFLOWS,
        SQUARE_OVERFLOWS_IN_ASINH,
    ],
)
def slope_far_out(env, name):
    """A small derivative far from 0 is 0 if jax uses the rounded result, or squares x.

    The exact value is well above the smallest float32, and matters in a chain of functions: a
    derivative of 0 stops training.
    """
    fn, x, exact = TAILS[name]
    return Observed(slopes(fn, x), exact(np.array([x], np.float64)))


CANCELLATION_NEAR_ZERO = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the derivative was a difference of rounded numbers, divided by x",
    issue="jax-ml/jax#34139",
)


@probe(
    source="jax-ml/jax#34139", platforms=("cpu",), rtol=1e-5, deviations=[CANCELLATION_NEAR_ZERO]
)
def slope_of_sinc_near_zero(env):
    """The derivatives of `sinc` near 0 are right from 0.11.2 on.

    At 1e-4, in float32, the first was four times too large, and the second had the wrong sign.
    """
    x = floats(1e-4, 1e-3)
    first = jax.grad(jnp.sinc)
    fn = jax.jit(lambda x: [jax.vmap(first)(x), jax.vmap(jax.grad(first))(x)])
    # sinc is 1 - (pi x)**2 / 6 + (pi x)**4 / 120 - ...
    y = np.pi * x.astype(np.float64)
    exact = [np.pi * (-y / 3 + y**3 / 30), np.pi**2 * (-1 / 3 + y**2 / 10)]
    return Observed(fn(x), exact)


QUANTILE_MASKED_AT_ITS_ENDS = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the quantile was a constant at 0 and 1, so its derivative was masked there",
)


@probe(
    source="jax-ml/jax#20430",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[QUANTILE_MASKED_AT_ITS_ENDS],
)
def slope_of_the_normal_quantile(env):
    """The derivative of `ndtri` at 0 and 1 is infinite from 0.12.0 on; before, it was 0."""
    exact = np.array([np.inf, np.inf, np.sqrt(2 * np.pi)])
    return Observed(slopes(jax.scipy.special.ndtri, 0, 1, 0.5), exact)


DERIVATIVE_OUTSIDE_OF_DOMAIN = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the derivative was 1 / sqrt(x**2 - 1), which is finite left of -1",
    issue="jax-ml/jax#40634",
)


@probe(
    source="jax-ml/jax#40634",
    platforms=("cpu",),
    rtol=1e-5,
    deviations=[DERIVATIVE_OUTSIDE_OF_DOMAIN],
)
def slope_where_there_is_no_function(env):
    """The derivative of `arccosh` below 1 is NaN from 0.11.2 on; before, below -1, it was not."""
    result = np.nan_to_num(slopes(jnp.arccosh, -4, -1.5, 0.5, 2), nan=-777)
    return Observed(result, np.array([-777, -777, -777, 1 / np.sqrt(3)]))


ROOT_OF_A_SQUARE = deviation(
    "jax>=0.4.31,<0.11.2",
    outcome="ok",
    reason="the derivative was 1 / sqrt(z**2 - 1), which has the wrong sign left of the axis",
    issue="jax-ml/jax#40634",
)


@probe(source="jax-ml/jax#40634", platforms=("cpu",), rtol=1e-5, deviations=[ROOT_OF_A_SQUARE])
def complex_arccosh(env):
    """The derivative of `arccosh` has the right sign where the real part is negative.

    From 0.4.31 to 0.11.1 it was the negative of the right one there.
    """
    z = np.array([2 + 1j, 2 - 1j, -2 + 1j, -2 - 1j, -0.5 + 3j], np.complex64)
    result = jax.jit(jax.vmap(jax.grad(jnp.arccosh, holomorphic=True)))(z)
    exact = z.astype(np.complex128)
    return Observed(result, 1 / (np.sqrt(exact - 1) * np.sqrt(exact + 1)))


@probe(source="jax-ml/jax@893b483e3f13")
def slope_far_out_accurately(env):
    """With `accuracy=lax.AccuracyMode.HIGHEST`, such derivatives are right from 0.7.2.

    They are the derivatives of `slope_far_out`.
    """
    if not hasattr(lax, "AccuracyMode"):
        env.unsupported("lax has no AccuracyMode here")
    highest, values, exact = lax.AccuracyMode.HIGHEST, [], []
    for name in ("expm1", "logistic", "tanh"):
        fn, x, derivative = TAILS[name]
        values.append(slopes(lambda x, fn=fn: fn(x, accuracy=highest), x))
        exact.append(derivative(np.array([x], np.float64)))
    return Observed(values, exact)


ROUNDED_NUMBERS_SUBTRACTED = deviation(
    "jax<0.11.2",
    params=["second_of_tanh"],
    outcome="ok",
    reason="jax subtracts 1 - tanh(x) from 1 + tanh(x), both rounded to 1",
    issue="jax-ml/jax#39801",
)
SLOPES_OF_FACTORS_CANCEL = deviation(
    "jax<0.11.2",
    params=["first_of_i0"],
    outcome="ok",
    reason="jax adds the slopes of the factors, rounded to 1 and -1",
    issue="jax-ml/jax#39797",
)


@probe(
    source="jax-ml/jax#39801",
    params={"second_of_tanh": {"name": "tanh"}, "first_of_i0": {"name": "i0"}},
    deviations=[ROUNDED_NUMBERS_SUBTRACTED, SLOPES_OF_FACTORS_CANCEL],
)
def slope_near_zero(env, name):
    """Up to 0.11.1 the second derivative of `tanh` and the first of `i0` are 0 near 0."""
    fn, exact = {"tanh": (jax.grad(jnp.tanh), -2.0), "i0": (jnp.i0, 0.5)}[name]
    return Observed(slopes(fn, 1e-10), exact * np.array([1e-10]))


FACTOR_HAS_SLOPE_ONE = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="exp(|x|) has the slope 1 at 0, and so did its product with i0e",
    issue="jax-ml/jax#40628",
)


@probe(source="jax-ml/jax#40628", deviations=[FACTOR_HAS_SLOPE_ONE])
def slope_of_i0_at_zero(env):
    """The Bessel function i0 is even, so its derivative at 0 is 0.

    For `jax.scipy.special.i0` it was 1 up to 0.11.1.
    """
    special = jax.scipy.special
    values = [slopes(fn, 0) for fn in (special.i0, special.i0e, jnp.i0)]
    return Observed(values, [np.zeros(1)] * 3)


TALL_REDUCED_ONLY = deviation(
    "jax<0.10",
    params=["complete"],
    error="NotImplementedError",
    match="Unimplemented case of QR decomposition derivative",
    reason="only tall, reduced factorisations had a derivative",
    issue="jax-ml/jax@8d91e7bcbfd7",
)


@probe(
    source="jax-ml/jax@8d91e7bcbfd7",
    params={"tall": {"mode": "reduced"}, "complete": {"mode": "complete"}},
    rtol=1e-4,
    deviations=[TALL_REDUCED_ONLY],
)
def qr(env, mode):
    """`qr` has a derivative for tall, reduced factorisations; from 0.10.0 also for complete ones.

    The sum of the squares of R is that of A, so its gradient is 2A.
    """
    a = env.rng(4).normal(size=(3, 2)).astype(np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.qr(a, mode=mode)[1] ** 2)))
    return Observed(fn(a), 2.0 * a.astype(np.float64))


REFUSED_BY_FLAG = deviation(
    "jax<0.8.1",
    params=["square"],
    error="NotImplementedError",
    match="not implemented for full matrices",
    reason="the flag alone was refused, regardless of the shape",
    issue="jax-ml/jax@d79c1c43fe8c",
)
ADDED_COLUMNS_UNDETERMINED = deviation(
    params=["tall"],
    error="NotImplementedError",
    match="not implemented for full matrices",
    reason="the matrix does not determine the added columns of U",
    issue="jax-ml/jax#508",
)


@probe(
    source="jax-ml/jax#508",
    params={"square": {"rows": 2}, "tall": {"rows": 3}},
    rtol=1e-4,
    deviations=[REFUSED_BY_FLAG, ADDED_COLUMNS_UNDETERMINED],
)
def full_svd(env, rows):
    """With `full_matrices=True`, the default, `svd` of square matrices has a gradient from 0.8.1.

    The gradient is by singular values. With `full_matrices=False`, or `compute_uv=False`, every
    release has it.
    """
    a = env.rng(5).normal(size=(rows, 2)).astype(np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.svd(a)[1] ** 2)))
    return Observed(fn(a), 2.0 * a.astype(np.float64))


NO_RULE_FOR_TRIDIAGONAL_SOLVE = deviation(
    "jax<0.5",
    error="NotImplementedError",
    match="Differentiation rule for 'tridiagonal_solve' not implemented",
    reason="tridiagonal_solve had no rule",
    issue="jax-ml/jax@167a48f67786",
)


@probe(source="jax-ml/jax@167a48f67786", rtol=1e-4, deviations=[NO_RULE_FOR_TRIDIAGONAL_SOLVE])
def tridiagonal(env):
    """The gradient through `tridiagonal_solve` equals that of the dense matrix.

    It is taken by the right side and by the diagonal.
    """
    low, mid, up, b = floats(0, 0.5, 0.6), floats(2, 3, 4), floats(0.1, 0.2, 0), floats(1, 2, 3)
    dense = np.diag(np.float64(mid)) + np.diag(low[1:], -1) + np.diag(up[:-1], 1)

    def fn(mid, b):
        return lax.linalg.tridiagonal_solve(low, mid, up, b[:, None])[0, 0]

    row = np.linalg.inv(dense)[0]
    return Observed(jax.jit(jax.grad(fn, (0, 1)))(mid, b), (-row * np.linalg.solve(dense, b), row))


@probe(source="jax-ml/jax#2748")
def eigenvalues(env):
    """Eigenvalues of a general matrix have derivatives.

    That of the sum of their squares is 2A^T.
    """
    a = np.array([[2, 1], [0.5, 3]], np.float32)
    fn = jax.jit(jax.grad(lambda a: jnp.sum(jnp.linalg.eigvals(a) ** 2).real))
    return Observed(fn(a), 2.0 * a.T.astype(np.float64))


@program(source="jax-ml/jax#2748", platforms=("cpu",))
def eigenvectors(env):
    """Eigenvectors of a general matrix have no derivative, and the message explains why."""
    a = np.array([[2, 1], [0.5, 3]], np.float32)
    fn = jax.grad(lambda a: jnp.sum(jnp.abs(jnp.linalg.eig(a)[1])))
    refusal = raises("NotImplementedError", match="erivatives of .*eigenvectors are")
    return Program(fn, args=(a,), reference=refusal)


NO_EIGENVECTOR_DERIVATIVE = deviation(
    "jax<0.10.1",
    error="TypeError",
    match="unexpected keyword argument 'enable_eigvec_derivs'",
    reason="eigenvectors had no derivative, requested or not",
    issue="jax-ml/jax#2748",
)


@probe(
    source="jax-ml/jax@12dc6d3bfbca", rtol=1e-3, atol=1e-4, deviations=[NO_EIGENVECTOR_DERIVATIVE]
)
def eigenvectors_asked_for(env):
    """`lax.linalg.eig(..., enable_eigvec_derivs=True)` has derivatives of eigenvectors.

    In forward mode they satisfy the derivative of AV = VW: dA V + A dV = dV W + V dW.
    """
    a, da = np.array([[2, 1], [0.5, 3]], np.float32), np.array([[1, -1], [2, 0.5]], np.float32)

    def fn(a):
        return lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)

    (w, v), (dw, dv) = jax.jit(lambda a, da: jax.jvp(lambda a: tuple(fn(a)), (a,), (da,)))(a, da)
    w, v, dw, dv = map(np.asarray, (w, v, dw, dv))
    return Observed(da @ v + a @ dv, (dv * w + v * dw).astype(np.complex128))


NO_RULE_FOR_HYP2F1 = deviation(
    "jax<0.8",
    error="ValueError",
    match="Reverse-mode differentiation does not work for lax.while_loop",
    reason="the series of hyp2f1 is a loop, and hyp2f1 had no rule",
    issue="jax-ml/jax#30195",
)


@probe(source="jax-ml/jax#31994", rtol=1e-4, deviations=[NO_RULE_FOR_HYP2F1])
def hypergeometric(env):
    """`hyp2f1(1, 1, 2, z)`, which is -log(1 - z) / z, has a gradient by its argument."""
    if not hasattr(jax.scipy.special, "hyp2f1"):
        env.unsupported("jax.scipy.special has no hyp2f1 here")
    z = 0.5
    fn = jax.jit(jax.grad(lambda z: jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, z)))
    return Observed(fn(np.float32(z)), 1 / (z * (1 - z)) + np.log(1 - z) / z**2)


LAST_PIVOT_ASSUMED_ZERO = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the rule assumes that it is the last pivot of LU that may be 0",
    issue="jax-ml/jax#2380",
)
LU_FOR_3_BY_3 = deviation(
    "jax>=0.11.1",
    outcome="ok",
    reason="3 by 3 matrices use LU again, for accuracy, and have its rule",
    issue="jax-ml/jax#39905",
)


@probe(source="jax-ml/jax#23271", deviations=[LAST_PIVOT_ASSUMED_ZERO, LU_FOR_3_BY_3])
def determinant(env):
    """The gradient of the determinant of a singular matrix is its cofactors, one of them not 0.

    It is all zero, silently, if a zero pivot comes before the last. The closed formulas for 2 by 2
    and 3 by 3 were right until 0.11.1. For larger matrices it is wrong on all releases.
    """
    gradients = jax.jit(jax.grad(lambda a: jnp.linalg.det(a).sum()))(
        np.stack([np.diag(floats(1, 2, 0)), np.diag(floats(0, 1, 2))])
    )
    return Observed(np.abs(gradients), np.stack([np.diag([0.0, 0, 2]), np.diag([2.0, 0, 0])]))


SINGULAR_SYSTEM = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the second derivative solves a singular system",
    issue="jax-ml/jax#2380",
)
SINGULAR_SYSTEM_AGAIN = deviation(
    "jax>=0.11.1",
    outcome="ok",
    reason="the closed formula was given up for LU, whose second derivative solves a system",
    issue="jax-ml/jax#39905",
)


@probe(
    source="jax-ml/jax#23271",
    params={
        "2": {"matrix": [[1, 2], [2, 4]]},
        "3": {"matrix": [[1, 0, 0], [0, 2, 0], [0, 0, 0]]},
    },
    deviations=[SINGULAR_SYSTEM, SINGULAR_SYSTEM_AGAIN],
)
def second_derivative_of_a_determinant(env, matrix):
    """The Hessian of the determinant of a singular matrix is NaN up to 0.4.31, and from 0.11.1 on.

    From 0.4.33 to 0.11.0 it is finite.
    """
    a = np.array(matrix, np.float32)
    hessian = np.asarray(jax.jit(jax.hessian(jnp.linalg.det))(a))
    # By the first and the last diagonal element, the derivative is the product of the others.
    value = np.nan_to_num(hessian[0, 0, -1, -1], nan=-777)
    return Observed(value, np.float64(np.prod(np.diag(a)[1:-1])))


@probe(source="jax-ml/jax#2542", rtol=1e-4)
def cumulative(env):
    """Jacobians of sort and of cumulative operations equal explicit matrices, also at a 0."""
    x, e = floats(2, 0, 3), np.exp(np.float64([2, 0, 3]))
    fns = [jnp.sort, jnp.cumsum, jnp.cumprod, lax.cummax, lax.cumlogsumexp]
    jacobians = jax.jit(lambda x: [jax.jacrev(f)(x) for f in fns])(x)
    expected = [
        [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [0, 2, 0], [0, 6, 0]],
        [[1, 0, 0], [1, 0, 0], [0, 0, 1]],
        np.tril(e / np.cumsum(e)[:, None]),
    ]
    return Observed(jacobians, [np.array(w, np.float64) for w in expected])


@probe(source="jax-ml/jax#2342")
def kinks(env):
    """The derivative at a kink or a tie follows conventions that code relies on.

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


NO_RULE_FOR_BARRIER = deviation(
    "jax<0.5.3",
    error="NotImplementedError",
    match="Differentiation rule for 'optimization_barrier' not implemented",
    reason="optimization_barrier had no rule",
    issue="jax-ml/jax#27174",
)
ZERO_TANGENT_WAS_ARRAY = deviation(
    "jax>=0.5.3,<0.11.1",
    outcome="ok",
    reason="a zero tangent was made an array, and 0 * inf is NaN",
    issue="jax-ml/jax#39429",
)


@probe(source="jax-ml/jax#39429", deviations=[NO_RULE_FOR_BARRIER, ZERO_TANGENT_WAS_ARRAY])
def beside_a_barrier(env):
    """The gradient at 0 of x through an `optimization_barrier` is 1.

    The barrier also takes a log(x) whose result is unused.
    """
    if not hasattr(lax, "optimization_barrier"):
        env.unsupported("lax has no optimization_barrier here")
    fn = lambda x: lax.optimization_barrier((jnp.log(x), x))[1]  # noqa: E731 - short
    return Observed(slopes(fn, 0), np.array([1.0]))


ZERO_PASSED_TO_SOLVER = deviation(
    "jax<0.7",
    error="InvalidInputException|TypeError",
    match="ad_util.Zero'>'? is not a valid JAX type",
    reason="the solver received a cotangent that is symbolically zero",
    issue="jax-ml/jax#29342",
)


@probe(source="jax-ml/jax#29342", rtol=1e-4, deviations=[ZERO_PASSED_TO_SOLVER])
def one_of_two_solutions(env):
    """`custom_linear_solve` of two vectors has a gradient if only one solution is used."""
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


NO_RULE_FOR_NEXTAFTER = deviation(
    "jax<0.12",
    error="NotImplementedError",
    match="Differentiation rule for 'nextafter' not implemented",
    reason="nextafter had no derivative",
    issue="jax-ml/jax#38679",
)


@probe(source="jax-ml/jax#38679", deviations=[NO_RULE_FOR_NEXTAFTER])
def next_number(env):
    """`nextafter(x, y)` has the derivatives 1 and 0; before 0.12.0 it had none."""
    points = (-3.0, 0.75, 5.0)
    results = {
        "from": slopes(lambda x: jnp.nextafter(x, 9.0), *points),
        "towards": slopes(lambda y: jnp.nextafter(9.0, y), *points),
    }
    return Observed(results, {"from": np.ones(3), "towards": np.zeros(3)})


COMPLEX_NUMBERS_COMPARED = deviation(
    "jax>=0.11.2",
    error="TypeError",
    match="gt does not accept dtype complex64",
    reason="the derivative compares the operands, and complex numbers have no order",
)


@probe(source="jax-ml/jax#303", deviations=[COMPLEX_NUMBERS_COMPARED])
def larger_of_two_complex_numbers(env):
    """`maximum` of complex numbers is in NumPy's order; its gradient is refused since 0.11.2."""
    a, b = np.array([1 + 2j, 3 - 1j], np.complex64), np.array([2 + 0j, 1 + 1j], np.complex64)
    result = jax.jit(jax.grad(lambda a: jnp.maximum(a, b).real.sum()))(a)
    return Observed(result, reference=np.array([0j, 1]))


CLIPPED_SEGMENTS_NOT_COUNTED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the derivative divided by the number of references, without those that are clipped",
    issue="jax-ml/jax#40626",
)


@probe(source="jax-ml/jax#40626", deviations=[CLIPPED_SEGMENTS_NOT_COUNTED])
def least_of_a_clipped_segment(env):
    """The gradient of `segment_min(..., mode="clip")` is right out of bounds from 0.12.0 on.

    Before, it was infinite.
    """

    @jax.jit
    @jax.grad
    def slopes_of_segments(x):
        segments = np.int32([-1, -1, 1])
        return jax.ops.segment_min(x, segments, num_segments=3, mode="clip")[:2].sum()

    return Observed(slopes_of_segments(floats(1, 2, 3)), reference=np.array([1.0, 0, 1]))


EMPTY_IN_EACH_LANE = deviation(
    "jax>=0.8,<0.11",
    error="ValueError",
    match="got axis spec None but output was batched",
    reason="vmap made an array for each lane, where it should be the same in all",
    issue="jax-ml/jax@967391f09eb5",
)


@probe(
    source="jax-ml/jax@967391f09eb5",
    releases="jax>=0.7.2",
    deviations=[EMPTY_IN_EACH_LANE],
)
def second_derivative_of_a_filled_array(env):
    """A function that fills an array of `lax.empty` has second derivatives."""

    def fill(x):
        out = lax.empty((2,), x.dtype).at[0].set(x[0] * x[1])
        return out.at[1].set(out[0] * x[0])

    x = floats(2, 3)
    exact = np.array([[[0, 1], [1, 0]], [[6, 4], [4, 0]]], np.float64)
    return Observed(jax.jit(jax.hessian(fill))(x), exact)


NO_SLOPE_OF_ORDER_0 = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the derivative is the negative integral of order -1, which came from a series",
)


@probe(source="jax-ml/jax@fec72e1852cc", deviations=[NO_SLOPE_OF_ORDER_0])
def exponential_integral_of_order_0(env):
    """The derivative of `jax.scipy.special.expn(0, x)` is right from 0.12.0 on.

    Before, it was NaN. The function is `exp(-x) / x`.
    """
    expn = jax.scipy.special.expn
    x = floats(0.5, 1, 2)
    result = jax.vmap(jax.grad(lambda x: expn(np.int32(0), x)))(x)
    wide = x.astype(np.float64)
    return Observed(result, -np.exp(-wide) * (1 / wide + 1 / wide**2))


SLOPE_OF_A_CONSTANT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the difference y - x was differentiated also where the value is infinite",
)


@probe(source="jax-ml/jax@4e42adb5992d", deviations=[SLOPE_OF_A_CONSTANT])
def divergence_outside_of_its_domain(env):
    """The derivatives of `kl_div` where it is infinite are 0 from 0.12.0 on.

    Before, they were -1 with respect to x, and 1 with respect to y.
    """
    derive = jax.vmap(jax.grad(jax.scipy.special.kl_div, (0, 1)))
    result = derive(floats(-1, 2, 1), floats(2, -1, 0))
    return Observed(result, (floats(0, 0, 0), floats(0, 0, 0)))


ZERO_AT_THE_START = deviation(
    "jax<0.8",
    params=["at_zero"],
    outcome="ok",
    reason="the derivative of the series at 0 was 0",
    issue="jax-ml/jax@c4bfc129cc31",
)
NAN_FOR_A_POLYNOMIAL = deviation(
    "jax>=0.8",
    params=["of_a_polynomial"],
    outcome="ok",
    reason="the derivative by a parameter that is not asked for is NaN, and counts",
    issue="jax-ml/jax@c4bfc129cc31",
)


@probe(
    source="jax-ml/jax@c4bfc129cc31",
    rtol=1e-4,
    params={
        "at_zero": {"a": 1.0, "b": 2.0, "z": 0.0, "slope": 0.6666667},
        "of_a_polynomial": {"a": -2.0, "b": 1.0, "z": 0.5, "slope": -0.5},
    },
    deviations=[ZERO_AT_THE_START, NAN_FOR_A_POLYNOMIAL],
)
def slope_of_hyp2f1(env, a, b, z, slope):
    """The derivative of `hyp2f1(a, b, 3, z)` by z; for a = -2 and b = 1 it is (z - 2) / 3."""
    if not hasattr(jax.scipy.special, "hyp2f1"):
        env.unsupported("jax.scipy.special has no hyp2f1 here")

    def fn(z):
        return jax.scipy.special.hyp2f1(a, b, 3.0, z)

    return Observed(jax.jvp(fn, (np.float32(z),), (np.float32(1),))[1], slope)
