"""Custom batching rules, and what vmap itself accepts: axes, scalars, callbacks."""

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


def make_doubling(calls=None):
    """Return a function that doubles its argument, with a batching rule that adds 100.

    Args:
        calls: List to which each call of the rule appends the axis size.
    """
    fn = custom_vmap(lambda x: 2 * x)

    @fn.def_vmap
    def rule(axis_size, in_batched, x):
        if calls is not None:
            calls.append(int(axis_size))
        return 2 * x + 100, in_batched[0]

    return fn


MISSING_RULE_WAS_AN_ASSERTION = deviation(
    "jax<0.4.33",
    error="AssertionError",
    reason="an AssertionError without a message",
    issue="jax-ml/jax#22937",
)


@program(source="jax-ml/jax#22937", platforms=("cpu",), deviations=[MISSING_RULE_WAS_AN_ASSERTION])
def rule_that_is_missing(env):
    """Under vmap, a `custom_vmap` function without a rule raises an AttributeError.

    The message states that no rule was defined with `def_vmap`.
    """
    fn = jax.vmap(custom_vmap(lambda x: 2 * x))
    expected_error = raises(
        "AttributeError", match="No batching rule defined for custom_vmap function"
    )
    return Program(fn, args=(floats(1, 2),), reference=expected_error)


REVERSE_MODE_WAS_AN_ASSERTION = deviation(
    "jax<0.4.38",
    params=["unmapped"],
    error="AssertionError",
    reason="an AssertionError without a message",
    issue="jax-ml/jax@092d2a0db598",
)


@program(
    source="jax-ml/jax#9073",
    platforms=("cpu",),
    params={"unmapped": {"mapped": False}, "mapped": {"mapped": True}},
    deviations=[REVERSE_MODE_WAS_AN_ASSERTION],
)
def reverse_mode_of_a_rule(env, mapped):
    """A `custom_vmap` function has no reverse mode until vmap has replaced it by its rule.

    Write a `custom_vjp` around it, or differentiate outside of the vmap.
    """
    fn = make_doubling()
    if mapped:
        return Program(
            jax.grad(lambda x: jnp.sum(jax.vmap(fn)(x) ** 2)),
            args=(floats(1, 2),),
            reference=np.array([4.0 * 102, 4 * 104]),
        )
    expected_error = raises("ValueError", match="does not support reverse-mode autodiff")
    return Program(jax.grad(fn), args=(np.float32(1),), reference=expected_error)


@probe(source="jax-ml/jax#9073")
def rule_and_jvp(env):
    """In both orders of jvp and vmap, value and derivative are those of the batching rule."""
    calls = []
    fn = make_doubling(calls)

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
    """The batching rule is used inside a scan, a cond and a jit under vmap."""
    fn = make_doubling()

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
        reference={name: np.array(values) for name, values in want.items()},
    )


DEFAULTS_NOT_PASSED_TO_RULE = deviation(
    "jax<0.4.33",
    error="TypeError",
    match="missing 1 required positional argument",
    reason="default arguments of the function were not passed to its rule",
    issue="jax-ml/jax@69fc8bb419ab",
)
DEFAULT_IS_A_NUMPY_SCALAR = deviation(
    "jax>=0.9.2",
    outcome="ok",
    reason="NumPy computes in float64 with the default as jax passes it, even without x64",
    issue="jax-ml/jax@c43f0a0fae3a",
)


