"""Texts for readers: jaxprs as they are printed, and names of operations in profiles and dumps.

Users compare printed jaxprs in tests, and look for the names of operations in profiles.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import defaults, probe

defaults(platforms=("cpu",))

ROW = np.ones(2, np.float32)


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
    return print_jaxpr(JAXPRS[name], ROW).splitlines()


def scoped(x):
    """Add in a named scope."""
    with jax.named_scope("scope"):
        return jnp.sin(x)


@probe(source="jax-ml/jax@ca49e4eef34a", records="the names are JAX's own")
def names_in_compiled_code(env):
    """The names of the operations of a compiled program, which profiles show."""

    def program(x):
        return scoped(jax.jit(scoped)(x))

    text = jax.jit(program).lower(ROW).compile().as_text()
    return sorted(set(re.findall(r'op_name="([^"]*sin)"', text)))
