"""Parameters, shapes and dtypes of samplers and initializers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))

ZERO_HAD_AN_INFINITE_LOGARITHM = deviation(
    "jax>=0.5,<0.10.2",
    outcome="ok",
    reason="a uniform number of 0 has an infinite logarithm",
    issue="jax-ml/jax#38007",
)


@probe(source="jax-ml/jax#38007", deviations=[ZERO_HAD_AN_INFINITE_LOGARITHM])
def largest_of_geometric(env):
    """`jax.random.geometric` in bfloat16 no longer draws 2147483647 from 0.10.2 on.

    With a success probability of 0.1, one of 128 numbers was so large.
    """
    draw = jax.jit(lambda key: jax.random.geometric(key, jnp.bfloat16(0.1), shape=(256,)))
    largest = int(draw(jax.random.key(0)).max())
    return Observed({"below 100": largest < 100}, reference={"below 100": True})


ONE_NUMBER_BY_DEFAULT = deviation(
    "jax<0.10.2",
    error="ValueError",
    match="t parameter shapes must be broadcast-compatible",
    reason="the default shape was that of one number, whatever the shape of `df`",
    issue="jax-ml/jax@b30d31f93d1d",
)


@probe(source="jax-ml/jax@b30d31f93d1d", deviations=[ONE_NUMBER_BY_DEFAULT])
def several_degrees_of_freedom(env):
    """`jax.random.t(key, df)` without a shape draws a number for each element of `df`."""
    df = np.float32([1, 2, 3])
    draw = jax.jit(lambda key, **shape: jax.random.t(key, df, **shape), static_argnames="shape")
    key = jax.random.key(0)
    return Observed(draw(key), reference=np.asarray(draw(key, shape=(3,))))


WIDE_ACCEPTED_TO_0_10_0 = deviation(
    "jax<0.10.1",
    params=["lognormal", "wald"],
    outcome="ok",
    reason="wide parameters were accepted",
    issue="jax-ml/jax@bf0d813e67be",
)
WIDE_ACCEPTED_TO_0_10_1 = deviation(
    "jax<0.10.2",
    params=["beta", "chisquare", "f", "pareto", "rayleigh", "t", "triangular"],
    outcome="ok",
    reason="wide parameters were accepted",
    issue="jax-ml/jax@af1a08d5c4ab",
)
PARAMETERS = {
    "beta": 2,
    "chisquare": 1,
    "f": 2,
    "lognormal": 1,
    "pareto": 1,
    "rayleigh": 1,
    "t": 1,
    "triangular": 3,
    "wald": 1,
}


@probe(
    source="jax-ml/jax@bf0d813e67be",
    params=[*PARAMETERS],
    deviations=[WIDE_ACCEPTED_TO_0_10_0, WIDE_ACCEPTED_TO_0_10_1],
)
def parameters_wider_than_the_dtype(env, name):
    """float32 parameters of a sampler with `dtype=float16` are a TypePromotionError.

    The value has the dtype of the numbers where they are accepted: `lognormal` and `triangular`
    silently returned float32.
    """
    parameters = np.float32([0.5, 1, 2][: PARAMETERS[name]])
    key, draw = jax.random.key(0), getattr(jax.random, name)

    def run():
        return jax.eval_shape(lambda key: draw(key, *parameters, dtype=np.float16), key)

    outcome = refusal(run, "cannot safely cast")
    outcome = str(run().dtype) if outcome == "ran" else outcome
    return Observed(outcome, reference="TypePromotionError: cannot safely cast")


CONSTANTS_WERE_FLOAT32 = deviation(
    "jax<0.5.1",
    error="TypeError",
    match="lax.clamp requires arguments to have the same dtypes",
    reason="an approximation had constants in float32",
    issue="jax-ml/jax@216bd9a6cc34",
)


@probe(source="jax-ml/jax@216bd9a6cc34", deviations=[CONSTANTS_WERE_FLOAT32])
def binomial_of_16_bits(env):
    """`jax.random.binomial` accepts parameters of 16 bits from 0.5.1 on; it returns float32."""
    shape = jax.eval_shape(
        lambda key: jax.random.binomial(key, jnp.float16(100), jnp.bfloat16(0.5)),
        jax.random.key(0),
    )
    return Observed(str(shape.dtype), reference="float32")


SHAPE_WAS_ITERATED = deviation(
    "jax<0.4.31",
    error="TypeError",
    match="must be an iterable, not int",
    reason="a number as shape was iterated",
    issue="jax-ml/jax#21343",
)


@probe(source="jax-ml/jax#21343", deviations=[SHAPE_WAS_ITERATED])
def number_as_shape(env):
    """Under jit, `jax.random.normal(key, 3)` works from 0.4.31 on."""
    result = jax.jit(lambda: jax.random.normal(jax.random.key(0), 3))()
    return Observed(result.shape, reference=(3,))


DIVIDED_BY_NOTHING = deviation(
    "jax<0.10",
    params=["orthogonal"],
    error="ZeroDivisionError",
    reason="the number of rows was a quotient by the number of columns",
    issue="jax-ml/jax@ef0184706de9",
)
TWO_AXES_REQUIRED = deviation(
    "jax<0.8.1",
    params=["variance_scaling"],
    error="ValueError",
    match="Must be at least 2D",
    reason="weights had to have two axes, even if the axes were given",
    issue="jax-ml/jax@5466dd7b6d8b",
)
DIVIDED_BY_NO_INPUTS = deviation(
    "jax<0.11.2",
    params=["he_normal"],
    error="ZeroDivisionError",
    reason="the variance was a quotient by the number of inputs",
)
SMALL_WEIGHTS = {
    "orthogonal": (lambda i: i.orthogonal(), (3, 0)),
    "variance_scaling": (
        lambda i: i.variance_scaling(1.0, "fan_in", "normal", in_axis=[0], out_axis=[]),
        (4,),
    ),
    "he_normal": (lambda i: i.he_normal(), (0, 3)),
}


@probe(
    source="jax-ml/jax@ef0184706de9",
    params=[*SMALL_WEIGHTS],
    deviations=[DIVIDED_BY_NOTHING, TWO_AXES_REQUIRED, DIVIDED_BY_NO_INPUTS],
)
def weights_of_unusual_shapes(env, name):
    """Initial weights without rows or columns, and along a single axis."""
    make, shape = SMALL_WEIGHTS[name]
    weights = make(jax.nn.initializers)(jax.random.key(0), shape)
    return Observed(weights.shape, reference=shape)


INTERNAL_ERROR_FOR_AN_INT = deviation(
    "jax<0.4.31",
    error="TypeError",
    match="NamedShape",
    reason="an int reached an internal class, which takes a tuple",
    issue="jax-ml/jax@83dfed1c02b4",
)


@probe(source="jax-ml/jax@83dfed1c02b4", deviations=[INTERNAL_ERROR_FOR_AN_INT])
def shape_as_a_number(env):
    """`jax.random.normal(key, 4)` draws four numbers from 0.4.31 on; before, it was a TypeError."""
    key = jax.random.key(0)
    observed = jax.jit(lambda key: jax.random.normal(key, 4))(key)
    return Observed(observed, reference=np.asarray(jax.random.normal(key, (4,))))
