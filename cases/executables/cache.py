"""The persistent compilation cache: which changes must miss, and which values come back."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import EVERYTHING, WORKER, open_cache, run_process, vector
from ._worker import measure

defaults(platforms=("cpu",))


def _wave(x):
    return jnp.tanh(x) * 3 + 1


def _named(name, function):
    function.__name__ = name
    return function


def _same():
    return [lambda: jax.jit(_wave)(vector())] * 2, ["miss", "hit"]


def _another_line():
    def make(name):
        return _named(name, lambda x: jnp.tanh(x) * 3)

    first, second = make("f"), make("f")
    return [lambda: jax.jit(first)(vector()), lambda: jax.jit(second)(vector())], ["miss", "hit"]


def _another_name():
    first, second = _named("f", lambda x: x * 3), _named("g", lambda x: x * 3)
    return [lambda: jax.jit(first)(vector()), lambda: jax.jit(second)(vector())], ["miss", "miss"]


def _weak_type():
    f = jax.jit(_named("f", lambda x: x * 3))
    return [lambda: f(1.5), lambda: f(np.float32(1.5))], ["miss", "hit"]


def _compiler_options():
    lowered = jax.jit(_wave).lower(vector())
    options = {"xla_cpu_enable_fast_min_max": True}
    return [
        lambda: lowered.compile()(vector()),
        lambda: jax.jit(_wave).lower(vector()).compile(compiler_options=options)(vector()),
    ], ["miss", "miss"]


def _donation():
    x = jax.jit(lambda: jnp.arange(8.0))
    jax.block_until_ready(x())
    return [
        lambda: jax.jit(_wave).lower(vector()).compile()(vector()),
        lambda: jax.jit(_wave, donate_argnums=0).lower(vector()).compile()(vector()),
    ], ["miss", "miss"]


def _precision():
    def call(precision):
        with jax.default_matmul_precision(precision):
            return jax.jit(_named("f", lambda x: x @ x))(vector())

    return [lambda: call("float32"), lambda: call("bfloat16")], ["miss", "miss"]


def _metadata():
    def call(included):
        jax.config.update("jax_compilation_cache_include_metadata_in_key", included)
        return jax.jit(_wave)(vector())

    return [lambda: call(False), lambda: call(True)], ["miss", "miss"]


KEYS = {
    "same": _same,
    "another_line": _another_line,
    "another_name": _another_name,
    "weak_type": _weak_type,
    "compiler_options": _compiler_options,
    "donation": _donation,
    "precision": _precision,
    "metadata": _metadata,
}


@probe(source="jax-ml/jax#16649", params=[*KEYS])
def cache_key(env, name):
    """A change of the program or of its compilation misses; a change of names of arguments hits."""
    with open_cache() as cache:
        calls, exact = KEYS[name]()
        return Observed([cache.outcome(call)[0] for call in calls], reference=exact)


@probe(source="openxla/xla#18286", devices=4)
def cache_placement(env):
    """Each device and each sharding has an entry of its own, and results are where they belong."""
    mesh = env.mesh(4, "x")
    places = {
        "first": env.devices[0],
        "second": env.devices[1],
        "rows": NamedSharding(mesh, P("x")),
        "whole": NamedSharding(mesh, P()),
        "rows_again": NamedSharding(mesh, P("x")),
    }
    outcomes, right = {}, {}
    arrays = {name: jax.device_put(vector(), place) for name, place in places.items()}
    with open_cache() as cache:
        for name, array in arrays.items():
            outcomes[name], value = cache.outcome(lambda array=array: jax.jit(_wave)(array))
            close = np.allclose(value, np.tanh(vector()) * 3 + 1, rtol=1e-5)
            right[name] = bool(close and value.devices() == array.devices())
    exact = {
        "first": "miss",
        "second": "miss",
        "rows": "miss",
        "whole": "miss",
        "rows_again": "hit",
    }
    return Observed(
        {"outcomes": outcomes, "right": right},
        reference={"outcomes": exact, "right": dict.fromkeys(places, True)},
    )


def _constants(cache):
    def call(value):
        table = np.full(8, value, np.float32)
        return cache.outcome(lambda: jax.jit(_named("f", lambda x: x * table))(vector()))

    return [call(2.0), call(3.0)]


def _static(cache):
    f = jax.jit(_named("f", lambda x, n: x * n), static_argnums=1)
    return [cache.outcome(lambda n=n: f(vector(), n)) for n in (2.0, 3.0)]


def _pure_callback(cache):
    result = jax.ShapeDtypeStruct((8,), np.float32)

    def call(value):
        def host(x):
            return np.asarray(x) * np.float32(value)

        f = _named("f", lambda x: jax.pure_callback(host, result, x))
        return cache.outcome(lambda: jax.jit(f)(vector()))

    return [call(2.0), call(3.0)]


def _io_callback(cache):
    from jax.experimental import io_callback  # noqa: PLC0415 - only here

    result = jax.ShapeDtypeStruct((8,), np.float32)

    def call(value):
        def host(x):
            return np.asarray(x) * np.float32(value)

        f = _named("f", lambda x: io_callback(host, result, x, ordered=True))
        return cache.outcome(lambda: jax.jit(f)(vector()))

    return [call(2.0), call(3.0)]


def _jax_array(cache):
    def call(value):
        table = jax.device_put(np.full(8, value, np.float32))
        return cache.outcome(lambda: jax.jit(_named("f", lambda x: x * table))(vector()))

    return [call(2.0), call(3.0)]


VALUES = {
    "numpy_constant": _constants,
    "jax_constant": _jax_array,
    "static_argument": _static,
    "pure_callback": _pure_callback,
    "io_callback": _io_callback,
}


@probe(source="jax-ml/jax#16649", params=[*VALUES])
def stale_entry(env, name):
    """Programs that differ in a constant or a callback alone never share a value."""
    with open_cache() as cache:
        values = [value for _, value in VALUES[name](cache)]
    return Observed(values, reference=[2 * vector(), 3 * vector()])


def _overwrite(file):
    file.write_bytes(b"no executable at all")


def _truncate(file):
    file.write_bytes(file.read_bytes()[:40])


def _empty(file):
    file.write_bytes(b"")


DAMAGES = {"overwritten": _overwrite, "truncated": _truncate, "empty": _empty}


@probe(source="jax-ml/jax#12594", params=[*DAMAGES])
def damaged_entry(env, name):
    """A damaged entry is a warning, and the program is compiled again."""
    with open_cache() as cache:
        cache.outcome(lambda: jax.jit(_wave)(vector()))
        (file,) = cache.entries()
        DAMAGES[name](file)
        outcome, value = cache.outcome(lambda: jax.jit(_wave)(vector()))
    exact = np.tanh(vector().astype(np.float64)) * 3 + 1
    return Observed(
        {"hit": outcome == "hit", "value": value}, reference={"hit": False, "value": exact}
    )


@probe(
    source="jax-ml/jax#12594",
    records="an entry has no checksum of its program; nobody promises to notice",
)
def exchanged_entries(env):
    """If the files of two programs change places, each gives the value of the other."""
    double, triple = _named("double", lambda x: 2 * x), _named("triple", lambda x: 3 * x)
    with open_cache() as cache:
        for f in (double, triple):
            cache.outcome(lambda f=f: jax.jit(f)(vector()))
        first, second = cache.entries()
        contents = first.read_bytes(), second.read_bytes()
        second.write_bytes(contents[0])
        first.write_bytes(contents[1])
        outcome, value = cache.outcome(lambda: jax.jit(double)(vector()))
    return {"outcome": outcome, "value": value}


LIMITS = {
    "compile_time": {"jax_persistent_cache_min_compile_time_secs": 100.0},
    "entry_size": {"jax_persistent_cache_min_entry_size_bytes": 10**9},
    "disabled": {"jax_enable_compilation_cache": False},
    "none": {},
}


@probe(source="jax-ml/jax#21908", params=[*LIMITS])
def cache_limits(env, name):
    """Programs that compile fast or are small are not stored, and none if the cache is disabled."""
    with open_cache(**LIMITS[name]) as cache:
        outcomes = [cache.outcome(lambda: jax.jit(_wave)(vector()))[0] for _ in range(2)]
        count = len(cache.entries())
    exact = {"hit": name == "none", "entries": int(name == "none")}
    return Observed({"hit": outcomes[1] == "hit", "entries": count}, reference=exact)


@probe(
    source="jax-ml/jax#25768",
    records="the cache is set up at the first compilation; later changes of the folder are ignored",
)
def folder_set_late(env):
    """Whether a folder that is set after the first compilation is used."""
    jax.block_until_ready(jax.jit(lambda x: x + 1)(vector()))
    for name, value in EVERYTHING.items():
        jax.config.update(name, value)
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.block_until_ready(jax.jit(_wave)(vector()))
        used = any(Path(folder).iterdir())
        jax.config.update("jax_compilation_cache_dir", None)
    return {"used": used}


SWITCHED_ONCE = deviation(
    "jax>=0.4.31",
    outcome="ok",
    reason="whether the cache is used is decided at the first compilation",
    issue="jax-ml/jax@44241eeab157",
)


@probe(source="jax-ml/jax@44241eeab157", deviations=[SWITCHED_ONCE])
def switched_after_a_compilation(env):
    """`jax_enable_compilation_cache` is obeyed also if it changes after the first compilation."""
    stored = {}
    for first in (True, False):
        with open_cache() as cache:
            for enabled in (first, not first):
                jax.config.update("jax_enable_compilation_cache", enabled)
                before = len(cache.entries())
                function = jax.jit(_named(f"f_{first}_{enabled}", lambda x, k=enabled: x * 3 + k))
                jax.block_until_ready(function(vector()))
                stored[f"{enabled}, first {first}"] = len(cache.entries()) > before
    jax.config.update("jax_enable_compilation_cache", True)
    return Observed(stored, reference={key: key.startswith("True") for key in stored})


@probe(source="jax-ml/jax#16649", timeout=180)
def another_process(env):
    """Another process of the same release finds each program, and computes the same."""
    with open_cache() as cache:
        mine = measure()
        found = run_process([WORKER, cache.folder])
    result = {
        "mine": {name: counts[:2] for name, counts in mine.items()},
        "found": {name: counts[:2] for name, counts in found.items()},
        "equal": {name: counts[2] == found[name][2] for name, counts in mine.items()},
    }
    exact = {"mine": [0, 1], "found": [1, 0], "equal": True}
    return Observed(result, reference={key: dict.fromkeys(mine, v) for key, v in exact.items()})


@probe(source="jax-ml/jax#16649", timeout=180)
def flags_of_another_process(env):
    """A process with an XLA flag that changes code finds no program of a process without it."""
    with open_cache() as cache:
        measure()
        found = run_process([WORKER, cache.folder], flags="--xla_cpu_enable_fast_math=true")
    result = {name: counts[:2] for name, counts in found.items()}
    return Observed(result, reference={name: [0, 1] for name in result})
