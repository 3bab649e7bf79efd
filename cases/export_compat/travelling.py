"""Contents of exports: keys, dictionaries, meshes without devices, memory spaces; and expiry.

Except in `expired`, each program is exported, written, read back and called by the same release.
Contents that one release cannot export work in a later release, or at least give a clear error.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._calls import check_refusal, describe_refusal, export_and_load
from ._loading import load_export

defaults(platforms=("cpu",))

SHARDS = 4


def numbers():
    """Return eight numbers, float32[8]."""
    return np.arange(8, dtype=np.float32)


EXPORT_NEEDED_DEVICES = deviation(
    "jax<0.4.38",
    error="ValueError",
    match="_device_assignment",
    reason="a program was exported for devices, not for a number of devices",
    issue="jax-ml/jax#25435",
)


@probe(
    source="jax-ml/jax#25435", devices=4, releases="jax>=0.4.33", deviations=[EXPORT_NEEDED_DEVICES]
)
def for_an_abstract_mesh(env):
    """Since 0.4.38 a program exported for a mesh without devices can be called on a real mesh."""
    real = env.mesh(SHARDS, "x")
    spec = jax.ShapeDtypeStruct(
        (8,), np.float32, sharding=NamedSharding(real.abstract_mesh, P("x"))
    )
    loaded = export_and_load(lambda x: 2 * x, spec)
    result = loaded.call(jax.device_put(numbers(), NamedSharding(real, P("x"))))
    return Observed(
        {"devices": loaded.nr_devices, "value": result, "axis": result.sharding.spec[0]},
        {"devices": SHARDS, "value": 2 * numbers(), "axis": "x"},
    )


NO_TYPED_KEYS_IN_FORMAT = deviation(
    "jax<0.6",
    error="KeyError",
    match="key<fry>",
    reason="the format had no typed keys",
    issue="jax-ml/jax#27776",
)


@probe(source="jax-ml/jax#27776", deviations=[NO_TYPED_KEYS_IN_FORMAT])
def typed_key(env):
    """A typed key as argument and result is a KeyError up to 0.5.3: pass `jax.random.key_data`."""
    loaded = export_and_load(lambda key: jax.random.clone(key), jax.random.key(7))  # noqa: PLW0108
    value = jax.random.key_data(loaded.call(jax.random.key(7)))
    return Observed(value, np.array([0, 7], np.uint32))


KEY_SHARDING_ON_WORDS = deviation(
    ">=0.7,<0.10.2",
    error="ValueError",
    match="verifier errors",
    reason="the Shardy sharding of the key was applied to its words, which have one more axis",
    issue="jax-ml/jax@df8e17a54910",
)


@probe(source="jax-ml/jax@a12e5d56e9f5", deviations=[KEY_SHARDING_ON_WORDS])
def key_with_a_sharding(env):
    """A call that returns a typed key with a sharding is a ValueError from 0.7.0 to 0.10.1."""
    replicated = NamedSharding(env.mesh(1, "x"), P())
    make_key = jax.jit(jax.random.key, in_shardings=replicated, out_shardings=replicated)
    exported = export.export(make_key)(np.int32(3))
    call = jax.jit(lambda seed: exported.call(seed), out_shardings=replicated)  # noqa: PLW0108
    return Observed(jax.jit(jax.random.key_data)(call(np.int32(3))), np.array([0, 3], np.uint32))


ERROR_OF_THE_SERIALIZER = deviation(
    "jax<0.8.1",
    outcome="ok",
    match="named",
    reason="the error came from the library that writes the bytes",
    issue="jax-ml/jax@d3ebf7515763",
)


@probe(source="jax-ml/jax@d3ebf7515763", deviations=[ERROR_OF_THE_SERIALIZER])
def dictionary_of_numbers(env):
    """A dictionary can be exported if its keys are strings; the error for others names the key."""
    by_number = {1: numbers(), 2: numbers()}
    numeric = check_refusal(
        lambda: export_and_load(lambda d: d[1] + d[2], by_number), "dictionaries with string keys"
    )
    by_name = export_and_load(lambda d: d["a"] - d["b"], {"a": numbers(), "b": numbers()})
    return Observed(
        {"numbers": numeric, "strings": by_name.call({"a": 3 * numbers(), "b": numbers()})},
        {"numbers": {"error": "TypeError", "named": True}, "strings": 2 * numbers()},
    )


MEMORY_SPACE_NOT_WRITTEN = deviation(
    "jax<0.8.2",
    outcome="ok",
    match="memory",
    reason="the memory space of a result was not written",
    issue="jax-ml/jax#33492",
)


@probe(source="jax-ml/jax#33471", releases="jax>=0.7.1", deviations=[MEMORY_SPACE_NOT_WRITTEN])
def result_on_the_host(env):
    """An export silently loses the host memory space of a result up to 0.8.1."""
    loaded = export_and_load(lambda x: jax.device_put(x, jax.memory.Space.Host), numbers())
    space = loaded.out_avals[0].memory_space
    return Observed({"memory": space.name}, {"memory": "Host"})


@probe(source="jax-ml/jax@67bf78a64b08", devices=4)
def for_one_device(env):
    """A program exported for one device may be called with arrays split over four devices."""
    x = jax.device_put(numbers(), NamedSharding(env.mesh(SHARDS, "x"), P("x")))
    result = export_and_load(lambda y: y * y, numbers()).call(x)
    return Observed(
        {"value": result, "devices": len(result.sharding.device_set)},
        {"value": numbers() ** 2, "devices": SHARDS},
    )


NO_EXPIRY_YET = deviation(
    "jax<0.11.1",
    outcome="ok",
    match="by_default",
    reason="no export was refused for its age alone",
    issue="jax-ml/jax#39494",
)
SHARDED_REFUSED_DESPITE_FLAG = deviation(
    "jax>=0.11.1",
    params=["0.8.3_sharded"],
    outcome="ok",
    match="asked_for",
    reason="the old form of shardings is refused regardless of the flag",
    issue="jax-ml/jax@76eb902f162d",
)


@probe(
    source="jax-ml/jax#39494",
    devices=4,
    releases="jax>=0.8.3",
    params={
        "0.8.1": {"name": "elementwise", "writer": "0.8.1"},
        "0.8.3_sharded": {"name": "sharded", "writer": "0.8.3"},
    },
    deviations=[NO_EXPIRY_YET, SHARDED_REFUSED_DESPITE_FLAG],
)
def expired(env, name, writer):
    """Exports of 0.8 are refused from 0.11.1; a flag permits them, except sharded programs.

    The flag is `jax_export_deserialize_expired_versions`.
    """

    def load():
        return describe_refusal(lambda: load_export(name, writer)).partition(" seems")[0]

    by_default = load()
    if hasattr(jax.config, "jax_export_deserialize_expired_versions"):
        jax.config.update("jax_export_deserialize_expired_versions", True)
    error = "ValueError: Exported being deserialized"
    return Observed(
        {"by_default": by_default, "asked_for": load()},
        {"by_default": error, "asked_for": "works"},
    )
