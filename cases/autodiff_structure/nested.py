"""Rules within rules, and derivatives of derivatives of lanes and loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero, linear_call

from conformance.kit import Observed, deviation, probe

from ._helpers import floats

TRACED_WITHOUT_END = deviation(
    "jax<0.6",
    error="RecursionError",
    match="maximum recursion depth",
    reason="linear_call traced its transpose at once, and within it the transpose of that",
    issue="jax-ml/jax@e0cda84d9090",
)


@probe(source="jax-ml/jax@e0cda84d9090", deviations=[TRACED_WITHOUT_END])
def transpose_that_calls_its_function(env):
    """The transpose of a `linear_call` may call the function itself, here with twice the factor.

    Transposed twice, it is the call that it was.
    """

    def scale(factor, x):
        return linear_call(
            lambda factor, x: factor * x, lambda factor, t: scale(2 * factor, t), factor, x
        )

    once = lambda t: jax.linear_transpose(lambda x: scale(3.0, x), 1.0)(t)[0]  # noqa: E731
    observed = [scale(3.0, 1.0), once(1.0), jax.linear_transpose(once, 1.0)(1.0)[0]]
    return Observed(np.float64(observed), np.array([3.0, 6, 3]))


ARRAYS_OF_ZEROS_IN_LANES = deviation(
    "jax<0.6",
    outcome="ok",
    reason="vmap replaced known zeros by arrays",
    issue="jax-ml/jax#26763",
)


@probe(source="jax-ml/jax#26763", deviations=[ARRAYS_OF_ZEROS_IN_LANES])
def zeros_from_a_rule_in_lanes(env):
    """Under vmap, too, a zero that a rule with `symbolic_zeros=True` returns stays a known zero."""
    known = []
    f = jax.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        known.append([isinstance(t, SymbolicZero) for t in tangents])
        return f(*primals), tangents[1]

    f.defjvp(rule, symbolic_zeros=True)
    x = floats(1, 2)
    jax.jvp(jax.vmap(lambda x: f(x, f(x, 3.0))), (x,), (x,))
    return Observed(known, [[False, True], [False, True]])


NO_NAMES_OF_RESULTS = deviation(
    "jax>=0.7.2,<0.10.2",
    error="TypeError",
    match="NoneType",
    reason="the names of the results of a loop were missing",
    issue="jax-ml/jax@6b8ea57fd88c",
)


@probe(source="jax-ml/jax@6b8ea57fd88c", deviations=[NO_NAMES_OF_RESULTS])
def derivative_beside_a_stopped_loop(env):
    """The second derivative, in lanes, of a function with a while_loop in `stop_gradient`."""

    def f(p):
        body = lambda state: (state[0] + 1, state[1] * p)  # noqa: E731
        power = lax.while_loop(lambda state: state[0] < 3, body, (0, jnp.float32(1)))[1]
        return p**2 * lax.stop_gradient(power)

    def total(p):
        return jax.vmap(jax.grad(f))(p).sum()

    p = floats(2, 3)
    return Observed(jax.jit(jax.grad(total))(p), 2 * p.astype(np.float64) ** 3)


def by_custom_jvp():
    """Return the square of a sum, whose rule for tangents calls a method of its argument."""
    f = jax.custom_jvp(lambda x: x.sum() ** 2)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0].sum() * tangents[0].sum()))
    return f


def by_custom_vjp():
    """Return the square of a sum, whose forward rule calls a method of its argument."""
    f = jax.custom_vjp(lambda x: x.sum() ** 2)
    f.defvjp(lambda x: (f(x), x.sum()), lambda total, g: (2 * g * total * np.ones(3, np.float32),))
    return f


SQUARES_OF_A_SUM = {"custom_jvp": by_custom_jvp, "custom_vjp": by_custom_vjp}
ARRAY_WITHOUT_METHODS = deviation(
    "jax>=0.8,<0.9.2",
    error="AttributeError",
    match="'TypedNdArray' object has no attribute 'sum'",
    reason="a rule received a NumPy array as an array without methods",
    issue="jax-ml/jax@dda9695795d0",
)


@probe(
    source="jax-ml/jax@dda9695795d0",
    params=[*SQUARES_OF_A_SUM],
    deviations=[ARRAY_WITHOUT_METHODS],
)
def numpy_array_for_a_rule(env, name):
    """Outside of jit, a rule can call methods of an argument that is a NumPy array."""
    return Observed(jax.grad(SQUARES_OF_A_SUM[name]())(floats(1, 2, 3)), floats(12, 12, 12))


TYPE_OF_THE_ARRAY = deviation(
    "jax>=0.7,<0.8.1",
    params=["gather"],
    error="TypeError",
    match="requires arguments to have the same dtypes, got bfloat16, float32",
    reason="the transpose made zeros of the type of the array, for a cotangent of another type",
    issue="jax-ml/jax@9f426e23a5fd",
)
SELECTIONS = {
    "gather": lambda x: x[np.array([1, 2, 1])],
    "slice": lambda x: x[1:3],
}


@probe(source="jax-ml/jax@9f426e23a5fd", params=[*SELECTIONS], deviations=[TYPE_OF_THE_ARRAY])
def cotangent_of_higher_precision(env, name):
    """A rule may give a float32 cotangent for bfloat16 elements that were selected before it."""
    total = jax.custom_vjp(lambda x: x.sum())
    total.defvjp(
        lambda x: (x.sum(), x), lambda x, g: (lax.full(x.shape, 1.001, np.float32) * np.float32(g),)
    )
    x = np.ones(4, jnp.bfloat16)
    gradient = jax.grad(lambda x: total(SELECTIONS[name](x)))(x)
    exact = {"gather": [0, 2.002, 1.001, 0], "slice": [0, 1.001, 1.001, 0]}
    return Observed(gradient, np.array(exact[name], np.float32))


NOT_DIFFERENTIABLE = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="frexp had no rule, so its mantissa was a constant to autodiff",
    issue="jax-ml/jax#28106",
)
SHARDED_AND_NOT = deviation(
    "jax>=0.6.1,<0.7.1",
    error="TypeError",
    match="Custom JVP rule must produce primal and tangent outputs",
    reason="the tangent of the exponent was not sharded as the exponent",
    issue="jax-ml/jax@57dd3a7edc58",
)


@probe(
    source="jax-ml/jax@57dd3a7edc58", devices=2, deviations=[NOT_DIFFERENTIABLE, SHARDED_AND_NOT]
)
def jacobian_of_sharded_mantissas(env):
    """The Jacobian of the mantissas of a sharded array."""
    sharding = jax.sharding.NamedSharding(env.mesh(2, "x"), jax.sharding.PartitionSpec("x"))
    x = jax.device_put(floats(0.75, 5), sharding)
    jacobian = jax.jacrev(lambda x: jnp.frexp(x)[0])(x)
    return Observed(np.asarray(jacobian), np.diag(floats(1, 1 / 8)))
