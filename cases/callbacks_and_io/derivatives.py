"""Callbacks in functions that are differentiated: how often the host is called.

A debug callback reads a value that the function computes. Its result is not used, so that JAX drops
it wherever it removes unused operations. An `io_callback` should run as often as the program says.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))


def repeat(f):
    """Return a function that applies another one three times."""
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


CALLERS = {"alone": (jax.grad, 1), "scan": (lambda f: jax.grad(repeat(f)), 3)}


def count_calls(transform, of_result):
    """Return how often the callback of a sine is called, if the sine is transformed."""
    calls = []

    def sine(x):
        y = jnp.sin(x)
        jax.debug.callback(calls.append, y if of_result else x)
        return y

    jax.block_until_ready(transform(sine)(1.0))
    jax.effects_barrier()
    return len(calls)


DROPPED_FROM_THE_SCAN = deviation(
    "jax<0.6.2",
    params=["scan"],
    outcome="ok",
    reason="the callback was dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax@a964f54dd1a2",
)


@probe(source="jax-ml/jax@a964f54dd1a2", params=[*CALLERS], deviations=[DROPPED_FROM_THE_SCAN])
def calls_of_a_gradient(env, name):
    """A callback runs once for each evaluation of a function, of its argument or its result."""
    transform, expected = CALLERS[name]
    counts = [count_calls(transform, of_result) for of_result in (False, True)]
    return Observed(counts, [expected, expected])


def scaled(host, ordered):
    """Return a function that multiplies by its argument and a number of the host, three times."""
    number = jax.ShapeDtypeStruct((), np.float32)

    def step(c, _, x):
        return c * x * io_callback(host, number, ordered=ordered), None

    return lambda x: lax.scan(partial(step, x=x), np.float32(1), length=3)[0]


NUMBER_OF_THE_FIRST_STEP = deviation(
    params=["grad", "ordered_grad"],
    outcome="ok",
    reason="the callback is moved out of the loop, and its number is that of all three steps",
    issue="jax-ml/jax#16637",
)


@probe(
    source="jax-ml/jax#16637",
    params={
        "call": {"transform": "call", "ordered": False},
        "jvp": {"transform": "jvp", "ordered": False},
        "grad": {"transform": "grad", "ordered": False},
        "ordered_grad": {"transform": "grad", "ordered": True},
    },
    deviations=[NUMBER_OF_THE_FIRST_STEP],
)
def numbers_of_the_host_in_a_scan(env, transform, ordered):
    """Each step of a scan gets a new number of an `io_callback`: here 1, 2 and 3.

    The value that `jax.value_and_grad` returns should be the value of the function.
    """
    numbers = iter(np.float32([1, 2, 3]))
    f = scaled(lambda: next(numbers), ordered)
    call = {
        "call": f,
        "jvp": lambda x: jax.jvp(f, (x,), (np.float32(1),))[0],
        "grad": lambda x: jax.value_and_grad(f)(x)[0],
    }[transform]
    return Observed(jax.jit(call)(np.float32(2)), reference=np.float32(48))


TO_THE_HOST = {
    "nothing": lambda host, _: jax.debug.callback(host),
    "step": jax.debug.callback,
    "nothing_by_io": lambda host, _: io_callback(host, None),
    "step_by_io": lambda host, i: io_callback(host, None, i),
    "step_ordered_by_io": lambda host, i: io_callback(host, None, i, ordered=True),
}
CALLED_ONCE = deviation(
    params=["nothing", "nothing_by_io"],
    outcome="ok",
    reason="a callback without arguments is moved out of the loop",
    issue="jax-ml/jax#16637",
)
STEP_DROPPED = deviation(
    "jax<0.6.2",
    params=["step"],
    outcome="ok",
    reason="the callback was dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax#28738",
)
STEP_BY_IO_DROPPED = deviation(
    params=["step_by_io", "step_ordered_by_io"],
    outcome="ok",
    reason="the callback is dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax#28738",
)


@probe(
    source="jax-ml/jax#28738",
    params=[*TO_THE_HOST],
    deviations=[CALLED_ONCE, STEP_DROPPED, STEP_BY_IO_DROPPED],
)
def steps_of_a_gradient(env, name):
    """Under `grad`, each of three steps of a scan calls the host, with its number or nothing."""
    calls = []

    def step(c, i, x):
        TO_THE_HOST[name](lambda *numbers: calls.append(int(sum(numbers, 0))), i)
        return c * x, None

    def power(x):
        return lax.scan(partial(step, x=x), np.float32(1), np.arange(3))[0]

    jax.block_until_ready(jax.jit(jax.grad(power))(np.float32(2)))
    jax.effects_barrier()
    return Observed(str(sorted(calls)), "[0, 1, 2]" if "step" in name else "[0, 0, 0]")
