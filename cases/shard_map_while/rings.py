"""Data that go round a ring of devices inside a loop: what a collective matmul is made of.

A device computes with the block it holds while the block of its neighbour is under way. Compiled
for a TPU or a GPU the transfer is started, work is done, and only then is it awaited; whether it
is, nothing but the compiled code tells. Facts take a start and its done for one operation, so
that `overlap` looks itself.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from conformance.kit import Observed, Program, probe, program

from ._helpers import SHARDS, P

RING = [(i, (i + 1) % SHARDS) for i in range(SHARDS)]
STARTED = re.compile(r"%(\S+) = .* collective-permute-start\(")
WORK = re.compile(r" (?:convolution|dot|fusion|custom-call)\(")


def ring_matmul(x, w):
    """Return the rows of `x @ w` of a shard, given its rows of both; `w` goes round the ring."""
    rows = w.shape[0]
    mine = lax.axis_index("x")

    def step(i, carry):
        total, block = carry
        following = lax.ppermute(block, "x", RING)
        owner = (mine - i) % SHARDS
        part = lax.dynamic_slice_in_dim(x, owner * rows, rows, 1)
        return total + part @ block, following

    # zeros that vary over the ring, as what is added to them does
    start = x[:, :1] * 0 + jnp.zeros((1, w.shape[1]), x.dtype)
    return lax.fori_loop(0, SHARDS, step, (start, w))[0]


def _matrices(env, n):
    return env.rng(5).standard_normal((2, n, n)).astype(np.float32)


def _mapped(env, fn, n):
    """Return a function of the shards by rows, and two matrices to call it with."""
    mesh = env.mesh(SHARDS, "x")
    mapped = env.compat.shard_map(fn, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return mapped, [env.put(m, NamedSharding(mesh, P("x"))) for m in _matrices(env, n)]


@program(
    source="openxla/xla#10640",
    devices=4,
    facts={"collectives": {"collective-permute": 1}},
)
def collective_matmul(env):
    """A product whose right side is never gathered: each block visits every device once."""
    fn, args = _mapped(env, ring_matmul, 64)
    return Program(fn, args=args, reference=lambda x, w: x.astype(np.float64) @ w)


@probe(source="openxla/xla#10640", devices=4, platforms=["tpu", "cuda"])
def overlap(env):
    """Between the start and the done of the ring's transfer there is work to be done.

    Matrices are large enough for it to be worthwhile. A release in which nothing stands between
    the two still computes the right numbers, later.
    """
    fn, args = _mapped(env, ring_matmul, 2048)
    compiled = jax.jit(fn).trace(*args).lower().compile()
    text = compiled.as_text()
    if text is None:
        env.unsupported("a CUDA executable does not give its HLO here")
    lines = text.splitlines()
    found = [(n, match[1]) for n, line in enumerate(lines) if (match := STARTED.search(line))]
    between = []
    for number, name in found:
        awaited = re.compile(rf"collective-permute-done\(.*%{re.escape(name)}\)")
        done = next(n for n, line in enumerate(lines) if awaited.search(line))
        between.append(sum(bool(WORK.search(line)) for line in lines[number:done]))
    seen = {"started": bool(found), "work_between": any(between)}
    return Observed(seen, {"started": True, "work_between": True})


@program(
    source="jax-ml/jax#27664",
    devices=4,
    facts={"collectives": {"all-to-all": 1}},
)
def transposed_in_a_loop(env):
    """An all-to-all as the body of a loop: a matrix transposed block by block, three times."""

    def shard(x):
        def step(_, y):
            moved = lax.all_to_all(y, "x", split_axis=1, concat_axis=0, tiled=True)
            return 2 * moved.T

        return lax.fori_loop(0, 3, step, x)

    mesh = env.mesh(SHARDS, "x")
    mapped = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = _matrices(env, 32)[0]
    return Program(
        mapped,
        args=(env.put(x, NamedSharding(mesh, P("x"))),),
        reference=lambda x: (8 * x.astype(np.float64)).T,
    )
