"""Operations on typed random keys whose array is sharded: their words have an axis more."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(devices=4, platforms=("cpu",))


def words(keys):
    """Return the words of typed keys as a NumPy array."""
    return np.asarray(jax.random.key_data(keys))


KEYS_CARRIED = deviation(
    "jax>=0.5.1,<0.6",
    error="AssertionError",
    reason="the lowering of select compared the shardings of keys and words",
    issue="jax-ml/jax@10b2cda90e90",
)


@probe(source="jax-ml/jax@10b2cda90e90", deviations=[KEYS_CARRIED])
def keys_carried_by_a_scan(env):
    """A scan over sharded numbers that carries one typed key for each, chosen by `jnp.where`."""
    columns = NamedSharding(env.mesh(4, "x"), P(None, "x"))
    numbers = np.arange(8).reshape(2, 4)

    def step(keys, number):
        folded = jax.vmap(jax.random.fold_in)(keys, number)
        return jnp.where(number % 2 == 0, keys, folded), None

    @jax.jit
    def carry(numbers):
        keys = jnp.broadcast_to(jax.random.key(0), (4,))
        return lax.scan(step, keys, numbers)[0]

    out = words(carry(jax.device_put(numbers, columns)))
    return Observed(out, words(carry(numbers)))


SPEC_OF_THE_KEYS = deviation(
    "jax<0.11",
    outcome="ok",
    reason="later calls returned the words with the spec of the keys",
    issue="jax-ml/jax@9120bf895b32",
)


@probe(source="jax-ml/jax@9120bf895b32", deviations=[SPEC_OF_THE_KEYS])
def words_of_keys_from_a_call(env):
    """The words of keys have the same spec at the first and at later calls of a jitted function."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    make = jax.jit(jax.vmap(jax.random.key), out_shardings=rows)
    specs = [
        tuple(jax.random.key_data(make(np.arange(4, dtype=np.uint32))).sharding.spec)
        for _ in range(3)
    ]
    return Observed(specs, [("x", None)] * 3)
