"""How a compiled function says no, and what it takes although it was not lowered for it."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import FOUR, enabled_x64, message, told


@probe(
    source="jax-ml/jax@9b7f67975697",
    deviations=[
        deviation("jax<0.7.2", outcome="ok", match="False", reason="no word on 64-bit types"),
    ],
)
def mismatch_is_named(env):
    """Another shape or dtype: the argument by name, both types and, from 0.7.2, a hint at x64."""
    compiled = jax.jit(lambda weight: weight + 1).lower(FOUR).compile()

    def said(array, named):
        text = message(lambda: compiled(array))
        phrase = f"Argument 'weight' compiled with float32[4] and called with {named}"
        return [text.split(":")[0], phrase in text, "enable_x64" in text]

    seen = {
        "shape": said(np.ones(5, np.float32), "float32[5]"),
        "dtype": said(np.ones(4, np.int32), "int32[4]"),
    }
    return Observed(seen, {what: ["TypeError", True, True] for what in seen})


@probe(
    source="jax-ml/jax@a4a9499a400d",
    deviations=[
        deviation("jax<0.4.31", outcome="ok", reason="an internal class was named for a leaf")
    ],
)
def structure_is_named(env):
    """Another tree: where it differs, and what was there; `pytree leaf` in words since 0.4.31."""
    compiled = jax.jit(lambda x: x + 1).lower(FOUR).compile()
    x = np.ones(4, np.float32)
    listed, keyword = message(lambda: compiled([x])), message(lambda: compiled(x=x))
    seen = [
        "at args[0], seen pytree leaf but now given <class 'list'>" in listed,
        "at args, seen tuple of length 1 but now given tuple of length 0" in keyword,
    ]
    return Observed(seen, [True, True])


@probe(source="jax-ml/jax#7997")
def weak_types_are_overlooked(env):
    """Weak and strong float32 take each other's place, and the result is as lowered.

    Unlike jit, which would trace again. A Python int is int32 and refused, a bool too.
    """
    weak = jax.jit(lambda x: x + 1).lower(1.0).compile()
    strong = jax.jit(lambda x: x + 1).lower(np.float32(1)).compile()
    seen = {
        "weak": [weak(1.0).weak_type, weak(np.float32(1)).weak_type],
        "strong": [strong(1.0).weak_type, strong(np.float32(1)).weak_type],
        "others": [told(lambda: weak(1)), told(lambda: strong(1)), told(lambda: weak(True))],
    }
    refused = ["TypeError"] * 3
    return Observed(seen, {"weak": [True, True], "strong": [False, False], "others": refused})


@probe(source="jax-ml/jax@9b7f67975697")
def mode_of_64_bits(env):
    """float64 from NumPy is float32 to a compiled function, unless 64-bit types are on now.

    What counts is the mode of the call: compiled for float32 it refuses the same array within
    enable_x64, and compiled for float64 it refuses it outside.
    """
    x = np.arange(4.0)
    narrow = jax.jit(lambda y: y + 1).lower(x).compile()
    with enabled_x64():
        wide = jax.jit(lambda y: y + 1).lower(x).compile()
        inside = [told(lambda: narrow(x)), str(wide(x).dtype)]
    outside = [str(narrow(x).dtype), told(lambda: wide(x))]
    return Observed(inside + outside, ["TypeError", "float64", "float32", "TypeError"])


@probe(
    source="jax-ml/jax#7997",
    deviations=[
        deviation(
            "jax<0.5", outcome="ok", match="'TypeError'", reason="a plain TypeError, as of jit"
        ),
        deviation(
            "jax>=0.5,<0.10.2",
            outcome="ok",
            match="False",
            reason="an Exception of no other kind: `except TypeError` let it through",
        ),
    ],
)
def a_shape_is_no_array(env):
    """A ShapeDtypeStruct is good for lowering, not for calling: InvalidInputException from 0.5.0.

    A TypeError of old, and again since 0.10.2, where that exception is one; jit raises a plain one.
    """
    fn = jax.jit(lambda x: x + 1)
    compiled = fn.lower(FOUR).compile()
    try:
        compiled(FOUR)
    except Exception as error:  # noqa: BLE001 - which one it is, is what is observed
        seen = [type(error).__name__, isinstance(error, TypeError)]
    expected = ["InvalidInputException", True, "TypeError"]
    return Observed([*seen, told(lambda: fn(FOUR))], expected)


@probe(source="jax-ml/jax#8850")
def not_within_a_trace(env):
    """Lowered within a trace, by a tracer's type, and called there: refused, with the reason."""

    def outer(x):
        return jax.jit(lambda y: y + 1).lower(x).compile()(x)

    text = message(lambda: jax.jit(outer)(np.ones(4, np.float32)))
    seen = [text.split(":")[0], "Cannot apply JAX transformations to a function lowered" in text]
    return Observed(seen, ["TypeError", True])


@probe(source="jax-ml/jax#8241")
def unused_arguments(env):
    """Unused arguments are dropped from the module, or kept with `keep_unused`; given they must be.

    Also when they are donated: a dropped argument is not taken.
    """

    def tell(keep):
        fn = jax.jit(lambda _, y: y + 1, donate_argnums=0, keep_unused=keep)
        x, y = (jax.jit(lambda: jax.numpy.ones(4))() for _ in range(2))
        lowered = fn.lower(x, y)
        lowered.compile()(x, y)
        return [lowered.as_text().split("->")[0].count("%arg"), x.is_deleted()]

    return Observed(
        {"dropped": tell(False), "kept": tell(True)}, {"dropped": [1, False], "kept": [2, True]}
    )
