"""Batching rules of one's own, and what vmap itself accepts: axes, scalars, callbacks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap, sequential_vmap

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.endings import ending
from conformance.kit.equations import counts

from ._helpers import floats


def marked(calls=None):
    """Return a function, twice its argument, whose batching rule adds 100; and notes its calls."""
    fn = custom_vmap(lambda x: 2 * x)

    @fn.def_vmap
    def rule(axis_size, in_batched, x):
        if calls is not None:
            calls.append(int(axis_size))
        return 2 * x + 100, in_batched[0]

    return fn


@program(
    source="jax-ml/jax#22937",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.33",
            error="AssertionError",
            reason="a bare assertion",
            issue="jax-ml/jax#22937",
        )
    ],
)
def rule_that_is_missing(env):
    """Vmap of a `custom_vmap` function without a rule says that `def_vmap` was not used."""
    fn = jax.vmap(custom_vmap(lambda x: 2 * x))
    refused = raises("AttributeError", match="No batching rule defined for custom_vmap function")
    return Program(fn, args=(floats(1, 2),), reference=refused)


@program(
    source="jax-ml/jax#9073",
    platforms=("cpu",),
    params={"unmapped": {"mapped": False}, "mapped": {"mapped": True}},
    deviations=[
        deviation(
            "jax<0.4.38",
            params=["unmapped"],
            error="AssertionError",
            reason="a bare assertion",
            issue="jax-ml/jax@092d2a0db598",
        )
    ],
)
def reverse_mode_of_a_rule(env, mapped):
    """A `custom_vmap` function has no reverse mode until vmap has put its rule in its place.

    Write a `custom_vjp` around it, or differentiate outside of the vmap.
    """
    fn = marked()
    if mapped:
        return Program(
            jax.grad(lambda x: jnp.sum(jax.vmap(fn)(x) ** 2)),
            args=(floats(1, 2),),
            reference=np.array([4.0 * 102, 4 * 104]),
        )
    refused = raises("ValueError", match="does not support reverse-mode autodiff")
    return Program(jax.grad(fn), args=(np.float32(1),), reference=refused)


@probe(source="jax-ml/jax#9073")
def rule_and_jvp(env):
    """Forward mode and the rule in both orders: value and derivative are those of the rule."""
    calls = []
    fn = marked(calls)

    def both(x, t):
        inside = jax.vmap(lambda x, t: jax.jvp(fn, (x,), (t,)))(x, t)
        return {"vmap_of_jvp": inside, "jvp_of_vmap": jax.jvp(jax.vmap(fn), (x,), (t,))}

    found = jax.jit(both)(floats(1, 2, 3), floats(1, 10, 100))
    want = (floats(102, 104, 106), floats(2, 20, 200))
    return Observed(
        {**found, "sizes": sorted(set(calls))},
        {"vmap_of_jvp": want, "jvp_of_vmap": want, "sizes": [3]},
    )


@program(source="jax-ml/jax#9073")
def rule_inside(env):
    """The rule is used inside a scan, a cond and a jit that are mapped over."""
    fn = marked()

    def inside(p, x):
        return {
            "scan": lax.scan(lambda c, _: (fn(c), None), x, length=2)[0],
            "cond": lax.cond(p, fn, lambda x: -x, x),
            "jit": jax.jit(fn)(x),
        }

    want = {"scan": [304.0, 308.0], "cond": [102.0, -2.0], "jit": [102.0, 104.0]}
    return Program(
        jax.vmap(inside),
        args=(np.array([True, False]), floats(1, 2)),
        reference={name: np.array(one) for name, one in want.items()},
    )


@probe(
    source="jax-ml/jax@69fc8bb419ab",
    deviations=[
        deviation(
            "jax<0.4.33",
            error="TypeError",
            match="missing 1 required positional argument",
            reason="defaults of the function were not filled in for its rule",
            issue="jax-ml/jax@69fc8bb419ab",
        ),
        deviation(
            "jax>=0.9.2",
            outcome="ok",
            reason="with the default as jax hands it over NumPy computes in float64, without x64",
            issue="jax-ml/jax@c43f0a0fae3a",
        ),
    ],
)
def rule_with_a_default(env):
    """A default reaches the rule as an argument; from 0.9.2 it makes NumPy arguments float64.

    The rule is then handed NumPy scalars for Python numbers. Compute with `jnp` in rules.
    """
    fn = custom_vmap(lambda x, y=3.0: x * y)

    @fn.def_vmap
    def rule(_axis_size, _in_batched, x, y):
        return x * y + 100, True

    x = floats(1, 2)
    return Observed(
        (jax.vmap(fn)(x), jax.vmap(lambda x: fn(x, y=x))(x)), (floats(103, 106), floats(101, 104))
    )


@probe(source="jax-ml/jax#9073")
def one_lane_at_a_time(env):
    """`sequential_vmap` makes a loop of the lanes: one sine in the program, in a scan."""
    fn = jax.vmap(sequential_vmap(jnp.sin))
    x = floats(1, 2, 3)
    found = counts(lambda x: jax.jvp(fn, (x,), (x,))[0], (x,), "scan while")
    return Observed(
        {"value": jax.jit(fn)(x), "loops": found["scan"] + found["while"]},
        {"value": np.sin([1.0, 2, 3]), "loops": 1},
    )


@program(
    source="jax-ml/jax@446893cf9ffc",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="the scalar came through as if it were not mapped",
            issue="jax-ml/jax@446893cf9ffc",
        )
    ],
)
def axis_of_a_scalar(env):
    """`in_axes=0` of a scalar is refused; with `axis_size` it was let through up to 0.9.2."""
    fn = jax.vmap(lambda x: x, in_axes=0, axis_size=4)
    refused = raises("ValueError", match="its rank should be at least 1, but is only 0")
    return Program(fn, args=(np.float32(3),), reference=refused)


@program(
    source="jax-ml/jax#23881",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="without a method the lanes were called one after the other",
            issue="jax-ml/jax#23881",
        )
    ],
)
def callback_without_a_method(env):
    """`pure_callback` under vmap wants `vmap_method` since 0.6.0; `sequential` was the default."""

    def fn(x):
        return jax.pure_callback(lambda a: 2 * np.asarray(a), jax.ShapeDtypeStruct((), x.dtype), x)

    refused = raises("NotImplementedError", match="Got vmap_method=None")
    return Program(jax.vmap(fn), args=(floats(1, 2),), reference=refused)


@program(source="jax-ml/jax#26275")
def mapped_linear_solve(env):
    """`custom_linear_solve` under vmap and grad: the transposed system, for each right side."""
    matrices = {"symmetric": np.array([[4.0, 1], [1, 3]]), "general": np.array([[4.0, 1], [2, 3]])}

    def solve(name, b):
        a, inverse = (one.astype(np.float32) for one in (matrices[name], inverses[name]))
        return lax.custom_linear_solve(
            lambda x: a @ x,
            b,
            solve=lambda _, b: inverse @ b,
            transpose_solve=lambda _, b: inverse.T @ b,
            symmetric=name == "symmetric",
        )

    def both(b):
        return {
            name: (solve(name, b), jax.jacrev(lambda b: solve(name, b))(b)) for name in matrices
        }

    inverses = {name: np.linalg.inv(one) for name, one in matrices.items()}
    b = env.rng(2).normal(size=(3, 2)).astype(np.float32)
    return Program(
        jax.vmap(both),
        args=(b,),
        reference=lambda b: {
            name: (b @ one.T, np.tile(one, (3, 1, 1))) for name, one in inverses.items()
        },
    )


@probe(
    source="jax-ml/jax#26908",
    deviations=[
        deviation(
            "jax>=0.4.36,<0.5.3",
            outcome="ok",
            reason="the names of arguments were looked up by position, and ended before the stars",
            issue="jax-ml/jax#26908",
        )
    ],
)
def sizes_that_differ_among_starred_arguments(env):
    """`vmap` of `f(x, *rest)` over two sizes: for a while an IndexError, not which they are."""
    call = jax.vmap(lambda x, *rest: x - rest[0] - rest[1])
    said = ending(
        call, floats(1, 2, 3, 4), floats(1, 2), floats(1, 2), words=("inconsistent sizes",)
    )
    return Observed(said, "ValueError: inconsistent sizes")


@jax.tree_util.register_pytree_with_keys_class
class Fields:
    """Numbers by name, as a pytree whose children have keys."""

    def __init__(self, **named):
        self.named = named

    def tree_flatten_with_keys(self):
        """Return children with keys, and the names."""
        keyed = [(jax.tree_util.GetAttrKey(name), value) for name, value in self.named.items()]
        return keyed, tuple(self.named)

    @classmethod
    def tree_unflatten(cls, names, children):
        """Return fields of these names."""
        return cls(**dict(zip(names, children, strict=True)))


@probe(
    source="jax-ml/jax#25659",
    deviations=[
        deviation(
            "jax>=0.9.2,<0.11",
            outcome="ok",
            reason="whoever made the message took all keys for those of a dictionary",
            issue="jax-ml/jax#25659",
        )
    ],
)
def axes_of_another_class(env):
    """`in_axes` that lack a field of the argument: refused, for a while by an AttributeError."""
    call = jax.vmap(lambda t: t.named["a"], in_axes=(Fields(a=0),))
    said = ending(call, Fields(a=floats(1, 2), b=floats(3, 4)), words=("must be a tree prefix",))
    return Observed(said, "ValueError: must be a tree prefix")
