"""How a loop's initial carry is made decides whether the loop type checks.

A loop over shards often starts from something made on the spot: zeros, a constant, a NumPy array.
Such a value is the same on every shard, and the first iteration makes it different. Up to 0.5.3
the replication check found that by itself (it iterated to a fixed point and inserted
`pbroadcast`). Since varying manual axes are part of the types (0.6.0) the carry must have one
type from start to end, so the start has to be *marked*: `lax.pvary`, later
`lax.pcast(..., to="varying")`. The programs here have one meaning in any release, so their
reference is the value and a refusal is a deviation, even where it is by design.
"""

from __future__ import annotations

import inspect
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import SHARDS, P, wave


def initial(env, start, u):
    """Return zeros (or `u` itself) made in one of the ways that users make them."""
    return {
        "argument": lambda: u,
        "zeros": lambda: jnp.zeros(u.shape, u.dtype),
        "host_zeros": lambda: np.zeros(u.shape, u.dtype),
        "zeros_like": lambda: jnp.zeros_like(u),
        "product": lambda: 0 * u,
        "marked": lambda: env.compat.pvary(jnp.zeros(u.shape, u.dtype), "x"),
    }[start]()


def summed(u, start):
    """Return what three additions of `u` make of the start."""
    return (4 if start == "argument" else 3) * u


@program(
    source="jax-ml/jax#27903",
    devices=4,
    params={
        "argument": {"start": "argument"},
        "zeros": {"start": "zeros"},
        "host_zeros": {"start": "host_zeros"},
        "zeros_like": {"start": "zeros_like"},
        "product": {"start": "product"},
        "marked": {"start": "marked"},
    },
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6",
            params=("zeros", "host_zeros"),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="by design: a start that does not vary must be marked varying",
            issue="jax-ml/jax#27903",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=("zeros_like",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="zeros_like took shape and dtype of its argument but not what it varies over",
            issue="jax-ml/jax#29965",
        ),
    ],
)
def while_from(env, start):
    """A `while_loop` that accumulates a shard, from six starts.

    `0 * u` varies because `u` does and needs no new function; `zeros_like(u)` does so from 0.7
    on. `zeros` and NumPy zeros never do: mark them.
    """

    def loop(u):
        first = initial(env, start, u)
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + u, c[1] + 1), (first, 0))[0]

    mapped = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    return Program(mapped, args=(wave(env),), reference=lambda u: summed(u, start))


