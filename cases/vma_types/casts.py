"""Saying that a value varies: `pbroadcast`, then `lax.pvary`, then `lax.pcast(..., to="varying")`.

The cast costs nothing and moves nothing; it changes the type, and with it the gradient. It has had
three names, each gone within a year of the next, and what it takes became stricter.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import inside, mapped, ramp, varying


@program(
    source="jax-ml/jax@84016bc3682e",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax>=0.10,<0.11",
            error="AttributeError",
            match=r"jax.lax.pvary was deprecated in JAX v0.8.2 and removed",
            reason="removed; the message names lax.pcast",
            issue="jax-ml/jax@42559372e959",
        ),
        deviation(
            "jax>=0.11",
            error="AttributeError",
            match="module 'jax.lax' has no attribute 'pvary'",
            reason="removed, and the hint with it",
            issue="jax-ml/jax@893bfa1cc494",
        ),
    ],
)
def by_its_second_name(env):
    """`lax.pvary`: the way to mark a loop's start from 0.6.0 to 0.9.2, gone in 0.10.0."""

    def total(u):
        start = lax.pvary(jnp.zeros(u.shape), "x")
        return lax.fori_loop(0, 3, lambda _, c: c + u, start)

    return Program(mapped(env, total), args=(ramp(),), reference=lambda u: 3 * u)


@probe(
    source="jax-ml/jax@84016bc3682e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.6",
            error="ImportError",
            match="pbroadcast",
            reason="renamed and moved to jax.lax",
            issue="jax-ml/jax@84016bc3682e",
        )
    ],
)
def by_its_first_name(env):
    """`from jax.experimental.shard_map import pbroadcast`: no such name from 0.6.0."""
    from jax.experimental.shard_map import pbroadcast  # noqa: PLC0415 - the import is the case

    return Observed(callable(pbroadcast), True)


@program(source="jax-ml/jax#33629", devices=4, releases="jax>=0.8.2", facts={"collectives": {}})
def by_its_third_name(env):
    """`lax.pcast(x, "x", to="varying")`: from 0.8.2, and no collective comes of it."""

    def scaled(u, w):
        return u * lax.pcast(w, "x", to="varying")

    fn = mapped(env, scaled, (P("x"), P()))
    return Program(fn, args=(ramp(), ramp(2) + 1), reference=lambda u, w: u * np.tile(w, 4))


@program(
    source="jax-ml/jax@c890ac5b2e92",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["check_on"],
            error="Exception",
            match="must be applied to a non-device-varying replication type",
            reason="the same refusal, as a bare Exception",
            issue="jax-ml/jax@84016bc3682e",
        ),
    ],
)
def marked_twice(env, check):
    """Marking what varies already is refused, in four wordings; with the check off it passes."""
    twice = mapped(env, lambda u: env.compat.pvary(u, "x"), check=check)
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
    """There is no cast back: `to="invarying"` is refused by a list of what is possible.

    A psum, pmax or all_gather to invarying makes a value the same everywhere, a cast cannot. The
    list is printed in the order of a set, other in each process, so the names are sorted here.
    """
    try:
        inside(env, lambda u: lax.pcast(u, "x", to=to), ramp())
    except ValueError as error:
        return Observed(
            sorted(re.findall("'(.*?)'", str(error))), ["reduced", "unreduced", "varying"]
        )
    return "accepted"


@probe(
    source="jax-ml/jax#34801",
    platforms=("cpu",),
    releases="jax>=0.6",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[
        deviation(
            "jax>=0.9.1",
            params=["eager"],
            error="ValueError|NotImplementedError",
            match="pvary should be called under jax.shard_map",
            reason="there is no mapped axis to vary over",
            issue="jax-ml/jax#34801",
        ),
        deviation(
            "jax>=0.9.1",
            params=["jit"],
            error="NameError",
            match="unbound axis name: x",
            reason="there is no mapped axis to vary over",
            issue="jax-ml/jax@f037af0c312f",
        ),
    ],
)
def outside_of_shard_map(env, jit):
    """Marking outside of any shard_map was ignored up to 0.9.0: a helper called there just ran."""

    def mark(x):
        return env.compat.pvary(x, "x")

    return Observed((jax.jit(mark) if jit else mark)(jnp.asarray(ramp())), ramp())


@probe(
    source="jax-ml/jax#34801",
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax>=0.9.1",
            error="ValueError|NotImplementedError",
            match="pvary should be called under jax.shard_map",
            reason="an axis of vmap is not one of a mesh",
            issue="jax-ml/jax#34801",
        ),
    ],
)
def over_an_axis_of_vmap(env):
    """Marking over the `axis_name` of a vmap was ignored up to 0.9.0, and is refused since."""
    got = jax.vmap(lambda v: env.compat.pvary(v, "i"), axis_name="i")(jnp.asarray(ramp()))
    return Observed(got, ramp())


@program(
    source="jax-ml/jax@ae7924995a33",
    devices=4,
    platforms=("cpu",),
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax>=0.6,<0.8.2",
            params=["check_on"],
            error="KeyError",
            match="z",
            reason="the types were looked up before the name was",
            issue="jax-ml/jax@84016bc3682e",
        ),
        deviation(
            "jax>=0.8.2",
            params=["check_on"],
            error="AssertionError",
            reason="a bare assertion of the types",
            issue="jax-ml/jax@9bbbed1f7cdc",
        ),
    ],
)
def psum_over_no_axis(env, check):
    """A psum over a name the mesh has not: a clear NameError, but with the check on.

    There it is a KeyError from 0.6.0, and an AssertionError without a word from 0.8.2: look for
    a typing error in an axis name.
    """
    fn = mapped(env, lambda u: lax.psum(u, "z"), check=check)
    return Program(fn, args=(ramp(),), reference=raises("NameError", match="unbound axis name: z"))


