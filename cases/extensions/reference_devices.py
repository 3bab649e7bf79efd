"""The device of a reference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",), releases="jax>=0.7.2")

MOVED = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a reference without a device was copied to the devices of the program",
    issue="jax-ml/jax@89fd5e81e004",
)


@probe(source="jax-ml/jax@89fd5e81e004", devices=4, deviations=[MOVED])
def reference_on_another_device(env):
    """A program on a mesh refuses a reference on one device: it could not write to it in place."""
    ref = jax.new_ref(jnp.arange(4.0))
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    f = jax.jit(lambda: jnp.ones(8) + ref[...][0], out_shardings=rows)
    return Observed(ending(f, words=["incompatible devices"]), "ValueError: incompatible devices")
