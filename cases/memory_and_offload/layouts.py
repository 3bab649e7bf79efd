"""Layouts of arrays on a CPU: the order of axes in memory must not change the values.

`jax.experimental.layout` has `Format(Layout(...), sharding)` from 0.7.0; before, the two classes
were `Layout(DeviceLocalLayout(...), sharding)`.
"""

from __future__ import annotations

import jax
import jax.experimental.layout as layouts
import numpy as np
from jax.sharding import SingleDeviceSharding

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",), devices=2, releases="jax>=0.4.33")

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def with_order(order, device):
    """Return a sharding on one device with the order of axes in memory, or `AUTO` for None."""
    sharding = SingleDeviceSharding(device)
    if hasattr(layouts, "DeviceLocalLayout"):
        kind, combined = layouts.DeviceLocalLayout, layouts.Layout
    else:
        kind, combined = layouts.Layout, layouts.Format
    return combined(kind.AUTO) if order is None else combined(kind(order), sharding)


def get_order(array):
    """Return the order of an array's axes in memory."""
    if hasattr(array, "layout"):
        return list(array.layout.device_local_layout.major_to_minor)
    inner = array.format.layout
    return list(inner.major_to_minor)


NO_LAYOUTS = deviation(
    "jax<0.5.1",
    outcome="raised",
    reason="XLA for CPUs ignored layouts",
    issue="jax-ml/jax@9442f90cb2d2",
)
BYTES_TAKEN_AS_ROWS = deviation(
    "jax>=0.7,<0.10",
    params=["move", "copy"],
    outcome="ok",
    reason="the bytes of the columns were copied, and taken for rows",
)
MOVES = {
    "put": lambda x, _: x,
    "move": jax.device_put,
    "copy": lambda x, _: jax.device_put(x, *x.devices(), may_alias=False),
    "compute": lambda x, _: x + 0,
}


@probe(
    source="jax-ml/jax@9442f90cb2d2",
    params=[*MOVES],
    deviations=[NO_LAYOUTS, BYTES_TAKEN_AS_ROWS],
)
def stored_by_columns(env, name):
    """A matrix that is stored by columns keeps its values when it is moved or copied."""
    first, second = env.devices[:2]
    x = jax.device_put(MATRIX, with_order((1, 0), first))
    return Observed(
        {"order": get_order(x), "value": np.asarray(MOVES[name](x, second))},
        {"order": [1, 0], "value": MATRIX},
    )


AUTO_AND_DONATED = deviation(
    "jax<0.4.35",
    outcome="ok",
    reason="the layout of the result was silently taken for that of the argument",
    issue="jax-ml/jax@e5fa9656b2f1",
)


@probe(source="jax-ml/jax@e5fa9656b2f1", deviations=[AUTO_AND_DONATED])
def donated_with_an_automatic_layout(env):
    """A donated argument with the layout `AUTO` and a result without one are refused."""
    auto = with_order(None, env.devices[0])
    f = jax.jit(lambda x: 2 * x, donate_argnums=0, in_shardings=auto)
    outcome = ending(lambda: f(MATRIX), words=["Did you mean to set"])
    return Observed(outcome, "ValueError: Did you mean to set")


FORMAT_NOT_TOLD = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the shape of a result had no format",
    issue="jax-ml/jax@344ea43a3a39",
)


@probe(source="jax-ml/jax@344ea43a3a39", releases="jax>=0.7", deviations=[FORMAT_NOT_TOLD])
def format_of_a_shape(env):
    """`jax.eval_shape` of a jitted function tells the format that `out_shardings` names."""
    columns = with_order((1, 0), env.devices[0])
    layout = jax.eval_shape(jax.jit(lambda x: x, out_shardings=columns), MATRIX).format.layout
    return Observed(layout is not None and list(layout.major_to_minor), [1, 0])


NO_LAYOUT_FOR_LANES = deviation(
    "jax<0.7.1",
    error="NotImplementedError",
    reason="with_layout_constraint had no batching rule",
    issue="jax-ml/jax@250949230e18",
)


@probe(source="jax-ml/jax@250949230e18", releases="jax>=0.7", deviations=[NO_LAYOUT_FOR_LANES])
def constrained_in_lanes(env):
    """`vmap` of a function with `with_layout_constraint` runs from 0.7.1 on."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def store(row):
        return layouts.with_layout_constraint(row, layouts.Layout(major_to_minor=(1, 0)))

    out = jax.jit(jax.vmap(store))(x)
    return Observed(out, reference=x)
