"""Types of values that are no arrays (hijax): which transformations and loops take them.

The interface is experimental. Its names changed between releases; a type without operations needs
only those that remained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",), releases="jax>=0.9")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@dataclass(frozen=True)
class Box:
    """A value that holds an array."""

    content: Any


def register_box():
    """Make `Box` a type of values, and return the specification of an axis for `vmap`."""
    from jax.experimental import hijax  # noqa: PLC0415 - from 0.9.0

    @dataclass(frozen=True)
    class BoxType(hijax.HiType):
        shape: tuple[int, ...]

        def lo_ty(self):
            return [hijax.ShapedArray(self.shape, jnp.dtype("float32"))]

        def lower_val(self, box):
            return [box.content]

        def raise_val(self, content):
            return Box(content)

        def to_tangent_aval(self):
            return self

        def dec_rank(self, *_):
            return BoxType(self.shape[1:])

        def inc_rank(self, size, *_):
            return BoxType((size, *self.shape))

        def leading_axis_spec(self):
            return Rows()

    @dataclass(frozen=True)
    class Rows(getattr(hijax, "MappingSpec", object)):
        pass

    hijax.register_hitype(Box, lambda box: BoxType(box.content.shape))
    return Rows()


def repeat(box):
    """Carry a value through a scan."""
    return lax.scan(lambda carry, _: (carry, None), box, length=2)[0]


def wait(box):
    """Carry a value through a while_loop."""
    return lax.while_loop(
        lambda carry: carry[1] < 2, lambda carry: (carry[0], carry[1] + 1), (box, 0)
    )[0]


def same(box):
    """Return the value."""
    return box


def by_rule(box):
    """Call a function with a backward rule."""
    f = jax.custom_vjp(same)
    f.defvjp(lambda box: (box, None), lambda _, cotangent: (cotangent,))
    return f(box)


PLAIN = {
    "scan": repeat,
    "while_loop": wait,
    "scanned": lambda box: lax.scan(lambda carry, row: (carry, row), 0, box, length=2)[1],
    "cond": lambda box: lax.cond(jnp.sin(1.0) > 0, same, same, box),
    "checkpoint": jax.checkpoint(same),
    "custom_vjp": by_rule,
}
NO_CONDITION = deviation(
    "jax>=0.9.1",
    params=["cond"],
    error="TypeError",
    match="expected ArrayLike",
    reason="the operands of the branches are converted to arrays",
)
NO_ROWS = deviation(
    "jax<0.9.1",
    params=["scanned"],
    error="AttributeError",
    match="sharding",
    reason="a scan took only arrays apart",
    issue="jax-ml/jax#39700",
)
NO_BACKWARD_RULE = deviation(
    "jax<0.10.2",
    params=["custom_vjp"],
    error="AttributeError",
    match="DynamicJaxprTracer has no attribute",
    reason="a function with a backward rule was lowered with its types",
)
NO_CHECKPOINT = deviation(
    params=["checkpoint"],
    error="AttributeError",
    match="DynamicJaxprTracer has no attribute",
    reason="the results of a checkpointed function are not made values of their types again",
)


@probe(
    source="jax-ml/jax#39700",
    params=[*PLAIN],
    deviations=[NO_CONDITION, NO_ROWS, NO_BACKWARD_RULE, NO_CHECKPOINT],
)
def value_in_a_program(env, name):
    """A jitted function returns a value of a new type that a loop, branch or rule hands on."""
    register_box()
    return Observed(jax.jit(PLAIN[name])(Box(jnp.asarray(X))).content, X)


IN_LANES = {
    "identity": same,
    "jit": jax.jit(same),
    "scan": repeat,
    "while_loop": wait,
    "checkpoint": jax.checkpoint(same),
}


NO_AXES_OF_A_TYPE = deviation(
    "jax<0.11",
    error="TypeError",
    match="vmap in_axes must be an int, None, or a tuple",
    reason="axes were numbers",
    issue="jax-ml/jax#38125",
)
NO_LOOP_IN_LANES = [
    deviation(
        "jax>=0.11,<0.12",
        params=["scan"],
        error="TracerArrayConversionError",
        reason="the batching rule converts the carry to an array",
        issue="jax-ml/jax#39727",
    ),
    deviation(
        "jax>=0.11",
        params=["while_loop"],
        error="TracerArrayConversionError",
        reason="the batching rule converts the carry to an array",
        issue="jax-ml/jax#39727",
    ),
]
NO_CHECKPOINT_IN_LANES = deviation(
    "jax>=0.11",
    params=["checkpoint"],
    error="StoreException",
    reason="the structure of the results is not stored",
)


@probe(
    source="jax-ml/jax#39727",
    params=[*IN_LANES],
    deviations=[NO_AXES_OF_A_TYPE, *NO_LOOP_IN_LANES, NO_CHECKPOINT_IN_LANES],
)
def value_in_lanes(env, name):
    """`vmap` of a function that returns a value of a new type, along an axis of the type."""
    rows = register_box()
    f = jax.vmap(IN_LANES[name], in_axes=rows, out_axes=rows, axis_size=2)
    return Observed(jax.jit(f)(Box(jnp.asarray(X))).content, X)


def make_square():
    """Return a function that squares by a primitive of this interface, with a derivative."""
    from jax.experimental import hijax  # noqa: PLC0415 - up to 0.11.1

    class Square(hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x * x

        def jvp(self, primals, tangents):
            return self(*primals), 2 * primals[0] * tangents[0]

    return lambda x: Square(jax.typeof(x))(x)


NOT_LOWERED_IN_A_MAP = deviation(
    "jax<0.9",
    error="NotImplementedError",
    match="MLIR translation rule for primitive",
    reason="the primitive remained in the program of the map",
    issue="jax-ml/jax@2ecafeeeff71",
)


@probe(
    source="jax-ml/jax@2ecafeeeff71",
    devices=2,
    releases="jax>=0.8.1,<0.11.2",
    deviations=[NOT_LOWERED_IN_A_MAP],
)
def primitive_of_each_shard(env):
    """Under jit, a shard_map may call a primitive of the interface of new types."""
    mesh, square = env.mesh(2, "x", explicit=True), make_square()
    x = np.arange(4, dtype=np.float32)
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(square, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        out = np.asarray(jax.jit(f)(jax.device_put(x, P("x"))))
    return Observed(out, x * x)


RECOMPUTED = {
    "value": lambda f: jax.jit(f)(jnp.float32(3)),
    "gradient": lambda f: jax.jit(jax.grad(f))(jnp.float32(3)),
}
NOT_LOWERED_IN_CHECKPOINT = deviation(
    "jax<0.9.1",
    params=["value"],
    error="NotImplementedError",
    match="MLIR translation rule for primitive",
    reason="the primitive remained in the program of checkpoint",
    issue="jax-ml/jax@da2785a34b99",
)


@probe(
    source="jax-ml/jax@da2785a34b99",
    params=[*RECOMPUTED],
    releases="jax>=0.8.1,<0.11.2",
    deviations=[NOT_LOWERED_IN_CHECKPOINT],
)
def primitive_in_checkpoint(env, name):
    """Under jit, `jax.checkpoint` of a primitive of the interface of new types runs."""
    exact = {"value": 9, "gradient": 6}[name]
    return Observed(RECOMPUTED[name](jax.checkpoint(make_square())), np.float64(exact))
