"""Rules of the basic operations: derivatives, and transposes of linear maps."""

from __future__ import annotations

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe
from conformance.kit import strategies as st
from conformance.kit.equations import equations
from conformance.kit.laws import check_same

from ._helpers import floats

ROOT_PI = math.sqrt(math.pi)

TRIGONOMETRIC = {
    "sin": (lax.sin, np.cos),
    "cos": (lax.cos, lambda x: -np.sin(x)),
    "tan": (lax.tan, lambda x: 1 / np.cos(x) ** 2),
    "asin": (lax.asin, lambda x: (1 - x * x) ** -0.5),
    "acos": (lax.acos, lambda x: -((1 - x * x) ** -0.5)),
    "atan": (lax.atan, lambda x: 1 / (1 + x * x)),
    "sinh": (lax.sinh, np.cosh),
    "cosh": (lax.cosh, np.sinh),
    "tanh": (lax.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "asinh": (lax.asinh, lambda x: (1 + x * x) ** -0.5),
    "acosh": (lambda x: lax.acosh(1 + x), lambda x: (x * x + 2 * x) ** -0.5),
    "atanh": (lax.atanh, lambda x: 1 / (1 - x * x)),
}

EXPONENTIAL = {
    "exp": (lax.exp, np.exp),
    "exp2": (lax.exp2, lambda x: math.log(2) * 2**x),
    "expm1": (lax.expm1, np.exp),
    "log": (lax.log, lambda x: 1 / x),
    "log1p": (lax.log1p, lambda x: 1 / (1 + x)),
    "logistic": (lax.logistic, lambda x: 1 / (2 + np.exp(x) + np.exp(-x))),
    "sqrt": (lax.sqrt, lambda x: 0.5 * x**-0.5),
    "rsqrt": (lax.rsqrt, lambda x: -0.5 * x**-1.5),
    "cbrt": (lax.cbrt, lambda x: x ** (-2 / 3) / 3),
    "square": (lax.square, lambda x: 2 * x),
    "integer_pow": (lambda x: lax.integer_pow(x, -3), lambda x: -3 * x**-4.0),
    "erf": (lax.erf, lambda x: 2 / ROOT_PI * np.exp(-x * x)),
    "erfc": (lax.erfc, lambda x: -2 / ROOT_PI * np.exp(-x * x)),
    "clamp": (lambda x: lax.clamp(0.5, x, 2.0), lambda x: 1.0 * (x > 0.5)),
    "softplus": (jax.nn.softplus, lambda x: 1 / (1 + np.exp(-x))),
    "silu": (jax.nn.silu, lambda x: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2),
}

BINARY = {
    "sub": (lax.sub, lambda x, y: (0 * x + 1, 0 * y - 1)),
    "mul": (lax.mul, lambda x, y: (y, x)),
    "div": (lax.div, lambda x, y: (1 / y, -x / y**2)),
    "rem": (lax.rem, lambda x, y: (0 * x + 1, -np.trunc(x / y))),
    "pow": (lax.pow, lambda x, y: (y * x ** (y - 1), np.log(x) * x**y)),
    "atan2": (lax.atan2, lambda x, y: (y / (x * x + y * y), -x / (x * x + y * y))),
    "max": (lax.max, lambda x, y: (1.0 * (x > y), 1.0 * (y > x))),
    "min": (lax.min, lambda x, y: (1.0 * (x < y), 1.0 * (y < x))),
    "logaddexp": (jnp.logaddexp, lambda x, y: (1 / (1 + np.exp(y - x)), 1 / (1 + np.exp(x - y)))),
    "hypot": (jnp.hypot, lambda x, y: (x / np.hypot(x, y), y / np.hypot(x, y))),
}


@probe(
    source="jax-ml/jax#6807",
    params={"trigonometric": {"group": "trigonometric"}, "exponential": {"group": "exponential"}},
    given={"x": st.arrays("float32", 2, elements=st.floats(0.125, 0.875, width=16))},
)
def slopes_of_functions(env, group, x):
    """Derivatives of elementary functions between 1/8 and 7/8 equal their formulas in float64."""
    table = FUNCTIONS[group]
    # The derivative at the bound of `clamp` is a choice.
    x[x == 0.5] = 0.25
    expected = {k: exact(np.float64(x)) for k, (_, exact) in table.items()}
    check_same(compile_slopes(group)(x), expected)


FUNCTIONS = {"trigonometric": TRIGONOMETRIC, "exponential": EXPONENTIAL}


@functools.cache
def compile_slopes(group):
    """Return the derivatives of a group, compiled once for all examples."""
    table = FUNCTIONS[group]
    return jax.jit(lambda x: {k: jax.vmap(jax.grad(fn))(x) for k, (fn, _) in table.items()})


@probe(source="jax-ml/jax#6807")
def slopes_of_two_arguments(env):
    """Derivatives of functions of two arguments, by each of them, equal their formulas."""
    x, y = floats(0.3, 2.5), floats(0.7, 1.1)
    slopes = jax.jit(
        lambda x, y: {k: jax.vmap(jax.grad(fn, (0, 1)))(x, y) for k, (fn, _) in BINARY.items()}
    )(x, y)
    x, y = np.float64(x), np.float64(y)
    return Observed(slopes, {k: exact(x, y) for k, (_, exact) in BINARY.items()})


def kernel(x):
    """Return a convolution with a kernel that is not symmetric, strided and padded."""
    weights = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 2, 3)
    return lax.conv_general_dilated(x[None, None], weights, (2, 1), ((1, 0), (0, 2)))


