"""Structures of arguments and results that a stage of compilation reports.

Tools that serve compiled programs join these structures with structures of their own.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

PAIR = np.float32([1, 2])


def lowered_pair():
    """Return the lowered form of a function that returns its argument twice."""
    return jax.jit(lambda x: (x, x)).lower(PAIR)


USES = {
    "joined": lambda tree: jax.tree_util.treedef_tuple([tree, jax.tree.structure(0)]),
    "composed": lambda tree: jax.tree.structure([0]).compose(tree),
}
EXPECTED = {
    "joined": "PyTreeDef(((*, *), *))",
    "composed": "PyTreeDef([(*, *)])",
}


ANOTHER_REGISTRY = deviation(
    "jax>=0.10",
    error="ValueError",
    match="registries",
    reason="the stages flatten with a registry of their own",
    issue="jax-ml/jax@60a8d25b7d0f",
)


@probe(source="jax-ml/jax@60a8d25b7d0f", params=[*USES], deviations=[ANOTHER_REGISTRY])
def structure_of_results(env, name):
    """The structure of the results of a lowered function is used with other structures."""
    return Observed(str(USES[name](lowered_pair().out_tree)), EXPECTED[name])
