"""Training of a linear model, its rows spread over devices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

DEVICES = 4


def loss(w, x, y):
    """Return the mean squared error."""
    return jnp.mean((x @ w - y) ** 2)


def gradient(w, x, y):
    """Return the gradient of the loss over all rows: the mean of what each device has."""

    def mean(w, x, y):
        return lax.pmean(jax.grad(loss)(w, x, y), "rows")

    mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("rows",))
    return shard_map(mean, mesh=mesh, in_specs=(P(), P("rows"), P("rows")), out_specs=P())(w, x, y)


def norms(weights):
    """Return the norm of each array."""
    return jax.tree_map(jnp.linalg.norm, weights)


def example():
    """Return weights, rows and targets."""
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in ((3,), (8, 3), (8,)))


def weights():
    """Return the weights of two layers, as the only argument."""
    return ({"first": jnp.eye(3), "second": jnp.ones(4)},)
