"""Access to an array of which a process holds a part: supported operations and errors."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, draw_integers, make_spread_array

defaults(devices=4, platforms=("cpu-mp2",))

LOOKS = {
    "asarray": np.asarray,
    "device_get": jax.device_get,
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[0].item(),
    "iterate": lambda x: [float(row) for row in x],
    "pickle": lambda x: x.__reduce__(),
}


ASSERTION_WITHOUT_MESSAGE = deviation(
    params=["iterate"],
    outcome="ok",
    reason="an AssertionError without a message",
)


@probe(
    source="jax-ml/jax@c44082670f6d",
    params={
        "asarray": {"look": "asarray"},
        "device_get": {"look": "device_get"},
        "tolist": {"look": "tolist"},
        "iterate": {"look": "iterate"},
        "pickle": {"look": "pickle"},
    },
    deviations=[ASSERTION_WITHOUT_MESSAGE],
)
def of_a_split_array(env, look):
    """Reading an array that is partly in another process is a RuntimeError, never a part of it."""
    x = make_spread_array(env, draw_integers(env, 8))
    words = ("spans non-addressable", "not fully addressable", "non-addressable", "addressable")
    outcome = ending(LOOKS[look], x, words=words)
    return Observed(outcome, reference="RuntimeError: spans non-addressable")


@probe(
    source="jax-ml/jax@c44082670f6d",
    params={
        "asarray": {"look": "asarray"},
        "device_get": {"look": "device_get"},
        "tolist": {"look": "tolist"},
        "item": {"look": "item"},
        "iterate": {"look": "iterate"},
    },
)
def of_a_replicated_array(env, look):
    """An array that each process holds whole may be fetched, though others hold it, too."""
    whole = draw_integers(env, 8)
    x = make_spread_array(env, whole, NamedSharding(env.mesh(SHARDS, "x"), P()))
    values = np.asarray(LOOKS[look](x), np.float32)
    return Observed(values, reference=(whole[0] if look == "item" else whole).astype(np.float64))


SHAPE_IN_OTHER_WORDS = deviation(
    "jax<0.7.2",
    params=["repr"],
    outcome="ok",
    reason="repr described the shape in other words",
    issue="jax-ml/jax@7970a468375a",
)
STR_READ_NUMBERS = deviation(
    "jax<0.8.2",
    params=["str"],
    outcome="ok",
    reason="str asked for the numbers, although some are in another process",
    issue="jax-ml/jax@ec1359573aed",
)
FORMAT_READ_NUMBERS = deviation(
    "jax<0.9",
    params=["format"],
    outcome="ok",
    reason="format asked for the numbers, although some are in another process",
    issue="jax-ml/jax@9528be82b1b8",
)


@probe(
    source="jax-ml/jax@9528be82b1b8",
    params={"repr": {"how": "repr"}, "str": {"how": "str"}, "format": {"how": "format"}},
    deviations=[SHAPE_IN_OTHER_WORDS, STR_READ_NUMBERS, FORMAT_READ_NUMBERS],
)
def printed(env, how):
    """Logging an array must not end the program: it is described by shape and dtype instead."""
    x = make_spread_array(env, draw_integers(env, 8))
    text = {"repr": repr, "str": str, "format": "{}".format}[how]
    outcome = ending(text, x, words=("spans non-addressable", "unsupported format"))
    if outcome == "accepted":
        outcome = next((word for word in ("shape=(8,)", "float32[8]") if word in text(x)), text(x))
    return Observed(outcome, reference="shape=(8,)")


@probe(
    source="jax-ml/jax@89c404e703a1",
    params={"argument": {"closed": False}, "closed_over": {"closed": True}},
)
def in_a_jitted_function(env, closed):
    """An array of several processes is an argument: in a closure it would be a constant."""
    whole = draw_integers(env, 8)
    x = make_spread_array(env, whole)
    if closed:
        words = ("Closing over", "closing over", "spans non-addressable")
        outcome = ending(jax.jit(lambda y: x + y), make_spread_array(env, whole), words=words)
        return Observed(outcome, reference="RuntimeError: Closing over")
    array = jax.jit(lambda x, y: x + y)(x, make_spread_array(env, whole))
    return Observed(array, reference=2 * whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    params={
        "python": {"other": "python"},
        "numpy": {"other": "numpy"},
        "uncommitted": {"other": "uncommitted"},
        "committed": {"other": "committed"},
    },
)
def together_with(env, other):
    """In `x * y` with an array of both processes, a value without a placement joins the array.

    A value that was put on one device stays there, and the two cannot be combined.
    """
    whole = draw_integers(env, 8)
    second = {
        "python": lambda: 2.0,
        "numpy": lambda: np.float32(2),
        "uncommitted": lambda: jax.numpy.float32(2),
        "committed": lambda: jax.device_put(np.float32(2), jax.local_devices()[0]),
    }[other]()
    if other == "committed":
        outcome = ending(
            lambda: make_spread_array(env, whole) * second, words=("incompatible devices",)
        )
        return Observed(outcome, reference="ValueError: incompatible devices")
    return Observed(make_spread_array(env, whole) * second, reference=2 * whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    params={"whole": {"index": [0, 8]}, "row": {"index": [5, 6]}, "middle": {"index": [1, 7]}},
)
def sliced(env, index):
    """`x[a:b]` of an array of both processes is an operation of all processes, not a read."""
    whole = draw_integers(env, 8, 3)
    array = jax.jit(lambda x: x, out_shardings=NamedSharding(env.mesh(SHARDS, "x"), P()))(
        make_spread_array(env, whole)[index[0] : index[1]]
    )
    return Observed(array, reference=whole[index[0] : index[1]].astype(np.float64))
