"""Orbax checkpoints of the state of an NNX module and of an optimiser of Optax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from conformance.kit import Observed, defaults, deviation, probe

from ._content import numbers
from ._loading import EQUAL, compare_trees
from ._orbax import make_folder, restore, save

defaults(platforms=("cpu",), requires=["orbax-checkpoint", "flax", "optax"])


class Layer(nnx.Module):
    """A kernel, and a count of calls."""

    def __init__(self):
        self.kernel = nnx.Param(jax.device_put(numbers()))
        self.calls = nnx.Variable(jax.device_put(np.int32(3)))


FLAX_IMPORT_FAILS = deviation(
    "jax==0.11.2",
    packages={"flax": "<0.12.10"},
    error="AttributeError",
    match="has no attribute 'HiPrimitive'",
    reason="the Flax release current at the time fails to import on jax 0.11.2",
    issue="google/flax#5596",
)


@probe(source="google/orbax#1105", deviations=[FLAX_IMPORT_FAILS])
def orbax_nnx_and_optax_state(env):
    """The state of an NNX module and of Adam, which has named tuples, is restored with a target."""
    module = nnx.state(Layer())
    adam = jax.jit(optax.adam(0.1).init)({"w": numbers("bfloat16")})
    adam = (adam[0]._replace(count=jnp.asarray(np.int32(5))), *adam[1:])
    tree = {"module": module, "adam": adam}
    target = {"module": nnx.state(nnx.eval_shape(Layer)), "adam": adam}
    with make_folder() as folder:
        restored = restore(save(tree, folder), target)
    observed = {"same": compare_trees(restored, tree), "count": int(restored["adam"][0].count)}
    return Observed(observed, {"same": EQUAL, "count": 5})
