"""Callbacks that fail, and results that differ from their declaration: what the caller sees.

An exception on the host becomes an error of the runtime, with the traceback in its text. The class
and the words around the traceback changed more often than anything else in this family.
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
from jax.experimental import io_callback

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROW, expect_refusal, refusal, struct

defaults(platforms=("cpu",))


def fails(_):
    """Raise an exception, as a bug on the host does."""
    raise KeyError("on the host")


FAILING = {
    "pure": lambda x: jax.pure_callback(fails, struct((3,)), x),
    "io": lambda x: io_callback(fails, struct((3,)), x),
    "ordered": lambda x: io_callback(fails, struct((3,)), x, ordered=True),
    "debug": lambda x: jax.debug.callback(fails, x),
}


OLDER_ERROR_NAME = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the same error had its older name, XlaRuntimeError",
    issue="jax-ml/jax@92f5dcba89bb",
)


@probe(
    source="jax-ml/jax@92f5dcba89bb",
    params={
        "pure": {"kind": "pure"},
        "io": {"kind": "io"},
        "ordered": {"kind": "ordered"},
        "debug": {"kind": "debug"},
    },
    deviations=[OLDER_ERROR_NAME],
)
def exception_on_the_host(env, kind):
    """A KeyError in a callback under jit becomes a JaxRuntimeError with the KeyError in its text.

    The original object is lost: to handle the exception by its type, catch it on the host and
    return a flag.
    """
    outcome = refusal(lambda: jax.jit(FAILING[kind])(ROW), "KeyError: 'on the host'")
    return Observed(outcome, expect_refusal("JaxRuntimeError"))


@probe(source="jax-ml/jax@92f5dcba89bb", records="the words are up to XLA")
def words_of_the_failure(env):
    """A failed callback has a message whose first words people search for in logs.

    There is no right answer to compare with: XLA chooses the words.
    """
    try:
        jax.jit(FAILING["pure"])(ROW).block_until_ready()
    except RuntimeError as error:
        return {"words": str(error).partition("Traceback")[0].strip()}
    return {"words": ""}


WRONG_RESULTS = {
    "shape": (lambda _: np.zeros(5, np.float32), "Incorrect output shape"),
    "integers": (lambda _: np.zeros(3, np.int32), "Incorrect output dtype"),
    "two": (lambda x: (x, x), "Mismatched number of outputs"),
    "scalar": (lambda _: 1.5, "Incorrect output shape"),
}


@probe(source="jax-ml/jax#11928")
def result_other_than_declared(env):
    """Returning another shape, dtype or number of arrays than declared is an error."""

    def is_reported(host, words):
        f = jax.jit(lambda x: jax.pure_callback(host, struct((3,)), x))
        return refusal(lambda: f(ROW), words)["told"]

    outcomes = {what: is_reported(host, words) for what, (host, words) in WRONG_RESULTS.items()}
    return Observed(outcomes, dict.fromkeys(WRONG_RESULTS, True))


@probe(source="jax-ml/jax#11928")
def doubles_from_the_host(env):
    """Float64 from the host, where float32 is declared, is rounded silently.

    NumPy computes in float64 by default, so most callbacks depend on this.
    """
    third = lambda x: np.full(3, 1 / 3) + np.asarray(x)  # noqa: E731 - as users write it
    value = jax.jit(lambda x: jax.pure_callback(third, struct((3,)), x))(ROW)
    return Observed(value, ROW + np.float64(1 / 3))


@probe(source="jax-ml/jax#11928")
def sixty_four_bits_declared(env):
    """A callback that declares float64 without x64 is refused; the message states the reason."""
    wide = jax.ShapeDtypeStruct((3,), np.float64)
    outcome = refusal(lambda: jax.pure_callback(lambda x: x, wide, ROW), "64-bit types")
    return Observed(outcome, expect_refusal("ValueError"))


@probe(source="jax-ml/jax#21526")
def what_the_host_is_handed(env):
    """The host receives a `jax.Array`, not a `numpy.ndarray`: first call `np.asarray` on it.

    Operations of jax within a callback can wait for a thread that waits for the callback.
    """
    types = {}

    def host(kind, x):
        types[kind] = {"jax": isinstance(x, jax.Array), "numpy": isinstance(x, np.ndarray)}
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
    return Observed(types, {"debug": array, "pure": array, "io": array, "eager": array})


KEY_LAYOUT_MISSING = deviation(
    "jax==0.6.0",
    params=("key",),
    outcome="ok",
    reason="a ValueError is raised: the layout of the words of the key is missing",
    issue="jax-ml/jax#28095",
)


@probe(
    source="jax-ml/jax#28095",
    params={"key": {"typed": True}, "key_data": {"typed": False}},
    deviations=[KEY_LAYOUT_MISSING],
)
def key_for_the_host(env, typed):
    """A debug callback under jit accepts a typed PRNG key, except in 0.6.0.

    `jax.random.key_data(key)` works on every release.
    """
    calls = []

    def host(key):
        calls.append(np.asarray(jax.random.key_data(key) if typed else key).tolist())

    def f(key):
        jax.debug.callback(host, key if typed else jax.random.key_data(key))

    prng_key = jax.random.wrap_key_data(np.array([0, 7], np.uint32))
    outcome = refusal(lambda: jax.jit(f)(prng_key), "incorrect layout")
    expected = {"error": "none", "told": False, "seen": [[0, 7]]}
    return Observed({**outcome, "seen": calls}, expected)


ANOTHER_ERROR_AFTER_A_SUCCESS = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="a program that has run once reports errors as ValueError",
    issue="jax-ml/jax#34083",
)


@probe(source="jax-ml/jax#34083", deviations=[ANOTHER_ERROR_AFTER_A_SUCCESS])
def failure_after_a_success(env):
    """A callback that fails in the second call of a program raises the same error as in the first.

    A call after a success takes a shorter path through the runtime.
    """

    def host(x):
        return fails(x) if x < 0 else np.asarray(x)

    f, g = (jax.jit(lambda x: jax.pure_callback(host, struct(()), x)) for _ in range(2))
    jax.block_until_ready(g(np.float32(1)))
    words = "KeyError: 'on the host'"
    first, second = (refusal(lambda f=f: f(np.float32(-1)), words) for f in (f, g))
    observed = {"told": [first["told"], second["told"]], "same": first["error"] == second["error"]}
    return Observed(observed, {"told": [True, True], "same": True})
