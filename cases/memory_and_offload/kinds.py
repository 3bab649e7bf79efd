"""Which memory an array is in: what shardings say, what operations make of it, what is refused.

On a CPU the memories are one RAM, so all of this is about types: what a program for an
accelerator would be told is told here, too. A CPU had one memory kind up to 0.7.0. Since then
results of operations came back to the default memory; since 0.10.2 they stay where they were.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import kind_of, memory, message, told


@probe(
    source="jax-ml/jax@279de8bd7239",
    devices=2,
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.4.33",
            outcome="ok",
            match="None",
            reason="memories were behind a flag, jax_enable_memories",
            issue="jax-ml/jax@8b734808e8e9",
        ),
        deviation(
            "jax>=0.4.33,<0.7.1", outcome="ok", match="unpinned_host", reason="its only memory"
        ),
    ],
)
def default_of_a_sharding(env):
    """A sharding tells its memory even where none was named: None, `unpinned_host`, `device`."""
    named = NamedSharding(env.mesh(2, "x"), P("x"))
    seen = [str(s.memory_kind) for s in (memory(env), named, jnp.ones(3).sharding)]
    return Observed(seen, ["device"] * 3)


@probe(
    source="jax-ml/jax@279de8bd7239",
    platforms=["cpu"],
    deviations=[deviation("jax<0.7.1", outcome="ok", reason="a CPU had one memory")],
)
def memories_of_a_cpu(env):
    """`addressable_memories` of a CPU: three since 0.7.1, one before."""
    seen = sorted(m.kind for m in env.devices[0].addressable_memories())
    return Observed(seen, ["device", "pinned_host", "unpinned_host"])


@probe(
    source="jax-ml/jax@8b734808e8e9",
    devices=2,
    deviations=[
        deviation(
            "jax<0.4.33",
            platform="cpu",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="behind a flag",
        )
    ],
)
def default_named_or_not(env):
    """A sharding that names the default memory equals one that names none, and hashes alike."""
    kind, mesh = env.devices[0].default_memory().kind, env.mesh(2, "x")
    pairs = [
        (memory(env), memory(env, kind)),
        (NamedSharding(mesh, P("x")), NamedSharding(mesh, P("x"), memory_kind=kind)),
    ]
    return Observed([a == b and hash(a) == hash(b) for a, b in pairs], [True, True])


@probe(
    source="jax-ml/jax@279de8bd7239",
    devices=2,
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        )
    ],
)
def another_memory_is_another_sharding(env):
    """`with_memory_kind` changes the memory alone, and what results is not equivalent."""
    here = NamedSharding(env.mesh(2, "x"), P("x"))
    there = here.with_memory_kind("pinned_host")
    seen = [there.memory_kind, there.spec == here.spec, there == here]
    return Observed([*seen, here.is_equivalent_to(there, 1)], ["pinned_host", True, False, False])


@probe(
    source="jax-ml/jax@549f1cd856bb",
    devices=2,
    params={
        "single": {"made": "single"},
        "named": {"made": "named"},
        "abstract": {"made": "abstract"},
    },
    releases="jax>=0.5.3",
    deviations=[
        deviation(
            "jax<0.6",
            params=["abstract"],
            outcome="ok",
            reason="a mesh without devices took any name",
        )
    ],
)
def no_such_memory(env, made):
    """An unknown memory kind is refused when the sharding is made, with what there is."""
    mesh = env.mesh(2, "x")
    make = {
        "single": lambda: memory(env, "device_host"),
        "named": lambda: NamedSharding(mesh, P("x"), memory_kind="device_host"),
        "abstract": lambda: NamedSharding(mesh.abstract_mesh, P("x"), memory_kind="device_host"),
    }[made]
    text = message(lambda: make() and 0)
    seen = [text.split(":")[0], "unpinned_host" in text]
    return Observed(seen, ["ValueError", True])


OPERATIONS = {
    "scaled": lambda h: h * 2.0,
    "reshaped": lambda h: h.reshape(2, 4),
    "indexed": lambda h: h[2],
    "jitted": jax.jit(lambda h: h),
}


@probe(
    source="jax-ml/jax#34041",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.7.1,<0.10.2",
            outcome="ok",
            match="'default'",
            reason="results of a CPU came back to its default memory, whatever their type said",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            outcome="ok",
            match="'default'",
            reason="0.10.2 admits the jaxlib before, which cannot move data there yet",
        ),
    ],
)
def results_of_host_arrays(env):
    """Operations on an array in pinned host memory: their results are there too, since 0.10.2.

    The values are right everywhere. Say where you want a result, by device_put or out_shardings.
    """
    x = np.arange(8, dtype=np.float32)
    host = jax.device_put(x, memory(env, "pinned_host"))
    results = {key: op(host) for key, op in OPERATIONS.items()}
    seen = {"kinds": {key: kind_of(env, y) for key, y in results.items()}, "values": results}
    exact = {"scaled": x * 2, "reshaped": x.reshape(2, 4), "indexed": x[2], "jitted": x}
    return Observed(seen, {"kinds": dict.fromkeys(exact, "pinned_host"), "values": exact})


@probe(
    source="jax-ml/jax#34041",
    platforms=["cpu"],
    params={"scalar": {"index": 0}, "array": {"index": [0, 2]}},
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.7.1,<0.10",
            params=["scalar"],
            error="ValueError",
            match="memory_space of all inputs passed to `gather`",
            reason="the index is on the device, and the two are not mixed",
            issue="jax-ml/jax#34041",
        ),
        deviation(
            "jax>=0.7.1",
            params=["array"],
            error="ValueError",
            match="memory_space of all inputs passed to `gather`",
            reason="the indices are on the device, and the two are not mixed",
            issue="jax-ml/jax#34041",
        ),
    ],
)
def indexing_a_mesh_of_none(env, index):
    """Indexing an array in host memory, as jax#34041 reports it: a mesh without axes.

    A number became a slice in 0.10.0; an array of indices still has to be put to the host first.
    """
    here = NamedSharding(
        jax.sharding.Mesh(np.full((), env.devices[0]), ()), P(), memory_kind="pinned_host"
    )
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    at = jnp.asarray(index) if isinstance(index, list) else index
    return Observed(jax.device_put(x, here)[at], x[index])


@probe(
    source="jax-ml/jax#34825",
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.7.1",
            outcome="ok",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation("jax==0.7.1", outcome="ok", match="ok", reason="computed in the default memory"),
    ],
)
def memories_are_not_mixed(env):
    """Host and device operands in one operation are refused since 0.7.2, NumPy's arrays too.

    Also where it worked, silently, for a release. A proposal to warn instead was declined.
    """
    x = np.arange(8, dtype=np.float32)
    phrase = "memory_space of all inputs passed to"

    def ended(mix):
        text = message(lambda: mix(jax.device_put(x, memory(env, "pinned_host"))))
        return phrase if phrase in text else text

    seen = {
        "array": ended(lambda host: host + jnp.asarray(x)),
        "numpy": ended(lambda host: host + x),
        "concatenated": ended(lambda host: jnp.concatenate([host, jnp.asarray(x)])),
    }
    return Observed(seen, dict.fromkeys(seen, phrase))


@probe(
    source="jax-ml/jax@6093c0499f60",
    platforms=["cpu"],
    releases="jax>=0.7.1",
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="the type of an array on a single device does not show it",
        )
    ],
)
def space_in_the_type(env):
    """The memory space is part of the type: `float32<host>[8]`, on one device since 0.7.2.

    The type of an array with a `NamedSharding` shows it on 0.7.1, too.
    """
    x = np.arange(8, dtype=np.float32)
    host, device = (jax.device_put(x, memory(env, kind)) for kind in ("pinned_host", "device"))
    return Observed(
        [str(jax.typeof(a)) for a in (host, device)], ["float32<host>[8]", "float32[8]"]
    )


@probe(
    source="jax-ml/jax@279de8bd7239",
    platforms=["cpu"],
    params={"put": {"how": "put"}, "op": {"how": "op"}, "jit": {"how": "jit"}},
    releases="jax>=0.4.33",
    deviations=[
        deviation(
            "jax>=0.7.1",
            params=["op"],
            outcome="ok",
            match="'device'",
            reason="it is no more the default memory, and results go to the default",
        ),
        deviation(
            "jax>=0.7.1,<0.10.2",
            params=["jit"],
            error="XlaRuntimeError|JaxRuntimeError",
            match="annotate_device_placement",
            reason="no program could move data there",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            params=["jit"],
            error="JaxRuntimeError",
            match="annotate_device_placement",
            reason="0.10.2 admits the jaxlib before, which cannot move data there yet",
        ),
    ],
)
def unpinned(env, how):
    """`unpinned_host`, the only memory of a CPU up to 0.7.0 and an odd one since.

    Code that names it to be explicit broke in 0.7.1: `out_shardings` raised until 0.10.2.
    """
    there, x = memory(env, "unpinned_host"), np.arange(8, dtype=np.float32)
    result = {
        "put": lambda: jax.device_put(x, there),
        "op": lambda: jax.device_put(x, there) * 2.0,
        "jit": lambda: jax.jit(lambda y: y * 2.0, out_shardings=there)(x),
    }[how]()
    return Observed(result.sharding.memory_kind, "unpinned_host")


@probe(
    source="jax-ml/jax@279de8bd7239",
    platforms=["cpu"],
    params={
        "device_put": {"api": "device_put"},
        "to_device": {"api": "to_device"},
        "callback": {"api": "callback"},
        "asarray": {"api": "asarray"},
        "zeros": {"api": "zeros"},
    },
    releases="jax>=0.4.31",
    deviations=[
        deviation(
            "jax<0.7.1",
            error="ValueError",
            match="Could not find memory addressable by device cpu",
            reason="a CPU has one memory, unpinned_host",
        ),
        deviation(
            "jax>=0.7.1,<0.10.2",
            params=["asarray"],
            error="XlaRuntimeError|JaxRuntimeError",
            match="annotate_device_placement",
            reason="it asks jit for it, which could not",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            params=["asarray"],
            error="JaxRuntimeError",
            match="annotate_device_placement",
            reason="0.10.2 admits the jaxlib before, which cannot move data there yet",
        ),
        deviation(
            "jax>=0.7.1",
            params=["zeros"],
            error="ValueError",
            match="Memory kind mismatch",
            reason="made in the default memory, and then called what was asked for",
        ),
    ],
)
def made_in_host_memory(env, api):
    """Ways to make an array in pinned host memory; `jnp.zeros(device=...)` is none on a CPU."""
    there, x = memory(env, "pinned_host"), np.zeros(8, np.float32)
    made = {
        "device_put": lambda: jax.device_put(x, there),
        "to_device": lambda: jnp.asarray(x).to_device(there),
        "callback": lambda: jax.make_array_from_callback((8,), there, lambda index: x[index]),
        "asarray": lambda: jnp.asarray(x, device=there),
        "zeros": lambda: jnp.zeros(8, np.float32, device=there),
    }[api]()
    return Observed(
        {"kind": kind_of(env, made), "value": made}, {"kind": "pinned_host", "value": x}
    )


@probe(
    source="jax-ml/jax@ec67e977274e",
    platforms=["cpu"],
    params={
        "eager": {"how": "eager"},
        "jitted": {"how": "jitted"},
        "there_and_back": {"how": "there_and_back"},
    },
    releases="jax>=0.7.1",
    deviations=[
        deviation(
            "jax<0.10.2",
            params=["eager", "jitted"],
            outcome="ok",
            match="'default'",
            reason="a host type in device memory: a CPU did not move it",
        ),
        deviation(
            "jax>=0.10.2",
            packages={"jaxlib": "<0.10.2"},
            params=["eager", "jitted"],
            outcome="ok",
            match="'default'",
            reason="0.10.2 admits the jaxlib before, which cannot move data there yet",
        ),
    ],
)
def put_by_space(env, how):
    """`device_put(x, jax.memory.Space.Host)` names no device: moves within what it is given."""
    x, space = np.arange(8, dtype=np.float32), jax.memory.Space
    result = {
        "eager": lambda: jax.device_put(jnp.asarray(x), space.Host),
        "jitted": lambda: jax.jit(lambda y: jax.device_put(y, space.Host))(x),
        "there_and_back": lambda: jax.jit(
            lambda y: jax.device_put(jax.device_put(y, space.Host), space.Device)
        )(x),
    }[how]()
    kind = "default" if how == "there_and_back" else "pinned_host"
    return Observed({"kind": kind_of(env, result), "value": result}, {"kind": kind, "value": x})


@probe(
    source="jax-ml/jax@ce10c5d21153",
    releases="jax>=0.7.1",
    params={"attribute": {"how": "attribute"}, "module": {"how": "module"}},
    deviations=[
        deviation("jax>=0.10", params=["module"], outcome="ok", reason="an attribute, no module"),
    ],
)
def where_space_is(env, how):
    """`jax.memory.Space` works from 0.7.1 on; `import jax.memory` only until 0.9.2."""
    call = {
        "attribute": lambda: jax.memory.Space.Host and 0,
        "module": lambda: __import__("jax.memory") and 0,
    }[how]
    return Observed(told(call), "ok")
