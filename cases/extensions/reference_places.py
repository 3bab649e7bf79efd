"""Devices of references, and what may be read from and written to a reference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find, new_reference, outcome

defaults(platforms=("cpu",))

X = np.float32([1, 2, 3])


def devices_of(x):
    """Return the numbers of the devices of an array."""
    return sorted(device.id for device in x.devices())


NO_DEFAULT = deviation(
    "jax<0.5.1",
    outcome="ok",
    reason="the reference was made where its array is",
    issue="jax-ml/jax@89fd5e81e004",
)
DEFAULT_IGNORED = deviation(
    "jax>=0.6.2,<0.8.1",
    outcome="ok",
    reason="the reference was made where its array is",
    issue="jax-ml/jax@89fd5e81e004",
)


@probe(
    source="jax-ml/jax@89fd5e81e004",
    devices=2,
    releases="jax>=0.5",
    deviations=[NO_DEFAULT, DEFAULT_IGNORED],
)
def default_device_of_a_reference(env):
    """A reference that is made under `jax.default_device` is on this device."""
    with jax.default_device(env.devices[1]):
        ref = new_reference(X)
    return Observed(devices_of(ref[...]), reference=[1])


@probe(
    source="jax-ml/jax@89fd5e81e004",
    devices=2,
    records="whether a reference moves is up to JAX",
)
def array_of_another_device(env):
    """The outcome of writing an array of another device, and the device of the reference."""
    ref, x = new_reference(X), jax.device_put(2 * X, env.devices[1])

    def write():
        ref[...] = x

    return outcome(write, "incompatible devices"), devices_of(ref[...])


@probe(
    source="jax-ml/jax@89fd5e81e004",
    devices=2,
    records="whether a value of a reference may move is up to JAX",
)
def value_with_an_array_of_another_device(env):
    """The outcome of adding an array of another device to what a reference holds."""
    ref, x = new_reference(X), jax.device_put(2 * X, env.devices[1])
    return outcome(lambda: ref[...] + x, "incompatible devices")


NO_SPECIFICATION = deviation(
    "jax>=0.9.2",
    error="AttributeError",
    match="nospec",
    reason="a reference that is closed over has no specification",
    issue="jax-ml/jax@2709440940cf",
)


@probe(
    source="jax-ml/jax@2709440940cf",
    devices=2,
    releases="jax>=0.7",
    deviations=[NO_SPECIFICATION],
)
def closed_over_in_a_shard_map(env):
    """A function in shard_map reads a reference on all devices of the mesh that it closes over."""
    mesh = env.mesh(2, "x")
    ref = new_reference(jax.device_put(np.ones(1, np.float32), NamedSharding(mesh, P())))
    f = env.compat.shard_map(lambda x: x + ref[...], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return Observed(jax.jit(f)(X[:2]), reference=1 + X[:2])


NO_RANK = deviation(
    "jax<0.8.1",
    error="AttributeError",
    match="ndim",
    reason="the check of shardings asked the reference for its rank",
    issue="jax-ml/jax@be053828118e",
)


@probe(source="jax-ml/jax@be053828118e", devices=2, releases="jax>=0.6", deviations=[NO_RANK])
def sharding_of_an_argument(env):
    """`jax.jit` with `in_shardings` takes a reference."""
    sharding = NamedSharding(env.mesh(2, "x"), P("x"))
    ref = new_reference(jax.device_put(X[:2], sharding))

    def add(ref):
        ref[...] += 1

    jax.jit(add, in_shardings=(sharding,))(ref)
    return Observed(ref[...], reference=1 + X[:2])


NUMBERS = {
    "integer_in_float32": (3, np.float32),
    "float_in_bfloat16": (1.5, jnp.bfloat16),
}


@probe(
    source="jax-ml/jax#27683",
    params=[*NUMBERS],
    records="which numbers a reference takes is up to JAX",
)
def python_number_in_a_reference(env, name):
    """The outcome of writing a Python number of another kind to a reference, and what it holds."""
    number, dtype = NUMBERS[name]
    ref = new_reference(np.zeros((), dtype))

    def write():
        ref[...] = number

    return outcome(write, "Invalid dtype", "aliased input"), np.asarray(ref[...]).astype(complex)


KEYS_NOT_REPLACED = deviation(
    "jax==0.6.0",
    error="AttributeError",
    match="_replace_with",
    reason="the buffer of keys could not be replaced",
    issue="jax-ml/jax@be053828118e",
)


@probe(source="jax-ml/jax@be053828118e", releases="jax>=0.4.36", deviations=[KEYS_NOT_REPLACED])
def reference_of_a_key(env):
    """A reference holds a key of `jax.random`, which a step replaces."""
    names = ("jax:new_ref", "jax:array_ref", "jax.experimental:mutable_array")
    new = find(*names, "jax._src.core:mutable_array")
    ref = new(jax.random.key(0))
    ref[...] = jax.random.fold_in(ref[...], 1)
    exact = jax.random.fold_in(jax.random.key(0), 1)
    held, wanted = (np.asarray(jax.random.key_data(key)) for key in (ref[...], exact))
    return Observed(held, reference=wanted)
