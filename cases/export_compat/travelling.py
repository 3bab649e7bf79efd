"""What an export can hold: keys, dictionaries, meshes without devices, memory; and for how long.

Each program is exported, written, read back and called by the same release. What could not travel
in one release travels in the next, or is at least refused in words.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._calls import refusal, refused, reloaded
from ._loading import deserialized

SHARDS = 4


def numbers():
    """Return eight numbers, float32[8]."""
    return np.arange(8, dtype=np.float32)


@probe(
    source="jax-ml/jax#25435",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.4.33",
    deviations=[
        deviation(
            "jax<0.4.38",
            error="ValueError",
            match="_device_assignment",
            reason="a program was exported for devices, not for their number",
            issue="jax-ml/jax#25435",
        )
    ],
)
def for_an_abstract_mesh(env):
    """Exported for a mesh that has axes and no devices, called on one that has: since 0.4.38."""
    real = env.mesh(SHARDS, "x")
    spec = jax.ShapeDtypeStruct(
        (8,), np.float32, sharding=NamedSharding(real.abstract_mesh, P("x"))
    )
    loaded = reloaded(lambda x: 2 * x, spec)
    result = loaded.call(jax.device_put(numbers(), NamedSharding(real, P("x"))))
    return Observed(
        {"devices": loaded.nr_devices, "value": result, "axis": result.sharding.spec[0]},
        {"devices": SHARDS, "value": 2 * numbers(), "axis": "x"},
    )


@probe(
    source="jax-ml/jax#27776",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            error="KeyError",
            match="key<fry>",
            reason="the format knew no keys",
            issue="jax-ml/jax#27776",
        )
    ],
)
def typed_key(env):
    """A typed key as argument and result: a KeyError up to 0.5.3. Pass `jax.random.key_data`."""
    loaded = reloaded(lambda key: jax.random.clone(key), jax.random.key(7))  # noqa: PLW0108
    value = jax.random.key_data(loaded.call(jax.random.key(7)))
    return Observed(value, np.array([0, 7], np.uint32))


@probe(
    source="jax-ml/jax@a12e5d56e9f5",
    platforms=("cpu",),
    deviations=[
        deviation(
            ">=0.7,<0.10.2",
            error="ValueError",
            match="verifier errors",
            reason="Shardy's sharding of the key was put on its words, which have an axis more",
            issue="jax-ml/jax@df8e17a54910",
        )
    ],
)
def key_with_a_sharding(env):
    """A call that returns a typed key of given sharding: not compiled from 0.7.0 to 0.10.1."""
    everywhere = NamedSharding(env.mesh(1, "x"), P())
    made = jax.jit(jax.random.key, in_shardings=everywhere, out_shardings=everywhere)
    exported = export.export(made)(np.int32(3))
    call = jax.jit(lambda seed: exported.call(seed), out_shardings=everywhere)  # noqa: PLW0108
    return Observed(jax.jit(jax.random.key_data)(call(np.int32(3))), np.array([0, 3], np.uint32))


@probe(
    source="jax-ml/jax@d3ebf7515763",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.8.1",
            outcome="ok",
            match="named",
            reason="the error came from the library that writes the bytes",
            issue="jax-ml/jax@d3ebf7515763",
        )
    ],
)
def dictionary_of_numbers(env):
    """A dictionary travels if its keys are strings; what others are refused with names the key."""
    by_number = {1: numbers(), 2: numbers()}
    said = refused(
        lambda: reloaded(lambda d: d[1] + d[2], by_number), "dictionaries with string keys"
    )
    named = reloaded(lambda d: d["a"] - d["b"], {"a": numbers(), "b": numbers()})
    return Observed(
        {"numbers": said, "strings": named.call({"a": 3 * numbers(), "b": numbers()})},
        {"numbers": {"error": "TypeError", "named": True}, "strings": 2 * numbers()},
    )


@probe(
    source="jax-ml/jax#33471",
    platforms=("cpu",),
    releases="jax>=0.7.1",
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            match="memory",
            reason="the memory space of a result was not written",
            issue="jax-ml/jax#33492",
        ),
    ],
)
def result_on_the_host(env):
    """A result in the host's memory: what is exported forgot that, silently, up to 0.8.1."""
    loaded = reloaded(lambda x: jax.device_put(x, jax.memory.Space.Host), numbers())
    found = loaded.out_avals[0].memory_space
    return Observed({"memory": found.name}, {"memory": "Host"})


@probe(source="jax-ml/jax@67bf78a64b08", devices=4, platforms=("cpu",))
def for_one_device(env):
    """What was exported for one device may be called with arrays split over four."""
    x = jax.device_put(numbers(), NamedSharding(env.mesh(SHARDS, "x"), P("x")))
    result = reloaded(lambda y: y * y, numbers()).call(x)
    return Observed(
        {"value": result, "devices": len(result.sharding.device_set)},
        {"value": numbers() ** 2, "devices": SHARDS},
    )


@probe(
    source="jax-ml/jax#39494",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.8.3",
    params={
        "0.8.1": {"name": "elementwise", "writer": "0.8.1"},
        "0.8.3_sharded": {"name": "sharded", "writer": "0.8.3"},
    },
    deviations=[
        deviation(
            "jax<0.11.1",
            outcome="ok",
            match="by_default",
            reason="nothing was refused for its age alone",
            issue="jax-ml/jax#39494",
        ),
        deviation(
            "jax>=0.11.1",
            params=["0.8.3_sharded"],
            outcome="ok",
            match="asked_for",
            reason="the old form of shardings is refused without asking the flag",
            issue="jax-ml/jax@76eb902f162d",
        ),
    ],
)
def expired(env, name, writer):
    """Exports of 0.8 are refused since 0.11.1; a flag lets them through, but for sharded ones.

    `jax_export_deserialize_expired_versions` is that flag.
    """

    def load():
        return refusal(lambda: deserialized(name, writer)).partition(" seems")[0]

    by_default = load()
    if hasattr(jax.config, "jax_export_deserialize_expired_versions"):
        jax.config.update("jax_export_deserialize_expired_versions", True)
    refused = "ValueError: Exported being deserialized"
    return Observed(
        {"by_default": by_default, "asked_for": load()},
        {"by_default": refused, "asked_for": "works"},
    )
