"""Optimisers, iterative solvers, rotations and matrix functions against SciPy or mathematics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.cluster.vq
import jax.scipy.linalg
import jax.scipy.optimize
import jax.scipy.sparse.linalg
import jax.scipy.spatial.transform
import numpy as np
import scipy.cluster.vq
import scipy.linalg
import scipy.optimize
import scipy.spatial.transform

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import compare_values

defaults(source="jax-ml/jax#2566", rtol=1e-3, atol=1e-4)

RNG = np.random.RandomState(0)
MATRIX = RNG.uniform(-1, 1, (4, 4)) + 4 * np.eye(4)
SYMMETRIC = MATRIX @ MATRIX.T
VECTOR = np.array([1.0, -2.0, 0.5, 3.0])
SOLVERS = {"cg": SYMMETRIC, "bicgstab": MATRIX, "gmres": MATRIX}


@probe(params=[*SOLVERS])
def iterative_solver(env, name):
    """The solution of a linear system, and its derivative with respect to the right-hand side."""
    matrix = SOLVERS[name]

    def run(a, b):
        solve = getattr(jax.scipy.sparse.linalg, name)
        return {
            "solution": solve(a, b, tol=1e-6)[0],
            "derivative": jax.jvp(lambda c: solve(lambda v: a @ v, c, tol=1e-6)[0], (b,), (b,))[1],
        }

    def reference(a, b):
        return dict.fromkeys(("solution", "derivative"), np.linalg.solve(a, b))

    return compare_values(run, reference, matrix, VECTOR)


@probe(source="jax-ml/jax#3101")
def minimize(env):
    """BFGS finds the minimum of the function of Rosenbrock and of a quadratic form."""

    def rosenbrock(x):
        return ((1 - x[:-1]) ** 2 + 5 * (x[1:] - x[:-1] ** 2) ** 2).sum()

    def run(matrix, b):
        form = jax.scipy.optimize.minimize(
            lambda x: x @ matrix @ x / 2 - b @ x, jnp.zeros(4), method="BFGS"
        )
        valley = jax.scipy.optimize.minimize(rosenbrock, jnp.zeros(2), method="BFGS")
        return {"quadratic_form": form.x, "rosenbrock": valley.x}

    def reference(matrix, b):
        return {"quadratic_form": np.linalg.solve(matrix, b), "rosenbrock": np.ones(2)}

    return compare_values(run, reference, SYMMETRIC / 8, VECTOR)


@probe(source="jax-ml/jax@b9a984f43871")
def initial_value_problem(env):
    """A harmonic oscillator by `odeint`, and the derivative with respect to its frequency."""
    from jax.experimental.ode import odeint  # noqa: PLC0415 - slow, and of this case alone

    times = np.array([0.0, 0.5, 1.5, 3.0])

    def run(times, frequency):
        def position(w):
            start = jnp.array([1.0, 0.0])
            return odeint(lambda y, _: jnp.array([y[1], -w * w * y[0]]), start, times)[:, 0]

        return {"position": position(frequency), "derivative": jax.jacrev(position)(frequency)}

    def reference(times, frequency):
        return {
            "position": np.cos(frequency * times),
            "derivative": -times * np.sin(frequency * times),
        }

    return compare_values(run, reference, times, np.array(1.5))


ANGLES = np.array([[0.25, -0.5, 1.0], [1.5, 0.75, -0.25]])
VECTORS = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
ROTATIONS = {
    "from_rotvec": lambda r: r.from_rotvec(ANGLES.astype(np.float32)).as_quat(),
    "as_matrix": lambda r: r.from_rotvec(ANGLES.astype(np.float32)).as_matrix(),
    "from_matrix": lambda r: r.from_matrix(
        r.from_rotvec(ANGLES.astype(np.float32)).as_matrix()
    ).as_rotvec(),
    "from_euler": lambda r: r.from_euler("xyz", ANGLES.astype(np.float32)).as_matrix(),
    "from_intrinsic_euler": lambda r: r.from_euler("ZYX", ANGLES.astype(np.float32)).as_matrix(),
    "apply": lambda r: r.from_rotvec(ANGLES.astype(np.float32)).apply(VECTORS.astype(np.float32)),
    "inverse": lambda r: r.from_rotvec(ANGLES.astype(np.float32)).inv().as_rotvec(),
    "product": lambda r: (
        r.from_rotvec(ANGLES.astype(np.float32)) * r.from_rotvec(ANGLES[::-1].astype(np.float32))
    ).as_matrix(),
    "magnitude": lambda r: r.from_rotvec(ANGLES.astype(np.float32)).magnitude(),
}


@probe(source="jax-ml/jax@5be17ed90cb3", params=[*ROTATIONS])
def rotation(env, name):
    """A rotation in space, from one representation to another."""
    fn = ROTATIONS[name]
    value = jax.jit(lambda: fn(jax.scipy.spatial.transform.Rotation))()
    return Observed(value, np.asarray(fn(scipy.spatial.transform.Rotation), np.float32))


@probe(source="jax-ml/jax@5be17ed90cb3")
def slerp(env):
    """Rotations between two key rotations, by spherical interpolation."""
    times, between = np.array([0.0, 1.0]), np.array([0.25, 0.75])

    def run(module, times, between):
        rotations = module.Rotation.from_rotvec(ANGLES.astype(np.float32))
        return (
            module.Slerp.init(times, rotations)(between).as_matrix()
            if hasattr(module.Slerp, "init")
            else module.Slerp(times, rotations)(between).as_matrix()
        )

    return compare_values(
        lambda t, b: run(jax.scipy.spatial.transform, t, b),
        lambda t, b: run(scipy.spatial.transform, t, b),
        times,
        between,
    )


@probe(source="jax-ml/jax@b485b8e5ce92")
def vector_quantization(env):
    """The nearest code of each point, and its distance."""
    codes = np.array([[0.0, 0.0], [2.0, 2.0], [-1.0, 3.0]])
    points = np.array([[0.5, 0.25], [1.75, 1.5], [-0.5, 2.0], [3.0, 3.5]])
    return compare_values(
        lambda p, c: tuple(jax.scipy.cluster.vq.vq(p, c)),
        lambda p, c: tuple(
            a.astype(np.int32) if a.dtype.kind == "i" else a for a in scipy.cluster.vq.vq(p, c)
        ),
        points,
        codes,
    )


FUNCTIONS = {
    "expm": (lambda m, a: m.expm(a / 4), MATRIX),
    "expm_frechet": (lambda m, a: m.expm_frechet(a / 4, a.T / 4)[1], MATRIX),
    "sqrtm": (lambda m, a: m.sqrtm(a).real, SYMMETRIC),
    "polar": (lambda m, a: m.polar(a), MATRIX),
    "schur": (lambda m, a: abs(m.schur(a)[0]), SYMMETRIC),
    "hessenberg": (lambda m, a: abs(m.hessenberg(a)), MATRIX),
    "lu": (lambda m, a: m.lu(a), MATRIX),
    "lu_solve": (lambda m, a: m.lu_solve(m.lu_factor(a), a[0]), MATRIX),
    "cho_solve": (lambda m, a: m.cho_solve(m.cho_factor(a), a[0]), SYMMETRIC),
    "block_diag": (lambda m, a: m.block_diag(a, a[:2, :1], a[0]), MATRIX),
    "toeplitz": (lambda m, a: m.toeplitz(a[0], a[1]), MATRIX),
    "hilbert": (lambda m, a: m.hilbert(4) * a, MATRIX),
    "eigh_tridiagonal": (
        lambda m, a: m.eigh_tridiagonal(a[0], a[1, 1:], eigvals_only=True),
        MATRIX,
    ),
    "eigh_generalized": (lambda m, a: m.eigh(a, eigvals_only=True), SYMMETRIC),
}


@probe(source="jax-ml/jax@3561b432c259", params=[*FUNCTIONS])
def matrix_function(env, name):
    """A function or a decomposition of a matrix."""
    fn, matrix = FUNCTIONS[name]
    return compare_values(lambda a: fn(jax.scipy.linalg, a), lambda a: fn(scipy.linalg, a), matrix)


BOTH_TRIANGLES_READ = deviation(
    outcome="ok",
    reason="only positive definite matrices have a method of their own",
    issue="jax-ml/jax#40813",
)


@probe(source="jax-ml/jax#40813", deviations=[BOTH_TRIANGLES_READ])
def symmetric_by_one_triangle(env):
    """`solve` with `assume_a="sym"` reads the upper triangle in SciPy, both in JAX."""
    value = jax.scipy.linalg.solve(np.float32(MATRIX), np.float32(VECTOR), assume_a="sym")
    return Observed(value, scipy.linalg.solve(MATRIX, VECTOR, assume_a="sym"))


TRANSPOSED_VALUE = deviation(
    "jax<0.7",
    error="TypeError",
    match="UndefinedPrimal",
    reason="the solver is not transposed as a linear solver",
    issue="jax-ml/jax#33872",
)
NOT_TRANSPOSED = deviation(
    "jax>=0.7",
    error="NotImplementedError",
    match="open an issue",
    reason="the solver is not transposed as a linear solver",
    issue="jax-ml/jax#33872",
)


@probe(source="jax-ml/jax#33872", deviations=[TRANSPOSED_VALUE, NOT_TRANSPOSED])
def reverse_derivative_of_a_root(env):
    """`lax.custom_root` with `gmres` as `tangent_solve` has no derivative in reverse mode."""
    a = np.array([[4, 1], [2, 3]], np.float32)

    def root(b):
        return jax.lax.custom_root(
            lambda x: a @ x - b,
            jnp.zeros_like(b),
            lambda _f, _x: jnp.linalg.solve(a, b),
            lambda g, y: jax.scipy.sparse.linalg.gmres(g, y)[0],
        )

    return Observed(jax.jacrev(root)(np.ones(2, np.float32)), np.linalg.inv(a.astype(np.float64)))
