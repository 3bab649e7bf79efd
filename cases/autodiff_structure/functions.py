"""`grad`, `vjp`, `jvp` and `linearize`: types of their results, and calls that they refuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit import strategies as st
from conformance.kit.laws import check_same

from ._helpers import describe_error, floats

PULLBACK_WAS_PARTIAL = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="the pullback was a Partial of an internal function of jax",
    issue="jax-ml/jax@24686f9b3720",
)


@probe(source="jax-ml/jax@24686f9b3720", deviations=[PULLBACK_WAS_PARTIAL])
def pullback(env):
    """From 0.8.1 `vjp` returns a `VJP`: a pytree of the values that it keeps, as before."""
    vjp_function = jax.jit(lambda x: jax.vjp(lambda x: jnp.sin(x) * x, x)[1])(floats(1, 2))
    shapes = sorted(str(leaf.shape) for leaf in jax.tree_util.tree_leaves(vjp_function))
    x = np.float64([1, 2])
    value = jax.jit(vjp_function)(floats(1, 1))[0]
    return Observed(
        [type(vjp_function).__name__, shapes, value],
        ["VJP", ["(2,)"] * 3, x * np.cos(x) + np.sin(x)],
    )


MESSAGE_NAMES_FUNCTION = deviation(
    "jax<0.8.1",
    error="ValueError",
    match="argument to vjp function.* output of the function sin",
    reason="the message names the function; from 0.8.1 it does not",
    issue="jax-ml/jax@24686f9b3720",
)


@program(
    source="jax-ml/jax#7238",
    platforms=("cpu",),
    params={
        "dtype": {"cotangent": [1, 1], "dtype": "float16"},
        "shape": {"cotangent": [1, 1, 1], "dtype": "float32"},
    },
    deviations=[MESSAGE_NAMES_FUNCTION],
)
def cotangent_of_another_type(env, cotangent, dtype):
    """A cotangent of another dtype or shape raises a ValueError with both types.

    The message has the type that it got and the type that it expected.
    """

    def fn(x):
        return jax.vjp(jnp.sin, x)[1](np.array(cotangent, dtype))

    refusal = raises("ValueError", match="argument to VJP function: got float.*expected float32.2.")
    return Program(fn, args=(floats(1, 2),), reference=refusal)


FIRST_ARGUMENT_NOT_COUNTED = deviation(
    "jax>=0.8.1,<0.10",
    outcome="ok",
    reason="the message did not count the first argument",
    issue="jax-ml/jax@ce5c38249ef8",
)
SAME_MESSAGE_WITHOUT_ARGUMENT = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a call without an argument gave the same explanation",
    issue="jax-ml/jax@24686f9b3720",
)


@probe(
    source="jax-ml/jax#13103",
    deviations=[FIRST_ARGUMENT_NOT_COUNTED, SAME_MESSAGE_WITHOUT_ARGUMENT],
)
def pullback_of_two_arguments(env):
    """A pullback called with two cotangents raises a TypeError that counts them.

    From 0.8.1 to 0.9.2 the count is one too low.
    """
    vjp_function = jax.vjp(jnp.sin, 1.0)[1]
    words = ("was called with 0", "was called with 1", "was called with 2", "missing 1 required")
    return Observed(
        [
            describe_error(lambda: vjp_function(1.0, 2.0), *words),
            describe_error(vjp_function, *words),
        ],
        [["TypeError", "was called with 2"], ["TypeError", "missing 1 required"]],
    )


ARGUMENT_STAYED_FLOAT64 = deviation(
    "jax<0.8",
    outcome="ok",
    reason="an argument that is returned unchanged stayed float64",
    issue="jax-ml/jax@b8f92cbe9bc7",
)


@probe(source="jax-ml/jax@b8f92cbe9bc7", deviations=[ARGUMENT_STAYED_FLOAT64])
def primal_of_64_bits(env):
    """From 0.8.0 `vjp` and `value_and_grad` of the identity return float32 for float64."""
    results = {
        "vjp": jax.vjp(lambda x: x, np.float64(1))[0],
        "value_and_grad": jax.value_and_grad(lambda x: x)(np.float64(1))[0],
        "grad": jax.grad(lambda x: x)(np.float64(1)),
        "computed": jax.vjp(lambda x: 2 * x, np.float64(1))[0],
    }
    return Observed(
        {k: str(v.dtype) for k, v in results.items()}, dict.fromkeys(results, "float32")
    )


custom_jvp_identity = jax.custom_jvp(lambda x: x)
custom_jvp_identity.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
custom_vjp_identity = jax.custom_vjp(lambda x: x)
custom_vjp_identity.defvjp(lambda x: (x, None), lambda _, cotangent: (cotangent,))
IDENTITIES = {
    "checkpoint": jax.checkpoint(lambda x: x),
    "custom_jvp": custom_jvp_identity,
    "custom_vjp": custom_vjp_identity,
    "stop_gradient": jax.lax.stop_gradient,
}
IDENTITY_KEPT_64_BITS = deviation(
    "jax<0.9.2",
    outcome="ok",
    reason="outside of jit, an argument that is returned unchanged kept its 64 bits",
    issue="jax-ml/jax@fae1e236edfd",
)


@probe(source="jax-ml/jax@fae1e236edfd", params=[*IDENTITIES], deviations=[IDENTITY_KEPT_64_BITS])
def identity_of_64_bits(env, name):
    """From 0.9.2 NumPy numbers of 64 bits that a function returns unchanged lose half of them.

    The results equal those under jit. Before, they were the arguments: `stop_gradient` of the
    integer 2**40 is silently 0 now.
    """
    values = {"float64": np.float64(1 / 3), "int64": np.int64(2**40 + 3)}
    results = {dtype: IDENTITIES[name](value) for dtype, value in values.items()}
    return Observed(
        {dtype: (str(x.dtype), float(x)) for dtype, x in results.items()},
        {"float64": ("float32", float(np.float32(1 / 3))), "int64": ("int32", 3.0)},
    )


TANGENT_WAS_NUMPY_ARRAY = deviation(
    "jax<0.9.2",
    outcome="ok",
    reason="the tangent was a NumPy array",
    issue="jax-ml/jax@fae1e236edfd",
)


@probe(source="jax-ml/jax@fae1e236edfd", deviations=[TANGENT_WAS_NUMPY_ARRAY])
def no_tangent(env):
    """The tangent of an integer has dtype float0; from 0.9.2 it is not a plain NumPy array."""
    zero = np.zeros((), jax.dtypes.float0)
    tangents = [
        jax.jvp(lambda i: 2 * i, (3,), (zero,))[1],
        jax.grad(lambda i: 2.0 * i, allow_int=True)(3),
        jax.linearize(lambda x: (x, jnp.int32(x)), 1.0)[1](1.0)[1],
    ]
    return Observed(
        [(v.dtype == jax.dtypes.float0, type(v) is np.ndarray) for v in tangents],
        [(True, False)] * 3,
    )


MESSAGE_HAS_ONLY_SHAPE = deviation(
    "jax<0.11.1", outcome="ok", reason="the message gave only the shape", issue="jax-ml/jax#39557"
)


@probe(source="jax-ml/jax#39557", deviations=[MESSAGE_HAS_ONLY_SHAPE])
def gradient_of_a_vector(env):
    """`grad` of a function that returns a vector raises a TypeError.

    From 0.11.1 the message names the remedies: a sum, or `jacobian`.
    """
    words = ("scalar-output functions", "shape: (2,)", "output.sum()", "jax.jacobian")
    error = describe_error(lambda: jax.grad(lambda x: 2 * x)(floats(1, 2)), *words)
    return Observed(error, ["TypeError", *words])


@probe(source="jax-ml/jax#3051")
def refusals(env):
    """`grad` and related functions refuse integers, complex numbers, text, a missing argument."""
    errors = {
        "integer": describe_error(lambda: jax.grad(lambda x: 2.0 * x)(3), "set allow_int to True"),
        "complex": describe_error(lambda: jax.grad(lambda x: 2 * x)(1j), "pass holomorphic=True"),
        "boolean": describe_error(lambda: jax.grad(lambda x: x > 1)(1.0), "real-valued outputs"),
        "real": describe_error(
            lambda: jax.grad(lambda x: x, holomorphic=True)(1.0), "complex dtype"
        ),
        "text": describe_error(lambda: jax.grad(lambda _: 1.0)("a"), "not a valid JAX type"),
        "argnums": describe_error(
            lambda: jax.grad(lambda x: x, argnums=2)(1.0), "at least 3 positional"
        ),
        "jacfwd": describe_error(lambda: jax.jacfwd(lambda x: 2.0 * x)(3), "real-valued inputs"),
        "jacrev": describe_error(lambda: jax.jacrev(lambda x: 1j * x)(1.0), "real-valued outputs"),
        "aux": describe_error(
            lambda: jax.grad(lambda x: x, has_aux=True)(1.0), "two-element tuple"
        ),
        "tangent": describe_error(lambda: jax.jvp(jnp.sin, (1.0,), (1,)), "dtypes must be equal"),
        "shape": describe_error(lambda: jax.jvp(jnp.sin, (1.0,), (floats(1),)), "tangent shape"),
        "nonlinear": describe_error(
            lambda: jax.linear_transpose(jnp.sin, 1.0)(1.0), "Transpose rule"
        ),
    }
    expected = {
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
    return Observed(errors, expected)


@probe(source="jax-ml/jax#500", given={"x": st.arrays("float32", 3)})
def second_derivatives(env, x):
    """The Hessian of a function, computed in four ways, equals its closed form.

    So does its gradient, computed in two ways with aux.
    """
    a, b, c = np.float64(x)
    hessians, aux = differentiate_twice(x)
    gradient = np.array([2 * a * b + np.sin(c), a**2, a * np.cos(c)])
    hessian = np.array([[2 * b, 2 * a, np.cos(c)], [2 * a, 0, 0], [np.cos(c), 0, -a * np.sin(c)]])
    check_same((hessians, aux), ([hessian] * 4, [(gradient, a), (gradient, a)]), atol=1e-5)


@jax.jit
def differentiate_twice(x):
    """Return the Hessians and the gradients with aux of a function."""

    def fn(x):
        return x[0] ** 2 * x[1] + jnp.sin(x[2]) * x[0]

    modes = (jax.jacfwd, jax.jacrev)
    hessians = [outer(inner(fn))(x) for outer in modes for inner in modes]
    return hessians, [mode(lambda x: (fn(x), x[0]), has_aux=True)(x) for mode in modes]


@probe(
    source="jax-ml/jax#500",
    given={"z": st.arrays("complex64", ()), "tangent": st.arrays("complex64", ())},
)
def complex_derivatives(env, z, tangent):
    """The gradient of a real function of a complex number is conjugated.

    The derivative of a holomorphic function is not.
    """
    derivatives = differentiate_complex(z, tangent)
    z, tangent = np.complex128(z), np.complex128(tangent)
    exact = [3 * z**2, 2 * z.conj(), np.exp(z) * tangent, np.exp(z) * tangent]
    # The parts of a product of complex numbers have the error of its magnitude.
    for derivative, number in zip(derivatives, exact, strict=True):
        check_same(derivative, number, rtol=2e-5, atol=2e-5 * abs(number))


@jax.jit
def differentiate_complex(z, tangent):
    """Return derivatives of functions of a complex number."""
    return [
        jax.grad(lambda z: z**3, holomorphic=True)(z),
        jax.grad(lambda z: (z * jnp.conj(z)).real)(z),
        jax.jvp(jnp.exp, (z,), (tangent,))[1],
        jax.vjp(jnp.exp, z)[1](tangent)[0],
    ]


@probe(source="jax-ml/jax@d0f17c0c04be")
def branch_on_the_value(env):
    """Without jit, Python may branch on the value that is differentiated.

    Each transformation sees the number itself.
    """

    def fn(x):
        return x * x if x > 1 else -x

    derivatives = [
        jax.grad(fn)(2.0),
        jax.linearize(fn, 2.0)[1](1.0),
        jax.jvp(fn, (2.0,), (1.0,))[1],
        jax.grad(fn)(0.5),
    ]
    return Observed(np.float64(derivatives), np.array([4.0, 4, 4, -1]))


KEYWORDS_DROPPED = deviation(
    "jax>=0.10.2,<0.12",
    outcome="ok",
    reason="the forward function accepted keyword arguments and did not pass them on",
    issue="jax-ml/jax@d19916fe372a",
)


@probe(source="jax-ml/jax@ae6a18d70d9c", releases="jax>=0.6.1", deviations=[KEYWORDS_DROPPED])
def keyword_of_a_forward_function(env):
    """The forward function of `jax.fwd_and_bwd` passes keyword arguments on.

    From 0.10.2 to 0.11.2 it silently ignored them: values and gradients were those of the default.
    """

    def scaled(x, factor=1.0):
        return factor * x**2

    forward, backward = jax.fwd_and_bwd(scaled, argnums=0)
    value, residuals = forward(np.float32(3), factor=10.0)
    gradient = backward(residuals, np.float32(1))
    return Observed((value, gradient), reference=(np.float64(90), np.float64(60)))
