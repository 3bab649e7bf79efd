"""Loops under `jax.disable_jit` and conditionals outside of jit, which run in Python."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.scipy.special import exp1, expi

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

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


OUTPUTS_PROMOTED = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="ran",
    reason="the outputs were stacked by `jnp.stack`",
    issue="jax-ml/jax@7b415834145d",
)


@probe(source="jax-ml/jax@7b415834145d", deviations=[OUTPUTS_PROMOTED])
def outputs_of_two_dtypes(env):
    """Under `disable_jit`, a scan refuses outputs of two dtypes from 0.4.33 on."""

    def body(step, _):
        return step + 1, np.float32(1) if step == 0 else np.int32(2)

    with jax.disable_jit():
        outcome = refusal(lambda: lax.scan(body, 0, floats(0, 1)), "to have the same dtypes")
    return Observed(outcome, "TypeError: to have the same dtypes")


MEMORY_SHARED = deviation(
    "jax>=0.4.31,<0.4.33",
    outcome="ok",
    reason="the operand was returned as an array that shared its memory",
    issue="jax-ml/jax#21806",
)


@probe(source="jax-ml/jax#21806", platforms=["cpu"], deviations=[MEMORY_SHARED])
def operand_changed_after_a_conditional(env):
    """A result of `lax.cond` keeps its value if a NumPy operand is changed afterwards."""
    memory = np.zeros(128, np.uint8)
    start = -memory.ctypes.data % 64
    operand = memory[start : start + 64].view(np.float32)
    result = lax.cond(True, lambda x: x, lambda x: x, operand)
    jax.block_until_ready(result)
    operand[0] = 5
    return Observed(np.array(result[0]), np.float32(0))


UNCHANGED = {
    "scan": lambda: lax.scan(lambda c, x: (c, x), 2.0, floats(1, 2))[0],
    "while_loop": lambda: lax.while_loop(
        lambda state: state[1] < 3, lambda state: (state[0], state[1] + 1), (2.0, 0.0)
    )[0],
}
SCAN_RETURNS_THE_NUMBER = deviation(
    "jax>=0.6.1",
    params=["scan"],
    outcome="ok",
    reason="a carry that the body returns unchanged is not passed through the loop",
)
WHILE_LOOP_RETURNS_THE_NUMBER = deviation(
    "jax>=0.6",
    params=["while_loop"],
    outcome="ok",
    reason="a carry that the body returns unchanged is not passed through the loop",
)


@probe(
    source="jax-ml/jax@770eff03dfbc",
    params=[*UNCHANGED],
    deviations=[SCAN_RETURNS_THE_NUMBER, WHILE_LOOP_RETURNS_THE_NUMBER],
)
def unchanged_number(env, name):
    """Outside of jit, a Python number that a loop returns unchanged is no array from 0.6 on.

    It is a float, without `dtype` and `shape`; before, it was a weakly typed array.
    """
    return Observed({"array": hasattr(UNCHANGED[name](), "dtype")}, {"array": True})
