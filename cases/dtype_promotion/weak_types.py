"""Weak types: which results of Python scalars stay weak, and which transforms keep that.

A weak type gives way to the dtype of an array. If a result loses it, a later sum has another dtype;
if a carry gains it, a loop is traced again or refused. A star marks a weak type.
"""

from __future__ import annotations

import enum

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import trace_types

defaults(platforms=("cpu",), source="jax-ml/jax#1709")


def double(x):
    """Return a weak result for a weak argument."""
    return x * 2


@jax.custom_jvp
def double_jvp(x):
    """Double a number, with a JVP of its own."""
    return x * 2


@jax.custom_vjp
def double_vjp(x):
    """Double a number, with a VJP of its own."""
    return x * 2


double_jvp.defjvp(lambda primals, tangents: (double_jvp(*primals), double(*tangents)))
double_vjp.defvjp(lambda x: (double_vjp(x), None), lambda _, g: (2 * g,))


def strengthen(x):
    """Return twice a number, with its dtype but never weak."""
    return x + np.ones((), jnp.result_type(x))


def square(x):
    """Return the square of a number."""
    return x * x


TRANSFORMS = {
    "branches": {
        "cond": lambda x: lax.cond(True, double, double, x),
        "switch": lambda x: lax.switch(0, [double, double], x),
    },
    "calls": {
        "checkpoint": jax.checkpoint(double),
        "custom_jvp": double_jvp,
        "custom_vjp": double_vjp,
        "jit": jax.jit(double),
        "stop_gradient": lax.stop_gradient,
        "vmap": lambda x: jax.vmap(double)(jnp.broadcast_to(x, (2,))),
        "vmap_unmapped": lambda x: jax.vmap(lambda _, x: x * 2, (0, None))(np.arange(2), x),
    },
    "derivatives": {
        "grad": lambda x: jax.grad(square)(x * 1.0),
        "grad_of_strong": lambda x: jax.grad(strengthen)(x * 1.0),
        "hessian": lambda x: jax.hessian(square)(x * 1.0),
        "jvp": lambda x: jax.jvp(double, (x * 1.0,), (x * 1.0,))[1],
        "linearize": lambda x: jax.linearize(double, x * 1.0)[1](x * 1.0),
        "value_and_grad": lambda x: jax.value_and_grad(square)(x * 1.0)[0],
        "vjp": lambda x: jax.vjp(double, x * 1.0)[1](x * 1.0)[0],
    },
    "loops": {
        "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: c * i, x),
        "map": lambda x: lax.map(lambda _: x * 2, np.arange(2)),
        "scan_carry": lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, 2)[0],
        "scan_output": lambda x: lax.scan(lambda c, _: (c, c * 2), x, None, 2)[1],
        "while_loop": lambda x: lax.while_loop(lambda c: c < 0, double, x),
    },
}
"""Transforms of a function of a Python scalar; derivatives are of a Python float."""


def observe_types(call):
    """Return the result types of a call with 1 and with 1.0, as text."""
    calls = {"1": lambda integer, _: call(integer), "1.0": lambda _, number: call(number)}
    return trace_types(calls, 1, 1.0)


@probe(params=[*TRANSFORMS])
def transforms_of_weak(env, name):
    """Each transform of a function of a Python scalar has a weak result, as the function has."""
    result = {key: observe_types(call) for key, call in TRANSFORMS[name].items()}
    expected = {"1": "f32*" if name == "derivatives" else "i32*", "1.0": "f32*"}
    return Observed(result, reference=dict.fromkeys(result, expected))


STRONG = {
    "cond_with_strong_branch": lambda x: lax.cond(True, double, strengthen, x),
    "fori_loop_to_strong": lambda x: lax.fori_loop(0, 2, lambda _, c: strengthen(c), x),
    "map_of_strong": lambda x: lax.map(strengthen, jnp.broadcast_to(x, (2,))),
    "pure_callback": lambda x: jax.pure_callback(double, jax.eval_shape(double, x), x),
    "scan_to_strong": lambda x: lax.scan(lambda c, _: (strengthen(c), None), x, None, 2)[0],
    "switch_with_strong_branch": lambda x: lax.switch(0, [strengthen, double], x),
    "while_loop_to_strong": lambda x: lax.while_loop(lambda c: c < 0, strengthen, x),
}


@probe()
def strong_results(env):
    """A loop or branch of a Python scalar is not weak if any part of it is not."""
    result = {key: observe_types(call) for key, call in STRONG.items()}
    return Observed(result, reference={key: {"1": "i32", "1.0": "f32"} for key in result})


