"""`grad`, `vjp`, `jvp` and `linearize`: types of what they give, what they refuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import floats, told


@probe(
    source="jax-ml/jax@24686f9b3720",
    deviations=[
        deviation(
            "jax<0.8.1",
            outcome="ok",
            reason="a Partial of a function of jax's own",
            issue="jax-ml/jax@24686f9b3720",
        )
    ],
)
def pullback(env):
    """What `vjp` returns is a `VJP` from 0.8.1: a pytree of what it keeps, as before."""
    made = jax.jit(lambda x: jax.vjp(lambda x: jnp.sin(x) * x, x)[1])(floats(1, 2))
    kept = sorted(str(leaf.shape) for leaf in jax.tree_util.tree_leaves(made))
    x = np.float64([1, 2])
    value = jax.jit(made)(floats(1, 1))[0]
    return Observed(
        [type(made).__name__, kept, value], ["VJP", ["(2,)"] * 3, x * np.cos(x) + np.sin(x)]
    )


@program(
    source="jax-ml/jax#7238",
    platforms=("cpu",),
    params={
        "dtype": {"cotangent": [1, 1], "dtype": "float16"},
        "shape": {"cotangent": [1, 1, 1], "dtype": "float32"},
    },
    deviations=[
        deviation(
            "jax<0.8.1",
            error="ValueError",
            match="argument to vjp function.* output of the function sin",
            reason="names the function, as of 0.8.1 it does not",
            issue="jax-ml/jax@24686f9b3720",
        )
    ],
)
def cotangent_of_another_type(env, cotangent, dtype):
    """A cotangent of another dtype or shape: a ValueError with both types, got and expected."""

    def fn(x):
        return jax.vjp(jnp.sin, x)[1](np.array(cotangent, dtype))

    refused = raises("ValueError", match="argument to VJP function: got float.*expected float32.2.")
    return Program(fn, args=(floats(1, 2),), reference=refused)


@probe(
    source="jax-ml/jax#13103",
    deviations=[
        deviation(
            "jax>=0.8.1,<0.10",
            outcome="ok",
            reason="the first argument was not counted",
            issue="jax-ml/jax@ce5c38249ef8",
        ),
        deviation(
            "jax<0.8.1",
            outcome="ok",
            reason="without an argument it gave the same explanation",
            issue="jax-ml/jax@24686f9b3720",
        ),
    ],
)
def pullback_of_two_arguments(env):
    """A pullback called with two cotangents: the message counts them, one short 0.8.1 to 0.9.2."""
    pulled = jax.vjp(jnp.sin, 1.0)[1]
    words = ("was called with 0", "was called with 1", "was called with 2", "missing 1 required")
    return Observed(
        [told(lambda: pulled(1.0, 2.0), *words), told(pulled, *words)],
        [["TypeError", "was called with 2"], ["TypeError", "missing 1 required"]],
    )


@probe(
    source="jax-ml/jax@b8f92cbe9bc7",
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="an argument that is handed through stayed as it came",
            issue="jax-ml/jax@b8f92cbe9bc7",
        )
    ],
)
def primal_of_64_bits(env):
    """`vjp` and `value_and_grad` of the identity at float64 give float32, from 0.8.0 on."""
    seen = {
        "vjp": jax.vjp(lambda x: x, np.float64(1))[0],
        "value_and_grad": jax.value_and_grad(lambda x: x)(np.float64(1))[0],
        "grad": jax.grad(lambda x: x)(np.float64(1)),
        "computed": jax.vjp(lambda x: 2 * x, np.float64(1))[0],
    }
    return Observed({k: str(v.dtype) for k, v in seen.items()}, dict.fromkeys(seen, "float32"))


@probe(
    source="jax-ml/jax@fae1e236edfd",
    deviations=[
        deviation(
            "jax<0.9.2", outcome="ok", reason="a NumPy array", issue="jax-ml/jax@fae1e236edfd"
        )
    ],
)
def no_tangent(env):
    """The tangent of an integer has dtype float0; from 0.9.2 it is no plain NumPy array."""
    zero = np.zeros((), jax.dtypes.float0)
    seen = [
        jax.jvp(lambda i: 2 * i, (3,), (zero,))[1],
        jax.grad(lambda i: 2.0 * i, allow_int=True)(3),
        jax.linearize(lambda x: (x, jnp.int32(x)), 1.0)[1](1.0)[1],
    ]
    return Observed(
        [(v.dtype == jax.dtypes.float0, type(v) is np.ndarray) for v in seen],
        [(True, False)] * 3,
    )


@probe(
    source="jax-ml/jax#39557",
    deviations=[
        deviation(
            "jax<0.11.1", outcome="ok", reason="the shape alone was told", issue="jax-ml/jax#39557"
        )
    ],
)
def gradient_of_a_vector(env):
    """`grad` of a vector: a TypeError, which from 0.11.1 names the ways out: a sum, `jacobian`."""
    words = ("scalar-output functions", "shape: (2,)", "output.sum()", "jax.jacobian")
    seen = told(lambda: jax.grad(lambda x: 2 * x)(floats(1, 2)), *words)
    return Observed(seen, ["TypeError", *words])


@probe(source="jax-ml/jax#3051")
def refusals(env):
    """What `grad` and its kin refuse: integers, complex numbers, text, a missing argument."""
    seen = {
        "integer": told(lambda: jax.grad(lambda x: 2.0 * x)(3), "set allow_int to True"),
        "complex": told(lambda: jax.grad(lambda x: 2 * x)(1j), "pass holomorphic=True"),
        "boolean": told(lambda: jax.grad(lambda x: x > 1)(1.0), "real-valued outputs"),
        "real": told(lambda: jax.grad(lambda x: x, holomorphic=True)(1.0), "complex dtype"),
        "text": told(lambda: jax.grad(lambda _: 1.0)("a"), "not a valid JAX type"),
        "argnums": told(lambda: jax.grad(lambda x: x, argnums=2)(1.0), "at least 3 positional"),
        "jacfwd": told(lambda: jax.jacfwd(lambda x: 2.0 * x)(3), "real-valued inputs"),
        "jacrev": told(lambda: jax.jacrev(lambda x: 1j * x)(1.0), "real-valued outputs"),
        "aux": told(lambda: jax.grad(lambda x: x, has_aux=True)(1.0), "two-element tuple"),
        "tangent": told(lambda: jax.jvp(jnp.sin, (1.0,), (1,)), "dtypes must be equal"),
        "shape": told(lambda: jax.jvp(jnp.sin, (1.0,), (floats(1),)), "tangent shape"),
        "nonlinear": told(lambda: jax.linear_transpose(jnp.sin, 1.0)(1.0), "Transpose rule"),
    }
    wanted = {
        "integer": ["TypeError", "set allow_int to True"],
        "complex": ["TypeError", "pass holomorphic=True"],
        "boolean": ["TypeError", "real-valued outputs"],
        "real": ["TypeError", "complex dtype"],
        "text": ["TypeError", "not a valid JAX type"],
        "argnums": ["TypeError", "at least 3 positional"],
        "jacfwd": ["TypeError", "real-valued inputs"],
        "jacrev": ["TypeError", "real-valued outputs"],
        "aux": ["TypeError", "two-element tuple"],
        "tangent": ["TypeError", "dtypes must be equal"],
        "shape": ["ValueError", "tangent shape"],
        "nonlinear": ["NotImplementedError", "Transpose rule"],
    }
    return Observed(seen, wanted)


@probe(source="jax-ml/jax#500")
def second_derivatives(env):
    """Hessian of one function in all four ways and its gradient, with aux, in closed form."""

    def fn(x):
        return x[0] ** 2 * x[1] + jnp.sin(x[2]) * x[0]

    x = floats(2, 3, 0.5)
    a, b, c = np.float64(x)
    ways = (jax.jacfwd, jax.jacrev)
    hessians, aux = jax.jit(
        lambda x: (
            [outer(inner(fn))(x) for outer in ways for inner in ways],
            [way(lambda x: (fn(x), x[0]), has_aux=True)(x) for way in ways],
        )
    )(x)
    gradient = np.array([2 * a * b + np.sin(c), a**2, a * np.cos(c)])
    hessian = np.array([[2 * b, 2 * a, np.cos(c)], [2 * a, 0, 0], [np.cos(c), 0, -a * np.sin(c)]])
    return Observed((hessians, aux), ([hessian] * 4, [(gradient, a), (gradient, a)]))


@probe(source="jax-ml/jax#500")
def complex_derivatives(env):
    """The derivative of a holomorphic function, and the gradient of a real one: conjugated."""
    z = np.complex64(1 + 2j)
    seen = jax.jit(
        lambda z: [
            jax.grad(lambda z: z**3, holomorphic=True)(z),
            jax.grad(lambda z: (z * jnp.conj(z)).real)(z),
            jax.jvp(jnp.exp, (z,), (1j * z,))[1],
            jax.vjp(jnp.exp, z)[1](z)[0],
        ]
    )(z)
    z = np.complex128(z)
    return Observed(seen, [3 * z**2, 2 * z.conj(), np.exp(z) * 1j * z, np.exp(z) * z])


@probe(source="jax-ml/jax@d0f17c0c04be")
def branch_on_the_value(env):
    """Without jit Python may branch on what is differentiated: each way sees the number itself."""

    def fn(x):
        return x * x if x > 1 else -x

    seen = [
        jax.grad(fn)(2.0),
        jax.linearize(fn, 2.0)[1](1.0),
        jax.jvp(fn, (2.0,), (1.0,))[1],
        jax.grad(fn)(0.5),
    ]
    return Observed(np.float64(seen), np.array([4.0, 4, 4, -1]))
