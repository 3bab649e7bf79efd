"""Memories of a device: `pinned_host` in addition to the default memory, and their use in jit.

To offload parameters or activations means to put them into the host's memory, `pinned_host`,
through the `memory_kind` of a sharding. On a CPU both memories are the same RAM, which makes it the
place to test that programs with memory kinds are accepted at all. Up to 0.7.0 a CPU had one memory,
called `unpinned_host`. From 0.7.1 it has `device`, `pinned_host` and `unpinned_host`; jit could
move data between them only on later releases.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe


def _make_shardings(env):
    """Return shardings of the first device: in pinned host memory, in the default memory."""
    first = env.devices[0]
    return SingleDeviceSharding(first, memory_kind="pinned_host"), SingleDeviceSharding(first)


def _name_memory(array, default):
    """Return the memory of an array, with the same name for the default memory on every release."""
    kind = array.sharding.memory_kind
    return "default" if kind in (None, default) else kind


def _make_inputs(env):
    x = env.rng().standard_normal(8).astype(np.float32)
    return x, 2.0 * x.astype(np.float64) + 1.0, env.devices[0].default_memory().kind


DEFAULT_WAS_UNPINNED_HOST = deviation(
    "jax<0.7.1",
    platform="cpu",
    outcome="ok",
    match="unpinned_host",
    reason="a CPU had one memory, unpinned_host",
)


@probe(source="jax-ml/jax@279de8bd7239", deviations=[DEFAULT_WAS_UNPINNED_HOST])
def default_kind(env):
    """The default memory of a device is called `device`, on a CPU as on every accelerator.

    Code that compares memory kinds with the literal `device` works on a CPU from 0.7.1; use
    `device.default_memory().kind` instead.
    """
    return Observed(env.devices[0].default_memory().kind, "device")


CPU_HAS_ONE_MEMORY = deviation(
    "jax<0.7.1",
    platform="cpu",
    error="ValueError",
    match="Could not find memory addressable by device cpu",
    reason="a CPU had one memory, unpinned_host",
)


@probe(source="jax-ml/jax#28137", deviations=[CPU_HAS_ONE_MEMORY])
def round_trip(env):
    """device_put to pinned host memory and back keeps the bits; each array is in its memory."""
    host, device = _make_shardings(env)
    x, _, default = _make_inputs(env)
    on_host = jax.device_put(x, host)
    on_device = jax.device_put(on_host, device)
    observed = {
        "there": _name_memory(on_host, default),
        "back": _name_memory(on_device, default),
        "value": on_device,
    }
    return Observed(observed, {"there": "pinned_host", "back": "default", "value": x})


CPU_CANNOT_MOVE_TO_HOST = deviation(
    "jax>=0.7.1,<0.10.2",
    platform="cpu",
    error="XlaRuntimeError|JaxRuntimeError",
    match="No registered implementation .* annotate_device_placement",
    reason="a CPU had pinned_host, but no program could move data there",
)
PREVIOUS_JAXLIB_CANNOT_MOVE = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    platform="cpu",
    error="JaxRuntimeError",
    match="No registered implementation .* annotate_device_placement",
    reason="0.10.2 admits the previous jaxlib, which cannot move data there yet",
)


@probe(
    source="jax-ml/jax#26285",
    params={"jit": {"aot": False}, "aot": {"aot": True}},
    deviations=[CPU_HAS_ONE_MEMORY, CPU_CANNOT_MOVE_TO_HOST, PREVIOUS_JAXLIB_CANNOT_MOVE],
)
def out_to_host(env, aot):
    """`out_shardings` in pinned host memory offload results.

    A CPU accepts them from 0.10.2; the workaround is `device_put` after the call.
    """
    host, _ = _make_shardings(env)
    x, expected, default = _make_inputs(env)
    fn = jax.jit(lambda y: 2.0 * y + 1.0, out_shardings=host)
    result = (fn.lower(x).compile() if aot else fn)(x)
    observed = {"kind": _name_memory(result, default), "value": result}
    return Observed(observed, {"kind": "pinned_host", "value": expected})


@probe(source="jax-ml/jax#28137", deviations=[CPU_HAS_ONE_MEMORY])
def in_from_host(env):
    """device_put inside jit moves an argument from pinned host memory to the device.

    This holds for calls and for compilation ahead of time.
    """
    host, device = _make_shardings(env)
    x, expected, default = _make_inputs(env)
    on_host = jax.device_put(x, host)

    def make():  # a new function for each, so that they cannot share an executable
        return jax.jit(lambda y: 2.0 * jax.device_put(y, device) + 1.0)

    results = {"jit": make()(on_host), "aot": make().lower(on_host).compile()(on_host)}
    observed = {way: {"kind": _name_memory(r, default), "value": r} for way, r in results.items()}
    return Observed(observed, {way: {"kind": "default", "value": expected} for way in results})


@probe(source="jax-ml/jax@7c8853735316", deviations=[CPU_HAS_ONE_MEMORY])
def aot_refuses_another_memory(env):
    """A function compiled for an argument in host memory refuses an array in device memory.

    The executable would read from the wrong memory, so this is a ValueError as for any other
    sharding.
    """
    host, device = _make_shardings(env)
    x, _, _ = _make_inputs(env)
    compiled = jax.jit(lambda y: y).lower(jax.device_put(x, host)).compile()
    try:
        compiled(jax.device_put(x, device))
    except ValueError:
        return Observed("refused", "refused")
    return Observed("accepted", "refused")


PARTITIONER_LACKS_MOVES = deviation(
    "jax>=0.7.1,<0.10.2",
    platform="cpu",
    error="XlaRuntimeError|JaxRuntimeError",
    match="Side-effect (ops cannot be replicated|HLO must have sharding)",
    reason="the SPMD partitioner did not know the custom call that moves data to the host",
)
PREVIOUS_PARTITIONER_LACKS_MOVES = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    platform="cpu",
    error="JaxRuntimeError",
    match="Side-effect ops cannot be replicated",
    reason="0.10.2 admits the previous jaxlib, whose partitioner does not know the call yet",
)


@probe(
    source="jax-ml/jax#28137",
    devices=4,
    deviations=[CPU_HAS_ONE_MEMORY, PARTITIONER_LACKS_MOVES, PREVIOUS_PARTITIONER_LACKS_MOVES],
)
def sharded_out_to_host(env):
    """A sharded result is offloaded by each device to its own part of the host's memory."""
    mesh = env.mesh(4, "x")
    host = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    x, expected, default = _make_inputs(env)
    sharded = jax.device_put(x, NamedSharding(mesh, P("x")))
    result = jax.jit(lambda y: 2.0 * y + 1.0, out_shardings=host).lower(sharded).compile()(sharded)
    observed = {"kind": _name_memory(result, default), "value": result}
    return Observed(observed, {"kind": "pinned_host", "value": expected})


@probe(source="jax-ml/jax#27825")
def compute_on_results_stay_on_device(env):
    """A result computed on the host is still in the device's memory."""
    x, expected, default = _make_inputs(env)
    placed = jax.jit(env.compat.compute_on(lambda y: 2.0 * y + 1.0))
    result = placed.lower(x).compile()(x)
    observed = {"kind": _name_memory(result, default), "value": result}
    return Observed(observed, {"kind": "default", "value": expected})