def lift(call, **keywords):
    """Return a call for an array of one element instead of a scalar."""
    return lambda x: call(jnp.asarray(x)[None], **keywords)


FUNCTIONS = {
    "constructors": {
        "arange_to": lambda x: jnp.arange(0, 3, x),
        "array": jnp.array,
        "array_of_list": lambda x: jnp.array([x]),
        "asarray": jnp.asarray,
        "astype": lambda x: jnp.asarray(x).astype(jnp.result_type(x)),
        "copy": jnp.copy,
        "device_put": jax.device_put,
        "full": lambda x: jnp.full(2, x),
        "full_like": lambda x: jnp.full_like(x, 1),
        "linspace": lambda x: jnp.linspace(0, x, 3),
        "ones_like": jnp.ones_like,
        "zeros_like": jnp.zeros_like,
    },
    "shapes": {
        "atleast_1d": jnp.atleast_1d,
        "broadcast_to": lambda x: jnp.broadcast_to(x, (2,)),
        "concatenate": lift(lambda x: jnp.concatenate([x, x])),
        "concatenate_strong": lift(lambda x: jnp.concatenate([x, np.ones(1, np.int8)])),
        "index": lift(lambda x: x[0]),
        "pad": lift(jnp.pad, pad_width=1),
        "reshape": lambda x: jnp.reshape(x, (1,)),
        "roll": lift(jnp.roll, shift=1),
        "sort": lift(jnp.sort),
        "stack": lift(lambda x: jnp.stack([x, x])),
        "take": lift(jnp.take, indices=0),
        "tile": lambda x: jnp.tile(x, 2),
        "top_k": lift(lambda x: lax.top_k(x, 1)[0]),
        "unique": lift(jnp.unique, size=1),
    },
    "selection": {
        "at_add_float": lift(lambda x: x.at[0].add(np.float32(1))),
        "at_set": lift(lambda x: x.at[0].set(1)),
        "clip": lambda x: jnp.clip(x, 0, 1),
        "maximum": lambda x: jnp.maximum(x, 0),
        "select": lambda x: jnp.select([np.array(True)], [jnp.asarray(x)]),
        "where": lambda x: jnp.where(True, x, x),
        "where_strong": lambda x: jnp.where(True, x, np.int8(0)),
        "where_zero": lambda x: jnp.where(True, x, 0),
    },
    "reductions": {
        "cumsum": lift(jnp.cumsum),
        "dot": lift(lambda x: jnp.dot(x, x)),
        "einsum": lift(lambda x: jnp.einsum("i,i", x, x)),
        "max": lift(jnp.max),
        "mean": lift(jnp.mean),
        "outer": lift(lambda x: jnp.outer(x, x)),
        "psum": lambda x: jax.vmap(lambda _: lax.psum(x, "i"), axis_name="i")(np.arange(2)),
        "sum": lift(jnp.sum),
        "var": lift(jnp.var),
    },
    "elementwise": {
        "abs": jnp.abs,
        "bfloat16": lambda x: x * jnp.bfloat16(2),
        "float64": lambda x: x * np.float64(2),
        "gelu": jax.nn.gelu,
        "int8": lambda x: x * np.int8(2),
        "power": lambda x: jnp.power(x, 2),
        "power_of_scalars": lambda x: jnp.asarray(x) ** x,
        "real": jnp.real,
        "relu": jax.nn.relu,
        "round": jnp.round,
        "sigmoid": jax.nn.sigmoid,
        "sin": jnp.sin,
        "softmax": lift(jax.nn.softmax),
        "softplus": jax.nn.softplus,
        "square": jnp.square,
    },
    "lax": {
        "add": lambda x: lax.add(x, x),
        "convert_element_type": lambda x: lax.convert_element_type(x, float),
        "full": lambda x: lax.full((2,), x),
        "full_like": lambda x: lax.full_like(x, 1),
        "mul_strong": lambda x: lax.mul(x, np.ones((), jnp.result_type(x))),
        "pad": lift(lambda x: lax.pad(x, x[0], [(1, 1, 0)])),
        "reduce_precision": lambda x: lax.reduce_precision(x * 1.0, 8, 7),
        "select": lambda x: lax.select(np.array(True), jnp.asarray(x), jnp.asarray(x)),
        "square": lambda x: lax.square(x),  # noqa: PLW0108
    },
}


@probe(params=[*FUNCTIONS], records="each function has a rule of its own")
def weak_results(env, name):
    """Result types of functions of a Python scalar: weak, or the default dtype."""
    types = {key: observe_types(call) for key, call in FUNCTIONS[name].items()}
    return {key: f"1: {value['1']}, 1.0: {value['1.0']}" for key, value in types.items()}


