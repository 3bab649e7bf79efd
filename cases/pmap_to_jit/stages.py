"""Stages of a pmap, its attribute `__wrapped__`, and its check of the devices."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import DEVICES, map_rows, rows

defaults(devices=4, platforms=("cpu",))


def double(x):
    """Return twice a row, and a name for it."""
    return {"twice": 2 * x}


NOT_WRAPPED = deviation(
    "jax==0.8.0",
    outcome="ok",
    reason="the new pmap did not call functools.wraps",
    issue="jax-ml/jax#32701",
)


@probe(source="jax-ml/jax#32701", deviations=[NOT_WRAPPED])
def wrapped(env):
    """`jax.pmap(f).__wrapped__` is `f`."""
    return Observed(getattr(map_rows(env, double), "__wrapped__", None) is double, True)


NO_GLOBAL_SHAPES = deviation(
    "jax<0.8",
    error="KeyError",
    match="global_out_avals",
    reason="the stages of pmap did not store the types of results",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[NO_GLOBAL_SHAPES])
def shapes_of_results(env):
    """`out_info` of a lowered pmap has the tree and the shapes of the results, from 0.8.0 on."""
    info = map_rows(env, double).lower(rows()).out_info
    return Observed({name: x.shape for name, x in info.items()}, {"twice": (DEVICES, 2)})


NO_SHARDINGS = deviation(
    "jax<0.8",
    outcome="raised",
    reason="a compiled pmap did not know its shardings",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[NO_SHARDINGS])
def shardings_of_arguments(env):
    """`input_shardings` of a compiled pmap are over its devices, from 0.8.0 on."""
    compiled = map_rows(env, double).lower(rows()).compile()
    sharding = jax.tree_util.tree_leaves(compiled.input_shardings)[0]
    return Observed(list(sharding.shard_shape((DEVICES, 2))), [1, 2])


NO_TRACE = deviation(
    "jax>=0.7.2",
    outcome="ok",
    reason="pmap has only lower",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[NO_TRACE])
def traced(env):
    """`jax.pmap(f).trace(x)` is a stage, as for jit; later releases have no such method."""
    call = getattr(map_rows(env, double), "trace", None)
    return Observed("absent" if call is None else type(call(rows())).__name__, "Traced")


REFUSED_BY_THE_CALL = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the devices were checked by each call",
    issue="jax-ml/jax@6e6717746bfb",
)


@probe(source="jax-ml/jax@6e6717746bfb", deviations=[REFUSED_BY_THE_CALL])
def no_devices(env):
    """`jax.pmap(f, devices=[])` is refused when it is made, from 0.9.1 on; before, when called."""
    outcomes = {"made": ending(lambda: (jax.pmap(np.negative, devices=[]), 0)[1])}
    return Observed(outcomes, {"made": "ValueError"})
