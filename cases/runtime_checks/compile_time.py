"""`jax.ensure_compile_time_eval`: functions that it computes at once, in a function under jit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

VECTOR = np.array([1, 2, 4], np.float32)
FUNCTIONS = {
    "scan": (lambda: lax.scan(lambda c, x: (c + x, c), 0.0, VECTOR)[0], np.float32(7)),
    "map": (lambda: lax.map(jnp.square, VECTOR), VECTOR**2),
    "fori_loop": (lambda: lax.fori_loop(0, 3, lambda i, c: c + i, 0.0), np.float32(3)),
    "solve": (lambda: jnp.linalg.solve(np.diag(VECTOR), VECTOR), np.ones(3, np.float32)),
    "inv": (lambda: jnp.linalg.inv(np.diag(VECTOR)), np.diag(1 / VECTOR)),
}


NO_RESULT_TO_FILL = deviation(
    "jax>=0.4.36,<0.8",
    params=["scan", "map"],
    error="NotImplementedError",
    match="Evaluation rule for 'empty",
    reason="a scan with results for each step could not be computed at once",
    issue="jax-ml/jax#32404",
)
TRACER_OF_THE_SOLVE = deviation(
    "jax>=0.4.36,<0.6.1",
    params=["solve", "inv"],
    error="UnexpectedTracerError",
    match="reference to an intermediate value",
    reason="a linear solve was traced within the context and used outside of the trace",
    issue="jax-ml/jax#25847",
)


@probe(
    source="jax-ml/jax#25847",
    params=[*FUNCTIONS],
    deviations=[NO_RESULT_TO_FILL, TRACER_OF_THE_SOLVE],
)
def computed_under_jit(env, name):
    """A function of constants has its value while the function around it is traced."""
    f, exact = FUNCTIONS[name]
    values = []

    @jax.jit
    def traced(x):
        with jax.ensure_compile_time_eval():
            values.append(np.asarray(f()))
        return x

    traced(VECTOR)
    return Observed(values[0], exact)
