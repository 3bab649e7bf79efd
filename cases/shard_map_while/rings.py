"""Data that circulate in a ring of devices inside a loop: the basis of a collective matmul.

A device computes with the block that it holds while the block of its neighbour is in transit.
Compiled for a TPU or a GPU, the transfer is started, work is done, and only then is the transfer
awaited; only the compiled code shows whether this is so. Facts count a start and its done as one
operation, so `overlap` reads the code itself.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from conformance.kit import Observed, Program, defaults, probe, program

from ._helpers import SHARDS, P

defaults(devices=4)

RING = [(i, (i + 1) % SHARDS) for i in range(SHARDS)]
TRANSFER_START = re.compile(r"%(\S+) = .* collective-permute-start\(")
WORK = re.compile(r" (?:convolution|dot|fusion|custom-call)\(")


def ring_matmul(x, w):
    """Return the rows of `x @ w` of a shard, given its rows of both; `w` circulates in the ring."""
    rows = w.shape[0]
    shard = lax.axis_index("x")

    def step(i, carry):
        total, block = carry
        next_block = lax.ppermute(block, "x", RING)
        owner = (shard - i) % SHARDS
        part = lax.dynamic_slice_in_dim(x, owner * rows, rows, 1)
        return total + part @ block, next_block

    # zeros that vary over the ring, as the products added to them do
    start = x[:, :1] * 0 + jnp.zeros((1, w.shape[1]), x.dtype)
    return lax.fori_loop(0, SHARDS, step, (start, w))[0]


def _matrices(env, n):
    return env.rng(5).standard_normal((2, n, n)).astype(np.float32)


def _map_by_rows(env, fn, n):
    """Return a function mapped over shards by rows, and two matrices to call it with."""
    mesh = env.mesh(SHARDS, "x")
    mapped_fn = env.compat.shard_map(fn, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return mapped_fn, [env.put(m, NamedSharding(mesh, P("x"))) for m in _matrices(env, n)]


@program(source="openxla/xla#10640", facts={"collectives": {"collective-permute": 1}})
def collective_matmul(env):
    """A product whose right side is never gathered: each block visits every device once."""
    fn, args = _map_by_rows(env, ring_matmul, 64)
    return Program(fn, args=args, reference=lambda x, w: x.astype(np.float64) @ w)


@probe(source="openxla/xla#10640", platforms=["tpu", "cuda"])
def overlap(env):
    """Work is scheduled between the start and the done of the transfer in the ring.

    The matrices are large enough for this to be worthwhile. A release without work between the two
    still computes the right numbers, later.
    """
    fn, args = _map_by_rows(env, ring_matmul, 2048)
    compiled = jax.jit(fn).trace(*args).lower().compile()
    text = compiled.as_text()
    if text is None:
        env.unsupported("a CUDA executable does not provide its HLO in this cell")
    lines = text.splitlines()
    starts = [
        (n, match[1]) for n, line in enumerate(lines) if (match := TRANSFER_START.search(line))
    ]
    work_counts = []
    for number, name in starts:
        wait = re.compile(rf"collective-permute-done\(.*%{re.escape(name)}\)")
        done = next(n for n, line in enumerate(lines) if wait.search(line))
        work_counts.append(sum(bool(WORK.search(line)) for line in lines[number:done]))
    observed = {"started": bool(starts), "work_between": any(work_counts)}
    return Observed(observed, {"started": True, "work_between": True})


@program(source="jax-ml/jax#27664", facts={"collectives": {"all-to-all": 1}})
def transposed_in_a_loop(env):
    """An all-to-all in the body of a loop transposes a matrix block by block, three times."""

    def shard(x):
        def step(_, y):
            blocks = lax.all_to_all(y, "x", split_axis=1, concat_axis=0, tiled=True)
            return 2 * blocks.T

        return lax.fori_loop(0, 3, step, x)

    mesh = env.mesh(SHARDS, "x")
    mapped_fn = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = _matrices(env, 32)[0]
    return Program(
        mapped_fn,
        args=(env.put(x, NamedSharding(mesh, P("x"))),),
        reference=lambda x: (8 * x.astype(np.float64)).T,
    )
