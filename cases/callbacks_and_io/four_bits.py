"""Numbers of four bits in callbacks: two of them share a byte on the device."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

NUMBERS = np.arange(8)


def judge(call):
    """Return whether a call returns the numbers from 0 to 7, or the class of its error."""
    try:
        return bool(np.array_equal(np.asarray(call()).astype(np.int32), NUMBERS))
    except Exception as error:  # noqa: BLE001 - the class is the observation
        return type(error).__name__.replace("Xla", "Jax")


BYTES_NOT_UNPACKED = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the two numbers of a byte were neither unpacked for the host nor packed for XLA",
    issue="jax-ml/jax@e64049f44fcc",
)


@probe(source="jax-ml/jax@e64049f44fcc", deviations=[BYTES_NOT_UNPACKED])
def four_bits_on_the_host(env):
    """int4 numbers are right as an argument and as the result of a `jax.pure_callback`."""
    floats, halves = (jax.ShapeDtypeStruct((8,), dtype) for dtype in (np.float32, jnp.int4))

    def convert(x):
        return jax.pure_callback(lambda x: np.asarray(x, np.float32), floats, x)

    def receive():
        return jax.pure_callback(lambda: NUMBERS.astype(jnp.int4), halves)

    observed = {
        "argument": judge(lambda: jax.jit(convert)(NUMBERS.astype(jnp.int4))),
        "result": judge(jax.jit(receive)),
    }
    return Observed(observed, dict.fromkeys(observed, True))
