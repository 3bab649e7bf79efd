"""When XLA is asked to compile again, and what is kept on disk.

Counted by jax's own monitoring events, which are the same on every release: a module lowered, a
module compiled.
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

from ._helpers import told, work


def _counts(calls):
    """Return how often was lowered and compiled after each of some calls."""
    counts = []
    with work() as done:
        for call in calls:
            jax.block_until_ready(call())
            counts.append([done["lowered"], done["compiled"]])
    return counts


@probe(
    source="jax-ml/jax@deab6fbd803a",
    deviations=[
        deviation(
            "jax>=0.4.36,<0.5.1",
            outcome="ok",
            reason="a lowering was made anew each time, and what was compiled of it not found",
        )
    ],
)
def aot_and_call_share(env):
    """What was compiled ahead of time is there when the function is called, and the other way.

    From 0.4.36 to 0.5.0 everything was compiled twice: a warm-up by `lower().compile()` was in
    vain unless the Compiled object itself was called.
    """
    x = jnp.arange(8.0)

    def counts(aot_first):
        fn = jax.jit(lambda y: y * 3 - 1)
        calls = [lambda: fn.lower(x).compile() and 0, lambda: fn(x)]
        return _counts(calls if aot_first else calls[::-1])

    seen = {"aot_first": counts(aot_first=True), "call_first": counts(aot_first=False)}
    return Observed(seen, {order: [[1, 1], [1, 1]] for order in seen})


@probe(source="jax-ml/jax#457", devices=4)
def one_executable_a_placement(env):
    """Each placement is compiled for; one that is only committed is compiled for again.

    Another device of the same kind shares the module, as lowered, but not the executable.
    """
    x = np.arange(8, dtype=np.float32)
    mesh = env.mesh(4, "x")
    rows = jax.device_put(x, NamedSharding(mesh, P("x")))
    placed = [jnp.asarray(x), x, *(jax.device_put(x, d) for d in env.devices[:2]), rows, rows]
    fn = jax.jit(lambda y: y * 3 - 1)
    expected = [[1, 1], [1, 1], [2, 2], [2, 3], [3, 4], [3, 4]]
    return Observed(_counts([lambda a=a: fn(a) for a in placed]), expected)


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
    seen = [compiled for _, compiled in _counts(calls)]
    return Observed(seen[1:], [seen[0] + 1, seen[0] + 1])


@probe(source="jax-ml/jax#4572")
def inner_functions_are_lowered_once(env):
    """An inner jit called four times is one function of the module, called four times."""
    inner = jax.jit(lambda y: y * 2)
    x = np.ones(4, np.float32)
    text = jax.jit(lambda y: inner(inner(inner(y))) + inner(y + 1)).lower(x).as_text()
    seen = {"functions": text.count("func.func private"), "calls": text.count("call @")}
    return Observed(seen, {"functions": 1, "calls": 4})


def _cached(body, x, directory):
    """Return names on disk, and hits and misses of the compilation cache in two runs."""
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


@probe(
    source="jax-ml/jax#26529",
    platforms=["cpu"],
    config={
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    },
    deviations=[
        deviation("jax<0.4.31", outcome="ok", match="KEY'", reason="a file an entry, no suffix"),
        deviation(
            "jax>=0.4.31,<0.5.1",
            outcome="ok",
            reason="a second file for the time of the last access, evicting or not",
            issue="jax-ml/jax#26529",
        ),
    ],
)
def kept_on_disk(env):
    """The persistent cache: a miss, then a hit after everything in memory was forgotten.

    An entry is one file again since 0.5.1; 0.4.31 to 0.5.0 wrote the time of access beside it, on
    shared disks for every process.
    """

    def wave(y):
        return jnp.tanh(y) * 3.125 + 0.25

    with tempfile.TemporaryDirectory() as directory:
        names, hits = _cached(wave, np.arange(8, dtype=np.float32), directory)
    expected = ["jit_wave-KEY-cache"]
    return Observed({"names": names, "hits": hits}, {"names": expected, "hits": [1, 1]})


@probe(
    source="jax-ml/jax#28157",
    deviations=[
        deviation(
            "jax<0.6.1",
            error="AttributeError",
            match="captured_constants",
            reason="there was no warning to set",
        )
    ],
)
def large_constants(env):
    """A large array closed over is a constant of the module: since 0.6.1 one may be warned.

    It is compiled in, and again for each new value; hand it over as an argument.
    """
    jax.config.update("jax_captured_constants_warn_bytes", 1000)
    table = jnp.arange(1000, dtype=jnp.float32)
    x = np.ones(1000, np.float32)
    seen = [told(lambda: jax.jit(lambda y: y + table)(x)), told(lambda: jax.jit(jnp.add)(x, table))]
    return Observed(seen, ["UserWarning", "ok"])


@probe(
    source="jax-ml/jax#30554",
    platforms=("cpu",),
    xla_flags=["--xla_cpu_use_thunk_runtime=false"],
    deviations=[
        deviation(
            "jax>=0.7,<0.7.2",
            error="XlaRuntimeError",
            match="CpuExecutable has no thunks",
            reason="the old runtime was gone, and the flag that chose it was not",
            issue="jax-ml/jax#30554",
        )
    ],
)
def flag_of_the_old_runtime(env):
    """`--xla_cpu_use_thunk_runtime=false`, a cure for slow loops: an error in 0.7.0 and 0.7.1.

    From 0.7.2 it is ignored, with a warning, and small steps of loops are as slow as without.
    """
    return Observed(jax.jit(lambda x: 2 * x)(np.ones(2, np.float32)), np.full(2, 2, np.float32))
