"""What a process may look at of an array it holds a part of, and what it is told otherwise."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, numbers, spread

LOOKS = {
    "asarray": np.asarray,
    "device_get": jax.device_get,
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[0].item(),
    "iterate": lambda x: [float(row) for row in x],
    "pickle": lambda x: x.__reduce__(),
}


@probe(
    source="jax-ml/jax@c44082670f6d",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "asarray": {"look": "asarray"},
        "device_get": {"look": "device_get"},
        "tolist": {"look": "tolist"},
        "iterate": {"look": "iterate"},
        "pickle": {"look": "pickle"},
    },
    deviations=[
        deviation(
            params=["iterate"],
            outcome="ok",
            reason="an AssertionError without a word",
        )
    ],
)
def of_a_split_array(env, look):
    """A part of the numbers lies in another process: a RuntimeError, never a part of the array."""
    x = spread(env, numbers(env, 8))
    words = ("spans non-addressable", "not fully addressable", "non-addressable", "addressable")
    told = ending(LOOKS[look], x, words=words)
    return Observed(told, reference="RuntimeError: spans non-addressable")


@probe(
    source="jax-ml/jax@c44082670f6d",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "asarray": {"look": "asarray"},
        "device_get": {"look": "device_get"},
        "tolist": {"look": "tolist"},
        "item": {"look": "item"},
        "iterate": {"look": "iterate"},
    },
)
def of_a_replicated_array(env, look):
    """What each process holds whole may be fetched, though others hold it too."""
    whole = numbers(env, 8)
    x = spread(env, whole, NamedSharding(env.mesh(SHARDS, "x"), P()))
    seen = np.asarray(LOOKS[look](x), np.float32)
    return Observed(seen, reference=(whole[0] if look == "item" else whole).astype(np.float64))


@probe(
    source="jax-ml/jax@9528be82b1b8",
    devices=4,
    platforms=("cpu-mp2",),
    params={"repr": {"how": "repr"}, "str": {"how": "str"}, "format": {"how": "format"}},
    deviations=[
        deviation(
            "jax<0.7.2",
            params=["repr"],
            outcome="ok",
            reason="described by its shape in other words",
            issue="jax-ml/jax@7970a468375a",
        ),
        deviation(
            "jax<0.8.2",
            params=["str"],
            outcome="ok",
            reason="the numbers were asked for, though they are not here",
            issue="jax-ml/jax@ec1359573aed",
        ),
        deviation(
            "jax<0.9",
            params=["format"],
            outcome="ok",
            reason="the numbers were asked for, though they are not here",
            issue="jax-ml/jax@9528be82b1b8",
        ),
    ],
)
def printed(env, how):
    """Logging an array must not end the program: it is described by shape and dtype instead."""
    x = spread(env, numbers(env, 8))
    text = {"repr": repr, "str": str, "format": "{}".format}[how]
    told = ending(text, x, words=("spans non-addressable", "unsupported format"))
    if told == "accepted":
        told = next((word for word in ("shape=(8,)", "float32[8]") if word in text(x)), text(x))
    return Observed(told, reference="shape=(8,)")


@probe(
    source="jax-ml/jax@89c404e703a1",
    devices=4,
    platforms=("cpu-mp2",),
    params={"argument": {"closed": False}, "closed_over": {"closed": True}},
)
def in_a_jitted_function(env, closed):
    """An array of several processes is an argument: closed over it would have to be a constant."""
    whole = numbers(env, 8)
    x = spread(env, whole)
    if closed:
        words = ("Closing over", "closing over", "spans non-addressable")
        told = ending(jax.jit(lambda y: x + y), spread(env, whole), words=words)
        return Observed(told, reference="RuntimeError: Closing over")
    made = jax.jit(lambda x, y: x + y)(x, spread(env, whole))
    return Observed(made, reference=2 * whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "python": {"other": "python"},
        "numpy": {"other": "numpy"},
        "uncommitted": {"other": "uncommitted"},
        "committed": {"other": "committed"},
    },
)
def together_with(env, other):
    """`x * y` with an array of both processes: what is on no device in particular is taken along.

    What was put on one device stays there, and the two cannot meet.
    """
    whole = numbers(env, 8)
    second = {
        "python": lambda: 2.0,
        "numpy": lambda: np.float32(2),
        "uncommitted": lambda: jax.numpy.float32(2),
        "committed": lambda: jax.device_put(np.float32(2), jax.local_devices()[0]),
    }[other]()
    if other == "committed":
        told = ending(lambda: spread(env, whole) * second, words=("incompatible devices",))
        return Observed(told, reference="ValueError: incompatible devices")
    return Observed(spread(env, whole) * second, reference=2 * whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp2",),
    params={"whole": {"index": [0, 8]}, "row": {"index": [5, 6]}, "middle": {"index": [1, 7]}},
)
def sliced(env, index):
    """`x[a:b]` of an array of both processes is an operation of all of them, not a look at it."""
    whole = numbers(env, 8, 3)
    made = jax.jit(lambda x: x, out_shardings=NamedSharding(env.mesh(SHARDS, "x"), P()))(
        spread(env, whole)[index[0] : index[1]]
    )
    return Observed(made, reference=whole[index[0] : index[1]].astype(np.float64))
