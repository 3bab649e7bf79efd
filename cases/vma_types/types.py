"""The type of a shard: the axes it varies over, how they are printed, and what preserves them.

Since 0.6.0 a value inside `shard_map` has, in addition to shape and dtype, the set of mesh axes
along which its shards may differ. The set is read as `jax.typeof(x).vma`, later
`.manual_axis_type.varying`, and appears in every message about it; both spellings changed, and so
did the functions that set it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find_varying_axes, format_axes, ramp, trace_shard

defaults(platforms=("cpu",))


@probe(
    source="jax-ml/jax@9bbbed1f7cdc",
    records="the printed form of a type is up to JAX",
    devices=4,
    params={
        "shard": {"look": "shard"},
        "reduced": {"look": "reduced"},
        "two_axes": {"look": "two_axes"},
    },
)
def printed_type(env, look):
    """A type prints as `float32[2]{V:x}` today.

    It had four forms since 0.4.30, and one of them came back. No reference: the words are the
    observation, because each message of the checker contains them. The order of two axes was that
    of a set up to 0.6.2.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    if look == "two_axes":
        kind = trace_shard(
            env, env.compat.typeof, np.ones((4, 4), np.float32), in_specs=P("x", "y"), mesh=mesh
        )
        return str(kind).replace("y,x", "x,y")
    of = {"shard": lambda u: u, "reduced": lambda u: lax.psum(u, "x")}[look]
    return str(trace_shard(env, lambda u: env.compat.typeof(of(u)), ramp()))


VMA_ATTRIBUTE_REMOVED = deviation(
    "jax>=0.10",
    error="AttributeError",
    match="vma",
    reason="replaced by .manual_axis_type.varying",
    issue="jax-ml/jax@b03ab674118c",
)


@probe(
    source="jax-ml/jax@b03ab674118c",
    devices=4,
    releases="jax>=0.6",
    deviations=[VMA_ATTRIBUTE_REMOVED],
)
def vma_attribute(env):
    """`jax.typeof(x).vma` is the set of axes from 0.6.0 to 0.9.2; AttributeError from 0.10.0."""
    return Observed(format_axes(trace_shard(env, lambda u: jax.typeof(u).vma, ramp())), "x")


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


@probe(source="jax-ml/jax#19601", devices=4, releases="jax>=0.6")
def types_of_collectives(env):
    """The types of reductions do not vary; those of other collectives and axis_index do.

    A reduction makes a value equal everywhere. So does all_gather, but its type varies.
    """
    x = ramp(16)
    result = {
        name: trace_shard(env, lambda u, f=f: find_varying_axes(env, f(u)), x)
        for name, (f, _) in COLLECTIVES.items()
    }
    return Observed(result, {name: axes for name, (_, axes) in COLLECTIVES.items()})


VARYING_AXES_NOT_COPIED = deviation(
    "jax<0.7",
    params=["zeros_like", "full_like"],
    outcome="ok",
    reason="the functions took over shape and dtype, but not the varying axes",
    issue="jax-ml/jax#29965",
)


@probe(
    source="jax-ml/jax#29965",
    devices=4,
    releases="jax>=0.6",
    params={
        "zeros": {"made": "zeros"},
        "zeros_like": {"made": "zeros_like"},
        "full_like": {"made": "full_like"},
        "arange": {"made": "arange"},
        "sum_with_shard": {"made": "sum_with_shard"},
    },
    deviations=[VARYING_AXES_NOT_COPIED],
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
    return Observed(trace_shard(env, lambda u: find_varying_axes(env, make(u)), ramp()), axes)


@probe(source="jax-ml/jax@84016bc3682e", devices=4, releases="jax>=0.6")
def types_over_two_axes(env):
    """Each of two axes is independent: a psum over `x` leaves a value that varies over `y`."""
    mesh, x = env.mesh((2, 2), ("x", "y")), np.ones((4, 4), np.float32)
    looks = {
        "shard": (lambda u: u, "x, y"),
        "psum_x": (lambda u: lax.psum(u, "x"), "y"),
        "psum_both": (lambda u: lax.psum(u, ("x", "y")), "none"),
        "index_y": (lambda u: lax.axis_index("y") + 0 * u.shape[0], "y"),
        "joined": (lambda u: lax.psum(u, "x") + lax.psum(u, "y"), "x, y"),
    }
    result = {
        name: trace_shard(
            env, lambda u, f=f: find_varying_axes(env, f(u)), x, in_specs=P("x", "y"), mesh=mesh
        )
        for name, (f, _) in looks.items()
    }
    return Observed(result, {name: axes for name, (_, axes) in looks.items()})


@probe(
    source="jax-ml/jax@9bbbed1f7cdc",
    devices=4,
    releases="jax>=0.6",
    params={"on": {"check": True}, "off": {"check": False}},
)
def types_unchecked(env, check):
    """With the check off no type has varying axes, although the values are the same."""
    look = trace_shard(
        env, lambda u: find_varying_axes(env, u * lax.axis_index("x")), ramp(), check=check
    )
    return Observed(look, "x" if check else "none")


AXES_NOT_PART_OF_TYPE = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the checker knew the varying axes, but they were not part of a type",
    issue="jax-ml/jax@84016bc3682e",
)


