"""References in lanes: `jax.vmap` over a reference and over the index that reads it."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference

defaults(platforms=("cpu",), releases="jax>=0.6")

READS = {"row": lambda ref, i: ref[i], "column": lambda ref, i: ref[:, i]}
EACH_LANE_READ_ALL = deviation(
    "jax>=0.8,<0.8.2",
    outcome="ok",
    reason="each lane read the references of all lanes at its index",
    issue="jax-ml/jax#33309",
)
INDEX_REFUSED = deviation(
    "jax>=0.8.2,<0.10.1",
    error="ValueError",
    match="Indexer must have rank 1",
    reason="the rule of vmap built an index of another rank",
)


@probe(
    source="jax-ml/jax#33309",
    params=[*READS],
    deviations=[EACH_LANE_READ_ALL, INDEX_REFUSED],
)
def read_at_a_mapped_index(env, name):
    """Under `vmap`, `ref[i]` with an index for each lane reads the reference of this lane.

    In 0.8.0 and 0.8.1 each lane silently got the rows of all lanes, an axis more than it should.
    """
    x, indices = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([0, 1])
    read = jax.jit(jax.vmap(lambda x, i: READS[name](new_reference(x), i)))
    exact = np.stack([READS[name](lane, i) for lane, i in zip(x, indices, strict=True)])
    return Observed(read(x, indices), reference=exact)