class Level(enum.IntEnum):
    """An integer with a name."""

    HIGH = 3


class Metres(float):
    """A float with a unit."""


SUBCLASS_IS_STRONG = deviation(
    "jax<0.5",
    outcome="ok",
    reason="an instance of a subclass of a Python number had the default dtype, not a weak type",
)
ARRAY_OF_SUBCLASS_IS_STRONG = deviation(
    "jax>=0.5,<0.10.1",
    params=["array"],
    outcome="ok",
    reason="`jnp.asarray` of an instance of a subclass made an array that is not weak",
)
USES_OF_SUBCLASSES = {
    "operand": lambda: {
        "int8 + IntEnum": jnp.int8(1) + Level.HIGH,
        "bfloat16 * float": jnp.bfloat16(2) * Metres(1.5),
        "where": jnp.where(True, jnp.int8(1), Level.HIGH),
    },
    "argument_of_jit": lambda: {
        "int8 + IntEnum": jax.jit(lambda x: x + np.int8(1))(Level.HIGH),
        "bfloat16 * float": jax.jit(lambda x: x * jnp.bfloat16(2))(Metres(1.5)),
    },
    "array": lambda: {
        "int8 + IntEnum": jnp.int8(1) + jnp.asarray(Level.HIGH),
        "bfloat16 * float": jnp.bfloat16(2) * jnp.asarray(Metres(1.5)),
    },
}


@probe(
    source="jax-ml/jax#1709",
    params=[*USES_OF_SUBCLASSES],
    deviations=[SUBCLASS_IS_STRONG, ARRAY_OF_SUBCLASS_IS_STRONG],
)
def subclass_of_a_number(env, name):
    """An IntEnum and a subclass of float give way to the dtype of an array, as their values do."""
    results = USES_OF_SUBCLASSES[name]()
    expected = {"int8 + IntEnum": "int8", "bfloat16 * float": "bfloat16", "where": "int8"}
    return Observed(
        {key: str(value.dtype) for key, value in results.items()},
        {key: expected[key] for key in results},
    )


PRODUCT_OF_NUMBERS_IS_STRONG = deviation(
    "jax<0.4.34",
    params=["einsum"],
    outcome="ok",
    reason="the product of two Python numbers had the default dtype",
)
PRODUCTS_WITH_AN_INT8 = {
    "einsum": lambda: jnp.einsum(",->", 2, 3) * jnp.int8(1),
    "dot": lambda: jnp.dot(2, 3) * jnp.int8(1),
    "multiply": lambda: jnp.multiply(2, 3) * jnp.int8(1),
}


@probe(params=[*PRODUCTS_WITH_AN_INT8], deviations=[PRODUCT_OF_NUMBERS_IS_STRONG])
def product_of_two_numbers(env, name):
    """A product of two Python numbers is weak, so it gives way to int8; `einsum` from 0.4.34 on."""
    return Observed(str(PRODUCTS_WITH_AN_INT8[name]().dtype), reference="int8")


NUMBER_IS_STRONG_IN_EINSUM = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the number had the default dtype, to which the array was promoted",
)
NARROW_RESULT_IS_REFUSED = deviation(
    "jax>=0.4.34",
    params=["int8"],
    error="TypeError",
    match="`preferred_element_type` must not be narrower",
    reason="the number has 32 bits, and the requested result the dtype of the array",
)


@probe(
    params={
        "int8": {"dtype": "int8", "number": 3},
        "bfloat16": {"dtype": "bfloat16", "number": 3.0},
    },
    deviations=[NUMBER_IS_STRONG_IN_EINSUM, NARROW_RESULT_IS_REFUSED],
)
def einsum_with_a_number(env, dtype, number):
    """`jnp.einsum("i,->i", x, 3.0)` has the dtype of x, as `x * 3.0` has, from 0.4.34 on.

    If x is int8, and the number 3, it is a TypeError from then on; before, the result was int32.
    """
    x = np.array([1, 2], jnp.dtype(dtype))
    return Observed(jnp.einsum("i,->i", x, number), reference=np.array([3, 6], x.dtype))


GRADIENT_IS_STRONG = deviation(
    "jax==0.11.2",
    outcome="ok",
    reason="in this release alone the gradient is float32, not weak",
)


@probe(
    params=["beta", "betaln"],
    deviations=[GRADIENT_IS_STRONG],
)
def gradient_of_a_beta_function(env, name):
    """The gradient of `beta` or `betaln` of Python numbers is weak, and gives way to bfloat16."""
    gradient = jax.grad(getattr(jax.scipy.special, name))(2.0, 3.0)
    return Observed(str((gradient * jnp.bfloat16(1)).dtype), reference="bfloat16")
