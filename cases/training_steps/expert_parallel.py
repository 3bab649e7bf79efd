"""Experts on several devices: tokens travel by `all_to_all` in shard_map, or as jit decides."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, program

from . import _tape as tape
from ._helpers import draw, exact_mixture

defaults(devices=4)

ROWS, WIDTH, HIDDEN, EXPERTS = 8, 4, 6, 4
CHECKS = {"check_on": {"check": True}, "check_off": {"check": False}}


def _operands(env):
    """Return tokens, a router, the weights of experts, and a cotangent."""
    shapes = [(ROWS, WIDTH), (WIDTH, EXPERTS), (EXPERTS, WIDTH, HIDDEN), (ROWS, HIDDEN)]
    return [draw(env, *shape, seed=i) for i, shape in enumerate(shapes)]


def _send_and_return(x, router, w):
    """Return the top-1 mixture of one shard; experts are on the axis, tokens travel to them."""
    gates = jnp.exp(x @ router)  # not nn.softmax: 0.4.31 and before call oneDNN on some hosts
    gates = gates / gates.sum(axis=-1, keepdims=True)
    weight, chosen = lax.top_k(gates, 1)
    send = jax.nn.one_hot(chosen[:, 0], EXPERTS).T[:, :, None] * x  # expert, slot, width
    received = lax.all_to_all(send, "x", 0, 0)
    out = jnp.tanh(jnp.einsum("slk,kn->sln", received, w[0]))
    return lax.all_to_all(out, "x", 0, 0).sum(0) * weight


@program(source="jax-ml/jax#15982", facts={"collectives": {"all-to-all": 2}})
def expert_parallel(env):
    """Tokens go to the devices of their experts and back: two exchanges in the forward pass."""
    x, router, w, _ = _operands(env)
    fn = env.compat.shard_map(
        _send_and_return,
        mesh=env.mesh(4, "x"),
        in_specs=(P("x"), P(), P("x")),
        out_specs=P("x"),
    )
    exact = lambda *a: tape.vjp(exact_mixture(1), *a)[0]  # noqa: E731 - short
    return Program(fn, args=(x, router, w), reference=exact)


@program(
    source="jax-ml/jax#15982",
    params=CHECKS,
    facts={"collectives": {"all-to-all": 3, "all-reduce": 1}},
)
def expert_parallel_gradient(env, check):
    """The gradients of experts stay on their devices; that of the router is summed."""
    x, router, w, cotangent = _operands(env)
    mapped = env.compat.shard_map(
        _send_and_return,
        mesh=env.mesh(4, "x"),
        in_specs=(P("x"), P(), P("x")),
        out_specs=P("x"),
        check=check,
    )
    fn = jax.grad(lambda router, w, x: (mapped(x, router, w) * cotangent).sum(), (0, 1))
    exact = lambda r, w, x: tape.vjp(exact_mixture(1), x, r, w, cotangent=cotangent)[1][1:]  # noqa: E731 - short
    return Program(fn, args=(router, w, x), reference=exact)
