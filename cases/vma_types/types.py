"""What the type of a shard says: which axes it varies over, how that is printed, who keeps it.

Since 0.6.0 a value inside `shard_map` has, beside shape and dtype, the set of mesh axes along which
its shards may differ. The set is read as `jax.typeof(x).vma`, later `.manual_axis_type.varying`,
and stands in every message about it; both spellings changed, and so did who sets it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import inside, named, ramp, varying


@probe(
    source="jax-ml/jax@9bbbed1f7cdc",
    records="how a type is printed is up to jax",
    devices=4,
    platforms=("cpu",),
    params={
        "shard": {"look": "shard"},
        "reduced": {"look": "reduced"},
        "two_axes": {"look": "two_axes"},
    },
)
def printed_type(env, look):
    """How a type prints, `float32[2]{V:x}` today: four forms since 0.4.30, and one came back.

    No reference: the words are the observation, for they are in each message of the checker. The
    order of two axes was that of a set up to 0.6.2.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    if look == "two_axes":
        kind = inside(
            env, env.compat.typeof, np.ones((4, 4), np.float32), in_specs=P("x", "y"), mesh=mesh
        )
        return str(kind).replace("y,x", "x,y")
    of = {"shard": lambda u: u, "reduced": lambda u: lax.psum(u, "x")}[look]
    return str(inside(env, lambda u: env.compat.typeof(of(u)), ramp()))


@probe(
    source="jax-ml/jax@b03ab674118c",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax>=0.10",
            error="AttributeError",
            match="vma",
            reason="it is `.manual_axis_type.varying` now",
            issue="jax-ml/jax@b03ab674118c",
        )
    ],
)
def vma_attribute(env):
    """`jax.typeof(x).vma`: the set of axes from 0.6.0 to 0.9.2, an AttributeError from 0.10.0."""
    return Observed(named(inside(env, lambda u: jax.typeof(u).vma, ramp())), "x")


COLLECTIVES = {
    "psum": (lambda u: lax.psum(u, "x"), "none"),
    "pmean": (lambda u: lax.pmean(u, "x"), "none"),
    "pmax": (lambda u: lax.pmax(u, "x"), "none"),
    "pmin": (lambda u: lax.pmin(u, "x"), "none"),
    "all_gather": (lambda u: lax.all_gather(u, "x"), "x"),
    "all_to_all": (lambda u: lax.all_to_all(lax.all_gather(u, "x"), "x", 0, 0), "x"),
    "psum_scatter": (lambda u: lax.psum_scatter(u, "x", tiled=True), "x"),
    "ppermute": (lambda u: lax.ppermute(u, "x", [(0, 1), (1, 0)]), "x"),
    "axis_index": (lambda u: lax.axis_index("x") + 0 * u.shape[0], "x"),
}


@probe(source="jax-ml/jax#19601", devices=4, platforms=("cpu",), releases="jax>=0.6")
def types_of_collectives(env):
    """Reductions make a value the same everywhere; all_gather does so, too, but is not typed so."""
    x = ramp(16)
    got = {
        name: inside(env, lambda u, f=f: varying(env, f(u)), x)
        for name, (f, _) in COLLECTIVES.items()
    }
    return Observed(got, {name: axes for name, (_, axes) in COLLECTIVES.items()})


@probe(
    source="jax-ml/jax#29965",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    params={
        "zeros": {"made": "zeros"},
        "zeros_like": {"made": "zeros_like"},
        "full_like": {"made": "full_like"},
        "arange": {"made": "arange"},
        "sum_with_shard": {"made": "sum_with_shard"},
    },
    deviations=[
        deviation(
            "jax<0.7",
            params=["zeros_like", "full_like"],
            outcome="ok",
            reason="shape and dtype were taken over, what it varies over was not",
            issue="jax-ml/jax#29965",
        )
    ],
)
def types_of_what_is_made(env, made):
    """Constants are the same everywhere; `zeros_like(shard)` varies like its shard from 0.7.0."""
    make, axes = {
        "zeros": (lambda u: jnp.zeros(u.shape), "none"),
        "zeros_like": (jnp.zeros_like, "x"),
        "full_like": (lambda u: jnp.full_like(u, 3), "x"),
        "arange": (lambda u: jnp.arange(u.shape[0]), "none"),
        "sum_with_shard": (lambda u: u + jnp.arange(2.0), "x"),
    }[made]
    return Observed(inside(env, lambda u: varying(env, make(u)), ramp()), axes)


