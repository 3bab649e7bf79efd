"""`ragged_all_to_all` and `ragged_dot_general`: rows of unequal numbers between shards and groups.

The compiler for a CPU has no ragged all-to-all. The StableHLO for a TPU, and the shapes, can be
checked on every host.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats, outcome

defaults(platforms=("cpu",), releases="jax>=0.5.1")


def exchange(rows, out, *slices):
    """Send slices of rows to each shard."""
    return lax.ragged_all_to_all(rows, out, *slices, axis_name="x")


def make_exchange(env):
    """Return a function of two shards that each send one row to the first and two to the second."""
    specs = {"mesh": env.mesh(2, "x"), "in_specs": P("x"), "out_specs": P("x"), "check": False}
    return env.compat.shard_map(exchange, **specs)


def arguments():
    """Return three rows of each shard, space for the result, and the slices."""
    rows = np.arange(6, dtype=np.float32)
    starts = np.int32([0, 1, 0, 1])
    sizes = np.int32([1, 2, 1, 2])
    positions = np.int32([0, 0, 1, 2])
    received = np.int32([1, 1, 2, 2])
    return rows, np.zeros(8, np.float32), starts, sizes, positions, received


NOT_COMPILED_FOR_A_CPU = deviation(
    outcome="ok",
    match="UNIMPLEMENTED",
    reason="the compiler for a CPU has no ragged all-to-all",
    issue="jax-ml/jax@19c17bb28b6d",
)


@probe(source="jax-ml/jax@12c30578b2da", devices=2, deviations=[NOT_COMPILED_FOR_A_CPU])
def ragged_all_to_all(env):
    """`ragged_all_to_all` cannot be compiled for a CPU; the error states so."""
    f = jax.jit(make_exchange(env))
    return Observed(outcome(lambda: f(*arguments()), "UNIMPLEMENTED", "ragged-all-to-all"), "ran")


@probe(
    source="jax-ml/jax@12c30578b2da", devices=2, records="how the operation is written in StableHLO"
)
def lowered_for_a_tpu(env):
    """`ragged_all_to_all` is a custom call in the StableHLO for a TPU."""
    traced = jax.jit(make_exchange(env)).trace(*arguments())
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    return {
        "calls": text.count("stablehlo.custom_call @ragged_all_to_all"),
        "groups": "replica_groups = dense<[[0, 1]]>" in text,
    }


@probe(source="jax-ml/jax@12c30578b2da", devices=2)
def ragged_all_to_all_refused(env):
    """Positions of a float dtype are refused."""
    rows, out, starts, *rest = arguments()
    f = jax.jit(make_exchange(env))
    found = outcome(lambda: f(rows, out, starts.astype(np.float32), *rest))
    return Observed(found, "ValueError")


@probe(source="jax-ml/jax@66a6eb299e50", devices=2, releases="jax>=0.6")
def ragged_all_to_all_transposed(env):
    """The gradient of `ragged_all_to_all` sends the cotangents back: a second one in the jaxpr."""
    rows, *rest = arguments()
    f = make_exchange(env)
    text = str(jax.make_jaxpr(jax.grad(lambda rows: f(rows, *rest).sum()))(rows))
    return Observed(text.count("ragged_all_to_all["), 2)


LHS = np.arange(12, dtype=np.float32).reshape(4, 3)
RHS = np.arange(6, dtype=np.float32).reshape(2, 3, 1) - 2
GROUPS = np.int32([1, 3])
EXACT = np.concatenate([LHS[:1] @ RHS[0], LHS[1:] @ RHS[1]])


@probe(source="jax-ml/jax@93dfe05aec36")
def dot_of_groups(env):
    """`ragged_dot` multiplies groups of rows by their matrices; also for fewer rows than given."""
    f = jax.jit(lax.ragged_dot)
    short = np.int32([1, 2])
    observed = {"all": f(LHS, RHS, GROUPS), "fewer": f(LHS, RHS, short)[:3]}
    return Observed(observed, {"all": EXACT, "fewer": EXACT[:3]})


@probe(source="jax-ml/jax@93dfe05aec36")
def gradient_of_groups(env):
    """The gradients of `ragged_dot` for rows and matrices."""

    def loss(lhs, rhs):
        return (lax.ragged_dot(lhs, rhs, GROUPS) * floats(1, 2, 3, 4)[:, None]).sum()

    g, weights = jax.jit(jax.grad(loss, argnums=(0, 1)))(LHS, RHS), floats(1, 2, 3, 4)[:, None]
    rows = np.concatenate([weights[:1] @ RHS[0].T, weights[1:] @ RHS[1].T])
    matrices = np.stack([LHS[:1].T @ weights[:1], LHS[1:].T @ weights[1:]])
    return Observed(g, (rows, matrices))