INDICES = np.array([2, 0, 2])
STRUCTURAL = {
    "pad": lambda x: lax.pad(x, np.float32(0), ((1, -1, 0), (0, 2, 1))),
    "slice": lambda x: lax.slice(x, (0, 1), (3, 4), (2, 1)),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (1, 5), (2, 2)),
    "dynamic_update": lambda x: lax.dynamic_update_slice(x, 2 * x[:2, :2], (1, 1)),
    "concatenate": lambda x: lax.concatenate([x, 2 * x[:1], 3 * x], 0),
    "rev": lambda x: lax.rev(x, (1,)),
    "transpose": lambda x: lax.transpose(x.reshape(3, 2, 2), (1, 2, 0)),
    "reshape": lambda x: x.reshape(2, 6),
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    "select": lambda x: jnp.where(np.arange(4) % 2 == 0, x, -3 * x[::-1]),
    "gather": lambda x: x[INDICES] - x[:, INDICES][0, 0],
    "scatter_add": lambda x: x.at[INDICES].add(2 * x),
    "roll": lambda x: jnp.roll(x, 1, 0),
    "tile": lambda x: jnp.tile(x, (2, 1)),
}
CONTRACTING = {
    "sum": lambda x: x.sum(0) - 2 * x.mean(1, keepdims=True),
    "cumsum": lambda x: lax.cumsum(x, 1) + lax.cumsum(x, 0, reverse=True),
    "dot": lambda x: jnp.arange(10.0).reshape(2, 5)[:, :3] @ x @ jnp.arange(8.0).reshape(4, 2),
    "batched_dot": lambda x: jnp.einsum("ij,ijk->ik", x, jnp.arange(24.0).reshape(3, 4, 2)),
    "windows": lambda x: lax.reduce_window(
        x, np.float32(0), lax.add, (2, 2), (1, 2), ((0, 1), (1, 0))
    ),
    "convolution": kernel,
    "solve": lambda x: lax.linalg.triangular_solve(
        np.tril(np.arange(1, 10, dtype=np.float32).reshape(3, 3)), x, left_side=True, lower=True
    ),
    "fft": lambda x: jnp.stack([jnp.fft.rfft(x).real, jnp.fft.rfft(x).imag]),
    "branch": lambda x: lax.cond(True, lambda x: 2 * x, lambda x: 3 * x, x),
    "diagonal": lambda x: jnp.diagonal(x) - jnp.trace(x),
}


@probe(
    source="jax-ml/jax#2618",
    xla_flags=["--xla_backend_optimization_level=0"],
    rtol=1e-4,
    params={"structural": {"group": "structural"}, "contracting": {"group": "contracting"}},
)
def transposes(env, group):
    """The transpose A' of a linear map A satisfies <Ax, y> = <x, A'y> for any x and y."""
    table = {"structural": STRUCTURAL, "contracting": CONTRACTING}[group]
    x = env.rng(1).integers(-4, 5, size=(3, 4)).astype(np.float32)

    def cotangent(fn):
        shape = jax.eval_shape(fn, x).shape
        return env.rng(2).integers(-4, 5, size=shape).astype(np.float32)

    ys = {k: cotangent(fn) for k, fn in table.items()}
    forward, back = jax.jit(
        lambda x, ys: (
            {k: fn(x) for k, fn in table.items()},
            {k: jax.linear_transpose(fn, x)(ys[k])[0] for k, fn in table.items()},
        )
    )(x, ys)
    return Observed(
        {k: np.float64(np.vdot(x, back[k])) for k in table},
        {k: np.float64(np.vdot(forward[k], ys[k])) for k in table},
    )


