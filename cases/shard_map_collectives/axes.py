"""Names of axes: their numbers, their sizes, and the errors for unknown names.

The type of the error for an unknown name changed three times: catch none of them by name.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import RING, map_shards, numbers, square_mesh


@program(source="jax-ml/jax#24721", devices=4, facts={"collectives": {}})
def row_major_numbers(env):
    """`axis_index` of one or several axes is row-major in the order of the names; no message."""

    def body(x):
        names = ("a", "b", ("a", "b"), ("b", "a"))
        return sum(10**n * (lax.axis_index(name) + 1) for n, name in enumerate(names)) + x

    def exact(x):
        a, b = np.divmod(np.arange(4), 2)
        numbered = [a, b, 2 * a + b, 2 * b + a]
        return x + sum(10**n * (number + 1) for n, number in enumerate(numbered)).astype(np.int32)

    both = P(("a", "b"))
    fn = map_shards(env, body, both, both, mesh=square_mesh(env))
    return Program(fn, args=(np.zeros(4, np.int32),), reference=exact)


@probe(source="jax-ml/jax@c576d328bd1e", devices=4, releases="jax>=0.6.1")
def size_of_axes(env):
    """`lax.axis_size` is a Python integer: the product over several names, 1 for no name."""
    observed = {}

    def body(x):
        names = {"one": "a", "both": ("a", "b"), "none": ()}
        observed.update({key: lax.axis_size(name) for key, name in names.items()})
        return x

    both = P(("a", "b"))
    jax.jit(map_shards(env, body, both, both, mesh=square_mesh(env)))(numbers(env, 4))
    return Observed(observed, reference={"one": 2, "both": 4, "none": 1})


OF_UNKNOWN = {
    "psum": lambda x: lax.psum(x, "z"),
    "all_gather": lambda x: lax.all_gather(x, "z"),
    "ppermute": lambda x: lax.ppermute(x, "z", RING),
    "all_to_all": lambda x: lax.all_to_all(x, "z", 0, 0),
    "axis_index": lambda x: x + lax.axis_index("z"),
}


KEY_ERROR_FROM_THE_CHECK = deviation(
    "jax>=0.6,<0.8.2",
    params=["psum", "ppermute"],
    outcome="ok",
    reason="a KeyError: the check looked up the axis before the collective did",
)
ASSERTION_WITHOUT_MESSAGE = deviation(
    "jax>=0.8.2",
    params=["psum", "ppermute"],
    outcome="ok",
    reason="an AssertionError without a message",
)


@probe(
    source="jax-ml/jax#3120",
    devices=4,
    params={
        "psum": {"op": "psum"},
        "psum_unchecked": {"op": "psum", "check": False},
        "all_gather": {"op": "all_gather"},
        "ppermute": {"op": "ppermute"},
        "axis_index": {"op": "axis_index"},
    },
    deviations=[KEY_ERROR_FROM_THE_CHECK, ASSERTION_WITHOUT_MESSAGE],
)
def name_that_is_not_there(env, op, check=True):
    """A collective over an axis that the mesh lacks raises an error that should name the axis."""
    fn = map_shards(env, OF_UNKNOWN[op], P("x"), P("x"), check=check)
    outcome = ending(jax.jit(fn), numbers(env, 16), words=("unbound axis name: z", "'z'"))
    return Observed(outcome, reference="NameError: unbound axis name: z")


ENDED_BY_THE_COMPILER = deviation(
    "jax>=0.11",
    outcome="crashed",
    reason="the compiler ends the process (SIGABRT)",
)


@probe(
    source="jax-ml/jax@baf24496d1fa",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[ENDED_BY_THE_COMPILER],
)
def axis_given_twice(env, check):
    """`psum` over the same axis twice, as in `psum(x, ("x", "x"))`, is a ValueError."""
    fn = map_shards(env, lambda x: lax.psum(x, ("x", "x")), P("x"), P(), check=check)
    outcome = ending(jax.jit(fn), numbers(env, 16), words=("repeated axis",))
    return Observed(outcome, reference="ValueError: repeated axis")


NO_HINT_YET = deviation(
    "jax<0.7",
    params=["psum", "axis_index"],
    outcome="ok",
    reason="the message states only that the name is not bound",
    issue="jax-ml/jax@ae7924995a33",
)
NO_HINT_FOR_EXCHANGES = deviation(
    params=["all_gather", "all_to_all"],
    outcome="ok",
    reason="the message states only that the name is not bound: not all collectives have the hint",
)


@probe(
    source="jax-ml/jax#28666",
    params={
        "psum": {"op": "psum"},
        "all_gather": {"op": "all_gather"},
        "all_to_all": {"op": "all_to_all"},
        "axis_index": {"op": "axis_index"},
    },
    deviations=[NO_HINT_YET, NO_HINT_FOR_EXCHANGES],
)
def outside_of_a_map(env, op):
    """A collective in plain jit is refused; few messages mention the missing `shard_map`."""
    words = ("under `jax.shard_map`", "unbound axis name: z")
    outcome = ending(jax.jit(OF_UNKNOWN[op]), numbers(env, 16), words=words)
    return Observed(outcome, reference="NameError: under `jax.shard_map`")


ACCEPTED_SILENTLY = deviation(
    "jax>=0.4.36,<0.9.1", outcome="ok", reason="accepted silently", issue="jax-ml/jax#34801"
)


@probe(
    source="jax-ml/jax#34801",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[ACCEPTED_SILENTLY],
)
def marked_outside_of_a_map(env, jit):
    """`pvary` outside of any map has no meaning: an error, or silently its argument."""

    def mark(x):
        return env.compat.pvary(x, "x")

    known = ("unbound axis name", "`pcast`", "shard_map", "'x'")
    outcome = ending(jax.jit(mark) if jit else mark, numbers(env, 4), words=known)
    return Observed(outcome != "accepted", reference=True)


ALL_AXES_MANUAL_WITHOUT_JIT = deviation(
    "jax<0.7",
    error="NotImplementedError",
    reason="without jit all axes had to be manual",
    issue="jax-ml/jax@d05aad755210",
)
SPREAD_OVER_AUTOMATIC_AXIS = deviation(
    "jax>=0.7,<0.8",
    error="ValueError",
    match="in_specs refers to 'b'",
    reason="shard_map took a result to be spread over the automatic axis as well",
    issue="jax-ml/jax@d05aad755210",
)


@probe(
    source="jax-ml/jax@d05aad755210",
    devices=4,
    platforms=("cpu",),
    deviations=[ALL_AXES_MANUAL_WITHOUT_JIT, SPREAD_OVER_AUTOMATIC_AXIS],
)
def numbers_of_a_manual_axis(env):
    """`axis_index` of one manual axis of two runs without jit and unchecked since 0.8.0."""
    body = lambda: lax.axis_index("a").reshape(1)  # noqa: E731 - short
    f = map_shards(env, body, (), P("a"), check=False, mesh=square_mesh(env), manual={"a"})
    return Observed(f(), np.arange(2, dtype=np.int32))


ANOTHER_RANK = deviation(
    "jax<0.8.1",
    outcome="ok",
    reason="a dimension of length 1 was added, or removed",
    issue="jax-ml/jax@6ac65f348b2d",
)


@probe(source="jax-ml/jax@6ac65f348b2d", devices=4, deviations=[ANOTHER_RANK])
def collectives_over_no_axis(env):
    """`all_gather(x, ())` and `psum_scatter(x, ())` return x; up to 0.8.0, with another rank."""
    shapes = {}

    def body(x):
        shapes["all_gather"] = lax.all_gather(x, ()).shape
        shapes["psum_scatter"] = lax.psum_scatter(x[None], ()).shape
        return x

    jax.jit(map_shards(env, body, P("x"), P("x"), check=False))(np.zeros(8, np.float32))
    return Observed(shapes, {"all_gather": (2,), "psum_scatter": (1, 2)})
