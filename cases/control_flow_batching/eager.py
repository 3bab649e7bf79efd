"""Loops under `jax.disable_jit`, which run in Python, against the same loops under jit."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.scipy.special import exp1, expi

from conformance.kit import Observed, deviation, probe

from ._helpers import floats


def accumulate(start):
    """Return the sum of 1 + 2 + 3 by a loop whose body adds to its state in place."""

    def body(state):
        step, total = state
        step += 1
        return step, total + step

    return lax.while_loop(lambda state: state[0] < 3, body, (start, start))[1]


LOOPS = {
    "in_place": (accumulate, np.zeros((), np.float32), 6.0),
    "expi": (expi, floats(-0.5), [-0.5597735947761608]),
    "exp1": (exp1, floats(2.5), [0.024914917870269735]),
}
SHARED_STATE_CHANGED = deviation(
    "jax<0.5.3",
    params=["in_place", "expi"],
    outcome="ok",
    reason="the body changed a NumPy array in place, and with it every other part of the state",
    issue="jax-ml/jax#27019",
)


@probe(source="jax-ml/jax#27019", params=[*LOOPS], deviations=[SHARED_STATE_CHANGED])
def loop_without_jit(env, name):
    """Under `disable_jit`, a loop whose state begins with one array twice has the right result."""
    f, x, exact = LOOPS[name]
    with jax.disable_jit():
        return Observed(f(x), np.float64(exact))
