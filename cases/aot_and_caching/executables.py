"""When XLA compiles again, and which files the persistent cache keeps on disk.

The counts come from JAX's own monitoring events, which are the same on every release: a module
lowered, a module compiled.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import classify_outcome, count_compilations


def _count_after_each(calls):
    """Return the numbers of modules lowered and compiled after each of some calls."""
    counts = []
    with count_compilations() as counter:
        for call in calls:
            jax.block_until_ready(call())
            counts.append([counter["lowered"], counter["compiled"]])
    return counts


LOWERED_EACH_TIME = deviation(
    "jax>=0.4.36,<0.5.1",
    outcome="ok",
    reason="each use lowered again, and did not find the executable of the other lowering",
)


@probe(source="jax-ml/jax@deab6fbd803a", deviations=[LOWERED_EACH_TIME])
def aot_and_call_share(env):
    """A call finds the executable that was compiled ahead of time, and the other way round.

    From 0.4.36 to 0.5.0 everything was compiled twice: a warm-up by `lower().compile()` was useless
    unless the Compiled object itself was called.
    """
    x = jnp.arange(8.0)

    def count_both(aot_first):
        fn = jax.jit(lambda y: y * 3 - 1)
        calls = [lambda: fn.lower(x).compile() and 0, lambda: fn(x)]
        return _count_after_each(calls if aot_first else calls[::-1])

    result = {"aot_first": count_both(aot_first=True), "call_first": count_both(aot_first=False)}
    return Observed(result, {order: [[1, 1], [1, 1]] for order in result})


@probe(source="jax-ml/jax#457", devices=4)
def one_executable_a_placement(env):
    """Each placement is compiled separately, even if it differs only in being committed.

    Another device of the same kind shares the lowered module, but not the executable.
    """
    x = np.arange(8, dtype=np.float32)
    mesh = env.mesh(4, "x")
    rows = jax.device_put(x, NamedSharding(mesh, P("x")))
    placed = [jnp.asarray(x), x, *(jax.device_put(x, d) for d in env.devices[:2]), rows, rows]
    fn = jax.jit(lambda y: y * 3 - 1)
    expected = [[1, 1], [1, 1], [2, 2], [2, 3], [3, 4], [3, 4]]
    return Observed(_count_after_each([lambda a=a: fn(a) for a in placed]), expected)


@probe(source="jax-ml/jax@fff33f90b209")
def options_are_in_the_key(env):
    """Compiler options make another executable of the same module; the same options do not."""
    x = jnp.arange(8.0)
    fn = jax.jit(lambda y: y * 5 - 1)
    options = {"xla_embed_ir_in_executable": True}
    calls = [
        lambda: fn(x),
        lambda: fn.lower(x).compile(compiler_options=options) and 0,
        lambda: fn(x),
    ]
    result = [compiled for _, compiled in _count_after_each(calls)]
    return Observed(result[1:], [result[0] + 1, result[0] + 1])


@probe(source="jax-ml/jax#4572")
def inner_functions_are_lowered_once(env):
    """An inner jit that is called four times is one function of the module, called four times."""
    inner = jax.jit(lambda y: y * 2)
    x = np.ones(4, np.float32)
    text = jax.jit(lambda y: inner(inner(inner(y))) + inner(y + 1)).lower(x).as_text()
    result = {"functions": text.count("func.func private"), "calls": text.count("call @")}
    return Observed(result, {"functions": 1, "calls": 4})


def _run_cached(body, x, directory):
    """Run a function twice and return file names, and hits and misses of the compilation cache."""
    events = []
    jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
    from jax.experimental.compilation_cache import compilation_cache  # noqa: PLC0415 - reads flags

    jax.config.update("jax_compilation_cache_dir", directory)
    compilation_cache.reset_cache()
    jax.block_until_ready(jax.jit(body)(x))
    jax.clear_caches()
    jax.block_until_ready(jax.jit(body)(x))
    files = [file.name for file in Path(directory).iterdir()]
    names = sorted(re.sub(r"[0-9a-f]{16,}", "KEY", name) for name in files)
    ends = [event.rsplit("/", 1)[-1] for event in events]
    return names, [ends.count("cache_hits"), ends.count("cache_misses")]


ONE_FILE_WITHOUT_SUFFIX = deviation(
    "jax<0.4.31", outcome="ok", match="KEY'", reason="an entry was one file, without a suffix"
)
ACCESS_TIME_FILES = deviation(
    "jax>=0.4.31,<0.5.1",
    outcome="ok",
    reason="an entry had a second file for the time of the last access, with or without eviction",
    issue="jax-ml/jax#26529",
)


@probe(
    source="jax-ml/jax#26529",
    platforms=["cpu"],
    config={
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    },
    deviations=[ONE_FILE_WITHOUT_SUFFIX, ACCESS_TIME_FILES],
)
def kept_on_disk(env):
    """The persistent cache misses, and then hits after all caches in memory were cleared.

    An entry is one file again from 0.5.1. On 0.4.31 to 0.5.0 a second file held the time of access,
    and every process wrote it, on shared disks, too.
    """

    def wave(y):
        return jnp.tanh(y) * 3.125 + 0.25

    with tempfile.TemporaryDirectory() as directory:
        names, hits = _run_cached(wave, np.arange(8, dtype=np.float32), directory)
    expected = ["jit_wave-KEY-cache"]
    return Observed({"names": names, "hits": hits}, {"names": expected, "hits": [1, 1]})


NO_WARNING_FOR_CONSTANTS = deviation(
    "jax<0.6.1",
    error="AttributeError",
    match="captured_constants",
    reason="JAX had no warning for captured constants",
)


@probe(source="jax-ml/jax#28157", deviations=[NO_WARNING_FOR_CONSTANTS])
def large_constants(env):
    """A large array in a closure is a constant of the module; from 0.6.1 JAX can warn of it.

    The constant is compiled in, and again for each new value. Pass the array as an argument.
    """
    jax.config.update("jax_captured_constants_warn_bytes", 1000)
    table = jnp.arange(1000, dtype=jnp.float32)
    x = np.ones(1000, np.float32)
    result = [
        classify_outcome(lambda: jax.jit(lambda y: y + table)(x)),
        classify_outcome(lambda: jax.jit(jnp.add)(x, table)),
    ]
    return Observed(result, ["UserWarning", "ok"])


FLAG_OUTLIVED_RUNTIME = deviation(
    "jax>=0.7,<0.7.2",
    error="XlaRuntimeError",
    match="CpuExecutable has no thunks",
    reason="the old runtime was removed, but the flag that chose it was not",
    issue="jax-ml/jax#30554",
)


@probe(
    source="jax-ml/jax#30554",
    platforms=("cpu",),
    xla_flags=["--xla_cpu_use_thunk_runtime=false"],
    deviations=[FLAG_OUTLIVED_RUNTIME],
)
def flag_of_the_old_runtime(env):
    """`--xla_cpu_use_thunk_runtime=false`, a remedy for slow loops, fails in 0.7.0 and 0.7.1.

    From 0.7.2 it is ignored, with a warning, and loops of small steps are as slow as without it.
    """
    return Observed(jax.jit(lambda x: 2 * x)(np.ones(2, np.float32)), np.full(2, 2, np.float32))
