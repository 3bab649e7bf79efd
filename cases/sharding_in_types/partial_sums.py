"""Arrays with unreduced axes: each device holds a part of a sum that is still to be made."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import numbers, put, reshard

defaults(devices=2, platforms=("cpu",), releases="jax>=0.7.2")


def partial_product(a, b):
    """Return a product whose sum over the sharded axis is not made."""
    target = P(None, None, unreduced={"x"})
    return jnp.einsum("ij,jk->ik", a, b, out_sharding=target)


def classify(call, total):
    """Return `total`, `other numbers`, or `refused` for a call that returns an array."""
    try:
        value = np.asarray(call())
    except Exception:  # noqa: BLE001 - the class differs between releases
        return "refused"
    return "total" if np.array_equal(value, total) else "other numbers"


PART_OF_A_DEVICE = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="the array counted as fully replicated, so the part of the first device was returned",
    issue="jax-ml/jax@9b677fc1ce43",
)


@probe(source="jax-ml/jax@9b677fc1ce43", deviations=[PART_OF_A_DEVICE])
def value_of_partial_sums(env):
    """`np.asarray` and `jax.device_get` refuse an array whose sum is not made yet.

    Up to 0.10.0 both silently returned the part of the first device.
    """
    a, b, mesh = numbers(2, 4), numbers(4, 2), env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(partial_product)(put(mesh, a, None, "x"), put(mesh, b, "x"))
        observed = {
            "resharded": classify(lambda: reshard(out, P()), a @ b),
            "asarray": classify(lambda: np.asarray(out), a @ b),
            "device_get": classify(lambda: jax.device_get(out), a @ b),
            "fully replicated": out.sharding.is_fully_replicated,
        }
    expected = {"asarray": "refused", "device_get": "refused", "fully replicated": False}
    return Observed(observed, {"resharded": "total", **expected})


COPIED_TO_EACH_DEVICE = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="each device got the whole array, so that the sum was too large by their number",
    issue="jax-ml/jax@aaec8ae5032f",
)


@probe(source="jax-ml/jax@aaec8ae5032f", deviations=[COPIED_TO_EACH_DEVICE])
def numpy_array_put_unreduced(env):
    """`device_put` of a NumPy array to an unreduced sharding is refused, from 0.9.1 on.

    Before, the array that it made was silently twice the argument, for two devices.
    """
    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        outcome = classify(
            lambda: reshard(jax.device_put(numbers(4), P(unreduced={"x"})), P()), numbers(4)
        )
    return Observed(outcome, "refused")
