"""Callbacks that fail, and results that are not as declared: what reaches the caller.

An exception on the host becomes an error of the runtime with the traceback in its text. The words
around it, and the class, changed more often than anything else here.
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
from jax.experimental import io_callback

from conformance.kit import Observed, deviation, probe

from ._helpers import ROW, refusal, refused, struct


def fails(_):
    """Raise what a bug on the host raises."""
    raise KeyError("on the host")


FAILING = {
    "pure": lambda x: jax.pure_callback(fails, struct((3,)), x),
    "io": lambda x: io_callback(fails, struct((3,)), x),
    "ordered": lambda x: io_callback(fails, struct((3,)), x, ordered=True),
    "debug": lambda x: jax.debug.callback(fails, x),
}


@probe(
    source="jax-ml/jax@92f5dcba89bb",
    platforms=("cpu",),
    params={
        "pure": {"kind": "pure"},
        "io": {"kind": "io"},
        "ordered": {"kind": "ordered"},
        "debug": {"kind": "debug"},
    },
    deviations=[
        deviation(
            "jax<0.8",
            outcome="ok",
            reason="the same error under its older name",
            issue="jax-ml/jax@92f5dcba89bb",
        )
    ],
)
def exception_on_the_host(env, kind):
    """A KeyError within a callback under jit: a JaxRuntimeError with the KeyError in its text.

    To handle it by kind, catch on the host and return a flag: the original object is lost.
    """
    ended = refusal(lambda: jax.jit(FAILING[kind])(ROW), "KeyError: 'on the host'")
    return Observed(ended, refused("JaxRuntimeError"))


@probe(
    source="jax-ml/jax@92f5dcba89bb",
    records="the words are up to XLA",
    platforms=("cpu",),
)
def words_of_the_failure(env):
    """The words before the traceback of a failed callback, as logs are searched for them.

    There is no right answer to compare with: they are XLA's.
    """
    try:
        jax.jit(FAILING["pure"])(ROW).block_until_ready()
    except RuntimeError as error:
        return {"words": str(error).partition("Traceback")[0].strip()}
    return {"words": ""}


RETURNED = {
    "shape": (lambda _: np.zeros(5, np.float32), "Incorrect output shape"),
    "integers": (lambda _: np.zeros(3, np.int32), "Incorrect output dtype"),
    "two": (lambda x: (x, x), "Mismatched number of outputs"),
    "scalar": (lambda _: 1.5, "Incorrect output shape"),
}


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def result_other_than_declared(env):
    """A callback that returns another shape, dtype or number of arrays than it declares."""

    def told(host, words):
        f = jax.jit(lambda x: jax.pure_callback(host, struct((3,)), x))
        return refusal(lambda: f(ROW), words)["told"]

    seen = {what: told(host, words) for what, (host, words) in RETURNED.items()}
    return Observed(seen, dict.fromkeys(RETURNED, True))


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def doubles_from_the_host(env):
    """Float64 from the host where float32 is declared: rounded, without a word.

    NumPy computes in float64 by default, so this is what makes most callbacks work.
    """
    third = lambda x: np.full(3, 1 / 3) + np.asarray(x)  # noqa: E731 - as users write it
    value = jax.jit(lambda x: jax.pure_callback(third, struct((3,)), x))(ROW)
    return Observed(value, ROW + np.float64(1 / 3))


@probe(source="jax-ml/jax#11928", platforms=("cpu",))
def sixty_four_bits_declared(env):
    """A callback that declares float64 without x64 is refused, and told why."""
    wide = jax.ShapeDtypeStruct((3,), np.float64)
    ended = refusal(lambda: jax.pure_callback(lambda x: x, wide, ROW), "64-bit types")
    return Observed(ended, refused("ValueError"))


@probe(source="jax-ml/jax#21526", platforms=("cpu",))
def what_the_host_is_handed(env):
    """The host is handed a `jax.Array`, no `numpy.ndarray`: `np.asarray` it before all else.

    Operations of jax within a callback can wait for a thread that waits for the callback.
    """
    handed = {}

    def host(kind, x):
        handed[kind] = {"jax": isinstance(x, jax.Array), "numpy": isinstance(x, np.ndarray)}
        return np.asarray(x)

    def program(x):
        jax.debug.callback(partial(host, "debug"), x)
        pure = jax.pure_callback(partial(host, "pure"), struct((3,)), x)
        return pure, io_callback(partial(host, "io"), struct((3,)), x)

    x = jax.device_put(ROW)
    jax.block_until_ready(jax.jit(program)(x))
    jax.block_until_ready(jax.pure_callback(partial(host, "eager"), struct((3,)), x))
    jax.effects_barrier()
    array = {"jax": True, "numpy": False}
    return Observed(handed, {"debug": array, "pure": array, "io": array, "eager": array})


@probe(
    source="jax-ml/jax#28095",
    platforms=("cpu",),
    params={"key": {"typed": True}, "key_data": {"typed": False}},
    deviations=[
        deviation(
            "jax==0.6.0",
            params=("key",),
            outcome="ok",
            reason="a ValueError: the layout of the key's own words is missing",
            issue="jax-ml/jax#28095",
        ),
    ],
)
def key_for_the_host(env, typed):
    """A typed PRNG key handed to a debug callback under jit: not on every release.

    `jax.random.key_data(key)` can be handed over everywhere.
    """
    seen = []

    def host(key):
        seen.append(np.asarray(jax.random.key_data(key) if typed else key).tolist())

    def f(key):
        jax.debug.callback(host, key if typed else jax.random.key_data(key))

    made = jax.random.wrap_key_data(np.array([0, 7], np.uint32))
    ended = refusal(lambda: jax.jit(f)(made), "incorrect layout")
    expected = {"error": "none", "told": False, "seen": [[0, 7]]}
    return Observed({**ended, "seen": seen}, expected)
