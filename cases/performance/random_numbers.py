"""Random numbers: time with their number."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, probe

defaults(platforms=("cpu",))

SIZES = (4096, 32768, 262144)
SAMPLERS = {
    "bits": lambda key, n: jax.random.bits(key, (n,)),
    "uniform": lambda key, n: jax.random.uniform(key, (n,)),
    "normal": lambda key, n: jax.random.normal(key, (n,)),
    "permutation": jax.random.permutation,
    "split": jax.random.split,
}


@probe(source="jax-ml/jax#26145", params=[*SAMPLERS], sizes=SIZES)
def drawn(env, name, size):
    """Numbers of one key, compiled once: their shape, and that they are not all equal."""
    numbers = np.asarray(_draw(name, size)(jax.random.PRNGKey(0)))
    return Observed({"n": len(numbers), "vary": bool(numbers.std() > 0)}, {"n": size, "vary": True})


COMPILED = {}


def _draw(name, size):
    """Return the compiled sampler, kept so that a later call compiles nothing."""
    key = name, size
    if key not in COMPILED:
        COMPILED[key] = jax.jit(lambda key: SAMPLERS[name](key, size))
    return COMPILED[key]
