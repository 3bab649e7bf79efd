"""Serialized executables, a compilation cache in a folder, and processes that use both."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import jax
import jax.monitoring
import numpy as np
from jax.experimental import serialize_executable as se

EVERYTHING = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""Settings with which the compilation cache stores every executable."""
WORKER = Path(__file__).with_name("_worker.py")
"""A script that uses a compilation cache."""


def vector(size=8):
    """Return the numbers from 0, float32."""
    return np.arange(size, dtype=np.float32)


def reload(compiled):
    """Return a compiled function that was serialized and loaded again."""
    return se.deserialize_and_load(*se.serialize(compiled))


def first_words(error, count=80):
    """Return the beginning of the message of an error."""
    return " ".join(str(error).split())[:count].strip()


def describe(call, count=0):
    """Return `works`, or the class of the error of a call and the beginning of its message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        words = f": {first_words(error, count)}" if count else ""
        return f"{type(error).__name__}{words}"
    return "works"


def run_process(command, flags=""):
    """Run Python in another process of the same release, and return what it prints as JSON.

    Args:
        command: Arguments of the interpreter.
        flags: XLA flags in addition to those of this process.
    """
    xla = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1])


class Cache:
    """A persistent compilation cache in a temporary folder.

    Attributes:
        folder: The folder.
        events: Names of the monitoring events, the last part of each.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.events = []
        # never unregistered: each case has its own process, or a new listener list
        jax.monitoring.register_event_listener(
            lambda name, **_: self.events.append(name.rsplit("/", 1)[-1])
        )

    def outcome(self, call):
        """Call a function with empty caches in memory; return `hit`, `miss`, or both counts."""
        jax.clear_caches()
        before = len(self.events)
        value = jax.block_until_ready(call())
        counts = collections.Counter(self.events[before:])
        hits, misses = counts["cache_hits"], counts["cache_misses"]
        found = {(1, 0): "hit", (0, 1): "miss", (0, 0): "not used"}.get((hits, misses))
        return found or f"{hits} hits, {misses} misses", value

    def entries(self):
        """Return the files of the entries, without the times of access."""
        files = sorted(self.folder.iterdir())
        return [file for file in files if not file.name.endswith("-atime")]


@contextlib.contextmanager
def open_cache(**settings):
    """Yield a `Cache`, which stores every executable unless settings are given."""
    from jax.experimental.compilation_cache import compilation_cache  # noqa: PLC0415 - reads flags

    with tempfile.TemporaryDirectory() as folder:
        for name, value in {**EVERYTHING, **settings}.items():
            jax.config.update(name, value)
        jax.config.update("jax_compilation_cache_dir", folder)
        compilation_cache.reset_cache()
        try:
            yield Cache(folder)
        finally:
            jax.config.update("jax_compilation_cache_dir", None)
            compilation_cache.reset_cache()


def save(path, compiled):
    """Write a serialized executable to a file."""
    Path(path).write_bytes(pickle.dumps(se.serialize(compiled)))
