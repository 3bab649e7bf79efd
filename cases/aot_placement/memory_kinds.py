"""Memories of a device: `pinned_host` beside the default one, and what jit does with them.

Offloading parameters or activations puts them into the host's memory, `pinned_host`, through a
sharding's `memory_kind`. On a CPU both are the same RAM, which makes it the place to test that
programs with memory kinds are accepted at all. Up to 0.7.0 a CPU had one memory, called
`unpinned_host`; from 0.7.1 it has `device`, `pinned_host` and `unpinned_host`; jit could move
between them later still.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe


def _memories(env):
    """Return shardings of the first device: in pinned host memory, in the default memory."""
    first = env.devices[0]
    return SingleDeviceSharding(first, memory_kind="pinned_host"), SingleDeviceSharding(first)


def _kind(array, default):
    """Return where an array lives, the default memory called the same on every release."""
    kind = array.sharding.memory_kind
    return "default" if kind in (None, default) else kind


def _numbers(env):
    x = env.rng().standard_normal(8).astype(np.float32)
    return x, 2.0 * x.astype(np.float64) + 1.0, env.devices[0].default_memory().kind


@probe(
    source="jax-ml/jax@279de8bd7239",
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            outcome="ok",
            match="unpinned_host",
            reason="a CPU has one memory, unpinned_host",
        )
    ],
)
def default_kind(env):
    """The default memory of a device is called `device`, on a CPU as on every accelerator.

    Code that compares memory kinds with the literal `device` works on a CPU from 0.7.1 on; ask
    `device.default_memory().kind` instead.
    """
    return Observed(env.devices[0].default_memory().kind, "device")


@probe(
    source="jax-ml/jax#28137",
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
    ],
)
def round_trip(env):
    """device_put to pinned host memory and back: the same bits, each in its memory."""
    host, device = _memories(env)
    x, _, default = _numbers(env)
    there = jax.device_put(x, host)
    back = jax.device_put(there, device)
    seen = {"there": _kind(there, default), "back": _kind(back, default), "value": back}
    return Observed(seen, {"there": "pinned_host", "back": "default", "value": x})


@probe(
    source="jax-ml/jax#26285",
    params={"jit": {"aot": False}, "aot": {"aot": True}},
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.7.1,<0.10.2",
            platform="cpu",
            error="XlaRuntimeError|JaxRuntimeError",
            match="No registered implementation .* annotate_device_placement",
            reason="a CPU has pinned_host, but no program can move data there",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            platform="cpu",
            error="JaxRuntimeError",
            match="No registered implementation .* annotate_device_placement",
            reason="0.10.2 admits the jaxlib before, which cannot move data there yet",
        ),
    ],
)
def out_to_host(env, aot):
    """`out_shardings` in pinned host memory: how results are offloaded.

    On a CPU accepted from 0.10.2 on; the way around is `device_put` after the call.
    """
    host, _ = _memories(env)
    x, expected, default = _numbers(env)
    fn = jax.jit(lambda y: 2.0 * y + 1.0, out_shardings=host)
    result = (fn.lower(x).compile() if aot else fn)(x)
    seen = {"kind": _kind(result, default), "value": result}
    return Observed(seen, {"kind": "pinned_host", "value": expected})


@probe(
    source="jax-ml/jax#28137",
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
    ],
)
def in_from_host(env):
    """An argument in pinned host memory, moved to the device inside jit by device_put.

    Called, or compiled ahead of time.
    """
    host, device = _memories(env)
    x, expected, default = _numbers(env)
    given = jax.device_put(x, host)

    def made():  # anew for each, so that neither is given what the other compiled
        return jax.jit(lambda y: 2.0 * jax.device_put(y, device) + 1.0)

    results = {"jit": made()(given), "aot": made().lower(given).compile()(given)}
    seen = {way: {"kind": _kind(r, default), "value": r} for way, r in results.items()}
    return Observed(seen, {way: {"kind": "default", "value": expected} for way in results})


@probe(
    source="jax-ml/jax@7c8853735316",
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
    ],
)
def aot_refuses_another_memory(env):
    """Compiled for an argument in host memory, it refuses one in device memory.

    The executable would read from the wrong memory, so this is a ValueError as for any other
    sharding.
    """
    host, device = _memories(env)
    x, _, _ = _numbers(env)
    compiled = jax.jit(lambda y: y).lower(jax.device_put(x, host)).compile()
    try:
        compiled(jax.device_put(x, device))
    except ValueError:
        return Observed("refused", "refused")
    return Observed("accepted", "refused")


@probe(
    source="jax-ml/jax#28137",
    devices=4,
    deviations=[
        deviation(
            "jax<0.7.1",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.7.1,<0.10.2",
            platform="cpu",
            error="XlaRuntimeError|JaxRuntimeError",
            match="Side-effect (ops cannot be replicated|HLO must have sharding)",
            reason="the SPMD partitioner does not know the custom call that moves data to the host",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            platform="cpu",
            error="JaxRuntimeError",
            match="Side-effect ops cannot be replicated",
            reason="0.10.2 admits the jaxlib before, whose partitioner does not know it yet",
        ),
    ],
)
def sharded_out_to_host(env):
    """Offloading a sharded result: each device to its own part of the host's memory."""
    mesh = env.mesh(4, "x")
    host = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    x, expected, default = _numbers(env)
    given = jax.device_put(x, NamedSharding(mesh, P("x")))
    result = jax.jit(lambda y: 2.0 * y + 1.0, out_shardings=host).lower(given).compile()(given)
    seen = {"kind": _kind(result, default), "value": result}
    return Observed(seen, {"kind": "pinned_host", "value": expected})


@probe(source="jax-ml/jax#27825")
def compute_on_results_stay_on_device(env):
    """Computed on the host does not mean left there: results are in the device's memory."""
    x, expected, default = _numbers(env)
    placed = jax.jit(env.compat.compute_on(lambda y: 2.0 * y + 1.0))
    result = placed.lower(x).compile()(x)
    seen = {"kind": _kind(result, default), "value": result}
    return Observed(seen, {"kind": "default", "value": expected})
