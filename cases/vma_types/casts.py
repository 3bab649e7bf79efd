"""Marking a value as varying: `pbroadcast`, `lax.pvary`, then `lax.pcast(..., to="varying")`.

The cast costs nothing and moves nothing; it changes the type, and with it the gradient. It has had
three names, each removed within a year of the next, and it became stricter about its argument.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import find_varying_axes, map_over_x, ramp, trace_shard

PVARY_REMOVED = deviation(
    "jax>=0.10,<0.11",
    error="AttributeError",
    match=r"jax.lax.pvary was deprecated in JAX v0.8.2 and removed",
    reason="removed; the message names lax.pcast",
    issue="jax-ml/jax@42559372e959",
)
PVARY_REMOVED_WITHOUT_HINT = deviation(
    "jax>=0.11",
    error="AttributeError",
    match="module 'jax.lax' has no attribute 'pvary'",
    reason="removed, together with the hint",
    issue="jax-ml/jax@893bfa1cc494",
)


@program(
    source="jax-ml/jax@84016bc3682e",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[PVARY_REMOVED, PVARY_REMOVED_WITHOUT_HINT],
)
def by_its_second_name(env):
    """`lax.pvary` marks the start of a loop from 0.6.0 to 0.9.2; 0.10.0 removed it."""

    def total(u):
        start = lax.pvary(jnp.zeros(u.shape), "x")
        return lax.fori_loop(0, 3, lambda _, c: c + u, start)

    return Program(map_over_x(env, total), args=(ramp(),), reference=lambda u: 3 * u)


PBROADCAST_RENAMED = deviation(
    "jax>=0.6",
    error="ImportError",
    match="pbroadcast",
    reason="renamed and moved to jax.lax",
    issue="jax-ml/jax@84016bc3682e",
)


@probe(source="jax-ml/jax@84016bc3682e", platforms=("cpu",), deviations=[PBROADCAST_RENAMED])
def by_its_first_name(env):
    """`from jax.experimental.shard_map import pbroadcast` fails from 0.6.0."""
    from jax.experimental.shard_map import pbroadcast  # noqa: PLC0415 - the case is about the import

    return Observed(callable(pbroadcast), True)


@program(source="jax-ml/jax#33629", devices=4, releases="jax>=0.8.2", facts={"collectives": {}})
def by_its_third_name(env):
    """`lax.pcast(x, "x", to="varying")` exists from 0.8.2 and needs no collective."""

    def scaled(u, w):
        return u * lax.pcast(w, "x", to="varying")

    fn = map_over_x(env, scaled, (P("x"), P()))
    return Program(fn, args=(ramp(), ramp(2) + 1), reference=lambda u, w: u * np.tile(w, 4))


BARE_EXCEPTION = deviation(
    "jax<0.6",
    params=["check_on"],
    error="Exception",
    match="must be applied to a non-device-varying replication type",
    reason="pbroadcast raised the same refusal as a bare Exception",
    issue="jax-ml/jax@84016bc3682e",
)


@program(
    source="jax-ml/jax@c890ac5b2e92",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[BARE_EXCEPTION],
)
def marked_twice(env, check):
    """Marking a varying value again is refused, in four wordings; with the check off it passes."""
    twice = map_over_x(env, lambda u: env.compat.pvary(u, "x"), check=check)
    words = "non-device-varying type|invariant->variant collective|Unsupported pcast from=varying"
    refusal = raises("ValueError", match=words)
    return Program(twice, args=(ramp(),), reference=refusal if check else lambda u: u)


@probe(
    source="jax-ml/jax#33629",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.8.2",
    params={"invarying": {"to": "invarying"}, "typing_error": {"to": "variying"}},
)
def what_it_can_become(env, to):
    """`to="invarying"` is refused with a list of the possible casts: there is no cast back.

    A psum, pmax or all_gather to invarying makes a value the same everywhere, a cast cannot. The
    list is printed in the order of a set, which differs between processes, so the names are sorted
    here.
    """
    try:
        trace_shard(env, lambda u: lax.pcast(u, "x", to=to), ramp())
    except ValueError as error:
        return Observed(
            sorted(re.findall("'(.*?)'", str(error))), ["reduced", "unreduced", "varying"]
        )
    return "accepted"


NO_MAPPED_AXIS = deviation(
    "jax>=0.9.1",
    params=["eager"],
    error="ValueError|NotImplementedError",
    match="pvary should be called under jax.shard_map",
    reason="the program has no mapped axis to vary over",
    issue="jax-ml/jax#34801",
)
NO_MAPPED_AXIS_UNDER_JIT = deviation(
    "jax>=0.9.1",
    params=["jit"],
    error="NameError",
    match="unbound axis name: x",
    reason="the program has no mapped axis to vary over",
    issue="jax-ml/jax@f037af0c312f",
)


@probe(
    source="jax-ml/jax#34801",
    platforms=("cpu",),
    releases="jax>=0.6",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[NO_MAPPED_AXIS, NO_MAPPED_AXIS_UNDER_JIT],
)
def outside_of_shard_map(env, jit):
    """Marking outside of any shard_map was ignored up to 0.9.0, and is refused from 0.9.1.

    Up to 0.9.0 a helper called there just ran.
    """

    def mark(x):
        return env.compat.pvary(x, "x")

    return Observed((jax.jit(mark) if jit else mark)(jnp.asarray(ramp())), ramp())


VMAP_AXIS_IS_NOT_A_MESH_AXIS = deviation(
    "jax>=0.9.1",
    error="ValueError|NotImplementedError",
    match="pvary should be called under jax.shard_map",
    reason="an axis of vmap is not a mesh axis",
    issue="jax-ml/jax#34801",
)


@probe(
    source="jax-ml/jax#34801",
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[VMAP_AXIS_IS_NOT_A_MESH_AXIS],
)
def over_an_axis_of_vmap(env):
    """Marking over the `axis_name` of a vmap was ignored up to 0.9.0, and is refused since."""
    result = jax.vmap(lambda v: env.compat.pvary(v, "i"), axis_name="i")(jnp.asarray(ramp()))
    return Observed(result, ramp())


TYPES_LOOKED_UP_FIRST = deviation(
    "jax>=0.6,<0.8.2",
    params=["check_on"],
    error="KeyError",
    match="z",
    reason="the check looked up the types before the axis name",
    issue="jax-ml/jax@84016bc3682e",
)
BARE_ASSERTION = deviation(
    "jax>=0.8.2",
    params=["check_on"],
    error="AssertionError",
    reason="the types are checked by a bare assertion",
    issue="jax-ml/jax@9bbbed1f7cdc",
)


@program(
    source="jax-ml/jax@ae7924995a33",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[TYPES_LOOKED_UP_FIRST, BARE_ASSERTION],
)
def psum_over_no_axis(env, check):
    """A psum over a name that the mesh lacks is a clear NameError only with the check off.

    With the check on it is a KeyError from 0.6.0, and an AssertionError without a message from
    0.8.2: look for a typing error in an axis name.
    """
    fn = map_over_x(env, lambda u: lax.psum(u, "z"), check=check)
    return Program(fn, args=(ramp(),), reference=raises("NameError", match="unbound axis name: z"))


VARIES_OVER_ONE_AXIS_ONLY = deviation(
    "jax>=0.8.2",
    error="ValueError",
    match="psum can only accept axis_name which corresponds to one of",
    reason="the value varies over only one of the two axes",
    issue="jax-ml/jax@ad44116fcedd",
)
REPLICATED_SUM_REFUSED = deviation(
    "jax<0.4.31",
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax@f7cef92ed719",
)


@program(
    source="jax-ml/jax@ad44116fcedd",
    devices=4,
    platforms=("cpu",),
    deviations=[VARIES_OVER_ONE_AXIS_ONLY, REPLICATED_SUM_REFUSED],
)
def psum_over_one_axis_too_many(env):
    """A psum over an axis that the value does not vary over sums twice; refused from 0.8.2.

    An example is a loss summed over all axes of the mesh when the data vary over one of them. Mark
    the value as varying over the other axis, or reduce over the axis that it varies over.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    fn = env.compat.shard_map(
        lambda u: lax.psum(u.sum(), ("x", "y")), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    return Program(fn, args=(ramp(),), reference=lambda u: 2 * u.sum())


REPLICATED_PSUM_REFUSED = deviation(
    "jax<0.4.31",
    params=["psum"],
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax@f7cef92ed719",
)
NO_RULE_FOR_PMAX = deviation(
    "jax<0.4.34",
    params=["pmax"],
    error="NotImplementedError",
    match="No replication rule for pmax",
    reason="the check had no rule for pmax",
    issue="jax-ml/jax@5e3f7618fc14",
)


@program(
    source="jax-ml/jax@84016bc3682e",
    devices=4,
    platforms=("cpu",),
    facts={"collectives": {"all-reduce": 1}},
    params={"psum": {"name": "psum"}, "pmax": {"name": "pmax"}},
    deviations=[REPLICATED_PSUM_REFUSED, NO_RULE_FOR_PMAX],
)
def reduction_of_a_replicated_value(env, name):
    """The psum of a value equal on four shards is four times it: the cast is automatic."""
    fn = map_over_x(env, lambda w: getattr(lax, name)(w, "x"), P(), P())
    factor = 4 if name == "psum" else 1
    return Program(fn, args=(ramp(),), reference=lambda w: factor * w)


@probe(source="jax-ml/jax@9bbbed1f7cdc", devices=4, platforms=("cpu",), releases="jax>=0.8.2")
def gradient_by_the_cast(env):
    """The cast of weights selects their gradient: summed, per shard, or still to be summed.

    Without a cast the gradient is summed over shards and equal everywhere. Varying weights give
    each shard its own gradient. Reduced weights give an `unreduced` gradient, which a psum
    completes.
    """

    def step(w, u, to):
        at = w if to == "none" else lax.pcast(w, "x", to=to)
        return jax.grad(lambda w: (w * u).sum())(at)

    def total(w, u):
        own, parts = step(w, u, "varying"), step(w, u, "reduced")
        return step(w, u, "none"), own, lax.psum(parts, "x")

    looks = trace_shard(
        env,
        lambda u, w: [
            find_varying_axes(env, step(w, u, to)) for to in ("none", "varying", "reduced")
        ],
        ramp(),
        ramp(2),
        in_specs=(P("x"), P()),
    )
    step_of_all = jax.jit(map_over_x(env, total, (P(), P("x")), (P(), P("x"), P())))
    whole, own, summed = step_of_all(ramp(2), ramp())
    exact = ramp().reshape(4, 2).sum(0)
    return Observed(
        {"varying": looks, "whole": whole, "own": own, "summed": summed},
        {"varying": ["none", "x", "none"], "whole": exact, "own": ramp(), "summed": exact},
    )


@probe(
    source="jax-ml/jax@be07a2847a9c",
    records="the wording of a refusal is up to JAX",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.8.2",
    params={
        "doubled": {"what": "doubled"},
        "sine": {"what": "sine"},
        "with_varying": {"what": "with_varying"},
    },
)
def unreduced_value_used(env, what):
    """An unreduced value may be added and reduced; anything else is refused.

    No reference: the words are the observation. `sin` was reported as "not implemented" at first,
    and as non-linear later.
    """
    use = {
        "doubled": lambda p, _: p * 2,
        "sine": lambda p, _: jnp.sin(p),
        "with_varying": lambda p, u: p + u,
    }[what]
    try:
        out = trace_shard(env, lambda u: use(lax.pcast(u, "x", to="unreduced"), u), ramp())
    except Exception as error:  # noqa: BLE001 - the class is part of the observation
        return " ".join([f"{type(error).__name__}:", *str(error).split()[:9]])
    return str(jax.typeof(out))


SCALAR_IS_REPLICATED = deviation(
    "jax>=0.9.2",
    error="ShardingTypeError",
    match="Inputs cannot be replicated on the same axes that another input is reduced on",
    reason="a scalar is replicated, and must not be combined with a reduced value",
    issue="jax-ml/jax@85ec15da3513",
)


@probe(
    source="jax-ml/jax@85ec15da3513",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.8.2",
    deviations=[SCALAR_IS_REPLICATED],
)
def reduced_value_times_a_number(env):
    """Reduced weights times two: accepted up to 0.9.1, then refused, as the two is replicated."""
    kind = trace_shard(
        env, lambda w: str(jax.typeof(2 * lax.pcast(w, "x", to="reduced"))), ramp(), in_specs=P()
    )
    return Observed(kind, "float32[8]{R:x}")
