"""Remat, custom derivatives and custom solves under shard_map, in loops and around them.

A rule that a user writes runs with other variances than it was written for. The result of a
backward pass must fit the primal, and a gradient that the rule sums itself may be summed again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import SHARDS, P, call_mapped, map_shards, numbers

defaults(devices=4)


@program(source="jax-ml/jax#18752")
def remat_in_a_scan(env):
    """A scan of a rematerialised step with a mean over shards can be differentiated from outside.

    The backward loop runs the step again, and its all-reduce, with the check on or off.
    """

    @jax.checkpoint
    def step(c):
        return c * jnp.sin(lax.pmean(c.mean(), "x"))

    def gradient(check):
        twice = lambda u: lax.scan(lambda c, _: (step(c), None), u, None, length=2)[0]  # noqa: E731
        fn = map_shards(env, twice, check=check)
        return jax.grad(lambda u: fn(u).sum())

    gradients = {"check_on": gradient(check=True), "check_off": gradient(check=False)}

    def exact(u):
        # the sum after two steps is n g(g(m)) with g(m) = m sin(m), m the mean
        m = np.float64(u).mean()
        slope = lambda m: np.sin(m) + m * np.cos(m)  # noqa: E731
        return dict.fromkeys(gradients, np.full(len(u), slope(m) * slope(m * np.sin(m))))

    fn = lambda u: {name: f(u) for name, f in gradients.items()}  # noqa: E731 - both in one program
    return Program(fn, args=(numbers(env),), reference=exact)


@probe(source="jax-ml/jax#36422", params={"check_on": {"check": True}})
def remat_of_a_mapped_function(env, check):
    """A `jax.checkpoint` around shard_map can be differentiated with one of two results unused."""

    def shard(u, v):
        return jnp.sin(u) * v, jnp.exp(u)

    fn = map_shards(env, shard, (P("x"), P("x")), (P("x"), P("x")), check=check)
    u, v = numbers(env), numbers(env)[::-1].copy()
    observed = jax.jit(jax.grad(jax.checkpoint(lambda u, v: fn(u, v)[0].sum())))(u, v)
    return Observed(observed, np.cos(np.float64(u)) * v)


@jax.custom_vjp
def tripled(x):
    """Return x; the rule multiplies the cotangent by three."""
    return x


tripled.defvjp(lambda x: (x, None), lambda _, ct: (3 * ct,))


@probe(source="jax-ml/jax#18632", params={"check_on": {"check": True}})
def custom_backward_in_a_scan(env, check):
    """A `custom_vjp` in the body of a scan: its rule is used once for each step."""

    def shard(u):
        step = lambda c, _: (tripled(c) * u, None)  # noqa: E731
        return lax.scan(step, u, None, length=2)[0]

    fn = map_shards(env, shard, check=check)
    u = numbers(env)
    # c0 = u, c1 = t(c0) u, c2 = t(c1) u: d/du = c1 + 3 u (c0 + 3 u)
    return Observed(jax.jit(jax.grad(lambda u: fn(u).sum()))(u), 13 * np.float64(u) ** 2)


@jax.custom_vjp
def scaled(w, x):
    """Return w x; the backward pass computes the local gradient of w, without a sum over shards."""
    return w * x


scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: ((ct * r[1]).sum(), ct * r[0]))


@jax.custom_vjp
def scaled_and_summed(w, x):
    """Return w x; the backward pass itself sums the gradient of w over shards."""
    return w * x


scaled_and_summed.defvjp(
    lambda w, x: (w * x, (w, x)),
    lambda r, ct: (lax.psum((ct * r[1]).sum(), "x"), ct * r[0]),
)


RULE_RETURNS_LOCAL_GRADIENT = deviation(
    "jax>=0.6",
    params=("local",),
    error="_RepError|ValueError",
    reason="by design: the result of the rule varies and the weight does not; sum in the rule",
    issue="jax-ml/jax#19174",
)
GRADIENT_SUMMED_TWICE = deviation(
    params=("summed_check_off",),
    outcome="ok",
    reason="without the check jax sums the gradient that the rule has already summed",
    issue="jax-ml/jax#19174",
)


@probe(
    source="jax-ml/jax#19174",
    params={
        "local": {"rule": "local", "check": True},
        "summed": {"rule": "summed", "check": True},
        "summed_check_off": {"rule": "summed", "check": False},
    },
    deviations=[RULE_RETURNS_LOCAL_GRADIENT, GRADIENT_SUMMED_TWICE],
)
def backward_of_replicated_weight(env, rule, check):
    """Either jax or the rule of a `custom_vjp` sums the gradient of a replicated weight.

    The function is differentiated from outside. A rule with a psum is right with the check, and
    without the check the gradient is summed twice. With the check, jax sums for a rule without a
    psum up to 0.5.3 and refuses it from 0.6.0 on.
    """
    fn = map_shards(
        env, scaled if rule == "local" else scaled_and_summed, (P(), P("x")), check=check
    )
    u = numbers(env)
    observed = jax.jit(jax.grad(lambda w: fn(w, u).sum()))(np.float32(2))
    return Observed(observed, np.float64(u).sum())


REPLICATED_SUM_REFUSED = deviation(
    "jax==0.4.30",
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="a sum of values that are already equal was refused as unnecessary",
    issue="jax-ml/jax#19175",
)


@probe(source="jax-ml/jax#19175", deviations=[REPLICATED_SUM_REFUSED])
def sum_of_a_sum(env):
    """`psum(psum(x))` over the same axis of four shards is four times the sum.

    0.4.30 refused it as unnecessary. From 0.6.0 on the inner sum is made varying and summed again.
    """
    u = numbers(env)
    observed = call_mapped(env, lambda u: lax.psum(lax.psum(u.sum(), "x"), "x"), u, out_specs=P())
    return Observed(observed, SHARDS * np.float64(u).sum())


@jax.custom_jvp
def chosen(x, y):
    """Return x y; the rule checks which tangents are zero."""
    return x * y


def _chosen_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    zero = jax.custom_derivatives.SymbolicZero
    moved = [d * f for d, f in ((dx, y), (dy, x)) if type(d) is not zero]
    return x * y, 10 * sum(moved)


chosen.defjvp(_chosen_jvp, symbolic_zeros=True)


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@probe(source="jax-ml/jax#26763", deviations=[REPLICATED_COTANGENT])
def symbolic_zeros_of_a_rule(env):
    """A `custom_jvp` with symbolic zeros in a scan, differentiated by one argument of two."""

    def shard(u, v):
        loss = lambda u: lax.scan(lambda c, _: (chosen(c, v), None), u, None, length=2)[0].sum()  # noqa: E731
        return jax.grad(loss)(u)

    u, v = numbers(env), numbers(env)[::-1].copy()
    observed = call_mapped(env, shard, u, v, in_specs=(P("x"), P("x")))
    return Observed(observed, 100 * np.float64(v) ** 2)


NO_RULE_FOR_LINEAR_SOLVE = deviation(
    "jax==0.4.30",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for custom_linear_solve",
    reason="the replication check had no rule for custom_linear_solve; switch it off in 0.4.30",
    issue="jax-ml/jax#20162",
)


@program(
    source="jax-ml/jax#20162",
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[NO_RULE_FOR_LINEAR_SOLVE],
)
def distributed_solution(env, check):
    """`custom_linear_solve` solves (I + 1 1') x = b with a psum in the product.

    The solver is a closed form. The gradient by b solves once more, with the transposed product.
    """

    def shard(b):
        total = lambda y: lax.psum(y.sum(), "x")  # noqa: E731
        solve = lambda _, b: b - total(b) / (1 + SHARDS * 4)  # noqa: E731
        return lax.custom_linear_solve(lambda y: y + total(y), b, solve, symmetric=True)

    fn = map_shards(env, shard, check=check)

    def gradient(b):
        return jax.grad(lambda b: (fn(b) ** 2).sum())(b)

    def exact(b):
        inverse = np.linalg.inv(np.eye(16) + np.ones((16, 16)))
        return 2 * inverse @ inverse @ np.float64(b)

    return Program(gradient, args=(numbers(env),), reference=exact)


ONES_LIKE_FORGETS_AXES = deviation(
    "jax>=0.6,<0.7",
    params=("check_on",),
    error="ValueError",
    match="linearized function called on tangent values inconsistent",
    reason="ones_like forgets the axes over which its argument varies",
    issue="jax-ml/jax#29965",
)


@probe(
    source="jax-ml/jax#29965",
    params={"check_on": {"check": True}},
    deviations=[ONES_LIKE_FORGETS_AXES],
)
def implicit_root(env, check):
    """`custom_root` gives the square roots of each shard and their derivative."""

    def root(u):
        newton = lambda f, y: lax.fori_loop(0, 12, lambda _, y: y - f(y) / (2 * y), y)  # noqa: E731
        return lax.custom_root(lambda y: y * y - u, u, newton, lambda g, y: y / g(jnp.ones_like(y)))

    u = numbers(env)
    fn = map_shards(
        env,
        lambda u: jax.jvp(root, (u,), (jnp.ones_like(u),)),
        out_specs=(P("x"), P("x")),
        check=check,
    )
    exact = np.sqrt(np.float64(u))
    return Observed(jax.jit(fn)(u), (exact, 0.5 / exact))


COTANGENT_OF_INTEGERS_DIVIDED = deviation(
    "jax>=0.4.34,<0.4.36",
    error="TypeError",
    match="true_divide with a float0 array",
    reason="the cotangent of integers, which is no number, was divided by the number of shards",
    issue="jax-ml/jax@9500bd451a20",
)


@jax.custom_vjp
def _keep(u, _):
    return u


_keep.defvjp(
    lambda u, n: (u, np.zeros(n.shape, jax.dtypes.float0)),
    lambda no_tangent, g: (g, no_tangent),
)


@jax.custom_vjp
def _keep_both(u, n):
    return u, n


_keep_both.defvjp(
    lambda u, n: jax.vjp(lambda u, n: (u, n), u, n),
    lambda back, cotangents: back(cotangents),
)


@probe(
    source="jax-ml/jax@9500bd451a20",
    platforms=("cpu",),
    deviations=[COTANGENT_OF_INTEGERS_DIVIDED],
)
def integers_through_a_map_in_a_scan(env):
    """With the check off, integers pass a shard_map in a scan that is differentiated.

    In 0.4.34 and 0.4.35 it was a TypeError about float0.
    """
    fn = map_shards(env, _keep_both, (P("x"), P("x")), (P("x"), P()), check=False)

    def loss(u, n):
        u, n = lax.map(lambda row: fn(*row), (u, n))
        return lax.map(lambda row: _keep(*row), (u, n)).sum()

    u, n = np.ones((4, 8), np.float32), np.ones((4, 8), np.int32)
    gradient = jax.jit(jax.grad(loss))
    slopes = jax.jit(jax.grad(loss, argnums=(0, 1), allow_int=True))(u, n)[0]
    return Observed(
        {"both": slopes, "floats": gradient(u, n)}, dict.fromkeys(["both", "floats"], u)
    )
