"""Functions by elements of arrays on Explicit axes, of which one is sharded and one is not.

Their sum is accepted and has the sharding of the sharded array, so the same is expected of other
functions. Some releases refuse them, because the function selects between the two arrays first.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import SHARDS, format_spec, numbers, put

DIVISOR_SELECTS = deviation(
    "jax>=0.10.2",
    params=["floor_divide"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="the comparison of the divisor with 0 selects between quotients without its sharding",
    issue="jax-ml/jax@e90fa10f79ba",
)
NEW_HYPOT_SELECTS = deviation(
    "jax>=0.12",
    params=["hypot"],
    error="ShardingTypeError",
    match="select cases must have the same shardings",
    reason="the function selects the larger of the two arrays",
)
HEAVISIDE_SELECTED = deviation(
    "jax<0.7.2",
    params=["heaviside"],
    error="ShardingTypeError",
    match="select cases must have the same shardings",
    reason="the function selects between an array and the value at 0",
)
HEAVISIDE_SELECTS_NAN = deviation(
    "jax>=0.10.2",
    params=["heaviside"],
    error="ShardingTypeError",
    match="select cases must have the same shardings",
    reason="the function selects between an array and the value at 0",
    issue="jax-ml/jax@88b3d133903d",
)
SIGN_SELECTS = deviation(
    params=["copysign"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="the sign of the unsharded array selects between sharded arrays",
)


@probe(
    source="jax-ml/jax@e90fa10f79ba",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    params={
        "floor_divide": {"name": "floor_divide"},
        "remainder": {"name": "remainder"},
        "hypot": {"name": "hypot"},
        "heaviside": {"name": "heaviside"},
        "copysign": {"name": "copysign"},
    },
    deviations=[
        DIVISOR_SELECTS,
        NEW_HYPOT_SELECTS,
        HEAVISIDE_SELECTED,
        HEAVISIDE_SELECTS_NAN,
        SIGN_SELECTS,
    ],
)
def sharded_and_unsharded(env, name):
    """`jnp.floor_divide(x, y)` of x over four devices and of a y that each of them holds.

    It ran up to 0.10.1. `copysign` is refused by every release, `remainder` by none.
    """
    mesh, x, y = env.mesh(SHARDS, "x", explicit=True), numbers(8) - 3, numbers(8) + 1
    with env.compat.set_mesh(mesh):
        out = jax.jit(getattr(jnp, name))(put(mesh, x, "x"), put(mesh, y))
    exact = getattr(np, name)(x.astype(np.float64), y.astype(np.float64))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact})


COTANGENTS_UNSHARDED = deviation(
    "jax==0.7.2",
    error="ValueError",
    match="for argument to vjp function: got float32\\[8\\], but expected float32\\[8@x\\]",
    reason="the rows of the identity, with which the pullback is called, were not sharded",
    issue="jax-ml/jax@da49244ecce5",
)
BATCH_OF_MASKS_UNSHARDED = deviation(
    "jax<0.7.2",
    params=["abs"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="the rows of the identity, with which the pullback is called, were not sharded",
    issue="jax-ml/jax@da49244ecce5",
)


@probe(
    source="jax-ml/jax@da49244ecce5",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    params={"sin": {"name": "sin"}, "abs": {"name": "abs"}},
    deviations=[COTANGENTS_UNSHARDED, BATCH_OF_MASKS_UNSHARDED],
)
def jacobian_by_rows(env, name):
    """`jax.jacrev` at a sharded vector is a matrix whose columns are sharded.

    It is refused by 0.7.2, and for `abs` by earlier releases, too.
    """
    mesh, x = env.mesh(SHARDS, "x", explicit=True), numbers(8) + 1
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.jacrev(getattr(jnp, name)))(put(mesh, x, "x"))
    exact = np.diag(np.cos(x.astype(np.float64)) if name == "sin" else np.ones(8))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "[None, 'x']", "value": exact}
    )
