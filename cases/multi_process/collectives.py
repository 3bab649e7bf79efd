"""Sums, exchanges and gradients that communicate between processes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import (
    SHARDS,
    draw_integers,
    make_split_sharding,
    make_spread_array,
    map_over_devices,
)

defaults(devices=4, platforms=("cpu-mp2",))

RING = [(i, (i + 1) % SHARDS) for i in range(SHARDS)]


@probe(
    source="jax-ml/jax#28009",
    params={
        "psum": {"op": "psum"},
        "pmax": {"op": "pmax"},
        "all_gather": {"op": "all_gather"},
        "psum_scatter": {"op": "psum_scatter"},
        "ppermute": {"op": "ppermute"},
        "all_to_all": {"op": "all_to_all"},
    },
)
def over_all_devices(env, op):
    """Each collective runs over four devices, two of which are in another process."""
    whole = draw_integers(env, 16)

    def body(x):
        return {
            "psum": lambda: lax.psum(x, "x"),
            "pmax": lambda: lax.pmax(x, "x"),
            "all_gather": lambda: lax.all_gather(x, "x", tiled=True),
            "psum_scatter": lambda: lax.psum_scatter(x, "x", tiled=True),
            "ppermute": lambda: lax.ppermute(x, "x", RING),
            "all_to_all": lambda: lax.all_to_all(x, "x", 0, 0, tiled=True),
        }[op]()

    parts = whole.astype(np.float64).reshape(SHARDS, -1)
    reference = {
        "psum": lambda: np.tile(parts.sum(0), SHARDS),
        "pmax": lambda: np.tile(parts.max(0), SHARDS),
        "all_gather": lambda: np.tile(parts.ravel(), SHARDS),
        "psum_scatter": lambda: parts.sum(0),
        "ppermute": lambda: np.roll(parts, 1, axis=0).ravel(),
        "all_to_all": parts.T.ravel,
    }[op]()
    fn = jax.jit(map_over_devices(env, body, P("x"), P("x"), check=False))
    return Observed(fn(make_spread_array(env, whole)), reference=reference)


@program(source="jax-ml/jax#2382", facts={"collectives": {"all-reduce": 2}})
def within_and_between(env):
    """A sum within each process is followed by a sum of each device with its counterpart."""

    def body(x):
        return lax.psum(lax.psum(x, "x") ** 2, "process")

    mesh = env.mesh((2, 2), ("process", "x"))
    fn = map_over_devices(env, body, P(("process", "x")), P(), mesh=mesh)

    def exact(x):
        return (x.astype(np.float64).reshape(2, 2, 2).sum(1) ** 2).sum(0)

    return Program(fn, args=(draw_integers(env, 8),), reference=exact)


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    params=["mapped"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@program(
    source="jax-ml/jax#36886",
    params={"mapped": {"manual": True}, "by_the_compiler": {"manual": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[REPLICATED_COTANGENT],
)
def step_of_data_parallel_training(env, manual):
    """A gradient step over rows of both processes gives every process the same parameters."""

    def step(w, x):
        weights = env.compat.pvary(w, "x") if manual else w
        gradient = jax.grad(lambda w: jnp.mean((x @ w) ** 2))(weights)
        return w - 0.01 * (lax.pmean(gradient, "x") if manual else gradient)

    same = NamedSharding(env.mesh(SHARDS, "x"), P())
    fn = map_over_devices(env, step, (P(), P("x")), P()) if manual else step
    x, w = draw_integers(env, 8, 3), draw_integers(env, 3, seed=1)

    def exact(w, x):
        w, x = w.astype(np.float64), x.astype(np.float64)
        return w - 0.02 * x.T @ (x @ w) / len(x)

    return Program(
        fn,
        args=(env.put(w, same), env.put(x, make_split_sharding(env))),
        jit={"out_shardings": same},
        reference=exact,
    )


COTANGENTS_ADD_UP = deviation(
    "jax<0.6",
    params=["check_on"],
    outcome="ok",
    reason="psum is transposed to psum, so the cotangents of all four devices add up",
    issue="jax-ml/jax#3970",
)
PSUM_IS_ITS_TRANSPOSE = deviation(
    params=["check_off"],
    outcome="ok",
    reason="without the types, psum is transposed to psum on every release",
    issue="jax-ml/jax#3970",
)


@probe(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[COTANGENTS_ADD_UP, PSUM_IS_ITS_TRANSPOSE],
)
def gradient_of_a_sum(env, check):
    """A gradient is taken, inside the map, of a loss that is summed over both processes."""
    whole = draw_integers(env, 8)

    def body(x):
        return jax.grad(lambda x: lax.psum((x**2).sum(), "x"))(x)

    fn = jax.jit(map_over_devices(env, body, P("x"), P("x"), check=check))
    return Observed(fn(make_spread_array(env, whole)), reference=2 * whole.astype(np.float64))


@probe(
    source="jax-ml/jax#28009",
    params={"rows_to_columns": {"to": "columns"}, "to_all": {"to": "all"}, "back": {"to": "rows"}},
)
def laid_out_anew(env, to):
    """An array resharded over both processes keeps its numbers: by columns, whole, by rows."""
    whole = draw_integers(env, 4, 4)
    spec = {"columns": P(None, "x"), "all": P(), "rows": P("x")}[to]
    start = NamedSharding(env.mesh(SHARDS, "x"), P(None, "x") if to == "rows" else P("x"))
    target = NamedSharding(env.mesh(SHARDS, "x"), spec)
    array = jax.jit(lambda x: 2 * x, out_shardings=target)(make_spread_array(env, whole, start))
    local = array.addressable_data(0).shape
    expected = {"columns": (4, 1), "all": (4, 4), "rows": (1, 4)}[to]
    return Observed((array, local), reference=(2 * whole.astype(np.float64), expected))


@probe(source="jax-ml/jax#28009")
def random_numbers_of_both(env):
    """Both processes together draw the same random numbers as a single process."""
    key = jax.random.PRNGKey(7)
    alone = np.asarray(jax.jit(lambda k: jax.random.normal(k, (8,)))(key))
    both = jax.jit(
        lambda: jax.random.normal(jax.random.PRNGKey(7), (8,)),
        out_shardings=make_split_sharding(env),
    )
    return Observed(both(), reference=alone.astype(np.float64))


@probe(source="jax-ml/jax#40830")
def sums_scattered_by_the_megabyte(env):
    """`psum_scatter` of 4 MiB a device, ten times: right on releases, not in a nightly of 0.12."""
    mesh, size = env.mesh((2, 2), ("a", "b")), 2**20
    whole, spec = draw_integers(env, 4 * 2 * size), P(("a", "b"))
    f = jax.jit(
        map_over_devices(env, lambda x: lax.psum_scatter(x, "b", tiled=True), spec, spec, mesh=mesh)
    )
    placed = make_spread_array(env, whole, NamedSharding(mesh, spec))
    parts = whole.reshape(2, 2, 2 * size).sum(1).ravel()
    wrong = [
        sum(int((np.asarray(s.data) != parts[s.index]).sum()) for s in f(placed).addressable_shards)
        for _ in range(10)
    ]
    return Observed(wrong, [0] * 10)