@program(
    source="jax-ml/jax#27903",
    devices=4,
    params={"zeros": {"start": "zeros"}, "zeros_like": {"start": "zeros_like"}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=("zeros",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="by design: a start that does not vary must be marked varying",
            issue="jax-ml/jax#27903",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=("zeros_like",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="zeros_like took shape and dtype of its argument but not what it varies over",
            issue="jax-ml/jax#29965",
        ),
    ],
)
def fori_from(env, start):
    """The same accumulation by a `fori_loop` of three: a scan, which always had a rule.

    Here the change of 0.6.0 took something away: from zeros this ran up to 0.5.3, where the
    check promoted the carry, and is a TypeError since. A `fori_loop` of known length was the way
    around the missing rule for `while`, so code that survived then is code that breaks now.
    """

    def loop(u):
        return lax.fori_loop(0, 3, lambda _, c: c + u, initial(env, start, u))

    mapped = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    return Program(mapped, args=(wave(env),), reference=lambda u: summed(u, start))


@program(source="jax-ml/jax#27903", devices=4)
def fori_from_what_varies(env):
    """The same `fori_loop` from three starts that vary as a shard does runs on every release."""
    starts = ("argument", "product", "marked")

    def loop(u):
        add = lambda _, c: c + u  # noqa: E731 - as short as it is
        return {start: lax.fori_loop(0, 3, add, initial(env, start, u)) for start in starts}

    mapped = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    reference = lambda u: {start: summed(u, start) for start in starts}  # noqa: E731
    return Program(mapped, args=(wave(env),), reference=reference)


@program(source="jax-ml/jax#27664", devices=4)
def zeros_unchecked(env):
    """With the check off any start will do, on every release: nothing varies in the types."""

    def loop(u):
        first = jnp.zeros(u.shape, u.dtype)
        body = lambda c: (c[0] + u, c[1] + 1)  # noqa: E731 - as short as it is
        return {
            "while": lax.while_loop(lambda c: c[1] < 3, body, (first, 0))[0],
            "fori": lax.fori_loop(0, 3, lambda _, c: c + u, first),
        }

    mapped = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    reference = lambda u: {"while": 3 * u, "fori": 3 * u}  # noqa: E731 - of both alike
    return Program(mapped, args=(wave(env),), reference=reference)


@program(
    source="jax-ml/jax#27903",
    devices=4,
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=("bare",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="by design: a body that reduces its carry must mark it as varying again",
            issue="jax-ml/jax#27903",
        )
    ],
)
def carry_reduced_by_body(env, mark):
    """The carry starts different on each shard and the body makes it equal, by a `pmean`.

    The mirror image of starting from zeros, and refused as well: a value that does not vary
    could stand in for one that does, but the loop does not do that by itself. Its message says
    that the types differ and, unlike for the start, names no remedy; marking the body's result
    is one.
    """

    def body(_, u):
        mean = lax.pmean(u, "x") + 1
        return env.compat.pvary(mean, "x") if mark else mean

    mapped = env.compat.shard_map(
        lambda u: lax.fori_loop(0, 3, body, u),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    return Program(
        mapped,
        args=(wave(env),),
        reference=lambda u: np.tile(u.reshape(SHARDS, -1).mean(0, np.float64) + 3, SHARDS).astype(
            np.float32
        ),
    )


@program(
    source="jax-ml/jax#27664",
    devices=4,
    params={
        "psum": {"how": "psum"},
        "all_gather": {"how": "varying"},
        "all_gather_invarying": {"how": "invarying"},
    },
    deviations=[
        deviation(
            "jax<0.6",
            params=("all_gather",),
            error="ValueError",
            match="require replication which can't be statically inferred",
            reason="all_gather gives equal values that the check does not know to be equal",
            issue="jax-ml/jax#19601",
        ),
        deviation(
            "jax>=0.6",
            params=("all_gather",),
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="all_gather gives equal values typed as varying; a psum is typed as replicated",
            issue="jax-ml/jax#19601",
        ),
        deviation(
            "jax>=0.8.2,<0.10",
            params=("all_gather_invarying",),
            error="ValueError",
            match="unexpected `to` value for `jax.lax.all_gather`",
            reason="`to=` was there before this choice of it",
            issue="jax-ml/jax#19601",
        ),
    ],
)
def power_iteration(env, how):
    """Ten steps of the power method: matrix sharded, vector replicated in the carry.

    Both ways to put the product together make it equal on all shards. Only the `psum` of
    column blocks is known to: the `all_gather` of row blocks counts as varying, which was
    refused at the end, as `out_specs=P()`, up to 0.5.3 and is refused in the loop since.
    Where `all_gather` takes `to="invarying"` (from 0.10.0), that says what is meant.
    """
    if how == "invarying" and "to" not in inspect.signature(lax.all_gather).parameters:
        env.unsupported("lax.all_gather has no `to=` here")
    matrix = (env.rng(1).random((8, 8)) + np.eye(8)).astype(np.float32)

    def columns(part, v):
        mine = lax.dynamic_slice(v, (lax.axis_index("x") * 2,), (2,))
        return lax.psum(part @ mine, "x")

    def rows(part, v):
        to = {"to": "invarying"} if how == "invarying" else {}
        return lax.all_gather(part @ v, "x", tiled=True, **to)

    def solve(part, v):
        def body(_, v):
            product = columns(part, v) if how == "psum" else rows(part, v)
            return product / product.max()

        return lax.fori_loop(0, 10, body, v)

    def numpy_solve(matrix, v):
        for _ in range(10):
            v = matrix.astype(np.float64) @ v
            v = v / v.max()
        return v.astype(np.float32)

    mapped = env.compat.shard_map(
        solve,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P(None, "x") if how == "psum" else P("x"), P()),
        out_specs=P(),
    )
    return Program(mapped, args=(matrix, np.ones(8, np.float32)), reference=numpy_solve)


REMEDY = r"jax\.lax\.(\w+)\(\.\.\., \('(\w+)',\)(?:, to='(\w+)')?\)"


@probe(
    source="jax-ml/jax#27903",
    devices=4,
    releases="jax>=0.6",
    params={"while": {"static": False}, "fori": {"static": True}},
)
def error_names_its_remedy(env, static):
    """The TypeError about an unmarked start names a function; that function repairs the loop.

    The message is what people search for, and it was reworded more than once ("varying manual
    axes do not match", later "manual axis types do not match"; `pvary`, later `pcast`), so this
    does not compare words: it reads the remedy out of the message, applies it, and wants the
    loop to run, with a function that the same release does not call deprecated.
    """

    def run(mark):
        def loop(u):
            first = mark(jnp.zeros(u.shape, u.dtype))
            if static:
                return lax.fori_loop(0, 3, lambda _, c: c + u, first)
            return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + u, c[1] + 1), (first, 0))[0]

        return jax.jit(
            env.compat.shard_map(
                loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
            )
        )(u)

    u = wave(env)
    try:
        run(lambda first: first)
    except TypeError as error:
        message = str(error)
    name, axis, to = re.search(REMEDY, message).groups()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        remedy = getattr(lax, name)
        repaired = run(lambda first: remedy(first, (axis,), **({"to": to} if to else {})))
    deprecated = any(issubclass(w.category, DeprecationWarning) for w in caught)
    return Observed(
        {"repaired": repaired, "axis": axis, "deprecated": deprecated},
        {"repaired": 3 * u, "axis": "x", "deprecated": False},
    )