@probe(
    source="jax-ml/jax@69fc8bb419ab",
    deviations=[DEFAULTS_NOT_PASSED_TO_RULE, DEFAULT_IS_A_NUMPY_SCALAR],
)
def rule_with_a_default(env):
    """A default reaches the rule as an argument; from 0.9.2 it makes NumPy arguments float64.

    The rule then receives NumPy scalars for Python numbers. Compute with `jnp` in rules.
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
    """`sequential_vmap` runs the lanes in a loop, one at a time.

    The jaxpr of its jvp has a single loop: a scan or a while.
    """
    fn = jax.vmap(sequential_vmap(jnp.sin))
    x = floats(1, 2, 3)
    found = counts(lambda x: jax.jvp(fn, (x,), (x,))[0], (x,), "scan while")
    return Observed(
        {"value": jax.jit(fn)(x), "loops": found["scan"] + found["while"]},
        {"value": np.sin([1.0, 2, 3]), "loops": 1},
    )


SCALAR_RETURNED = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the scalar was returned as if it were unmapped",
    issue="jax-ml/jax@446893cf9ffc",
)


@program(source="jax-ml/jax@446893cf9ffc", platforms=("cpu",), deviations=[SCALAR_RETURNED])
def axis_of_a_scalar(env):
    """`in_axes=0` of a scalar is refused; with `axis_size` it was accepted up to 0.9.2."""
    fn = jax.vmap(lambda x: x, in_axes=0, axis_size=4)
    expected_error = raises("ValueError", match="its rank should be at least 1, but is only 0")
    return Program(fn, args=(np.float32(3),), reference=expected_error)


SEQUENTIAL_BY_DEFAULT = deviation(
    "jax<0.6",
    outcome="ok",
    reason="without a vmap_method the callback was called for one lane after the other",
    issue="jax-ml/jax#23881",
)


@program(source="jax-ml/jax#23881", platforms=("cpu",), deviations=[SEQUENTIAL_BY_DEFAULT])
def callback_without_a_method(env):
    """`pure_callback` under vmap needs `vmap_method` since 0.6.0; `sequential` was the default."""

    def fn(x):
        return jax.pure_callback(lambda a: 2 * np.asarray(a), jax.ShapeDtypeStruct((), x.dtype), x)

    expected_error = raises("NotImplementedError", match="Got vmap_method=None")
    return Program(jax.vmap(fn), args=(floats(1, 2),), reference=expected_error)


@program(source="jax-ml/jax#26275")
def mapped_linear_solve(env):
    """`custom_linear_solve` works under vmap and reverse mode, for each right-hand side.

    Reverse mode solves the transposed system.
    """
    matrices = {"symmetric": np.array([[4.0, 1], [1, 3]]), "general": np.array([[4.0, 1], [2, 3]])}

    def solve(name, b):
        a, inverse = (m.astype(np.float32) for m in (matrices[name], inverses[name]))
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

    inverses = {name: np.linalg.inv(matrix) for name, matrix in matrices.items()}
    b = env.rng(2).normal(size=(3, 2)).astype(np.float32)
    return Program(
        jax.vmap(both),
        args=(b,),
        reference=lambda b: {
            name: (b @ inverse.T, np.tile(inverse, (3, 1, 1))) for name, inverse in inverses.items()
        },
    )


STARRED_ARGUMENTS_HAVE_NO_NAME = deviation(
    "jax>=0.4.36,<0.5.3",
    outcome="ok",
    reason="argument names were looked up by position, and ended before the starred arguments",
    issue="jax-ml/jax#26908",
)


@probe(source="jax-ml/jax#26908", deviations=[STARRED_ARGUMENTS_HAVE_NO_NAME])
def sizes_that_differ_among_starred_arguments(env):
    """`vmap` of `f(x, *rest)` over different sizes raises a ValueError about inconsistent sizes.

    From 0.4.36 to 0.5.2 it was an IndexError, which does not state the sizes.
    """
    call = jax.vmap(lambda x, *rest: x - rest[0] - rest[1])
    outcome = ending(
        call, floats(1, 2, 3, 4), floats(1, 2), floats(1, 2), words=("inconsistent sizes",)
    )
    return Observed(outcome, "ValueError: inconsistent sizes")


@jax.tree_util.register_pytree_with_keys_class
class Fields:
    """Named numbers, as a pytree whose children have keys."""

    def __init__(self, **fields):
        self.fields = fields

    def tree_flatten_with_keys(self):
        """Return the children with their keys, and the names as auxiliary data."""
        keyed = [(jax.tree_util.GetAttrKey(name), value) for name, value in self.fields.items()]
        return keyed, tuple(self.fields)

    @classmethod
    def tree_unflatten(cls, names, children):
        """Return fields from their names and values."""
        return cls(**dict(zip(names, children, strict=True)))


ALL_KEYS_TREATED_AS_DICT_KEYS = deviation(
    "jax>=0.9.2,<0.11",
    outcome="ok",
    reason="the code that builds the message treated all keys as those of a dictionary",
    issue="jax-ml/jax#25659",
)


@probe(source="jax-ml/jax#25659", deviations=[ALL_KEYS_TREATED_AS_DICT_KEYS])
def axes_of_another_class(env):
    """`in_axes` that lack a field of the argument raise a ValueError.

    From 0.9.2 to 0.10.2 it was an AttributeError.
    """
    call = jax.vmap(lambda t: t.fields["a"], in_axes=(Fields(a=0),))
    outcome = ending(call, Fields(a=floats(1, 2), b=floats(3, 4)), words=("must be a tree prefix",))
    return Observed(outcome, "ValueError: must be a tree prefix")


SINK_RETURNS_A_NUMBER = deviation(
    "jax<0.8",
    error="TypeError",
    match="'int' object is not iterable",
    reason="the batching rule was that of an operation with one result",
    issue="jax-ml/jax@b3a0033aad0e",
)


@probe(
    source="jax-ml/jax@b3a0033aad0e",
    releases="jax>=0.7",
    deviations=[SINK_RETURNS_A_NUMBER],
)
def sink_in_lanes(env):
    """`vmap` of a function that calls `lax.dce_sink` runs from 0.8.0 on."""
    x = np.arange(3, dtype=np.float32)
    return Observed(jax.vmap(lambda x: (lax.dce_sink(x), x)[1])(x), x)


KEYWORDS_REFUSED = deviation(
    "jax<0.4.33",
    error="AssertionError",
    reason="keyword arguments were not resolved",
    issue="jax-ml/jax@1d425b2d30fe",
)


@probe(source="jax-ml/jax@1d425b2d30fe", deviations=[KEYWORDS_REFUSED])
def custom_vmap_with_a_keyword(env):
    """A `custom_vmap` function takes keyword arguments from 0.4.33 on."""
    f = custom_vmap(lambda x, y: x * y)
    f.def_vmap(lambda *args: (args[2] * args[3], True))
    x, y = floats(1, 2), np.float32(3)
    return Observed((f(x, y=y), jax.vmap(lambda x: f(x, y=y))(x)), (3 * x, 3 * x))


INDEX_OF_AN_ELEMENT = deviation(
    "jax>=0.10",
    error="IndexError",
    match="tuple index out of range",
    reason="the result has no axis to take an element from",
    issue="jax-ml/jax#9073",
)


@probe(source="jax-ml/jax#9073", platforms=("cpu",), deviations=[INDEX_OF_AN_ELEMENT])
def unbatched_result_declared_batched(env):
    """A batching rule that declares a number as batched is an IndexError from 0.10.0 on.

    Before, vmap silently returned the number.
    """
    fn = custom_vmap(lambda x: x)

    @fn.def_vmap
    def rule(axis_size, in_batched, x):
        return jnp.float32(3), True

    return Observed(jax.vmap(fn)(floats(1, 2)), np.float32(3))
