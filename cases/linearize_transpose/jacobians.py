"""jacfwd, jacrev and hessian inside shard_map, by a replicated parameter.

A Jacobian has one value, however it is computed. With the check on, forward mode gives each shard's
own Jacobian, while reverse mode, in which the transpose of the implicit pvary is a sum, mixes the
shards: two answers in one release, from 0.7.0 on (0.6 raises). On a varying copy of the parameter
they agree.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

from ._helpers import loss, map_over_x, regression

defaults(devices=4)


def predict(w, x):
    """Return the predictions of a nonlinear model for the rows `x`."""
    return jnp.tanh(x @ w)


def exact(w, x):
    """Return the Jacobian of `predict` by `w`, one row for each row of `x`, in float64."""
    w, x = w.astype(np.float64), x.astype(np.float64)
    return (1 - np.tanh(x @ w) ** 2)[:, None] * x


BASIS_WITHOUT_REPLICATION = deviation(
    "jax>=0.4.38,<0.6",
    error="TypeError",
    match="'NoneType' object is not iterable",
    reason="the check has no replication for the basis passed to vmap",
    issue="jax-ml/jax#26148",
)
REPLICATED_BASIS = deviation(
    "jax>=0.6,<0.7",
    params=["reverse", "reverse_made_varying"],
    error="ValueError",
    match="for argument to vjp function",
    reason="the basis of cotangents is replicated, but the output varies",
    issue="jax-ml/jax#29832",
)
INSERTED_PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    params=["reverse"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)
REVERSE_MODE_SUMS = deviation(
    "jax>=0.7,!=0.8.1,!=0.8.2,!=0.8.3",
    params=["reverse"],
    outcome="ok",
    reason="reverse mode sums over the shards by the transpose of the implicit pvary",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#29832",
    params={
        "forward": {"mode": "jacfwd", "varying": False},
        "reverse": {"mode": "jacrev", "varying": False},
        "reverse_made_varying": {"mode": "jacrev", "varying": True},
    },
    deviations=[
        BASIS_WITHOUT_REPLICATION,
        REPLICATED_BASIS,
        INSERTED_PSUM_NOT_BATCHED,
        REVERSE_MODE_SUMS,
    ],
)
def local_jacobian(env, mode, varying):
    """Each shard computes the rows of the Jacobian by `w` for its own data."""
    w, x, _ = regression(env)

    def body(w, x):
        at = env.compat.pvary(w, "x") if varying else w
        return getattr(jax, mode)(predict)(at, x)

    return Program(map_over_x(env, body, (P(), P("x")), P("x")), args=(w, x), reference=exact)


BASIS_WITHOUT_REPLICATION_UNDER_CHECK = deviation(
    "jax>=0.4.38,<0.6",
    params=["check_on"],
    error="TypeError",
    match="'NoneType' object is not iterable",
    reason="the check has no replication for the basis passed to vmap",
    issue="jax-ml/jax#26148",
)
REPLICATED_BASIS_UNDER_CHECK = deviation(
    "jax>=0.6,<0.7",
    params=["check_on"],
    error="ValueError",
    match="for argument to vjp function",
    reason="the basis of cotangents is replicated, but the output varies",
    issue="jax-ml/jax#29832",
)
INSERTED_PSUM_NOT_BATCHED_UNDER_CHECK = deviation(
    "jax>=0.8.1,<0.9",
    params=["check_on"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)
REVERSE_MODE_SUMS_UNDER_CHECK = deviation(
    "jax>=0.7,!=0.8.1,!=0.8.2,!=0.8.3",
    params=["check_on"],
    outcome="ok",
    reason="reverse mode sums over the shards by the transpose of the implicit pvary",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#29832",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        BASIS_WITHOUT_REPLICATION_UNDER_CHECK,
        REPLICATED_BASIS_UNDER_CHECK,
        INSERTED_PSUM_NOT_BATCHED_UNDER_CHECK,
        REVERSE_MODE_SUMS_UNDER_CHECK,
    ],
    atol=1e-6,  # two roundings of numbers near one
)
def forward_against_reverse(env, check):
    """The difference of jacfwd and jacrev of one function at one point is zero."""
    w, x, _ = regression(env)

    def body(w, x):
        return jax.jacfwd(predict)(w, x) - jax.jacrev(predict)(w, x)

    fn = map_over_x(env, body, (P(), P("x")), P("x"), check=check)
    return Program(fn, args=(w, x), reference=lambda _, x: np.zeros(x.shape))


REPLICATED_BASIS_IN_HESSIAN = deviation(
    "jax>=0.6,<0.7",
    error="ValueError",
    match="for argument to vjp function",
    reason="the basis of cotangents is replicated, but the output varies",
    issue="jax-ml/jax#29832",
)
INSERTED_PSUM_NOT_BATCHED_IN_HESSIAN = deviation(
    "jax>=0.8.1,<0.9",
    params=["local"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)
REVERSE_MODE_SUMS_IN_HESSIAN = deviation(
    "jax>=0.7,!=0.8.1,!=0.8.2,!=0.8.3",
    params=["local"],
    outcome="ok",
    reason="reverse mode sums over the shards by the transpose of the implicit pvary",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    params={"local": {"varying": False}, "made_varying": {"varying": True}},
    deviations=[
        BASIS_WITHOUT_REPLICATION,
        REPLICATED_BASIS_IN_HESSIAN,
        INSERTED_PSUM_NOT_BATCHED_IN_HESSIAN,
        REVERSE_MODE_SUMS_IN_HESSIAN,
    ],
)
def pmean_of_hessians(env, varying):
    """`pmean(hessian(local loss))` has the same factor as the gradient: once, not squared."""

    def body(w, x, y):
        at = env.compat.pvary(w, "x") if varying else w
        return lax.pmean(jax.hessian(loss)(at, x, y), "x")

    def exact_hessian(_, x, y):
        x = x.astype(np.float64)
        return 2 * x.T @ x / len(y)

    fn = map_over_x(env, body, (P(), P("x"), P("x")), P())
    return Program(fn, args=regression(env), reference=exact_hessian)
