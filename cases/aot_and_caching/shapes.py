"""Programs asked about without values: ShapeDtypeStruct, eval_shape, make_jaxpr."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import told


@probe(
    source="jax-ml/jax@0605bc4a5dbe",
    params={"assigned": {"way": "assigned"}, "updated": {"way": "updated"}},
    deviations=[
        deviation(
            "jax<0.6.1", params=["assigned"], outcome="ok", reason="attributes could be assigned"
        ),
        deviation(
            "jax<0.6.1",
            params=["updated"],
            error="AttributeError",
            match="update",
            reason="there was no update; make a new one",
        ),
    ],
)
def shapes_do_not_change(env, way):
    """A ShapeDtypeStruct is immutable since 0.6.1, and `update` makes another."""
    given = jax.ShapeDtypeStruct((2,), np.float32)
    if way == "updated":
        new = given.update(shape=(3,))
        return Observed([new.shape, given.shape, str(new.dtype)], [(3,), (2,), "float32"])
    return Observed(told(lambda: setattr(given, "shape", (3,))), "RuntimeError")


@probe(
    source="jax-ml/jax@71fee995c72f",
    deviations=[
        deviation("jax<0.10.2", error="AttributeError", match="like", reason="not yet there")
    ],
)
def shape_like(env):
    """`ShapeDtypeStruct.like(array)` from 0.10.2 on: shape and dtype of anything that has them."""
    like = jax.ShapeDtypeStruct.like(np.ones((2, 3), np.int16))
    return Observed([like.shape, str(like.dtype)], [(2, 3), "int16"])


@probe(
    source="jax-ml/jax@b886bd730037",
    deviations=[deviation("jax<0.4.34", outcome="ok", reason="an argument that xmap had used")],
)
def named_shape(env):
    """`named_shape` of a ShapeDtypeStruct is gone since 0.4.34, after the xmap it served."""
    call = jax.ShapeDtypeStruct
    return Observed(told(lambda: call((2,), np.float32, named_shape={}) and 0), "TypeError")


@probe(
    source="jax-ml/jax#23302",
    params={"eval_shape": {"api": "eval_shape"}, "method": {"api": "method"}},
    deviations=[
        deviation(
            "jax<0.4.33",
            error="AttributeError",
            match="weak_type",
            reason="a ShapeDtypeStruct could not say it",
        )
    ],
)
def weak_type_is_told(env, api):
    """eval_shape says whether a result is weakly typed, since 0.4.32.

    What is lowered for a ShapeDtypeStruct without it is another program than a call with a Python
    scalar traces.
    """
    ask = {
        "eval_shape": jax.eval_shape,
        "method": lambda fn, x: jax.jit(fn).eval_shape(x),
    }[api]
    seen = [ask(lambda x: x + 1, given).weak_type for given in (1.0, np.float32(1))]
    strong = ask(lambda x: x + 1, jax.ShapeDtypeStruct((), np.float32)).weak_type
    return Observed([*seen, strong], [True, False, False])


@probe(
    source="jax-ml/jax#34193",
    deviations=[
        deviation("jax<0.4.33", error="AttributeError", match="weak_type", reason="not told"),
        deviation(
            "jax>=0.4.33,<0.9.1",
            outcome="ok",
            reason="weak types were forgotten in the shapes returned",
            issue="jax-ml/jax#34193",
        ),
    ],
)
def shapes_beside_a_jaxpr(env):
    """`make_jaxpr(return_shape=True)` keeps weak types since 0.9.1, as eval_shape does."""
    _, shape = jax.make_jaxpr(lambda x: x + 1, return_shape=True)(1.0)
    return Observed(shape.weak_type, True)


@probe(source="jax-ml/jax#7997", devices=4)
def shardings_of_what_comes_out(env):
    """`out_shardings` are told by eval_shape of the jitted function, and by the lowered one."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    fn = jax.jit(lambda x: x + 1, out_shardings=rows)
    x = np.ones(8, np.float32)
    told_by = [fn.eval_shape(x), fn.lower(x).out_info, jax.jit(lambda x: x + 1).eval_shape(x)]
    seen = [s.sharding is not None and s.sharding.is_equivalent_to(rows, 1) for s in told_by]
    return Observed(seen, [True, True, False])


@probe(source="jax-ml/jax#23302")
def nothing_is_computed(env):
    """eval_shape runs the Python and no program: terabytes are fine, branches on values are not."""
    huge = jax.ShapeDtypeStruct((1 << 20, 1 << 20), jnp.bfloat16)
    product = jax.eval_shape(lambda a, *, b: {"c": a @ b.T}, huge, b=huge)["c"]
    seen = [product.shape, str(product.dtype)]
    scalar = jax.ShapeDtypeStruct((), np.float32)
    branch = told(lambda: jax.eval_shape(lambda x: x if x > 0 else -x, scalar))
    return Observed([*seen, branch], [(1 << 20, 1 << 20), "bfloat16", "TracerBoolConversionError"])


@probe(source="jax-ml/jax#692")
def jaxpr_of_static_arguments(env):
    """make_jaxpr bakes static arguments in, as jit does: one variable, one equation."""
    jaxpr = jax.make_jaxpr(lambda x, n: x**n, static_argnums=1)(np.float32(2), 3)
    seen = [len(jaxpr.in_avals), jaxpr.eqns[0].primitive.name, jaxpr.eqns[0].params["y"]]
    traced = jax.jit(lambda x, n: x**n, static_argnums=1).trace(np.float32(2), 3).jaxpr
    return Observed([*seen, len(traced.in_avals)], [1, "integer_pow", 3, 1])
