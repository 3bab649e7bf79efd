"""Texts for readers: printed jaxprs and types, and the names of operations in profiles and dumps.

Users compare printed jaxprs in tests, and look for the names of operations in profiles.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

X = np.ones(1, np.float32)
PAIR = np.ones(2, np.float32)


@jax.custom_jvp
def half(x):
    """Return half of the argument, with a derivative rule of its own."""
    return x / 2


half.defjvp(lambda primals, tangents: (half(*primals), tangents[0] / 2))
RULE_WITHOUT_A_NAME = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the parameters were printed as they are, with a wrapper of the rule over several lines",
    issue="jax-ml/jax@7e8c74985a78",
)


@probe(source="jax-ml/jax@7e8c74985a78", deviations=[RULE_WITHOUT_A_NAME])
def printed_custom_function(env):
    """In a printed jaxpr, a call of a `custom_jvp` function shows its name, from 0.6.1."""
    return Observed("name=half" in str(jax.make_jaxpr(half)(X)), True)


CLOSED_AND_OPEN = deviation(
    "jax<0.11",
    outcome="ok",
    reason="a ClosedJaxpr held a Jaxpr and the values of its constants",
    issue="jax-ml/jax@6204db0b0d2f",
)


@probe(source="jax-ml/jax@6204db0b0d2f", deviations=[CLOSED_AND_OPEN])
def one_class_of_jaxprs(env):
    """`make_jaxpr` returns a Jaxpr with constants, whose `jaxpr` is itself, from 0.11.0."""
    jaxpr = jax.make_jaxpr(jnp.sin)(X)
    observed = {"class": type(jaxpr).__name__, "itself": jaxpr.jaxpr is jaxpr}
    return Observed(observed, {"class": "Jaxpr", "itself": True})


def shared(x):
    """Call a jitted function twice."""
    f = jax.jit(lambda y: y + 1)
    return f(x) + f(x)


def increment():
    """Return a `custom_vjp` function."""

    @jax.custom_vjp
    def increment(x):
        return x + 1

    def forward(x):
        return x + 1, None

    def backward(_, g):
        return (g,)

    increment.defvjp(forward, backward)
    return increment


def long(x):
    """Call a jitted function of eleven operations."""

    @jax.jit
    def eleven(y):
        for _ in range(11):
            y = y + 1
        return y

    return eleven(x)


JAXPRS = {
    "nested": jax.jit(lambda y: y + 1),
    "shared_in_jit": jax.jit(shared),
    "long": long,
    "custom_vjp": increment(),
}


def print_jaxpr(f, *args):
    """Return the text of a jaxpr without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", str(jax.make_jaxpr(f)(*args)))


@probe(params=[*JAXPRS], source="jax-ml/jax@a6c47d6f362a", records="the text is JAX's own")
def printed_jaxpr(env, name):
    """The text of a jaxpr, line by line."""
    return print_jaxpr(JAXPRS[name], PAIR).splitlines()


def scoped(x):
    """Add in a named scope."""
    with jax.named_scope("scope"):
        return jnp.sin(x)


@probe(source="jax-ml/jax@ca49e4eef34a", records="the names are JAX's own")
def names_in_compiled_code(env):
    """The names of the operations of a compiled program, which profiles show."""

    def program(x):
        return scoped(jax.jit(scoped)(x))

    text = jax.jit(program).lower(PAIR).compile().as_text()
    return sorted(set(re.findall(r'op_name="([^"]*sin)"', text)))
