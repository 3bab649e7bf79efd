"""Arrays that JAX keeps alive: arguments of a trace, and closures."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import make_donatable

defaults(platforms=("cpu",))

TRACE_KEPT_ARGUMENTS = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a Traced kept the arguments to lower the program for them",
    issue="jax-ml/jax@d2ce04b6c3d0",
)


@probe(source="jax-ml/jax@d2ce04b6c3d0", releases="jax>=0.4.31", deviations=[TRACE_KEPT_ARGUMENTS])
def argument_of_a_trace(env):
    """`jit(f).trace(x)` and its lowering do not keep the array x in memory."""
    x, y = make_donatable(), make_donatable()
    stages = [jax.jit(jnp.sin).trace(x), jax.jit(jnp.cos).lower(y)]
    references = {"traced": weakref.ref(x), "lowered": weakref.ref(y)}
    del x, y
    gc.collect()
    released = {name: reference() is None for name, reference in references.items()}
    return Observed((released, len(stages)), (dict.fromkeys(references, True), 2))


BRANCHES_KEPT = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="a cache of traced branches kept the arrays that they close over",
    issue="jax-ml/jax#12719",
)


@probe(source="jax-ml/jax#12719", deviations=[BRANCHES_KEPT])
def closed_over_by_a_branch(env):
    """An array that branches of `lax.cond` close over is freed with the functions that use it."""

    def run():
        x = make_donatable()
        choose = jax.jit(lambda: lax.cond(True, lambda: x[0], lambda: x[1]))
        choose().block_until_ready()
        return weakref.ref(x)

    reference = run()
    gc.collect()
    return Observed(reference() is None, True)


def call_with_static(name, value):
    """Return a function that has been used with a value as static argument."""

    def add(x, value):
        return x + (value is not None)

    if name == "number":
        f = jax.jit(add, static_argnums=1)
        f(1.0, value)
    elif name == "name":
        f = jax.jit(add, static_argnames="value")
        f(1.0, value=value)
    elif name == "lowered":
        f = jax.jit(add, static_argnums=1)
        f.lower(1.0, value)
    elif name == "pmap":
        f = jax.pmap(add, static_broadcasted_argnums=1)
        f(np.ones(1, np.float32), value)
    else:
        f = jax.checkpoint(add, static_argnums=1)
        jax.grad(f)(1.0, value)
    return f


STATIC_ARGUMENT_KEPT = deviation(
    "jax>=0.9",
    params=["number", "name", "lowered"],
    outcome="ok",
    reason="a cache of shardings has the static arguments in its key",
    issue="jax-ml/jax#16226",
)
STATIC_ARGUMENT_OF_PMAP_KEPT = deviation(
    "jax>=0.8",
    params=["pmap"],
    outcome="ok",
    reason="pmap is made of jit, whose caches have the static arguments in their keys",
    issue="jax-ml/jax#16226",
)
STATIC_ARGUMENT_OF_CHECKPOINT_KEPT = deviation(
    params=["checkpoint"],
    outcome="ok",
    reason="a cache of checkpointed functions has the static arguments in its key",
    issue="jax-ml/jax#16226",
)


@probe(
    source="jax-ml/jax#16226",
    params=["number", "name", "lowered", "pmap", "checkpoint"],
    deviations=[
        STATIC_ARGUMENT_KEPT,
        STATIC_ARGUMENT_OF_PMAP_KEPT,
        STATIC_ARGUMENT_OF_CHECKPOINT_KEPT,
    ],
)
def static_argument(env, name):
    """The value of a static argument is freed with the function that was called with it."""

    class Value:
        pass

    value = Value()
    reference = weakref.ref(value)
    f = call_with_static(name, value)
    del value, f
    gc.collect()
    return Observed(reference() is None, True)
