"""Arithmetic with symbolic sizes, and what follows from their constraints, in `jax.export`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import vector

defaults(platforms=("cpu",))


def export_vector(f, constraints=()):
    """Export a function of a vector of symbolic size."""
    sizes = export.symbolic_shape("b", constraints=constraints)
    return export.export(jax.jit(f))(jax.ShapeDtypeStruct(sizes, np.float32))


POWERS = {
    "one": lambda b: b**0,
    "of_two": lambda b: 2**b,
    "of_itself": lambda b: b**b,
}
ONLY_A_NUMBER_AS_EXPONENT = deviation(
    "jax<0.4.38",
    params=["of_two"],
    error="TypeError",
    match="unsupported operand type",
    reason="a symbolic size could not be an exponent",
    issue="jax-ml/jax@4e17bea91a2d",
)
NO_SYMBOLIC_EXPONENT = deviation(
    "jax<0.4.38",
    params=["of_itself"],
    error="InconclusiveDimensionOperation",
    match="non-integer power",
    reason="a symbolic size could not be an exponent",
    issue="jax-ml/jax@4e17bea91a2d",
)
NO_POWER_OF_ZERO = deviation(
    "jax<0.4.38",
    params=["one"],
    error="TypeError",
    match="reduce.. of empty",
    reason="a power was a product of its exponent's number of factors, and no factor failed",
    issue="jax-ml/jax@4e17bea91a2d",
)


@probe(
    source="jax-ml/jax@4e17bea91a2d",
    params=[*POWERS],
    deviations=[ONLY_A_NUMBER_AS_EXPONENT, NO_SYMBOLIC_EXPONENT, NO_POWER_OF_ZERO],
)
def power_of_a_size(env, name):
    """A power of a symbolic size is that of the actual size."""
    power = POWERS[name]
    exported = export_vector(lambda x: jnp.asarray(power(x.shape[0])) + 0 * x.astype(int))
    return Observed(exported.call(vector(3))[0], np.int32(power(3)))


EXPONENTS = {"half": 1.5, "whole": 2.0}
FRACTION_DROPPED = deviation(
    "jax<0.4.38",
    params=["half"],
    outcome="ok",
    match="16",
    reason="the exponent was converted to an integer",
    issue="jax-ml/jax@4e17bea91a2d",
)
FRACTION_REFUSED = deviation(
    "jax>=0.4.38",
    params=["half"],
    error="ValueError",
    match="non-integer power",
    reason="a power of a symbolic size has to be an integer",
    issue="jax-ml/jax@4e17bea91a2d",
)
NO_LONGER_CONVERTED = deviation(
    "jax>=0.4.38",
    params=["whole"],
    error="TypeError",
    match="can't multiply sequence",
    reason="a list is multiplied by the exponent, which is a float",
    issue="jax-ml/jax@4e17bea91a2d",
)


@probe(
    source="jax-ml/jax@4e17bea91a2d",
    params=[*EXPONENTS],
    deviations=[FRACTION_DROPPED, FRACTION_REFUSED, NO_LONGER_CONVERTED],
)
def float_as_an_exponent(env, name):
    """`4 * b**1.5` of a symbolic size is a ValueError from 0.4.38 on; before, silently `4 * b`.

    `b**2.0` was right, and is a TypeError from 0.4.38 on.
    """
    exponent = EXPONENTS[name]
    exported = export_vector(lambda x: x.sum() * x.shape[0] ** exponent)
    return Observed(exported.call(np.ones(4, np.float32)), np.float32(4 * 4**exponent))


NO_SYMBOLIC_INDEX = deviation(
    "jax>=0.8.2",
    error="IndexError",
    match="only integers, slices",
    reason="an index that is a symbolic size is no integer",
    issue="jax-ml/jax@b841f5b4a716",
)
READS = {
    "last": lambda x: x[x.shape[0] - 1],
    "written": lambda x: x.at[x.shape[0] - 1].set(9.0)[-1],
}


@probe(source="jax-ml/jax@b841f5b4a716", params=[*READS], deviations=[NO_SYMBOLIC_INDEX])
def symbolic_index(env, name):
    """To export `x[x.shape[0] - 1]` of an array of symbolic size is an IndexError from 0.8.2 on."""
    exported = export_vector(READS[name])
    return Observed(exported.call(vector(3)), READS[name](jnp.asarray(vector(3))))


WINDOW_NEEDS_A_SIZE = deviation(
    "jax>=0.8.2",
    error="TypeError",
    match="cannot be interpreted as an integer",
    reason="the mask of a window is made of a number of positions",
    issue="jax-ml/jax@099f0a170820",
)


@probe(source="jax-ml/jax@099f0a170820", releases="jax>=0.4.34", deviations=[WINDOW_NEEDS_A_SIZE])
def window_of_attention(env):
    """Attention to a local window over a symbolic number of positions is a TypeError from 0.8.2 on.

    Up to 0.8.1, it can be exported, but the window is silently ignored.
    """
    sizes = export.symbolic_shape("b, t, 2, 4")
    attend = jax.jit(lambda q: jax.nn.dot_product_attention(q, q, q, local_window_size=2))
    exported = export.export(attend)(jax.ShapeDtypeStruct(sizes, np.float32))
    return Observed([str(size) for size in exported.out_avals[0].shape], ["b", "t", "2", "4"])


QUESTIONS = {
    "multiple": ("4*a == b", lambda a, b: (b >= a, b >= 4 * a, 5 * a >= b, 9 * a >= 2 * b)),
    "divisible": ("mod(b, 4) == 0", lambda _, b: (b >= b // 4, b == 4 * (b // 4))),
}
EQUATIONS_ONLY_FOR_EQUALITY = deviation(
    "jax<0.4.38",
    params=["multiple"],
    outcome="ok",
    reason="an equation of sizes was not used to compare them",
    issue="jax-ml/jax@60f9da5d58de",
)
QUOTIENT_NOT_SIMPLIFIED = deviation(
    "jax<0.4.38",
    params=["divisible"],
    outcome="ok",
    reason="a quotient without remainder was not simplified",
    issue="jax-ml/jax@27b024b240c5",
)


@probe(
    source="jax-ml/jax@60f9da5d58de",
    params=[*QUESTIONS],
    deviations=[EQUATIONS_ONLY_FOR_EQUALITY, QUOTIENT_NOT_SIMPLIFIED],
)
def consequence_of_a_constraint(env, name):
    """Comparisons of symbolic sizes that follow from a constraint are decided."""
    constraint, ask = QUESTIONS[name]
    sizes = export.symbolic_shape("a, b", constraints=[constraint])
    results = []
    outcome = refusal(lambda: results.extend(ask(*sizes)), "inconclusive")
    return Observed((outcome, results), ("ran", [True] * len(ask(4, 16))))


SIZE_NOT_SIMPLIFIED = deviation(
    "jax<0.4.38",
    error="TypeError",
    match="reshape total size must be unchanged",
    reason="a quotient without remainder was not simplified",
    issue="jax-ml/jax@27b024b240c5",
)


@probe(source="jax-ml/jax@27b024b240c5", deviations=[SIZE_NOT_SIMPLIFIED])
def rows_of_four(env):
    """A vector whose size is declared to be divisible by 4 can be reshaped to rows of 4."""
    exported = export_vector(
        lambda x: x.reshape(x.shape[0] // 4, 4).sum(1), constraints=["mod(b, 4) == 0"]
    )
    x = np.arange(8, dtype=np.float32)
    return Observed(exported.call(x), x.reshape(2, 4).sum(1))


DTYPE_OF_INDICES_DEPENDED_ON_THE_SIZE = deviation(
    "jax<0.4.36",
    error="InconclusiveDimensionOperation",
    match="2147483647",
    reason="the derivative chose the type of its indices by the size",
    issue="jax-ml/jax@fb68c97a0d37",
)


@probe(source="jax-ml/jax@fb68c97a0d37", deviations=[DTYPE_OF_INDICES_DEPENDED_ON_THE_SIZE])
def derivative_of_a_sort(env):
    """The derivative of a sort of symbolic size can be exported."""
    exported = export_vector(lambda x: jax.jvp(lax.sort, (x,), (10 * x,)))
    x = np.array([3, 1, 2], np.float32)
    return Observed(exported.call(x), (np.sort(x), 10 * np.sort(x)))


OLD_WORD_FOR_A_MAXIMUM = deviation(
    "jax<0.5",
    outcome="ok",
    reason="non_negative(b) was accepted as max(b, 0)",
    issue="jax-ml/jax@e87a2a5929e6",
)


@probe(source="jax-ml/jax@e87a2a5929e6", deviations=[OLD_WORD_FOR_A_MAXIMUM])
def words_of_a_dimension(env):
    """A dimension may contain `max`, `floordiv` and `mod`; `non_negative` is a syntax error."""
    texts = ("max(b, 0)", "floordiv(b, 2)", "mod(b, 2)", "b^2", "non_negative(b)")
    observed = {
        text: refusal(lambda t=text: export.symbolic_shape(t), "syntax error") for text in texts
    }
    refused = {"non_negative(b)": "ValueError: syntax error"}
    return Observed(observed, dict.fromkeys(texts, "ran") | refused)