@probe(source="jax-ml/jax@84016bc3682e", devices=4, deviations=[AXES_NOT_PART_OF_TYPE])
def equality_of_types(env):
    """A shard and its psum have equal shape and dtype, but from 0.6.0 different types."""

    def same(u):
        return env.compat.typeof(u) == env.compat.typeof(lax.psum(u, "x"))

    return Observed(bool(trace_shard(env, same, ramp())), False)


VMA_KEYWORD_REPLACED = deviation(
    "jax>=0.10",
    params=["vma"],
    error="TypeError",
    match="unexpected keyword argument 'vma'",
    reason="replaced by manual_axis_type=jax.sharding.ManualAxisType(varying=...)",
    issue="jax-ml/jax@2ed3944c6855",
)
NO_MANUAL_AXIS_TYPE = deviation(
    "jax<0.10",
    params=["manual_axis_type"],
    error="AttributeError",
    match="ManualAxisType",
    reason="the keyword was vma= in these releases",
    issue="jax-ml/jax@2ed3944c6855",
)


@probe(
    source="jax-ml/jax@2ed3944c6855",
    devices=4,
    releases="jax>=0.6.2",
    params={"vma": {"keyword": "vma"}, "manual_axis_type": {"keyword": "manual_axis_type"}},
    deviations=[VMA_KEYWORD_REPLACED, NO_MANUAL_AXIS_TYPE],
)
def declared_type(env, keyword):
    """`ShapeDtypeStruct(..., vma={"x"})`, for outputs of kernels, is a TypeError in 0.10."""
    if keyword == "vma":
        declared = jax.ShapeDtypeStruct((2,), np.float32, vma=frozenset({"x"}))
        return Observed(format_axes(declared.vma), "x")
    kind = jax.sharding.ManualAxisType(varying=frozenset({"x"}))
    declared = jax.ShapeDtypeStruct((2,), np.float32, manual_axis_type=kind)
    return Observed(format_axes(declared.manual_axis_type.varying), "x")


NO_AXES_FROM_EVAL_SHAPE = deviation(
    "jax<0.7",
    outcome="ok",
    reason="ShapeDtypeStruct had no field for the varying axes, or eval_shape did not fill it in",
    issue="jax-ml/jax@cb44677bdf26",
)


@probe(
    source="jax-ml/jax@2ed3944c6855",
    devices=4,
    releases="jax>=0.6",
    deviations=[NO_AXES_FROM_EVAL_SHAPE],
)
def shape_of_a_function_inside(env):
    """`jax.eval_shape` inside of shard_map lost the varying axes of a result, up to 0.6.2."""

    def look(u):
        out = jax.eval_shape(lambda v: 2 * v, u)
        manual = getattr(out, "manual_axis_type", None)
        return format_axes(getattr(out, "vma", None) or getattr(manual, "varying", None) or ())

    return Observed(trace_shard(env, look, ramp()), "x")


@probe(source="jax-ml/jax@3a26804c6848", records="the printed form of a type is up to JAX")
def printed_outside(env):
    """`typeof` of plain values prints `~` for a weak type since the short form was introduced.

    No reference: the words are the observation.
    """
    values = (np.float32(1), 1.0, True, jax.device_put(np.ones(3, jnp.bfloat16)))
    return [str(env.compat.typeof(value)) for value in values]
