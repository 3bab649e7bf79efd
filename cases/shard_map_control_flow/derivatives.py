"""Remat, custom derivatives and custom solves under shard_map, in loops and around them.

Rules that a user writes are run at other variances than those they were written at. What a
backward pass returns must fit the primal; what it sums itself may be summed again.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import SHARDS, P, called, mapped, numbers


@program(source="jax-ml/jax#18752", devices=4)
def remat_in_a_scan(env):
    """A scan of a rematerialised step with a mean over shards inside, differentiated outside.

    The step is run again in the backward loop, its all-reduce with it, check or no check.
    """

    @jax.checkpoint
    def step(c):
        return c * jnp.sin(lax.pmean(c.mean(), "x"))

    def gradient(check):
        twice = lambda u: lax.scan(lambda c, _: (step(c), None), u, None, length=2)[0]  # noqa: E731
        fn = mapped(env, twice, check=check)
        return jax.grad(lambda u: fn(u).sum())

    ways = {"check_on": gradient(check=True), "check_off": gradient(check=False)}

    def exact(u):
        # the sum after two steps is n g(g(m)) with g(m) = m sin(m), m the mean
        m = np.float64(u).mean()
        slope = lambda m: np.sin(m) + m * np.cos(m)  # noqa: E731
        return dict.fromkeys(ways, np.full(len(u), slope(m) * slope(m * np.sin(m))))

    fn = lambda u: {name: way(u) for name, way in ways.items()}  # noqa: E731 - both in a program
    return Program(fn, args=(numbers(env),), reference=exact)


@probe(
    source="jax-ml/jax#36422",
    devices=4,
    params={"check_on": {"check": True}},
)
def remat_of_a_mapped_function(env, check):
    """`jax.checkpoint` around shard_map with one of two results unused, differentiated."""

    def shard(u, v):
        return jnp.sin(u) * v, jnp.exp(u)

    fn = mapped(env, shard, (P("x"), P("x")), (P("x"), P("x")), check=check)
    u, v = numbers(env), numbers(env)[::-1].copy()
    seen = jax.jit(jax.grad(jax.checkpoint(lambda u, v: fn(u, v)[0].sum())))(u, v)
    return Observed(seen, np.cos(np.float64(u)) * v)


@jax.custom_vjp
def tripled(x):
    """Return x; its rule says that the cotangent is three times what comes in."""
    return x


tripled.defvjp(lambda x: (x, None), lambda _, ct: (3 * ct,))


@probe(
    source="jax-ml/jax#18632",
    devices=4,
    params={"check_on": {"check": True}},
)
def custom_backward_in_a_scan(env, check):
    """A `custom_vjp` in the body of a scan: its rule is used, once for each step."""

    def shard(u):
        step = lambda c, _: (tripled(c) * u, None)  # noqa: E731
        return lax.scan(step, u, None, length=2)[0]

    fn = mapped(env, shard, check=check)
    u = numbers(env)
    # c0 = u, c1 = t(c0) u, c2 = t(c1) u: d/du = c1 + 3 u (c0 + 3 u)
    return Observed(jax.jit(jax.grad(lambda u: fn(u).sum()))(u), 13 * np.float64(u) ** 2)


@jax.custom_vjp
def scaled(w, x):
    """Return w x; its backward pass makes the local gradient of w, and no sum."""
    return w * x


scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda r, ct: ((ct * r[1]).sum(), ct * r[0]))


@jax.custom_vjp
def scaled_and_summed(w, x):
    """Return w x; its backward pass sums the gradient of w over shards by itself."""
    return w * x


scaled_and_summed.defvjp(
    lambda w, x: (w * x, (w, x)),
    lambda r, ct: (lax.psum((ct * r[1]).sum(), "x"), ct * r[0]),
)


@probe(
    source="jax-ml/jax#19174",
    devices=4,
    params={
        "local": {"rule": "local", "check": True},
        "summed": {"rule": "summed", "check": True},
        "summed_check_off": {"rule": "summed", "check": False},
    },
    deviations=[
        deviation(
            "jax>=0.6",
            params=("local",),
            error="_RepError|ValueError",
            reason="by design: what the rule returns varies, the weight does not; sum in the rule",
            issue="jax-ml/jax#19174",
        ),
        deviation(
            params=("summed_check_off",),
            outcome="ok",
            reason="without the check jax sums what the rule has summed",
            issue="jax-ml/jax#19174",
        ),
    ],
)
def backward_of_replicated_weight(env, rule, check):
    """Who sums the gradient of a replicated weight of a `custom_vjp`: the rule, or jax?

    Differentiated from outside, where jax always sums. A rule with its own psum counts double
    without the check; with it, it is refused or right, by release.
    """
    fn = mapped(env, scaled if rule == "local" else scaled_and_summed, (P(), P("x")), check=check)
    u = numbers(env)
    seen = jax.jit(jax.grad(lambda w: fn(w, u).sum()))(np.float32(2))
    return Observed(seen, np.float64(u).sum())


@probe(
    source="jax-ml/jax#19175",
    devices=4,
    deviations=[
        deviation(
            "jax==0.4.30",
            error="Exception",
            match="must be applied to a device-varying replication type",
            reason="a sum of what is equal already was refused as unnecessary",
            issue="jax-ml/jax#19175",
        )
    ],
)
def sum_of_a_sum(env):
    """`psum(psum(x))` over the same axis: four times the sum, as the words say.

    Refused by 0.4.30 as unnecessary; from 0.6.0 on the inner sum is made varying and summed again.
    """
    u = numbers(env)
    seen = called(env, lambda u: lax.psum(lax.psum(u.sum(), "x"), "x"), u, out_specs=P())
    return Observed(seen, SHARDS * np.float64(u).sum())


@jax.custom_jvp
def chosen(x, y):
    """Return x y; its rule looks which tangents are zero."""
    return x * y


def _chosen_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    zero = jax.custom_derivatives.SymbolicZero
    moved = [d * f for d, f in ((dx, y), (dy, x)) if type(d) is not zero]
    return x * y, 10 * sum(moved)


chosen.defjvp(_chosen_jvp, symbolic_zeros=True)


@probe(
    source="jax-ml/jax#26763",
    devices=4,
    deviations=[
        deviation(
            "jax==0.6.0",
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        )
    ],
)
def symbolic_zeros_of_a_rule(env):
    """A `custom_jvp` with symbolic zeros in a scan, differentiated by one argument of two."""

    def shard(u, v):
        loss = lambda u: lax.scan(lambda c, _: (chosen(c, v), None), u, None, length=2)[0].sum()  # noqa: E731
        return jax.grad(loss)(u)

    u, v = numbers(env), numbers(env)[::-1].copy()
    seen = called(env, shard, u, v, in_specs=(P("x"), P("x")))
    return Observed(seen, 100 * np.float64(v) ** 2)


@program(
    source="jax-ml/jax#20162",
    devices=4,
    params={"check_on": {"check": True}},
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.4.30",
            params=("check_on",),
            error="NotImplementedError",
            match="No replication rule for custom_linear_solve",
            reason="the replication check knew no custom_linear_solve; switch it off there",
            issue="jax-ml/jax#20162",
        )
    ],
)
def distributed_solution(env, check):
    """(I + 1 1') x = b by `custom_linear_solve`: the product has a psum, the solver a closed form.

    Its gradient by b solves once more, with the transposed product.
    """

    def shard(b):
        total = lambda y: lax.psum(y.sum(), "x")  # noqa: E731
        solve = lambda _, b: b - total(b) / (1 + SHARDS * 4)  # noqa: E731
        return lax.custom_linear_solve(lambda y: y + total(y), b, solve, symmetric=True)

    fn = mapped(env, shard, check=check)

    def gradient(b):
        return jax.grad(lambda b: (fn(b) ** 2).sum())(b)

    def exact(b):
        inverse = np.linalg.inv(np.eye(16) + np.ones((16, 16)))
        return 2 * inverse @ inverse @ np.float64(b)

    return Program(gradient, args=(numbers(env),), reference=exact)


@probe(
    source="jax-ml/jax#29965",
    devices=4,
    params={"check_on": {"check": True}},
    deviations=[
        deviation(
            "jax>=0.6,<0.7",
            params=("check_on",),
            error="ValueError",
            match="linearized function called on tangent values inconsistent",
            reason="ones_like did not take over what its argument varies over",
            issue="jax-ml/jax#29965",
        )
    ],
)
def implicit_root(env, check):
    """Square roots of each shard by `custom_root`, and their derivative."""

    def root(u):
        newton = lambda f, y: lax.fori_loop(0, 12, lambda _, y: y - f(y) / (2 * y), y)  # noqa: E731
        return lax.custom_root(lambda y: y * y - u, u, newton, lambda g, y: y / g(jnp.ones_like(y)))

    u = numbers(env)
    fn = mapped(
        env,
        lambda u: jax.jvp(root, (u,), (jnp.ones_like(u),)),
        out_specs=(P("x"), P("x")),
        check=check,
    )
    exact = np.sqrt(np.float64(u))
    return Observed(jax.jit(fn)(u), (exact, 0.5 / exact))