@probe(source="jax-ml/jax@84016bc3682e", devices=4, platforms=("cpu",), releases="jax>=0.6")
def types_over_two_axes(env):
    """Over two axes each goes by itself: a psum over `x` leaves a value that varies over `y`."""
    mesh, x = env.mesh((2, 2), ("x", "y")), np.ones((4, 4), np.float32)
    looks = {
        "shard": (lambda u: u, "x, y"),
        "psum_x": (lambda u: lax.psum(u, "x"), "y"),
        "psum_both": (lambda u: lax.psum(u, ("x", "y")), "none"),
        "index_y": (lambda u: lax.axis_index("y") + 0 * u.shape[0], "y"),
        "joined": (lambda u: lax.psum(u, "x") + lax.psum(u, "y"), "x, y"),
    }
    got = {
        name: inside(env, lambda u, f=f: varying(env, f(u)), x, in_specs=P("x", "y"), mesh=mesh)
        for name, (f, _) in looks.items()
    }
    return Observed(got, {name: axes for name, (_, axes) in looks.items()})


@probe(
    source="jax-ml/jax@9bbbed1f7cdc",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    params={"on": {"check": True}, "off": {"check": False}},
)
def types_unchecked(env, check):
    """With the check off nothing varies in the types: the same values, and no set of axes."""
    look = inside(env, lambda u: varying(env, u * lax.axis_index("x")), ramp(), check=check)
    return Observed(look, "x" if check else "none")


@probe(
    source="jax-ml/jax@84016bc3682e",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="what varies was known to the checker, but was no part of a type",
            issue="jax-ml/jax@84016bc3682e",
        )
    ],
)
def equality_of_types(env):
    """A shard and its psum have the same shape and dtype, and from 0.6.0 not the same type."""

    def same(u):
        return env.compat.typeof(u) == env.compat.typeof(lax.psum(u, "x"))

    return Observed(bool(inside(env, same, ramp())), False)


@probe(
    source="jax-ml/jax@2ed3944c6855",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6.2",
    params={"vma": {"keyword": "vma"}, "manual_axis_type": {"keyword": "manual_axis_type"}},
    deviations=[
        deviation(
            "jax>=0.10",
            params=["vma"],
            error="TypeError",
            match="unexpected keyword argument 'vma'",
            reason="it is `manual_axis_type=jax.sharding.ManualAxisType(varying=...)` now",
            issue="jax-ml/jax@2ed3944c6855",
        ),
        deviation(
            "jax<0.10",
            params=["manual_axis_type"],
            error="AttributeError",
            match="ManualAxisType",
            reason="it was `vma=` there",
            issue="jax-ml/jax@2ed3944c6855",
        ),
    ],
)
def declared_type(env, keyword):
    """`ShapeDtypeStruct(..., vma={"x"})`, as a kernel's output needs it, is a TypeError in 0.10."""
    if keyword == "vma":
        declared = jax.ShapeDtypeStruct((2,), np.float32, vma=frozenset({"x"}))
        return Observed(named(declared.vma), "x")
    kind = jax.sharding.ManualAxisType(varying=frozenset({"x"}))
    declared = jax.ShapeDtypeStruct((2,), np.float32, manual_axis_type=kind)
    return Observed(named(declared.manual_axis_type.varying), "x")


@probe(
    source="jax-ml/jax@2ed3944c6855",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.7",
            outcome="ok",
            reason="the structure had no place for it, or it was not filled in",
            issue="jax-ml/jax@ecf5785239c7",
        )
    ],
)
def shape_of_a_function_inside(env):
    """`jax.eval_shape` inside of shard_map forgot what a result varies over, up to 0.6.2."""

    def look(u):
        out = jax.eval_shape(lambda v: 2 * v, u)
        manual = getattr(out, "manual_axis_type", None)
        return named(getattr(out, "vma", None) or getattr(manual, "varying", None) or ())

    return Observed(inside(env, look, ramp()), "x")


@probe(
    source="jax-ml/jax@3a26804c6848",
    records="how a type is printed is up to jax",
    platforms=("cpu",),
)
def printed_outside(env):
    """What `typeof` prints of plain values: `~` for a weak type came with the short form.

    No reference: the words are the observation.
    """
    values = (np.float32(1), 1.0, True, jax.device_put(np.ones(3, jnp.bfloat16)))
    return [str(env.compat.typeof(value)) for value in values]
