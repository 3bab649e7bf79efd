"""A program that uses a compilation cache: for this process, and as a script for another.

    python _worker.py FOLDER

It prints the cache hits and misses of each function, and the sum of its result, as JSON.
"""

from __future__ import annotations

import json
import sys

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np


def plain(x):
    """Return a function of each element."""
    return jnp.tanh(x) * 3


def draw(x):
    """Return the argument with noise."""
    return x + jax.random.normal(jax.random.wrap_key_data(jnp.zeros(2, "uint32")), (8,))


def gradient(x):
    """Return the gradient of a sum."""
    return jax.grad(lambda y: (jnp.sin(y) ** 2).sum())(x)


def measure():
    """Return the hits, the misses and the sum of the result of each function, by name."""
    events, results = [], {}
    jax.monitoring.register_event_listener(lambda name, **_: events.append(name.rsplit("/", 1)[-1]))
    for f in (plain, draw, gradient):
        before = len(events)
        value = jax.block_until_ready(jax.jit(f)(np.arange(8, dtype=np.float32)))
        found = events[before:]
        counts = [found.count(name) for name in ("cache_hits", "cache_misses")]
        results[f.__name__] = [*counts, float(value.sum())]
    return results


if __name__ == "__main__":
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    print(json.dumps(measure()))  # noqa: T201 - the result
