"""Names of axes: what they number, how large they are, and what is said of one that is not there.

The type of the error for an unknown name changed three times: catch none of them by name.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import RING, mapped, numbers, square_mesh


@program(source="jax-ml/jax#24721", devices=4, facts={"collectives": {}})
def row_major_numbers(env):
    """`axis_index` of one axis and of several: row-major in the order of the names; no message."""

    def body(x):
        names = ("a", "b", ("a", "b"), ("b", "a"))
        return sum(10**n * (lax.axis_index(name) + 1) for n, name in enumerate(names)) + x

    def exact(x):
        a, b = np.divmod(np.arange(4), 2)
        numbered = [a, b, 2 * a + b, 2 * b + a]
        return x + sum(10**n * (number + 1) for n, number in enumerate(numbered)).astype(np.int32)

    both = P(("a", "b"))
    fn = mapped(env, body, both, both, mesh=square_mesh(env))
    return Program(fn, args=(np.zeros(4, np.int32),), reference=exact)


@probe(source="jax-ml/jax@c576d328bd1e", devices=4, releases="jax>=0.6.1")
def size_of_axes(env):
    """`lax.axis_size` is a Python integer, the product over several names, 1 of none."""
    seen = {}

    def body(x):
        names = {"one": "a", "both": ("a", "b"), "none": ()}
        seen.update({key: lax.axis_size(name) for key, name in names.items()})
        return x

    both = P(("a", "b"))
    jax.jit(mapped(env, body, both, both, mesh=square_mesh(env)))(numbers(env, 4))
    return Observed(seen, reference={"one": 2, "both": 4, "none": 1})


OF_UNKNOWN = {
    "psum": lambda x: lax.psum(x, "z"),
    "all_gather": lambda x: lax.all_gather(x, "z"),
    "ppermute": lambda x: lax.ppermute(x, "z", RING),
    "all_to_all": lambda x: lax.all_to_all(x, "z", 0, 0),
    "axis_index": lambda x: x + lax.axis_index("z"),
}


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
    deviations=[
        deviation(
            "jax>=0.6,<0.8.2",
            params=["psum", "ppermute"],
            outcome="ok",
            reason="a KeyError: the check looked the axis up before the collective did",
        ),
        deviation(
            "jax>=0.8.2",
            params=["psum", "ppermute"],
            outcome="ok",
            reason="an AssertionError without a word",
        ),
    ],
)
def name_that_is_not_there(env, op, check=True):
    """A collective over an axis that the mesh does not have: an error that should name it."""
    fn = mapped(env, OF_UNKNOWN[op], P("x"), P("x"), check=check)
    told = ending(jax.jit(fn), numbers(env, 16), words=("unbound axis name: z", "'z'"))
    return Observed(told, reference="NameError: unbound axis name: z")


@probe(
    source="jax-ml/jax#28666",
    params={
        "psum": {"op": "psum"},
        "all_gather": {"op": "all_gather"},
        "all_to_all": {"op": "all_to_all"},
        "axis_index": {"op": "axis_index"},
    },
    deviations=[
        deviation(
            "jax<0.7",
            params=["psum", "axis_index"],
            outcome="ok",
            reason="only that the name is not bound",
            issue="jax-ml/jax@ae7924995a33",
        ),
        deviation(
            params=["all_gather", "all_to_all"],
            outcome="ok",
            reason="only that the name is not bound: the words were not added to all",
        ),
    ],
)
def outside_of_a_map(env, op):
    """A collective in plain jit is refused; few messages say that `shard_map` is missing."""
    words = ("under `jax.shard_map`", "unbound axis name: z")
    told = ending(jax.jit(OF_UNKNOWN[op]), numbers(env, 16), words=words)
    return Observed(told, reference="NameError: under `jax.shard_map`")


@probe(
    source="jax-ml/jax#34801",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[
        deviation(
            "jax>=0.4.36,<0.9.1", outcome="ok", reason="accepted silently", issue="jax-ml/jax#34801"
        ),
    ],
)
def marked_outside_of_a_map(env, jit):
    """`pvary` outside of any map means nothing: an error, or silently its argument."""

    def mark(x):
        return env.compat.pvary(x, "x")

    known = ("unbound axis name", "`pcast`", "shard_map", "'x'")
    told = ending(jax.jit(mark) if jit else mark, numbers(env, 4), words=known)
    return Observed(told != "accepted", reference=True)


@probe(
    source="jax-ml/jax@d05aad755210",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.7",
            error="NotImplementedError",
            reason="without jit all axes had to be manual",
            issue="jax-ml/jax@d05aad755210",
        ),
        deviation(
            "jax>=0.7,<0.8",
            error="ValueError",
            match="in_specs refers to 'b'",
            reason="a result was taken to be spread over the automatic axis as well",
            issue="jax-ml/jax@d05aad755210",
        ),
    ],
)
def numbers_of_a_manual_axis(env):
    """`axis_index` of one manual axis of two, without jit and unchecked: since 0.8.0."""
    body = lambda: lax.axis_index("a").reshape(1)  # noqa: E731 - short
    f = mapped(env, body, (), P("a"), check=False, mesh=square_mesh(env), manual={"a"})
    return Observed(f(), np.arange(2, dtype=np.int32))
