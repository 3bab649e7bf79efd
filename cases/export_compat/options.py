"""Options of `jax.export`: platforms, custom calls, and classes in arguments and results."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))

PAIR = np.ones(2, np.float32)


DONATION_NOT_KNOWN = deviation(
    "jax<0.4.31",
    error="NotImplementedError",
    match="donation",
    reason="all platforms or none had to support donation, also without donation",
    issue="jax-ml/jax@d737abda4874",
)


@probe(source="jax-ml/jax@d737abda4874", deviations=[DONATION_NOT_KNOWN])
def platform_of_a_plugin(env):
    """A function can be exported for a platform that JAX does not know, among others."""
    platforms = ("cpu", "tpu", "other")
    return Observed(export.export(jax.jit(jnp.sin), platforms=platforms)(PAIR).platforms, platforms)


NO_REGISTRATION = deviation(
    "jax<0.4.35",
    outcome="ok",
    reason="classes could not be registered",
    issue="jax-ml/jax@2feea414acba",
)


@probe(source="jax-ml/jax@2feea414acba", deviations=[NO_REGISTRATION])
def class_that_is_not_registered(env):
    """Serializing an export of a function of a named tuple names the functions that register it."""
    exported = export.export(jax.jit(lambda pair: pair.a))(Pair(1.0, 2.0))
    outcome = refusal(exported.serialize, "register_namedtuple_serialization")
    return Observed(outcome, "ValueError: register_namedtuple_serialization")


class Pair(NamedTuple):
    """Two numbers."""

    a: float
    b: float


class Box:
    """A container of an array."""

    def __init__(self, value):
        self.value = value


NUMBERS_AS_LEAVES = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="the leaves were numbers",
    issue="jax-ml/jax@561c90ab0b51",
)


@probe(source="jax-ml/jax@561c90ab0b51", releases="jax>=0.4.35", deviations=[NUMBERS_AS_LEAVES])
def leaves_of_a_loaded_class(env):
    """While an export is loaded, a class receives types of arrays as its leaves."""
    seen = []

    def build(_, leaves):
        seen.append(hasattr(leaves[0], "shape"))
        return Box(leaves[0])

    jax.tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), build)
    export.register_pytree_node_serialization(
        Box,
        serialized_name="Box",
        serialize_auxdata=lambda _: b"",
        deserialize_auxdata=lambda _: None,
    )
    data = export.export(jax.jit(lambda box: 2 * box.value))(Box(PAIR)).serialize()
    seen.clear()
    export.deserialize(data)
    return Observed(seen, [True])


EACH_CALL_BY_NAME = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="each custom call had to be named",
    issue="jax-ml/jax@728e4bfe80b1",
)


@probe(source="jax-ml/jax@728e4bfe80b1", releases="jax>=0.6", deviations=[EACH_CALL_BY_NAME])
def all_custom_calls(env):
    """`DisabledSafetyCheck.custom_call("ALL")` accepts every custom call."""
    call = jax.ffi.ffi_call("unknown", jax.ShapeDtypeStruct((2,), np.float32))
    checks = [export.DisabledSafetyCheck.custom_call("ALL")]
    f = jax.jit(call)
    outcome = refusal(lambda: export.export(f, disabled_checks=checks)(PAIR), "guarantees")
    return Observed(outcome, "ran")


DEVICES_FORGOTTEN = deviation(
    "jax<0.9.2",
    outcome="ok",
    reason="the kind of the devices was not stored",
    issue="jax-ml/jax@e812c59c8cea",
)


@probe(
    source="jax-ml/jax@e812c59c8cea", devices=2, releases="jax>=0.9", deviations=[DEVICES_FORGOTTEN]
)
def devices_of_a_loaded_mesh(env):
    """The mesh of a loaded export keeps the kind of its devices."""
    rows = NamedSharding(env.mesh(2, "x"), P("x"))
    argument = jax.ShapeDtypeStruct((4,), np.float32, sharding=rows)
    exported = export.deserialize(export.export(jax.jit(jnp.sin))(argument).serialize())
    device = exported.in_avals[0].sharding.mesh.abstract_device
    return Observed(str(getattr(device, "device_kind", None)), "cpu")


KEYS = {"text": "a", "number": 0, "bytes": b"a", "tuple": (1, 2), "none": None}


KEY_IS_NO_TEXT = deviation(
    params=["number", "bytes", "tuple", "none"],
    outcome="raised",
    reason="the format has only keys that are texts",
    issue="jax-ml/jax#32680",
)


@probe(source="jax-ml/jax#32680", params=[*KEYS], deviations=[KEY_IS_NO_TEXT])
def dictionary_as_an_argument(env, name):
    """A dictionary whose key is no text can be the argument of a serialized export."""
    key = KEYS[name]
    data = export.export(jax.jit(lambda tree: 2 * tree[key]))({key: PAIR}).serialize()
    return Observed(export.deserialize(data).call({key: PAIR}), 2 * PAIR)


OTHER_NAMES_REFUSED = deviation(
    "jax>=0.9.0",
    params=["other_name"],
    error="ValueError",
    match="does not match the mesh used for export",
    reason="the named shardings of the export are stored, and only the devices are exchanged",
    issue="jax-ml/jax@540671e0a419",
)


@probe(
    source="jax-ml/jax@540671e0a419",
    devices=2,
    params={"same_name": {"name": "x"}, "other_name": {"name": "y"}},
    deviations=[OTHER_NAMES_REFUSED],
)
def shardings_on_a_mesh(env, name):
    """`Exported.in_shardings_jax(mesh)` refuses a mesh with other names of axes from 0.9.0 on.

    Before, an array was split over the axis of the same size.
    """
    rows = NamedSharding(env.mesh(2, "x"), P("x"))
    exported = export.export(jax.jit(jnp.sin, in_shardings=rows))(PAIR)
    (sharding,) = exported.in_shardings_jax(env.mesh(2, name))
    return Observed(str(tuple(sharding.spec)), reference=f"('{name}',)")
