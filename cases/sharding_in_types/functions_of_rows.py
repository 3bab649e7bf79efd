"""Functions of an array whose rows or columns are sharded over Explicit axes.

Each function works by elements, or along an unsharded axis, so its result should be sharded as its
argument is. Some releases refuse one, because its code uses tables, indices or constants without
this sharding.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, format_spec, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6.1")

FUNCTIONS = {
    "lgamma": (jsp.special.gammaln, np.vectorize(math.lgamma)),
    "factorial": (jsp.special.factorial, lambda x: np.vectorize(math.gamma)(x + 1)),
    "gammainc": (lambda x: jsp.special.gammainc(1 + 0 * x, x), lambda x: -np.expm1(-x)),
    "normal_quantile": (lambda x: jsp.special.ndtri(x / (x + x)), lambda x: 0 * x),
    "fresnel": (
        lambda x: jsp.special.fresnel(x / 100)[1] * 100 / x,
        lambda x: 1 - (math.pi * (x / 100) ** 2) ** 2 / 40,
    ),
    "piecewise": (
        lambda x: jnp.piecewise(x, [x < 2, x >= 2], [jnp.negative, jnp.square]),
        lambda x: np.where(x < 2, -x, x * x),
    ),
}
COEFFICIENTS_LOOKED_UP = deviation(
    "jax>=0.12",
    params=["lgamma", "factorial", "gammainc"],
    error="ShardingTypeError",
    match=r"\.get\(out_sharding=\)",
    reason="lgamma looks up coefficients by indices that are sharded as its argument is",
)
CONSTANTS_UNSHARDED = deviation(
    "jax>=0.8.2,<0.12",
    params=["normal_quantile"],
    error="ShardingTypeError",
    match="select cases must have the same shardings",
    reason="constants of the shape of the argument were not sharded",
)
START_UNSHARDED = deviation(
    "jax>=0.8.2,<0.12",
    params=["fresnel"],
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="the loop over the coefficients of a polynomial started from unsharded zeros",
)
BRANCHES_BATCHED = deviation(
    params=["piecewise"],
    error="ValueError",
    match="Resource axis: x of .* is not found in mesh",
    reason="the function is a vmap of a switch, which makes indices without a mesh",
)


@probe(
    source="jax-ml/jax@32d830f9cf21",
    params={
        "lgamma": {"name": "lgamma"},
        "factorial": {"name": "factorial"},
        "gammainc": {"name": "gammainc"},
        "normal_quantile": {"name": "normal_quantile"},
        "fresnel": {"name": "fresnel"},
        "piecewise": {"name": "piecewise"},
    },
    deviations=[COEFFICIENTS_LOOKED_UP, CONSTANTS_UNSHARDED, START_UNSHARDED, BRANCHES_BATCHED],
    atol=2e-6,
)
def special_function(env, name):
    """A special function of a sharded vector is sharded; 0.12.0 refuses `gammaln`."""
    fn, exact = FUNCTIONS[name]
    mesh, x = env.mesh(SHARDS, "x", explicit=True), np.arange(1, 9, dtype=np.float32) / 2
    with env.compat.set_mesh(mesh):
        out = jax.jit(fn)(put(mesh, x, "x"))
    value = np.asarray(exact(x.astype(np.float64)), np.float64)
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": value})


INDICES_UNSHARDED = deviation(
    "jax<0.8.2",
    params=["argsort"],
    outcome="ok",
    reason="the indices that are sorted with the array were not sharded, nor was the result",
    issue="jax-ml/jax@32d830f9cf21",
)
INDICES_REFUSED = deviation(
    "jax>=0.8.2,<0.9.2",
    params=["argsort"],
    error="ShardingTypeError",
    match="Arguments to sort must have equal shardings",
    reason="the indices that are sorted with the array were not sharded",
    issue="jax-ml/jax@32d830f9cf21",
)
NO_RULE_FOR_SCATTER = deviation(
    "jax<0.7",
    params=["argpartition"],
    error="ShardingTypeError",
    match="sharding rule for scatter is not implemented",
    reason="scatter had no sharding rule",
    issue="jax-ml/jax@235632474517",
)
LANES_DIFFER = deviation(
    "jax>=0.8",
    params=["argpartition"],
    error="ValueError",
    match="Mapped away dimension of inputs passed to vmap should be sharded the same",
    reason="the columns are a vmap over a sharded and an unsharded array",
)


@probe(
    source="jax-ml/jax@32d830f9cf21",
    params={
        "sort": {"name": "sort"},
        "argsort": {"name": "argsort"},
        "argpartition": {"name": "argpartition"},
    },
    deviations=[INDICES_UNSHARDED, INDICES_REFUSED, NO_RULE_FOR_SCATTER, LANES_DIFFER],
)
def order_of_each_column(env, name):
    """Sorting each column of an array with sharded columns needs no communication.

    `argsort` was silently gathered up to 0.8.1, and refused up to 0.9.1.
    """
    mesh, x = env.mesh(SHARDS, "x", explicit=True), env.rng(0).permuted(np.arange(24)).reshape(3, 8)
    x = x.astype(np.float32)
    kth = {"kth": 1} if name == "argpartition" else {}
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda x: getattr(jnp, name)(x, axis=0, **kth))(put(mesh, x, None, "x"))
    exact = getattr(np, "argsort" if kth else name)(x, axis=0)
    dtype = np.float32 if name == "sort" else np.int32
    return Observed(
        {"spec": format_spec(out), "value": out},
        {"spec": "[None, 'x']", "value": exact.astype(dtype)},
    )


PARAMETERS_LOST_MESH = deviation(
    "jax<0.8",
    error="ValueError",
    match="Resource axis: x of .* is not found in mesh",
    reason="the sampler maps over the parameters outside of the mesh",
)
KEYS_UNSHARDED = deviation(
    "jax>=0.8,<0.10.1",
    error="ValueError",
    match="Mapped away dimension of inputs passed to vmap should be sharded the same",
    reason="the sampler maps over keys that are not sharded and parameters that are",
)
SAMPLE_UNSHARDED = deviation(
    "jax>=0.10.1",
    outcome="ok",
    reason="the parameters are gathered, and the sample is not sharded",
)


@probe(
    source="jax-ml/jax@fbd60962f811",
    deviations=[PARAMETERS_LOST_MESH, KEYS_UNSHARDED, SAMPLE_UNSHARDED],
)
def sample_of_sharded_parameters(env):
    """`random.gamma(key, a)` of a sharded `a` is refused up to 0.10.0, and then not sharded."""
    mesh, a = env.mesh(SHARDS, "x", explicit=True), np.arange(1, 9, dtype=np.float32)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: jax.random.gamma(jax.random.key(0), a))(put(mesh, a, "x"))
    return Observed(
        {"spec": format_spec(out), "shape": out.shape}, {"spec": "['x']", "shape": (8,)}
    )


ZEROS = (jnp.zeros_like, lambda x: 0 * x)
SUM = (jax.grad(lambda x: x.sum()), lambda x: 0 * x + 1)
LOOKUP = (
    jax.grad(lambda x: x[np.array([5, 2])].sum()),
    lambda x: np.isin(np.arange(8), [5, 2]).astype(x.dtype),
)
NO_DEVICES = deviation(
    "jax<0.11",
    params=["zeros"],
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh",
    reason="the argument is not used and was dropped, and with it the devices",
)
ON_ONE_DEVICE = deviation(
    "jax>=0.11",
    params=["zeros"],
    outcome="ok",
    reason="the argument is not used and was dropped, so the zeros are on the default device",
)
NO_DEVICES_FOR_ONES = deviation(
    params=["gradient_of_a_sum"],
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh",
    reason="the argument is not used and was dropped, and with it the devices",
)
NO_DEVICES_FOR_LOOKUP = deviation(
    "jax>=0.7",
    params=["gradient_of_a_lookup"],
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh",
    reason="the argument is not used and was dropped, and with it the devices",
    issue="jax-ml/jax@4119d5365ada",
)
LOOKUP_ON_ONE_DEVICE = deviation(
    "jax<0.7",
    params=["gradient_of_a_lookup"],
    outcome="ok",
    reason="the argument is not used and was dropped, so the gradient is on the default device",
)


@probe(
    source="jax-ml/jax@4119d5365ada",
    params={
        "zeros": {"name": "zeros"},
        "gradient_of_a_sum": {"name": "gradient_of_a_sum"},
        "gradient_of_a_lookup": {"name": "gradient_of_a_lookup"},
    },
    deviations=[
        NO_DEVICES,
        ON_ONE_DEVICE,
        NO_DEVICES_FOR_ONES,
        NO_DEVICES_FOR_LOOKUP,
        LOOKUP_ON_ONE_DEVICE,
    ],
)
def only_the_type_is_used(env, name):
    """`jax.jit(jnp.zeros_like)(x)` on a mesh, without a mesh context, uses only the type of x.

    The result should be on the devices of x.
    """
    functions = {"zeros": ZEROS, "gradient_of_a_sum": SUM, "gradient_of_a_lookup": LOOKUP}
    fn, exact = functions[name]
    mesh, x = env.mesh(SHARDS, "x", explicit=True), np.arange(8, dtype=np.float32)
    out = jax.jit(fn)(put(mesh, x, *(() if name == "gradient_of_a_lookup" else ("x",))))
    return Observed(
        {"devices": len(out.sharding.device_set), "value": out},
        {"devices": SHARDS, "value": exact(x)},
    )
