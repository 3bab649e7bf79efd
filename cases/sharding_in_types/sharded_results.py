"""Results of operations on Explicit axes: their sharding, and refusals that came and went.

Each function has a natural sharding of its result: that of its argument, or the one of
`out_sharding=`. The values are those of NumPy.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import format_spec, numbers, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6.1")

ROWS = numbers(4, 4)
FUNCTIONS = {
    "tril": (jnp.tril, np.tril),
    "triu": (jnp.triu, np.triu),
    "reflect": (
        lambda x: jnp.pad(x, [(0, 0), (1, 1)], mode="reflect"),
        lambda x: np.pad(x, [(0, 0), (1, 1)], mode="reflect"),
    ),
    "tile_columns": (lambda x: jnp.tile(x, (1, 2)), lambda x: np.tile(x, (1, 2))),
    "gradient_of_a_maximum": (
        lambda x: jax.vmap(jax.grad(lambda total: jnp.maximum(30.0, total)))(x.sum(1)),
        lambda x: (x.sum(1) > 30).astype(np.float32),
    ),
    "tangent_of_a_difference": (
        lambda x: jax.jvp(lambda scale: x - scale, (0.0,), (1.0,))[1],
        lambda x: 0 * x - 1,
    ),
    "gradient_of_an_update": (
        jax.grad(lambda x: lax.dynamic_update_slice(x, 2 * x, (0, 0)).sum()),
        lambda x: 0 * x + 2,
    ),
    "column_of_each": (
        jax.vmap(lambda row: lax.dynamic_slice(row, (jnp.int32(1),), (1,))),
        lambda x: x[:, 1:2],
    ),
    "multiply_at": (
        lambda x: x.at[np.array([0, 2]), 0].multiply(3.0, out_sharding=P("x")),
        lambda x: x * np.array([[3, 1, 1, 1], [1] * 4] * 2, np.float32),
    ),
}
TRIANGLE_UNSHARDED = deviation(
    "jax<0.9.2",
    params=["tril", "triu"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="the mask of the triangle was not sharded",
    issue="jax-ml/jax@ecaa24e6897f",
)
EMPTY_SLICES = deviation(
    "jax<0.8.1",
    params=["reflect"],
    error="ShardingTypeError",
    match="slicing on sharded dims",
    reason="a padding of no rows was made by slices of the sharded rows",
    issue="jax-ml/jax@1f556c1262b7",
)
TILED_BY_RESHAPES = deviation(
    "jax<0.9",
    params=["tile_columns"],
    error="ShardingTypeError",
    match="Merging on more than 1 axis is not supported",
    reason="tile was made of reshapes",
    issue="jax-ml/jax@c396a367803f",
)
CONSTANT_UNSHARDED = deviation(
    "jax<0.10.2",
    params=["gradient_of_a_maximum"],
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="a constant that a select takes for each lane was not sharded",
    issue="jax-ml/jax@e1eb2a994cd7",
)
TANGENT_UNSHARDED = deviation(
    "jax<0.9",
    params=["tangent_of_a_difference"],
    outcome="ok",
    reason="the rule of sub broadcast the tangent without its sharding",
    issue="jax-ml/jax@eac6699d16ff",
)
UPDATE_UNSHARDED = deviation(
    "jax<0.7",
    params=["gradient_of_an_update"],
    error="ShardingTypeError",
    match="update sharding must be equal to operand sharding",
    reason="the zeros of the transpose were not sharded",
    issue="jax-ml/jax@07585ef42b55",
)
GATHER_WITHOUT_RULE = deviation(
    "jax<0.7",
    params=["column_of_each"],
    error="ShardingTypeError",
    match=r"\.get\(out_sharding=\)",
    reason="slices of lanes are a gather, whose rule refused all sharded operands",
    issue="jax-ml/jax@6f9240bd0393",
)
MULTIPLY_WITHOUT_SHARDING = deviation(
    "jax<0.10.1",
    params=["multiply_at"],
    error="TypeError",
    match="unexpected keyword argument 'out_sharding'",
    reason="only set, add and get had the parameter",
    issue="jax-ml/jax@ba2fa98b25ac",
)


@probe(
    source="jax-ml/jax@ecaa24e6897f",
    params=[*FUNCTIONS],
    deviations=[
        TRIANGLE_UNSHARDED,
        EMPTY_SLICES,
        TILED_BY_RESHAPES,
        CONSTANT_UNSHARDED,
        TANGENT_UNSHARDED,
        UPDATE_UNSHARDED,
        GATHER_WITHOUT_RULE,
        MULTIPLY_WITHOUT_SHARDING,
    ],
)
def sharded_as_the_rows(env, name):
    """A function of a matrix with sharded rows, which works on each row, has sharded rows."""
    fn, exact = FUNCTIONS[name]
    mesh = env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(fn)(put(mesh, ROWS, "x"))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact(ROWS)}
    )


REPEATED = deviation(
    "jax>=0.9,<0.10",
    outcome="ok",
    reason="the tiled axis kept its sharding, for which elements move between devices",
    issue="jax-ml/jax@0f87a2fc7aef",
)


@probe(source="jax-ml/jax@0f87a2fc7aef", deviations=[REPEATED])
def tile_along_the_sharded_axis(env):
    """`jnp.tile` along a sharded axis is refused, except by 0.9.0 to 0.9.2."""
    mesh = env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        try:
            outcome = format_spec(jax.jit(lambda x: jnp.tile(x, (2, 1)))(put(mesh, ROWS, "x")))
        except Exception as error:  # noqa: BLE001 - the class is the observation
            outcome = type(error).__name__
    return Observed(outcome, "ShardingTypeError")


RESHAPES = {
    "split_over_two": ((4, 2), (("x", "y"),), (2, 2, 2), "['x', 'y']"),
    "merge_of_two": ((2, 2, 2), ("x", "y"), (4, 2), "[('x', 'y')]"),
    "one_in_the_middle": ((4, 2, 3), ("x",), (4, 1, 6), "['x']"),
    "one_in_front": ((4, 2, 3), ("x",), (1, 4, 6), "[None, 'x']"),
}
TWO_AXES = deviation(
    "jax<0.10",
    params=["split_over_two", "merge_of_two"],
    error="ShardingTypeError",
    match="This reshape is not supported",
    reason="a dimension over two mesh axes was never split, and two sharded ones never merged",
    issue="jax-ml/jax@8f39e8fc4573",
)
ONES_AND_MERGES = deviation(
    "jax<0.11",
    params=["one_in_the_middle", "one_in_front"],
    error="ShardingTypeError",
    match="This reshape is not supported",
    reason="a dimension of length 1 and a merge at once were not recognised",
)


@probe(
    source="jax-ml/jax@8f39e8fc4573",
    params=[*RESHAPES],
    deviations=[TWO_AXES, ONES_AND_MERGES],
)
def reshape_without_communication(env, name):
    """A reshape that leaves each element on its device keeps the sharding."""
    shape, spec, to, expected = RESHAPES[name]
    mesh, x = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(*shape)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda x: x.reshape(to))(put(mesh, x, *spec))
    return Observed(
        {"spec": format_spec(out), "value": out}, {"spec": expected, "value": x.reshape(to)}
    )


def reshape_in_column_order(x):
    """Return a vector as columns of four elements, sharded by columns."""
    return jnp.reshape(x, (-1, 4), order="F", out_sharding=P(None, "y"))


def product_of_ones(x):
    """Return products of stacks of one matrix, sharded by stack."""
    a, b = x.reshape(1, 1, 16), x.reshape(1, 16, 1)
    a, b = put_in_context(a, "x", None, "y"), put_in_context(b, "x", "y", None)
    return jnp.matmul(a, b, out_sharding=P("x"))


def put_in_context(x, *spec):
    """Return an array with a sharding on the mesh of the context."""
    return jax.device_put(x, P(*spec))


def product_of_three(x):
    """Return row sums of products of three matrices, sharded over one axis."""
    a = x.reshape(4, 4)
    factors = [put_in_context(a, *spec) for spec in (("x", "y"), ("y", None), ("x", None))]
    return jax.jit(lambda *f: jnp.einsum("ab,bc,ac->a", *f, out_sharding=P("x")))(*factors)


REQUESTED = {
    "column_order": (
        (1, 2),
        lambda x: reshape_in_column_order(put_in_context(x, "y")),
        lambda x: x.reshape(-1, 4, order="F"),
        "[None, 'y']",
    ),
    "product_of_ones": (
        (1, 2),
        product_of_ones,
        lambda x: (x @ x).reshape(1, 1, 1),
        "['x']",
    ),
    "product_of_three": (
        (2, 2),
        product_of_three,
        lambda x: np.einsum("ab,bc,ac->a", *[x.reshape(4, 4)] * 3),
        "['x']",
    ),
}
ORDER_F_UNSHARDED = deviation(
    "jax<0.8.1",
    params=["column_order"],
    outcome="ok",
    reason="the result was transposed after it had got the sharding",
    issue="jax-ml/jax@543cbac4e315",
)
NO_OUT_SHARDING = deviation(
    "jax<0.7",
    params=["product_of_ones"],
    error="TypeError",
    reason="matmul had no parameter out_sharding",
    issue="jax-ml/jax@57ce8fb6171a",
)
ONES_SQUEEZED = deviation(
    "jax>=0.7,<0.10.2",
    params=["product_of_ones"],
    outcome="ok",
    reason="dimensions of length 1 were squeezed first, so that the spec meant other dimensions",
    issue="jax-ml/jax@085710a88cfd",
)
INTERMEDIATE_REFUSED = deviation(
    "jax<0.7.1",
    params=["product_of_three"],
    error="ShardingTypeError",
    match="Contracting dimensions are sharded",
    reason="out_sharding applied to the last of the two products only",
    issue="jax-ml/jax@de5452180cff",
)


@probe(
    source="jax-ml/jax@543cbac4e315",
    params=[*REQUESTED],
    deviations=[ORDER_F_UNSHARDED, NO_OUT_SHARDING, ONES_SQUEEZED, INTERMEDIATE_REFUSED],
)
def requested_by_out_sharding(env, name):
    """The result has the sharding of `out_sharding=`."""
    shape, fn, exact, expected = REQUESTED[name]
    mesh, x = env.mesh(shape, ("x", "y"), explicit=True), numbers(16)
    with env.compat.set_mesh(mesh):
        out = fn(x)
    return Observed({"spec": format_spec(out), "value": out}, {"spec": expected, "value": exact(x)})
