"""Types of pytrees as Python sees them: comparisons of structures, keys of paths as dataclasses."""

from __future__ import annotations

import dataclasses

import jax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))

ONLY_BESIDE_STRUCTURES = deviation(
    "jax<0.8",
    error="TypeError",
    match="incompatible function arguments",
    reason="a structure could be compared with structures only",
    issue="jax-ml/jax@b53b63472a72",
)
NEITHER_EQUAL_NOR_UNEQUAL = deviation(
    "jax>=0.8",
    params=["unequal"],
    outcome="ok",
    reason="the comparison with another type is False for both operators",
    issue="jax-ml/jax@b53b63472a72",
)
COMPARISONS = {
    "equal": lambda structure: structure == "leaf",
    "unequal": lambda structure: structure != "leaf",
}


@probe(
    source="jax-ml/jax@b53b63472a72",
    params=[*COMPARISONS],
    deviations=[ONLY_BESIDE_STRUCTURES, NEITHER_EQUAL_NOR_UNEQUAL],
)
def structure_beside_another_type(env, name):
    """The structure of a tree is unequal to a string.

    From 0.8.0 on `structure != "leaf"` is silently False; before, both operators were a TypeError.
    """
    structure = jax.tree_util.tree_structure([1, 2])
    return Observed(COMPARISONS[name](structure), reference=name == "unequal")


NO_DATACLASSES = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="the keys are classes of C++, not dataclasses",
    issue="jax-ml/jax@a1dfdc1d6164",
)
FUNCTIONS = {
    "replace": lambda key: dataclasses.replace(key, key="b"),
    "asdict": dataclasses.asdict,
    "fields": dataclasses.fields,
}


@probe(source="jax-ml/jax@a1dfdc1d6164", params=[*FUNCTIONS], deviations=[NO_DATACLASSES])
def key_as_a_dataclass(env, name):
    """The functions of `dataclasses` take a `DictKey` of a path, up to 0.4.35."""
    key = jax.tree_util.DictKey("a")
    return Observed(refusal(lambda: FUNCTIONS[name](key)), reference="ran")
