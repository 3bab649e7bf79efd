"""Gradients of functions that overwrite a reference, and the device of a reference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",), releases="jax>=0.7.2")


def overwritten(x):
    """Return a reference to x after all of it was overwritten by twos."""
    ref = jax.new_ref(x)
    ref[...] = jnp.full(3, 2.0)
    return ref[...]


def read_first(x):
    """Return x times what a reference to x holds after it was overwritten by twos."""
    ref = jax.new_ref(x)
    value = ref[...]
    ref[...] = jnp.full(3, 2.0)
    return value * ref[...]


def element_overwritten(x):
    """Return a reference to x after its first element was overwritten."""
    ref = jax.new_ref(x)
    ref[0] = 2.0
    return ref[...]


def added_to_a_view(x):
    """Return five ones, to the middle of which x was added through a view."""
    ref = jax.new_ref(jnp.ones(5))
    ref.at[1:4][...] += x
    return ref[...]


FUNCTIONS = {
    "overwritten": (overwritten, [0, 0, 0]),
    "read_first": (read_first, [2, 2, 2]),
    "element": (element_overwritten, [0, 1, 1]),
    "view": (added_to_a_view, [1, 1, 1]),
}
CONSTANT_HAS_NO_GRADIENT = deviation(
    "jax>=0.8.1,<0.11",
    params=["overwritten", "read_first", "element"],
    error="AttributeError",
    match="no attribute .?accum",
    reason="the transpose of a write took a constant for an accumulator of gradients",
    issue="jax-ml/jax#33987",
)
VIEW_OF_A_GRADIENT = deviation(
    "jax>=0.8.1,<0.10",
    params=["view"],
    error="ValueError",
    reason="the gradient of a read through a view had the shape of the view",
    issue="jax-ml/jax@27f1ce6ac3d6",
)


@probe(
    source="jax-ml/jax#33987",
    params=[*FUNCTIONS],
    deviations=[CONSTANT_HAS_NO_GRADIENT, VIEW_OF_A_GRADIENT],
)
def gradient_of_an_overwritten_reference(env, name):
    """What a constant overwrites has no gradient, and what was read before has one."""
    fn, exact = FUNCTIONS[name]
    gradient = jax.grad(jax.jit(lambda x: fn(x).sum()))(np.arange(3, dtype=np.float32))
    return Observed(gradient, np.array(exact, np.float32))


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