@program(
    source="jax-ml/jax@ad44116fcedd",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.8.2",
            error="ValueError",
            match="psum can only accept axis_name which corresponds to one of",
            reason="the value varies over one of the two axes only",
            issue="jax-ml/jax@ad44116fcedd",
        ),
        deviation(
            "jax<0.4.31",
            error="Exception",
            match="must be applied to a device-varying replication type",
            reason="the sum of what is equal on all was refused",
            issue="jax-ml/jax@f7cef92ed719",
        ),
    ],
)
def psum_over_one_axis_too_many(env):
    """A psum over two axes of a value that varies over one: summed twice, then refused.

    A loss over all axes of the mesh, where the data lie on one of them. Mark the value as varying
    over the other, or reduce over the one it varies over.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    fn = env.compat.shard_map(
        lambda u: lax.psum(u.sum(), ("x", "y")), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    return Program(fn, args=(ramp(),), reference=lambda u: 2 * u.sum())


@program(
    source="jax-ml/jax@84016bc3682e",
    devices=4,
    platforms=("cpu",),
    facts={"collectives": {"all-reduce": 1}},
    params={"psum": {"name": "psum"}, "pmax": {"name": "pmax"}},
    deviations=[
        deviation(
            "jax<0.4.31",
            params=["psum"],
            error="Exception",
            match="must be applied to a device-varying replication type",
            reason="the sum of what is equal everywhere was refused",
            issue="jax-ml/jax@f7cef92ed719",
        ),
        deviation(
            "jax<0.4.34",
            params=["pmax"],
            error="NotImplementedError",
            match="No replication rule for pmax",
            reason="the check had no rule for it",
            issue="jax-ml/jax@5e3f7618fc14",
        ),
    ],
)
def reduction_of_a_replicated_value(env, name):
    """The psum of what is equal on four shards is four times it: the cast comes by itself."""
    fn = mapped(env, lambda w: getattr(lax, name)(w, "x"), P(), P())
    factor = 4 if name == "psum" else 1
    return Program(fn, args=(ramp(),), reference=lambda w: factor * w)


@probe(source="jax-ml/jax@9bbbed1f7cdc", devices=4, platforms=("cpu",), releases="jax>=0.8.2")
def gradient_by_the_cast(env):
    """Cast weights decide what their gradient is: summed, each shard's own, or still to be summed.

    Left alone the gradient is summed over shards and equal everywhere; varying weights give each
    shard its own; reduced weights one that is `unreduced`, which a psum completes.
    """

    def step(w, u, to):
        at = w if to == "none" else lax.pcast(w, "x", to=to)
        return jax.grad(lambda w: (w * u).sum())(at)

    def total(w, u):
        own, parts = step(w, u, "varying"), step(w, u, "reduced")
        return step(w, u, "none"), own, lax.psum(parts, "x")

    looks = inside(
        env,
        lambda u, w: [varying(env, step(w, u, to)) for to in ("none", "varying", "reduced")],
        ramp(),
        ramp(2),
        in_specs=(P("x"), P()),
    )
    step_of_all = jax.jit(mapped(env, total, (P(), P("x")), (P(), P("x"), P())))
    whole, own, summed = step_of_all(ramp(2), ramp())
    exact = ramp().reshape(4, 2).sum(0)
    return Observed(
        {"varying": looks, "whole": whole, "own": own, "summed": summed},
        {"varying": ["none", "x", "none"], "whole": exact, "own": ramp(), "summed": exact},
    )


@probe(
    source="jax-ml/jax@be07a2847a9c",
    records="the words of a refusal are up to jax",
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
    """A sum that is not summed yet may be added and reduced; anything else is refused.

    No reference: the words are the observation. `sin` was "not implemented" at first and is
    told to be non-linear since.
    """
    use = {
        "doubled": lambda p, _: p * 2,
        "sine": lambda p, _: jnp.sin(p),
        "with_varying": lambda p, u: p + u,
    }[what]
    try:
        out = inside(env, lambda u: use(lax.pcast(u, "x", to="unreduced"), u), ramp())
    except Exception as error:  # noqa: BLE001 - whichever class it is, is what is asked
        return " ".join([f"{type(error).__name__}:", *str(error).split()[:9]])
    return str(jax.typeof(out))


@probe(
    source="jax-ml/jax@85ec15da3513",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.8.2",
    deviations=[
        deviation(
            "jax>=0.9.2",
            error="ShardingTypeError",
            match="Inputs cannot be replicated on the same axes that another input is reduced on",
            reason="a scalar is replicated, and that may not meet what is reduced",
            issue="jax-ml/jax@85ec15da3513",
        )
    ],
)
def reduced_value_times_a_number(env):
    """Reduced weights times two: fine up to 0.9.1, refused since, as the two is replicated."""
    kind = inside(
        env, lambda w: str(jax.typeof(2 * lax.pcast(w, "x", to="reduced"))), ramp(), in_specs=P()
    )
    return Observed(kind, "float32[8]{R:x}")
