"""The import of a module in a new process, which has no phases: its first and later calls count."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    error="ImportError",
    reason="the Flax release current at the time fails to import on jax 0.11.2",
    issue="google/flax#5596",
)


def _import(module):
    ended = subprocess.run([sys.executable, "-c", f"import {module}"], check=False)
    if ended.returncode:
        raise ImportError(module)
    return Observed(np.int32(ended.returncode), reference=np.int32(0))


@probe(
    source="jax-ml/jax#24967",
    params={"jax": {"module": "jax"}, "jax.scipy.stats": {"module": "jax.scipy.stats"}},
)
def import_of(env, module):
    """Nearly every program begins with it; half of it is for hardware that is not there."""
    return _import(module)


@probe(source="jax-ml/jax#24967", requires=["flax"], deviations=[FLAX_IMPORT_FAILS])
def import_of_nnx(env):
    """With optax, orbax and what they import."""
    return _import("flax.nnx")
