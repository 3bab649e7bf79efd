"""How the initial carry of a loop is made decides whether the loop type checks.

A loop over shards often starts from a value made on the spot: zeros, a constant, a NumPy array.
Such a value is the same on every shard, and the first iteration makes it different. Up to 0.5.3
the replication check found this without help: it iterated to a fixed point and inserted
`pbroadcast`. From 0.6.0 on varying manual axes are part of the types, and the carry must have one
type from start to end, so the start has to be *marked*: by `lax.pvary`, later by
`lax.pcast(..., to="varying")`. The programs here have one meaning in any release, so their
reference is the value, and a refusal is a deviation, even where it is by design.
"""

from __future__ import annotations

import inspect
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program

from ._helpers import SHARDS, P, wave

defaults(devices=4)


def make_start(env, start, u):
    """Return zeros (or `u` itself), made in one of the ways in which users make them."""
    return {
        "argument": lambda: u,
        "zeros": lambda: jnp.zeros(u.shape, u.dtype),
        "host_zeros": lambda: np.zeros(u.shape, u.dtype),
        "zeros_like": lambda: jnp.zeros_like(u),
        "product": lambda: 0 * u,
        "marked": lambda: env.compat.pvary(jnp.zeros(u.shape, u.dtype), "x"),
    }[start]()


def add_three_times(u, start):
    """Return the start after three additions of `u`."""
    return (4 if start == "argument" else 3) * u


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)
START_DOES_NOT_VARY = deviation(
    "jax>=0.6",
    params=("zeros", "host_zeros"),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="by design: a start that does not vary must be marked as varying",
    issue="jax-ml/jax#27903",
)
ZEROS_LIKE_FORGETS_AXES = deviation(
    "jax>=0.6,<0.7",
    params=("zeros_like",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="zeros_like took shape and dtype of its argument but not the axes it varies over",
    issue="jax-ml/jax#29965",
)


@program(
    source="jax-ml/jax#27903",
    params={
        "argument": {"start": "argument"},
        "zeros": {"start": "zeros"},
        "host_zeros": {"start": "host_zeros"},
        "zeros_like": {"start": "zeros_like"},
        "product": {"start": "product"},
        "marked": {"start": "marked"},
    },
    deviations=[NO_RULE_FOR_WHILE, START_DOES_NOT_VARY, ZEROS_LIKE_FORGETS_AXES],
)
def while_from(env, start):
    """A `while_loop` that accumulates a shard runs or is refused, depending on its start.

    `0 * u` varies because `u` does, and needs no new function. `zeros_like(u)` varies from 0.7 on.
    `zeros` and NumPy zeros never vary: mark them.
    """

    def loop(u):
        first = make_start(env, start, u)
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + u, c[1] + 1), (first, 0))[0]

    mapped_fn = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    return Program(mapped_fn, args=(wave(env),), reference=lambda u: add_three_times(u, start))


FORI_START_DOES_NOT_VARY = deviation(
    "jax>=0.6",
    params=("zeros",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="by design: a start that does not vary must be marked as varying",
    issue="jax-ml/jax#27903",
)


@program(
    source="jax-ml/jax#27903",
    params={"zeros": {"start": "zeros"}, "zeros_like": {"start": "zeros_like"}},
    deviations=[FORI_START_DOES_NOT_VARY, ZEROS_LIKE_FORGETS_AXES],
)
def fori_from(env, start):
    """The same accumulation by a `fori_loop` of three iterations, a scan, which always had a rule.

    For this loop 0.6.0 was a loss: from zeros it ran up to 0.5.3, where the check promoted the
    carry, and is a TypeError from 0.6.0 on. A `fori_loop` of known length was the workaround for
    the missing rule for `while`, so the code that worked then is the code that breaks now.
    """

    def loop(u):
        return lax.fori_loop(0, 3, lambda _, c: c + u, make_start(env, start, u))

    mapped_fn = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    return Program(mapped_fn, args=(wave(env),), reference=lambda u: add_three_times(u, start))


@program(source="jax-ml/jax#27903")
def fori_from_what_varies(env):
    """The same `fori_loop` runs on every release from three starts that vary as a shard does."""
    starts = ("argument", "product", "marked")

    def loop(u):
        add = lambda _, c: c + u  # noqa: E731 - short
        return {start: lax.fori_loop(0, 3, add, make_start(env, start, u)) for start in starts}

    mapped_fn = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x")
    )
    reference = lambda u: {start: add_three_times(u, start) for start in starts}  # noqa: E731
    return Program(mapped_fn, args=(wave(env),), reference=reference)