SCAN_STATES_LINEAR_OPERANDS = deviation(
    "jax<0.10",
    error="AssertionError|TypeError",
    reason="the scan itself stated which operands are linear, and for this one it stated none",
    issue="jax-ml/jax@fdb48fa0d52a",
)


@probe(source="jax-ml/jax@fdb48fa0d52a", deviations=[SCAN_STATES_LINEAR_OPERANDS])
def transpose_of_a_scan(env):
    """`linear_transpose` of a scan over rows of the argument is an error up to 0.9.2.

    Differentiating it by `jax.vjp` works on every release.
    """
    x, y = (env.rng(k).integers(-4, 5, size=(3, 4)).astype(np.float32) for k in (1, 2))

    def fn(x):
        return lax.scan(lambda c, row: (2 * c - row, c + row), x[0], x)[1]

    forward, by_vjp = jax.jit(lambda x, y: (fn(x), jax.vjp(fn, x)[1](y)[0]))(x, y)
    expected = np.float64(np.vdot(forward, y))
    back = jax.jit(lambda y: jax.linear_transpose(fn, x)(y)[0])(y)
    return Observed((np.vdot(x, by_vjp), np.vdot(x, back)), (expected, expected))


@probe(
    source="jax-ml/jax#508", xla_flags=["--xla_backend_optimization_level=0"], rtol=1e-3, atol=1e-4
)
def factorisations(env):
    """The product of the factors is the matrix, so its gradient passes through unchanged.

    This holds for each factorisation, and for the inverse of the inverse.
    """
    a = (env.rng(3).normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
    c = env.rng(4).normal(size=(3, 3)).astype(np.float32)
    a, c = a + a.T, c + c.T

    def from_eigenvectors(a):
        w, v = jnp.linalg.eigh(a)
        return (v * w) @ v.T

    def from_singular_vectors(a):
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        return (u * s) @ vt

    def from_root(a):
        root = jnp.linalg.cholesky(a)
        return root @ root.T

    products = {
        "cholesky": from_root,
        "eigh": from_eigenvectors,
        "svd": from_singular_vectors,
        "qr": lambda a: jnp.matmul(*jnp.linalg.qr(a)),
        "inverse": lambda a: jnp.linalg.inv(jnp.linalg.inv(a)),
    }
    gradients = jax.jit(
        lambda a: {
            k: jax.grad(lambda a, fn=fn: jnp.vdot(c, fn(a)))(a) for k, fn in products.items()
        }
    )(a)
    return Observed(gradients, dict.fromkeys(products, np.float64(c)))


@probe(source="jax-ml/jax#1480")
def precision_of_slopes(env):
    """Products in a gradient have the precision of the original product.

    The precision is given as an argument, or by the context.
    """
    a, b = floats(1, 2)[None], floats(3, 4)[:, None]

    def precisions(precision_of_product, context):
        fn = jax.grad(lambda a, b: jnp.matmul(a, b, precision=precision_of_product).sum(), (0, 1))
        with jax.default_matmul_precision(context):
            jaxpr = jax.make_jaxpr(fn)(a, b)
        products = [e for e in equations(jaxpr) if e.primitive.name == "dot_general"]
        pairs = {tuple(p.name for p in e.params["precision"] or ()) for e in products}
        return len(products) > 1, [" ".join(names) for names in sorted(pairs)]

    settings = [(None, None), ("high", None), ("highest", "bfloat16"), (None, "float32")]
    expected = [[""], ["HIGH HIGH"], ["HIGHEST HIGHEST"], ["HIGHEST HIGHEST"]]
    return Observed(
        [precisions(*setting) for setting in settings], [(True, names) for names in expected]
    )


CAST_THAT_WARNS = deviation(
    "jax<0.9",
    outcome="ok",
    reason="the cotangent was cast to a real number by the cast that warns",
    issue="jax-ml/jax#33521",
)


@probe(source="jax-ml/jax#33521", deviations=[CAST_THAT_WARNS])
def warnings_of_a_complex_product(env):
    """Up to 0.8.3 the gradient of `(x @ z).real` by a real x gives a ComplexWarning.

    It is an error where warnings are errors, as in many test suites.
    """
    z = np.array([1 + 1j, 2 - 1j], np.complex64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradient = jax.jit(jax.grad(lambda x: (x @ z).real))(floats(1, 2))
    categories = [w.category.__name__ for w in caught]
    return Observed((gradient, categories), (np.array([1, 2], np.float32), []))
