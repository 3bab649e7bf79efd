"""Callbacks in linear solves, within the context of a mesh, and in stored programs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROW, struct

defaults(platforms=("cpu",))

EFFECTS_OF_A_SOLVE_LOST = deviation(
    "jax<0.5.1",
    params=["jit"],
    error="KeyError",
    match="OrderedDebugEffect",
    reason="a linear solve did not pass on the effects of its matrix",
    issue="jax-ml/jax#26087",
)


@probe(
    source="jax-ml/jax#26087",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[EFFECTS_OF_A_SOLVE_LOST],
)
def ordered_in_a_linear_solve(env, jit):
    """An ordered callback in the matrix of `lax.custom_linear_solve` runs at each product."""
    sums = []

    def double(x):
        jax.debug.callback(lambda x: sums.append(float(x.sum())), x, ordered=True)
        return 2 * x

    def solve(b):
        return lax.custom_linear_solve(double, b, lambda matvec, b: matvec(b) / 4)

    result = (jax.jit(solve) if jit else solve)(ROW)
    jax.effects_barrier()
    return Observed((result, sums), (ROW / 2, [3.0]))


ONE_DEVICE_AGAINST_THE_MESH = deviation(
    "jax>=0.5,<0.8.1",
    error="ValueError",
    match="incompatible devices",
    reason="the host computed in the context of the mesh, with arguments on one device",
    issue="jax-ml/jax@466aff51d4d5",
)


@probe(source="jax-ml/jax@466aff51d4d5", devices=2, deviations=[ONE_DEVICE_AGAINST_THE_MESH])
def host_that_uses_jax(env):
    """A debug callback outside of jit, which uses JAX itself, in the context of a mesh."""
    values = []
    with env.compat.set_mesh(env.mesh(2, "x")):
        jax.debug.callback(lambda x: values.append(float(jnp.square(x))), np.float32(3))
        jax.effects_barrier()
    return Observed(values, [9.0])


NOT_STORED = deviation(
    "jax<0.11",
    outcome="ok",
    reason="programs with callbacks were not stored",
    issue="jax-ml/jax@54156b8cbd10",
)


@probe(source="jax-ml/jax@54156b8cbd10", deviations=[NOT_STORED])
def stored_with_a_callback(env):
    """The persistent compilation cache stores a program with a callback, and runs that of the call.

    The second function has another callback with the same types, and is read from the cache.
    """
    with tempfile.TemporaryDirectory() as folder:
        for option, value in {
            "jax_compilation_cache_dir": folder,
            "jax_persistent_cache_min_compile_time_secs": 0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }.items():
            jax.config.update(option, value)

        def run(factor):
            def host(x):
                return factor * np.asarray(x)

            f = jax.jit(lambda x: jax.pure_callback(host, struct((3,)), x))
            return np.asarray(f(ROW))

        values = [run(2), run(3)]
        entries = [path for path in Path(folder).iterdir() if not path.name.endswith("-atime")]
        return Observed((values, len(entries)), ([2 * ROW, 3 * ROW], 1))


PYTHON_AT_EACH_CALL = deviation(
    "jax<0.7.2",
    error="RuntimeError",
    match="re-tracing",
    reason="a program with a `pure_callback` was called through Python each time",
    issue="jax-ml/jax#31319",
)


@probe(source="jax-ml/jax#31319", releases="jax>=0.4.33", deviations=[PYTHON_AT_EACH_CALL])
def second_call_under_no_tracing(env):
    """A jitted function with a `pure_callback` can be called again under `jax.no_tracing`."""

    @jax.jit
    def f(x):
        return jax.pure_callback(lambda x: x, struct(ROW.shape), x)

    f(ROW)
    with jax.no_tracing(True):
        return Observed(f(ROW), reference=ROW)
