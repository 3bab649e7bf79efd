"""Samplers in shard_map with its check on: a key of each shard, and parameters of all.

Samplers with a loop start it from values that do not vary over the shards; the check then refuses
the loop. Each shard should give what the sampler gives outside with the same key.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",), devices=2, xla_flags=["--xla_backend_optimization_level=0"])

SAMPLERS = {
    "poisson": lambda key: jax.random.poisson(key, 3.0),
    "truncated_normal": lambda key: jax.random.truncated_normal(key, -1.0, 1.0, (2,)),
    "choice": lambda key: jax.random.choice(key, 5, (2,), p=jnp.full(5, 0.2)),
    "multivariate_normal": lambda key: jax.random.multivariate_normal(
        key, np.zeros(2, np.float32), np.eye(2, dtype=np.float32)
    ),
}


NO_RULE_FOR_LOOPS = deviation(
    "jax<0.6",
    params=["poisson"],
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while_loop",
    issue="jax-ml/jax#31080",
)
LOOP_STARTS_REPLICATED = deviation(
    "jax>=0.6",
    params=["poisson"],
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the loop of the sampler starts from values that do not vary over the shards",
    issue="jax-ml/jax#31080",
)
COMPARED_WITH_REPLICATED = deviation(
    "jax>=0.6,<0.8",
    params=["choice"],
    error="ValueError",
    match="le_to requires varying manual axes to match",
    reason="the sampler compares numbers that vary over the shards with others",
)


@probe(
    source="jax-ml/jax#31080",
    params=[*SAMPLERS],
    deviations=[NO_RULE_FOR_LOOPS, LOOP_STARTS_REPLICATED, COMPARED_WITH_REPLICATED],
)
def sampler_with_key_of_shard(env, name):
    """A sampler with the key of each shard gives in shard_map what it gives outside."""
    words = np.array([[0, 1], [0, 2]], np.uint32)
    sample = SAMPLERS[name]

    def draw(words):
        return sample(jax.random.wrap_key_data(words))

    f = env.compat.shard_map(
        lambda words: draw(words[0])[None], mesh=env.mesh(2, "x"), in_specs=P("x"), out_specs=P("x")
    )
    outside = np.stack([np.asarray(jax.jit(draw)(w)) for w in words])
    return Observed(jax.jit(f)(words), outside)
