"""`lax.custom_root`: how often it traces its functions, and what they may do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",), source="jax-ml/jax@f740a321010c")

ONE, TWO = np.float32(1), np.float32(2)


def divide(g, y):
    """Solve a linear equation of numbers."""
    return y / g(jnp.ones_like(y))


def root_by(solve):
    """Return a function whose result is a root of x * x - a, by one step of a solver."""
    return lambda a: lax.custom_root(lambda x: x * x - a, ONE, solve, divide)


TRACED_TWICE_MORE = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the function was also traced for its linearisation, and for that of the solution",
    issue="jax-ml/jax@f740a321010c",
)


@probe(deviations=[TRACED_TWICE_MORE])
def traces_of_a_root(env):
    """The function whose root is wanted is traced once."""
    calls = []

    def f(x):
        calls.append(x)
        return x * x - 2

    lax.custom_root(f, ONE, lambda f, x: x - f(x) / 2, divide)
    return Observed(len(calls), 1)


EFFECTS_REFUSED = deviation(
    "jax==0.11.2",
    outcome="ok",
    reason="the equation of a root had no rule for effects",
    issue="jax-ml/jax@f740a321010c",
)


@probe(deviations=[EFFECTS_REFUSED])
def callback_of_a_solver(env):
    """The solver may call the host by `io_callback`."""
    root = root_by(lambda _, x: io_callback(lambda x: x, x, x))
    return Observed(refusal(lambda: root(TWO)), "ran")


LANES_MAPPED = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="all results of the equation of a root are mapped",
    issue="jax-ml/jax@f740a321010c",
)


@probe(deviations=[LANES_MAPPED])
def solution_shared_by_the_lanes(env):
    """A solution that does not depend on the lane may be returned with `out_axes=None`."""
    lanes = jax.vmap(root_by(lambda _, x: x), out_axes=None)
    return Observed(refusal(lambda: lanes(np.float32([2, 3]))), "ran")
