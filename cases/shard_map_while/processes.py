"""Behaviour that differs, or must not differ, when shards are in several processes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import SHARDS, P

LATE = np.repeat(np.float32([1, 2, 3, 40]), 4)


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    params=["check_on"],
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@program(
    source="jax-ml/jax#38503",
    devices=4,
    platforms=("cpu-mp",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE],
)
def last_shard_decides(env, check):
    """Halving until all shards are small, where those of the first process are small much sooner.

    The condition is summed over all shards, so no process may leave the loop before another: a
    process that stops entering a collective leaves the others waiting for ever, without an error.
    """

    def unfinished(carry):
        return lax.psum((abs(carry[0]).max() > 1).astype(jnp.int32), "x") > 0

    def run(u):
        count = env.compat.pvary(jnp.int32(0), "x") if check else jnp.int32(0)
        u, count = lax.while_loop(unfinished, lambda c: (c[0] / 2, c[1] + 1), (u, count))
        return u, count[None]

    mapped_fn = env.compat.shard_map(
        run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=(P("x"), P("x")), check=check
    )
    return Program(
        mapped_fn, args=(LATE,), reference=lambda u: (u / 64, np.full(SHARDS, 6, np.int32))
    )


NO_RULE_FOR_COND = deviation(
    "jax<0.4.36",
    error="NotImplementedError",
    match="No replication rule for cond",
    params=["check_on"],
    reason="the replication check had no rule for cond; switch it off in these releases",
)


@program(
    source="jax-ml/jax#40823",
    devices=4,
    platforms=("cpu-mp",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_COND],
)
def branch_of_one_process(env, check):
    """A sum within each process, in a branch that only the first process takes.

    All participants of the sum agree on the condition, and no other process is needed. The
    condition may differ between processes.
    """

    def run(u):
        first = lax.axis_index("process") == 0
        return lax.cond(
            first, lambda x: x + env.compat.pvary(lax.psum(x, "x"), "x"), lambda x: x, u
        )

    mapped_fn = env.compat.shard_map(
        run,
        mesh=env.mesh((2, 2), ("process", "x")),
        in_specs=P(("process", "x")),
        out_specs=P(("process", "x")),
        check=check,
    )
    values = np.arange(8, dtype=np.float32)

    def expected(u):
        own = u.reshape(2, 2, 2)
        return np.concatenate([own[0] + own[0].sum(0), own[1]]).ravel()

    return Program(mapped_fn, args=(values,), reference=expected)


@probe(source="jax-ml/jax#28009", devices=4, platforms=("cpu-mp2",))
def batch_of_each_process(env):
    """Each process loads half of a batch; together the halves are one array, with one mean."""
    mesh = env.mesh(SHARDS, "x")
    own = np.arange(8, dtype=np.float32).reshape(4, 2) + 100 * jax.process_index()
    batch = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), own)
    mean = jax.jit(lambda x: x.mean(0), out_shardings=NamedSharding(mesh, P()))(batch)
    whole = np.concatenate([np.arange(8).reshape(4, 2), 100 + np.arange(8).reshape(4, 2)])
    return Observed((batch, mean), reference=(whole.astype(np.float64), whole.mean(0)))


@probe(source="jax-ml/jax#25783", devices=4, platforms=("cpu-mp2",))
def said_by_one_and_by_all(env):
    """A value of one process reaches all processes; values of each process are stacked.

    A gathered NumPy array has an additional axis of processes, unless it is tiled.
    """
    own = np.float32([1, 2]) * (1 + jax.process_index())
    observed = {
        "from the first": multihost_utils.broadcast_one_to_all(own),
        "from the last": multihost_utils.broadcast_one_to_all(
            own, is_source=jax.process_index() == 1
        ),
        "stacked": multihost_utils.process_allgather(own),
        "tiled": multihost_utils.process_allgather(own, tiled=True),
    }
    reference = {
        "from the first": np.float64([1, 2]),
        "from the last": np.float64([2, 4]),
        "stacked": np.float64([[1, 2], [2, 4]]),
        "tiled": np.float64([1, 2, 2, 4]),
    }
    return Observed(
        {name: np.asarray(value) for name, value in observed.items()}, reference=reference
    )


NO_AXIS_OF_PROCESSES = deviation(
    "jax<0.5",
    outcome="ok",
    reason="a single process returned its array without the axis of processes",
    issue="jax-ml/jax#25783",
)


@probe(source="jax-ml/jax#25783", platforms=("cpu",), deviations=[NO_AXIS_OF_PROCESSES])
def gathered_by_the_only_process(env):
    """A single process gathers with an axis of processes, as several do; without it up to 0.4.38.

    Pass `tiled=True` for the shape of a single process on every release.
    """
    own = np.float32([1, 2])
    observed = {
        "stacked": multihost_utils.process_allgather(own),
        "tiled": multihost_utils.process_allgather(own, tiled=True),
    }
    reference = {"stacked": np.float64([[1, 2]]), "tiled": np.float64([1, 2])}
    return Observed(
        {name: np.asarray(value) for name, value in observed.items()}, reference=reference
    )


@probe(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp",),
    params={"call": {"fetch": False}, "fetch": {"fetch": True}},
)
def what_no_process_has_alone(env, fetch):
    """Across processes, a call cannot split NumPy arguments, and results cannot be fetched.

    Both would need data of another process: they are refused, not guessed.
    """
    split = NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    values = np.arange(4, dtype=np.float32)
    try:
        if fetch:
            np.asarray(jax.make_array_from_callback(values.shape, split, lambda i: values[i]))
        else:
            jax.jit(lambda x: x + 1, in_shardings=split)(values)
    except (RuntimeError, ValueError) as error:
        kind = type(error).__name__
    else:
        kind = "accepted"
    return Observed(kind, reference="RuntimeError" if fetch else "ValueError")


PROGRAMS_DIFFER_SILENTLY = deviation(
    error="RanksDiffer",
    match="jaxpr",
    reason="each process traces a different program: accepted silently",
)


@program(
    source="jax-ml/jax#28009",
    devices=4,
    platforms=("cpu-mp",),
    deviations=[PROGRAMS_DIFFER_SILENTLY],
)
def program_of_each_process(env):
    """A traced function that reads `jax.process_index()`: each process compiles another program.

    All processes must run the same program. The difference is not refused, and without a collective
    each process computes a different result.
    """
    mesh = env.mesh(SHARDS, "x")
    mapped_fn = env.compat.shard_map(
        lambda u: u + jax.process_index(), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    return Program(
        mapped_fn, args=(np.zeros(8, np.float32),), reference=raises("ValueError|TypeError")
    )
