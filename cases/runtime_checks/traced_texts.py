"""What JAX prints on its own, and how a traced value prints."""

from __future__ import annotations

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",))

SIX = np.arange(6, dtype=np.float32)
PLACES = {
    "arguments": lambda sharding: jax.jit(lambda x: 2 * x, in_shardings=sharding)(SIX),
    "device_put": lambda sharding: jax.device_put(SIX, sharding),
}
A_LINE_IS_PRINTED = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="the place in the program is printed, in addition to the error",
    issue="jax-ml/jax@57ba662a8556",
)


@probe(
    source="jax-ml/jax@57ba662a8556",
    devices=4,
    params=[*PLACES],
    deviations=[A_LINE_IS_PRINTED],
)
def lines_of_a_refused_sharding(env, name):
    """Six numbers over four devices are refused; the standard output stays empty."""
    sharding = NamedSharding(env.mesh(4, "x"), P("x"))
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        refused = ending(PLACES[name], sharding) != "accepted"
    return Observed((refused, len(stream.getvalue().splitlines())), (True, 0))


SHORT_TEXTS = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the texts had only the type",
    issue="jax-ml/jax@43bb91f753fe",
)


@probe(source="jax-ml/jax@43bb91f753fe", releases="jax>=0.7", deviations=[SHORT_TEXTS])
def text_of_a_traced_value(env):
    """A value prints in `grad` with its number, and in `vmap` with the type of all lanes."""
    texts = []

    def body(x):
        texts.append(str(x))
        return lax.mul(x, x)

    jax.grad(body)(jnp.float32(3))
    jax.vmap(body)(SIX)
    lanes = "VmapTracer(aval=float32[], batched=float32[6])"
    return Observed(texts, ["GradTracer(primal=3.0, typeof(tangent)=f32[])", lanes])
