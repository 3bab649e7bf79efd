"""How a compiled function refuses calls, and which arguments it accepts unlike its lowering."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import FOUR, classify_outcome, enable_64_bits, format_error

NO_HINT_AT_X64 = deviation(
    "jax<0.7.2", outcome="ok", match="False", reason="the error did not mention 64-bit types"
)


@probe(source="jax-ml/jax@9b7f67975697", deviations=[NO_HINT_AT_X64])
def mismatch_is_named(env):
    """The error for another shape or dtype names the argument and both types.

    From 0.7.2 it also hints at x64.
    """
    compiled = jax.jit(lambda weight: weight + 1).lower(FOUR).compile()

    def check_error(array, type_name):
        text = format_error(lambda: compiled(array))
        phrase = f"Argument 'weight' compiled with float32[4] and called with {type_name}"
        return [text.split(":")[0], phrase in text, "enable_x64" in text]

    result = {
        "shape": check_error(np.ones(5, np.float32), "float32[5]"),
        "dtype": check_error(np.ones(4, np.int32), "int32[4]"),
    }
    return Observed(result, {name: ["TypeError", True, True] for name in result})


LEAF_NAMED_BY_CLASS = deviation(
    "jax<0.4.31", outcome="ok", reason="the error named an internal class for a leaf"
)


@probe(source="jax-ml/jax@a4a9499a400d", deviations=[LEAF_NAMED_BY_CLASS])
def structure_is_named(env):
    """The error for another tree structure shows both structures where they differ.

    From 0.4.31 it writes `pytree leaf` in words.
    """
    compiled = jax.jit(lambda x: x + 1).lower(FOUR).compile()
    x = np.ones(4, np.float32)
    listed, keyword = format_error(lambda: compiled([x])), format_error(lambda: compiled(x=x))
    result = [
        "at args[0], seen pytree leaf but now given <class 'list'>" in listed,
        "at args, seen tuple of length 1 but now given tuple of length 0" in keyword,
    ]
    return Observed(result, [True, True])


@probe(source="jax-ml/jax#7997")
def weak_types_are_overlooked(env):
    """A compiled function accepts weak and strong float32 alike; the result is typed as lowered.

    jit would trace again. A Python int is an int32 and refused, and so is a bool.
    """
    weak = jax.jit(lambda x: x + 1).lower(1.0).compile()
    strong = jax.jit(lambda x: x + 1).lower(np.float32(1)).compile()
    result = {
        "weak": [weak(1.0).weak_type, weak(np.float32(1)).weak_type],
        "strong": [strong(1.0).weak_type, strong(np.float32(1)).weak_type],
        "others": [
            classify_outcome(lambda: weak(1)),
            classify_outcome(lambda: strong(1)),
            classify_outcome(lambda: weak(True)),
        ],
    }
    refused = ["TypeError"] * 3
    return Observed(result, {"weak": [True, True], "strong": [False, False], "others": refused})


@probe(source="jax-ml/jax@9b7f67975697")
def mode_of_64_bits(env):
    """A compiled function takes float64 from NumPy as float32, unless 64-bit types are on.

    The mode at the call counts: a function compiled for float32 refuses the same array within
    enable_x64, and a function compiled for float64 refuses it outside.
    """
    x = np.arange(4.0)
    narrow = jax.jit(lambda y: y + 1).lower(x).compile()
    with enable_64_bits():
        wide = jax.jit(lambda y: y + 1).lower(x).compile()
        results_inside = [classify_outcome(lambda: narrow(x)), str(wide(x).dtype)]
    results_outside = [str(narrow(x).dtype), classify_outcome(lambda: wide(x))]
    return Observed(
        results_inside + results_outside, ["TypeError", "float64", "float32", "TypeError"]
    )


PLAIN_TYPE_ERROR = deviation(
    "jax<0.5",
    outcome="ok",
    match="'TypeError'",
    reason="the error was a plain TypeError, as that of jit",
)
NOT_A_TYPE_ERROR = deviation(
    "jax>=0.5,<0.10.2",
    outcome="ok",
    match="False",
    reason="InvalidInputException was only an Exception: `except TypeError` did not catch it",
)


@probe(source="jax-ml/jax#7997", deviations=[PLAIN_TYPE_ERROR, NOT_A_TYPE_ERROR])
def a_shape_is_no_array(env):
    """A ShapeDtypeStruct is for lowering: calling with it is an InvalidInputException from 0.5.0.

    Before 0.5.0 the error was a TypeError. From 0.10.2 InvalidInputException is a TypeError, too;
    jit raises a plain TypeError.
    """
    fn = jax.jit(lambda x: x + 1)
    compiled = fn.lower(FOUR).compile()
    try:
        compiled(FOUR)
    except Exception as error:  # noqa: BLE001 - the type of the error is the observation
        error_kind = [type(error).__name__, isinstance(error, TypeError)]
    expected = ["InvalidInputException", True, "TypeError"]
    return Observed([*error_kind, classify_outcome(lambda: fn(FOUR))], expected)


@probe(source="jax-ml/jax#8850")
def not_within_a_trace(env):
    """A function lowered with a tracer and called within the trace is refused, with the reason."""

    def outer(x):
        return jax.jit(lambda y: y + 1).lower(x).compile()(x)

    text = format_error(lambda: jax.jit(outer)(np.ones(4, np.float32)))
    result = [text.split(":")[0], "Cannot apply JAX transformations to a function lowered" in text]
    return Observed(result, ["TypeError", True])


@probe(source="jax-ml/jax#8241")
def unused_arguments(env):
    """Unused arguments are dropped from the module unless `keep_unused`; calls must pass them.

    This includes donated arguments: a dropped argument is not deleted.
    """

    def call_donated(keep):
        fn = jax.jit(lambda _, y: y + 1, donate_argnums=0, keep_unused=keep)
        x, y = (jax.jit(lambda: jax.numpy.ones(4))() for _ in range(2))
        lowered = fn.lower(x, y)
        lowered.compile()(x, y)
        return [lowered.as_text().split("->")[0].count("%arg"), x.is_deleted()]

    return Observed(
        {"dropped": call_donated(False), "kept": call_donated(True)},
        {"dropped": [1, False], "kept": [2, True]},
    )


FLAG_OVERWRITTEN = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the option replaced the list of passes from XLA_FLAGS by its own",
    issue="jax-ml/jax#37391",
)


@probe(
    source="jax-ml/jax#37391",
    platforms=("cpu",),
    releases="jax>=0.4.34",
    xla_flags=["--xla_disable_hlo_passes=fusion"],
    config={"jax_compiler_enable_remat_pass": False},
    deviations=[FLAG_OVERWRITTEN],
)
def disabled_passes(env):
    """The option `jax_compiler_enable_remat_pass=False` keeps the passes that XLA_FLAGS disables.

    In releases up to 0.11.0, XLA ran them again: the fusion pass copies a sine into two fusions.
    """

    def waves(x):
        return jax.numpy.sin(x), jax.numpy.sin(x) + 1

    text = jax.jit(waves).lower(np.ones((2, 3), np.float32)).compile().as_text()
    return Observed({"sines": text.count(" sine(")}, {"sines": 1})
