"""Memory kinds: the kind that shardings report, the memory of results, and errors.

On a CPU all memories are the same RAM, so these cases are about types: they show the errors and
kinds that a program for an accelerator would show. A CPU had a single memory kind up to 0.7.0.
From 0.7.1 results of operations returned to the default memory; from 0.10.2 those of operations
on arrays in pinned host memory stay there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import describe_error, kind_of, memory, summarize_call

MEMORIES_BEHIND_A_FLAG = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="None",
    reason="memories were behind a flag, jax_enable_memories",
    issue="jax-ml/jax@8b734808e8e9",
)
UNPINNED_HOST_WAS_DEFAULT = deviation(
    "jax>=0.4.33,<0.7.1",
    outcome="ok",
    match="unpinned_host",
    reason="unpinned_host was the only memory of a CPU",
)


@probe(
    source="jax-ml/jax@279de8bd7239",
    devices=2,
    platforms=["cpu"],
    deviations=[MEMORIES_BEHIND_A_FLAG, UNPINNED_HOST_WAS_DEFAULT],
)
def default_of_a_sharding(env):
    """If no memory was named, a sharding reports the default memory kind.

    Up to 0.4.31 it was None. The default of a CPU was `unpinned_host` up to 0.7.0, then `device`.
    """
    named = NamedSharding(env.mesh(2, "x"), P("x"))
    kinds = [str(s.memory_kind) for s in (memory(env), named, jnp.ones(3).sharding)]
    return Observed(kinds, ["device"] * 3)


CPU_HAD_ONE_MEMORY = deviation("jax<0.7.1", outcome="ok", reason="a CPU had one memory")


@probe(source="jax-ml/jax@279de8bd7239", platforms=["cpu"], deviations=[CPU_HAD_ONE_MEMORY])
def memories_of_a_cpu(env):
    """`addressable_memories` of a CPU are three from 0.7.1, and a single memory before."""
    kinds = sorted(m.kind for m in env.devices[0].addressable_memories())
    return Observed(kinds, ["device", "pinned_host", "unpinned_host"])


NAMED_MEMORY_BEHIND_A_FLAG = deviation(
    "jax<0.4.33",
    platform="cpu",
    error="ValueError",
    match="Could not find memory addressable by device cpu",
    reason="memories were behind a flag",
)


@probe(source="jax-ml/jax@8b734808e8e9", devices=2, deviations=[NAMED_MEMORY_BEHIND_A_FLAG])
def default_named_or_not(env):
    """A sharding that names the default memory equals one without a memory, and hashes alike."""
    kind, mesh = env.devices[0].default_memory().kind, env.mesh(2, "x")
    pairs = [
        (memory(env), memory(env, kind)),
        (NamedSharding(mesh, P("x")), NamedSharding(mesh, P("x"), memory_kind=kind)),
    ]
    return Observed([a == b and hash(a) == hash(b) for a, b in pairs], [True, True])


CPU_HAS_ONE_MEMORY = deviation(
    "jax<0.7.1",
    error="ValueError",
    match="Could not find memory addressable by device cpu",
    reason="a CPU had one memory, unpinned_host",
)


@probe(
    source="jax-ml/jax@279de8bd7239", devices=2, platforms=["cpu"], deviations=[CPU_HAS_ONE_MEMORY]
)
def another_memory_is_another_sharding(env):
    """`with_memory_kind` changes only the memory, and the result is not equivalent."""
    default = NamedSharding(env.mesh(2, "x"), P("x"))
    pinned = default.with_memory_kind("pinned_host")
    observed = [pinned.memory_kind, pinned.spec == default.spec, pinned == default]
    return Observed(
        [*observed, default.is_equivalent_to(pinned, 1)], ["pinned_host", True, False, False]
    )


ABSTRACT_MESH_TOOK_ANY_MEMORY = deviation(
    "jax<0.6",
    params=["abstract"],
    outcome="ok",
    reason="a sharding on a mesh without devices accepted any memory kind",
)


@probe(
    source="jax-ml/jax@549f1cd856bb",
    devices=2,
    params={
        "single": {"made": "single"},
        "named": {"made": "named"},
        "abstract": {"made": "abstract"},
    },
    releases="jax>=0.5.3",
    deviations=[ABSTRACT_MESH_TOOK_ANY_MEMORY],
)
def no_such_memory(env, made):
    """An unknown memory kind is refused when the sharding is created.

    The error lists the known memory kinds.
    """
    mesh = env.mesh(2, "x")
    make = {
        "single": lambda: memory(env, "device_host"),
        "named": lambda: NamedSharding(mesh, P("x"), memory_kind="device_host"),
        "abstract": lambda: NamedSharding(mesh.abstract_mesh, P("x"), memory_kind="device_host"),
    }[made]
    text = describe_error(lambda: make() and 0)
    observed = [text.split(":")[0], "unpinned_host" in text]
    return Observed(observed, ["ValueError", True])


OPERATIONS = {
    "scaled": lambda h: h * 2.0,
    "reshaped": lambda h: h.reshape(2, 4),
    "indexed": lambda h: h[2],
    "jitted": jax.jit(lambda h: h),
}


RESULTS_RETURNED_TO_DEFAULT = deviation(
    "jax>=0.7.1,<0.10.2",
    outcome="ok",
    match="'default'",
    reason="results on a CPU returned to its default memory, regardless of their type",
)
OLD_JAXLIB_FOR_RESULTS = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    outcome="ok",
    match="'default'",
    reason="jax 0.10.2 accepts the previous jaxlib, which cannot move data to host memory yet",
)


@probe(
    source="jax-ml/jax#34041",
    platforms=["cpu"],
    deviations=[CPU_HAS_ONE_MEMORY, RESULTS_RETURNED_TO_DEFAULT, OLD_JAXLIB_FOR_RESULTS],
)
def results_of_host_arrays(env):
    """From 0.10.2 results of operations on an array in pinned host memory are in that memory, too.

    Values are correct in either memory. Select the memory of a result by device_put or
    out_shardings.
    """
    x = np.arange(8, dtype=np.float32)
    host = jax.device_put(x, memory(env, "pinned_host"))
    results = {key: op(host) for key, op in OPERATIONS.items()}
    observed = {"kinds": {key: kind_of(env, y) for key, y in results.items()}, "values": results}
    exact = {"scaled": x * 2, "reshaped": x.reshape(2, 4), "indexed": x[2], "jitted": x}
    return Observed(observed, {"kinds": dict.fromkeys(exact, "pinned_host"), "values": exact})


INDEX_ON_DEVICE = deviation(
    "jax>=0.7.1,<0.10",
    params=["scalar"],
    error="ValueError",
    match="memory_space of all inputs passed to `gather`",
    reason="the index is on the device, and memories are not mixed",
    issue="jax-ml/jax#34041",
)
INDICES_ON_DEVICE = deviation(
    "jax>=0.7.1",
    params=["array"],
    error="ValueError",
    match="memory_space of all inputs passed to `gather`",
    reason="the indices are on the device, and memories are not mixed",
    issue="jax-ml/jax#34041",
)


@probe(
    source="jax-ml/jax#34041",
    platforms=["cpu"],
    params={"scalar": {"index": 0}, "array": {"index": [0, 2]}},
    deviations=[CPU_HAS_ONE_MEMORY, INDEX_ON_DEVICE, INDICES_ON_DEVICE],
)
def indexing_a_mesh_of_none(env, index):
    """Indexing an array in host memory on a mesh without axes, as reported in jax#34041.

    From 0.10.0 a number is a slice; an array of indices still has to be moved to the host first.
    """
    sharding = NamedSharding(
        jax.sharding.Mesh(np.full((), env.devices[0]), ()), P(), memory_kind="pinned_host"
    )
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    at = jnp.asarray(index) if isinstance(index, list) else index
    return Observed(jax.device_put(x, sharding)[at], x[index])


PINNED_HOST_NOT_FOUND = deviation(
    "jax<0.7.1",
    outcome="ok",
    match="Could not find memory addressable by device cpu",
    reason="a CPU had one memory, unpinned_host",
)
MIXED_IN_DEFAULT_MEMORY = deviation(
    "jax==0.7.1",
    outcome="ok",
    match="ok",
    reason="the operation was computed in the default memory",
)


@probe(
    source="jax-ml/jax#34825",
    platforms=["cpu"],
    deviations=[PINNED_HOST_NOT_FOUND, MIXED_IN_DEFAULT_MEMORY],
)
def memories_are_not_mixed(env):
    """From 0.7.2 host and device operands in the same operation are refused, also NumPy arrays.

    On 0.7.1 alone this worked, silently. A proposal to warn instead was declined.
    """
    x = np.arange(8, dtype=np.float32)
    phrase = "memory_space of all inputs passed to"

    def summarize(mix):
        text = describe_error(lambda: mix(jax.device_put(x, memory(env, "pinned_host"))))
        return phrase if phrase in text else text

    observed = {
        "array": summarize(lambda host: host + jnp.asarray(x)),
        "numpy": summarize(lambda host: host + x),
        "concatenated": summarize(lambda host: jnp.concatenate([host, jnp.asarray(x)])),
    }
    return Observed(observed, dict.fromkeys(observed, phrase))


SPACE_MISSING_FROM_TYPE = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the type of an array on a single device does not show its memory space",
)


@probe(
    source="jax-ml/jax@6093c0499f60",
    platforms=["cpu"],
    releases="jax>=0.7.1",
    deviations=[SPACE_MISSING_FROM_TYPE],
)
def space_in_the_type(env):
    """The memory space is part of the type, `float32<host>[8]`; on a single device from 0.7.2.

    The type of an array with a `NamedSharding` shows it on 0.7.1, too.
    """
    x = np.arange(8, dtype=np.float32)
    host, device = (jax.device_put(x, memory(env, kind)) for kind in ("pinned_host", "device"))
    return Observed(
        [str(jax.typeof(a)) for a in (host, device)], ["float32<host>[8]", "float32[8]"]
    )


UNPINNED_HOST_IS_NOT_DEFAULT = deviation(
    "jax>=0.7.1",
    params=["op"],
    outcome="ok",
    match="'device'",
    reason="unpinned_host is no longer the default memory, and results return to the default",
)
NO_PROGRAM_MOVES_TO_UNPINNED = deviation(
    "jax>=0.7.1,<0.10.2",
    params=["jit"],
    error="XlaRuntimeError|JaxRuntimeError",
    match="annotate_device_placement",
    reason="no program could move data to unpinned_host",
)
OLD_JAXLIB_FOR_OUT_SHARDINGS = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    params=["jit"],
    error="JaxRuntimeError",
    match="annotate_device_placement",
    reason="jax 0.10.2 accepts the previous jaxlib, which cannot move data to host memory yet",
)


@probe(
    source="jax-ml/jax@279de8bd7239",
    platforms=["cpu"],
    params={"put": {"how": "put"}, "op": {"how": "op"}, "jit": {"how": "jit"}},
    releases="jax>=0.4.33",
    deviations=[
        UNPINNED_HOST_IS_NOT_DEFAULT,
        NO_PROGRAM_MOVES_TO_UNPINNED,
        OLD_JAXLIB_FOR_OUT_SHARDINGS,
    ],
)
def unpinned(env, how):
    """From 0.7.1 results of operations on arrays in `unpinned_host` of a CPU leave that memory.

    That was the only memory of a CPU up to 0.7.0. Code that names it to be explicit broke in
    0.7.1: `out_shardings` raised until 0.10.2.
    """
    target, x = memory(env, "unpinned_host"), np.arange(8, dtype=np.float32)
    result = {
        "put": lambda: jax.device_put(x, target),
        "op": lambda: jax.device_put(x, target) * 2.0,
        "jit": lambda: jax.jit(lambda y: y * 2.0, out_shardings=target)(x),
    }[how]()
    return Observed(result.sharding.memory_kind, "unpinned_host")


ASARRAY_USES_JIT = deviation(
    "jax>=0.7.1,<0.10.2",
    params=["asarray"],
    error="XlaRuntimeError|JaxRuntimeError",
    match="annotate_device_placement",
    reason="jnp.asarray moves the array with jit, which could not do so",
)
OLD_JAXLIB_FOR_ASARRAY = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    params=["asarray"],
    error="JaxRuntimeError",
    match="annotate_device_placement",
    reason="jax 0.10.2 accepts the previous jaxlib, which cannot move data to host memory yet",
)
ZEROS_IN_DEFAULT_MEMORY = deviation(
    "jax>=0.7.1",
    params=["zeros"],
    error="ValueError",
    match="Memory kind mismatch",
    reason="the array is created in the default memory, and then labelled as requested",
)


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
        CPU_HAS_ONE_MEMORY,
        ASARRAY_USES_JIT,
        OLD_JAXLIB_FOR_ASARRAY,
        ZEROS_IN_DEFAULT_MEMORY,
    ],
)
def made_in_host_memory(env, api):
    """Several functions create an array in pinned host memory.

    `jnp.zeros(device=...)` does not do so on a CPU.
    """
    target, x = memory(env, "pinned_host"), np.zeros(8, np.float32)
    array = {
        "device_put": lambda: jax.device_put(x, target),
        "to_device": lambda: jnp.asarray(x).to_device(target),
        "callback": lambda: jax.make_array_from_callback((8,), target, lambda index: x[index]),
        "asarray": lambda: jnp.asarray(x, device=target),
        "zeros": lambda: jnp.zeros(8, np.float32, device=target),
    }[api]()
    return Observed(
        {"kind": kind_of(env, array), "value": array}, {"kind": "pinned_host", "value": x}
    )


HOST_TYPE_IN_DEVICE_MEMORY = deviation(
    "jax<0.10.2",
    params=["eager", "jitted"],
    outcome="ok",
    match="'default'",
    reason="the type was that of host memory, but a CPU did not move the array",
)
OLD_JAXLIB_FOR_DEVICE_PUT = deviation(
    "jax>=0.10.2",
    packages={"jaxlib": "<0.10.2"},
    params=["eager", "jitted"],
    outcome="ok",
    match="'default'",
    reason="jax 0.10.2 accepts the previous jaxlib, which cannot move data to host memory yet",
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
    deviations=[HOST_TYPE_IN_DEVICE_MEMORY, OLD_JAXLIB_FOR_DEVICE_PUT],
)
def put_by_space(env, how):
    """`device_put(x, jax.memory.Space.Host)` names no device: it moves x within its device."""
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


MEMORY_IS_NOT_A_MODULE = deviation(
    "jax>=0.10", params=["module"], outcome="ok", reason="jax.memory is an attribute, not a module"
)


@probe(
    source="jax-ml/jax@ce10c5d21153",
    releases="jax>=0.7.1",
    params={"attribute": {"how": "attribute"}, "module": {"how": "module"}},
    deviations=[MEMORY_IS_NOT_A_MODULE],
)
def where_space_is(env, how):
    """`jax.memory.Space` works from 0.7.1; `import jax.memory` works only until 0.9.2."""
    call = {
        "attribute": lambda: jax.memory.Space.Host and 0,
        "module": lambda: __import__("jax.memory") and 0,
    }[how]
    return Observed(summarize_call(call), "ok")


UNCOMMITTED = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="a space of the same kind of memory was no change",
    issue="jax-ml/jax@5f139e3dbfb5",
)


@probe(
    source="jax-ml/jax@5f139e3dbfb5",
    platforms=["cpu"],
    releases="jax>=0.7.1",
    deviations=[UNCOMMITTED],
)
def committed_by_a_space(env):
    """The result of `device_put(x, jax.memory.Space.Host)` is committed to its device."""
    space, x = jax.memory.Space, np.arange(8, dtype=np.float32)
    host = jax.device_put(jax.device_put(x, space.Device), space.Host)
    return Observed([host.committed, jax.device_put(host, space.Device).committed], [True, True])
