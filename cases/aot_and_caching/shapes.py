"""Programs inspected without values: ShapeDtypeStruct, eval_shape, make_jaxpr."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import classify_outcome

ATTRIBUTES_ASSIGNABLE = deviation(
    "jax<0.6.1", params=["assigned"], outcome="ok", reason="attributes could be assigned"
)
STRUCT_HAD_NO_UPDATE = deviation(
    "jax<0.6.1",
    params=["updated"],
    error="AttributeError",
    match="update",
    reason="a ShapeDtypeStruct had no update; make a new struct",
)


@probe(
    source="jax-ml/jax@0605bc4a5dbe",
    params={"assigned": {"way": "assigned"}, "updated": {"way": "updated"}},
    deviations=[ATTRIBUTES_ASSIGNABLE, STRUCT_HAD_NO_UPDATE],
)
def shapes_do_not_change(env, way):
    """A ShapeDtypeStruct is immutable from 0.6.1, and `update` returns a changed copy."""
    struct = jax.ShapeDtypeStruct((2,), np.float32)
    if way == "updated":
        new = struct.update(shape=(3,))
        return Observed([new.shape, struct.shape, str(new.dtype)], [(3,), (2,), "float32"])
    return Observed(classify_outcome(lambda: setattr(struct, "shape", (3,))), "RuntimeError")


STRUCT_HAD_NO_LIKE = deviation(
    "jax<0.10.2", error="AttributeError", match="like", reason="ShapeDtypeStruct had no like"
)


@probe(source="jax-ml/jax@71fee995c72f", deviations=[STRUCT_HAD_NO_LIKE])
def shape_like(env):
    """`ShapeDtypeStruct.like` takes shape and dtype of any object that has them, from 0.10.2."""
    like = jax.ShapeDtypeStruct.like(np.ones((2, 3), np.int16))
    return Observed([like.shape, str(like.dtype)], [(2, 3), "int16"])


NAMED_SHAPE_ACCEPTED = deviation(
    "jax<0.4.34", outcome="ok", reason="the constructor accepted named_shape, which xmap had used"
)


@probe(source="jax-ml/jax@b886bd730037", deviations=[NAMED_SHAPE_ACCEPTED])
def named_shape(env):
    """ShapeDtypeStruct takes no `named_shape` from 0.4.34, after the removal of xmap, its user."""
    call = jax.ShapeDtypeStruct
    return Observed(
        classify_outcome(lambda: call((2,), np.float32, named_shape={}) and 0), "TypeError"
    )


STRUCT_HAD_NO_WEAK_TYPE = deviation(
    "jax<0.4.33",
    error="AttributeError",
    match="weak_type",
    reason="a ShapeDtypeStruct had no weak_type",
)


@probe(
    source="jax-ml/jax#23302",
    params={"eval_shape": {"api": "eval_shape"}, "method": {"api": "method"}},
    deviations=[STRUCT_HAD_NO_WEAK_TYPE],
)
def weak_type_is_told(env, api):
    """eval_shape reports whether a result is weakly typed, from 0.4.32.

    A program lowered for a ShapeDtypeStruct without `weak_type` is another program than the trace
    of a call with a Python scalar.
    """
    evaluate = {
        "eval_shape": jax.eval_shape,
        "method": lambda fn, x: jax.jit(fn).eval_shape(x),
    }[api]
    result = [evaluate(lambda x: x + 1, argument).weak_type for argument in (1.0, np.float32(1))]
    strong = evaluate(lambda x: x + 1, jax.ShapeDtypeStruct((), np.float32)).weak_type
    return Observed([*result, strong], [True, False, False])


WEAK_TYPE_DROPPED = deviation(
    "jax>=0.4.33,<0.9.1",
    outcome="ok",
    reason="make_jaxpr dropped weak types in the shapes that it returned",
    issue="jax-ml/jax#34193",
)


@probe(source="jax-ml/jax#34193", deviations=[STRUCT_HAD_NO_WEAK_TYPE, WEAK_TYPE_DROPPED])
def shapes_beside_a_jaxpr(env):
    """`make_jaxpr(return_shape=True)` keeps weak types from 0.9.1, as eval_shape does."""
    _, shape = jax.make_jaxpr(lambda x: x + 1, return_shape=True)(1.0)
    return Observed(shape.weak_type, True)


@probe(source="jax-ml/jax#7997", devices=4)
def shardings_of_what_comes_out(env):
    """eval_shape of the jitted function and the Lowered both report `out_shardings`."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    fn = jax.jit(lambda x: x + 1, out_shardings=rows)
    x = np.ones(8, np.float32)
    sources = [fn.eval_shape(x), fn.lower(x).out_info, jax.jit(lambda x: x + 1).eval_shape(x)]
    result = [s.sharding is not None and s.sharding.is_equivalent_to(rows, 1) for s in sources]
    return Observed(result, [True, True, False])


@probe(source="jax-ml/jax#23302")
def nothing_is_computed(env):
    """eval_shape runs Python and no program: terabytes are fine, branches on values are not."""
    huge = jax.ShapeDtypeStruct((1 << 20, 1 << 20), jnp.bfloat16)
    product = jax.eval_shape(lambda a, *, b: {"c": a @ b.T}, huge, b=huge)["c"]
    result = [product.shape, str(product.dtype)]
    scalar = jax.ShapeDtypeStruct((), np.float32)
    branch = classify_outcome(lambda: jax.eval_shape(lambda x: x if x > 0 else -x, scalar))
    return Observed(
        [*result, branch], [(1 << 20, 1 << 20), "bfloat16", "TracerBoolConversionError"]
    )


@probe(source="jax-ml/jax#692")
def jaxpr_of_static_arguments(env):
    """make_jaxpr bakes in static arguments, as jit does: one variable, one equation."""
    jaxpr = jax.make_jaxpr(lambda x, n: x**n, static_argnums=1)(np.float32(2), 3)
    result = [len(jaxpr.in_avals), jaxpr.eqns[0].primitive.name, jaxpr.eqns[0].params["y"]]
    traced = jax.jit(lambda x, n: x**n, static_argnums=1).trace(np.float32(2), 3).jaxpr
    return Observed([*result, len(traced.in_avals)], [1, "integer_pow", 3, 1])
