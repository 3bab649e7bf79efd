"""Objects with `__jax_array__` in places other than the arguments of `jnp` functions.

From 0.8.0 most places refuse them: an object is converted by `jnp.asarray` alone.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats, outcome

defaults(platforms=("cpu",))

X = floats(1, 2, 3)


class Wrapped:
    """A wrapper of an array, like the parameter classes of libraries."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


def double(x):
    """Return twice the argument."""
    return 2 * x


def returned(x):
    """Return an object made of the argument."""
    return Wrapped(2 * x)


PLACES = {
    "scan_carry": lambda w: lax.scan(lambda c, _: (c * 2, None), w, None, length=1)[0],
    "while_carry": lambda w: lax.while_loop(lambda c: c[0] < 2, double, w),
    "cond_operand": lambda w: lax.cond(True, lambda x: 2 * x, lambda x: x, w),
    "closed_over": lambda w: jax.jit(lambda x: x + w)(w.value),
}
CONVERTED_NO_MORE = deviation(
    "jax>=0.8",
    params=["scan_carry", "while_carry", "cond_operand"],
    error="ValueError",
    match="Triggering __jax_array__",
    reason="jax no longer converts its arguments with __jax_array__",
    issue="jax-ml/jax@395849bd7a1e",
)


@probe(source="jax-ml/jax@395849bd7a1e", params=[*PLACES], deviations=[CONVERTED_NO_MORE])
def jax_array_protocol(env, name):
    """An object with `__jax_array__` as a carry, operand, result or closed-over value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Observed(np.asarray(PLACES[name](Wrapped(X))), floats(2, 4, 6))


OLDER_ERROR = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the result, converted to a traced array, was refused with a TypeError",
    issue="jax-ml/jax@395849bd7a1e",
)


@probe(source="jax-ml/jax@395849bd7a1e", deviations=[OLDER_ERROR])
def returned_from_jit(env):
    """A jitted function cannot return an object with `__jax_array__`."""
    observed = outcome(lambda: jax.jit(returned)(X), "Triggering __jax_array__")
    return Observed(observed, "ValueError: Triggering __jax_array__")


class Convertible(Wrapped):
    """An object that only JAX can convert to an array."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not for NumPy")


FIELDS_TAKEN_FOR_ELEMENTS = deviation(
    "jax<0.8.1",
    params=["list"],
    error="RuntimeError",
    match="not for NumPy",
    reason="in a list, an object that is a pytree was given to NumPy",
    issue="jax-ml/jax#32725",
)


@probe(
    source="jax-ml/jax#32725",
    params={"alone": {"nested": False}, "list": {"nested": True}},
    deviations=[FIELDS_TAKEN_FOR_ELEMENTS],
)
def converted_pytree(env, nested):
    """`jnp.asarray` converts an object with `__jax_array__` that is a pytree, also in a list."""
    cls = type("Local", (Convertible,), {})
    jax.tree_util.register_pytree_node(
        cls, lambda node: ((node.value,), None), lambda _, children: cls(*children)
    )
    x = [cls(X), cls(X)] if nested else cls(X)
    return Observed(jnp.asarray(x), np.stack([X, X]) if nested else X)


ARGUMENTS = {
    "broadcast_to": lambda n, x: n.broadcast_to(x, (2, 3)),
    "einsum": lambda n, x: n.einsum("i,i->i", x, x),
    "expand_dims": lambda n, x: n.expand_dims(x, 0),
    "full_like": lambda n, x: n.full_like(x, 2),
    "isposinf": lambda n, x: n.isposinf(x),
    "pad": lambda n, x: n.pad(x, 1),
    "select": lambda n, x: n.select([np.array([True, False, True])], [x], 0),
    "tile": lambda n, x: n.tile(x, 2),
    "transpose": lambda n, x: n.transpose(x),
}
NOT_CONVERTED = deviation(
    "jax<0.6",
    outcome="raised",
    reason="these functions looked at the shape or dtype of the object before its conversion",
    issue="jax-ml/jax#27716",
)


@probe(source="jax-ml/jax#27716", params=[*ARGUMENTS], deviations=[NOT_CONVERTED])
def argument_of_a_function(env, name):
    """`jnp.pad`, `tile` and other functions accept an object with `__jax_array__` from 0.6.0 on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = ARGUMENTS[name](jnp, Wrapped(X))
    return Observed(value, ARGUMENTS[name](np, X))


READERS = {
    "eval_shape": lambda x: jax.eval_shape(double, x),
    "grad": jax.grad(lambda x: jnp.sum(jnp.asarray(x) ** 2)),
    "jit": jax.jit(jnp.negative),
    "lax": lax.sin,
}
ACCEPTED_SILENTLY = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="transformations converted the object",
    issue="jax-ml/jax@dd375cbd336e",
)
ACCEPTED_WITH_A_WARNING = deviation(
    "jax>=0.6.1,<0.8",
    outcome="ok",
    reason="transformations still converted the object, with a DeprecationWarning",
    issue="jax-ml/jax@dd375cbd336e",
)


@probe(
    source="jax-ml/jax@dd375cbd336e",
    params=[*READERS],
    deviations=[ACCEPTED_SILENTLY, ACCEPTED_WITH_A_WARNING],
)
def read_by_a_transformation(env, name):
    """An object with `__jax_array__` as an argument: accepted, with a warning, then refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            READERS[name](Wrapped(X))
            observed = "accepted"
        except ValueError as error:
            observed = "refused" if "__jax_array__" in str(error) else str(error)
    warned = any("__jax_array__" in str(w.message) for w in caught)
    return Observed(
        {"outcome": observed, "warned": warned}, {"outcome": "refused", "warned": False}
    )