@program(source="jax-ml/jax#27664")
def zeros_unchecked(env):
    """With the check off every start is accepted, on every release: nothing varies in the types."""

    def loop(u):
        first = jnp.zeros(u.shape, u.dtype)
        body = lambda c: (c[0] + u, c[1] + 1)  # noqa: E731 - short
        return {
            "while": lax.while_loop(lambda c: c[1] < 3, body, (first, 0))[0],
            "fori": lax.fori_loop(0, 3, lambda _, c: c + u, first),
        }

    mapped_fn = env.compat.shard_map(
        loop, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    reference = lambda u: {"while": 3 * u, "fori": 3 * u}  # noqa: E731 - the same for both
    return Program(mapped_fn, args=(wave(env),), reference=reference)


REDUCED_CARRY_UNMARKED = deviation(
    "jax>=0.6",
    params=("bare",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="by design: a body that reduces its carry must mark it as varying again",
    issue="jax-ml/jax#27903",
)


@program(
    source="jax-ml/jax#27903",
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[REDUCED_CARRY_UNMARKED],
)
def carry_reduced_by_body(env, mark):
    """The carry starts different on each shard, and the body makes it equal by a `pmean`.

    This is the reverse of a start from zeros, and is refused as well: a value that does not vary
    could replace a value that varies, but the loop does not convert it. The message states that the
    types differ and, unlike the message about a start, names no remedy. Marking the result of the
    body is a remedy.
    """

    def body(_, u):
        mean = lax.pmean(u, "x") + 1
        return env.compat.pvary(mean, "x") if mark else mean

    mapped_fn = env.compat.shard_map(
        lambda u: lax.fori_loop(0, 3, body, u),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    return Program(
        mapped_fn,
        args=(wave(env),),
        reference=lambda u: np.tile(u.reshape(SHARDS, -1).mean(0, np.float64) + 3, SHARDS).astype(
            np.float32
        ),
    )


GATHERED_NOT_KNOWN_TO_BE_EQUAL = deviation(
    "jax<0.6",
    params=("all_gather",),
    error="ValueError",
    match="require replication which can't be statically inferred",
    reason="all_gather gives equal values, but the check does not know that they are equal",
    issue="jax-ml/jax#19601",
)
GATHERED_TYPED_AS_VARYING = deviation(
    "jax>=0.6",
    params=("all_gather",),
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="all_gather gives equal values typed as varying; a psum is typed as replicated",
    issue="jax-ml/jax#19601",
)
NO_INVARYING_TARGET = deviation(
    "jax>=0.8.2,<0.10",
    params=("all_gather_invarying",),
    error="ValueError",
    match="unexpected `to` value for `jax.lax.all_gather`",
    reason="all_gather took `to=` before it accepted this value",
    issue="jax-ml/jax#19601",
)


@program(
    source="jax-ml/jax#27664",
    params={
        "psum": {"how": "psum"},
        "all_gather": {"how": "varying"},
        "all_gather_invarying": {"how": "invarying"},
    },
    deviations=[GATHERED_NOT_KNOWN_TO_BE_EQUAL, GATHERED_TYPED_AS_VARYING, NO_INVARYING_TARGET],
)
def power_iteration(env, how):
    """Ten steps of the power method with a sharded matrix and a replicated vector in the carry.

    Both ways to assemble the product make it equal on all shards, but only for the `psum` of column
    blocks is this known. The `all_gather` of row blocks counts as varying: up to 0.5.3 this was
    refused at the end, as `out_specs=P()`, and from 0.6.0 on it is refused in the loop. Where
    `all_gather` takes `to="invarying"` (from 0.10.0), that argument states that the result is
    equal.
    """
    if how == "invarying" and "to" not in inspect.signature(lax.all_gather).parameters:
        env.unsupported("lax.all_gather has no `to=` in this release")
    matrix = (env.rng(1).random((8, 8)) + np.eye(8)).astype(np.float32)

    def columns(part, v):
        block = lax.dynamic_slice(v, (lax.axis_index("x") * 2,), (2,))
        return lax.psum(part @ block, "x")

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

    mapped_fn = env.compat.shard_map(
        solve,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P(None, "x") if how == "psum" else P("x"), P()),
        out_specs=P(),
    )
    return Program(mapped_fn, args=(matrix, np.ones(8, np.float32)), reference=numpy_solve)


REMEDY = r"jax\.lax\.(\w+)\(\.\.\., \('(\w+)',\)(?:, to='(\w+)')?\)"


@probe(
    source="jax-ml/jax#27903",
    releases="jax>=0.6",
    params={"while": {"static": False}, "fori": {"static": True}},
)
def error_names_its_remedy(env, static):
    """The TypeError about an unmarked start names a function, and that function repairs the loop.

    Users search for the message, and it was reworded more than once ("varying manual axes do not
    match", later "manual axis types do not match"; `pvary`, later `pcast`). So this case does not
    compare words: it reads the remedy from the message, applies it, and requires that the loop
    runs, with a function that the same release does not call deprecated.
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
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        remedy = getattr(lax, name)
        repaired = run(lambda first: remedy(first, (axis,), **({"to": to} if to else {})))
    deprecated = any(issubclass(w.category, DeprecationWarning) for w in caught_warnings)
    return Observed(
        {"repaired": repaired, "axis": axis, "deprecated": deprecated},
        {"repaired": 3 * u, "axis": "x", "deprecated": False},
    )
