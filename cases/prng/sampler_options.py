"""Options of samplers that they have from a later release on: modes and methods.

A program that passes one of them is a TypeError on the releases before.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))


def f32(*numbers):
    """Return numbers as a float32 array."""
    return np.array(numbers, np.float32)


NO_MODE_OF_GUMBEL = deviation(
    "jax<0.5.3",
    params=["gumbel"],
    error="TypeError",
    match="unexpected keyword argument 'mode'",
    reason="the argument was added in 0.5.3",
    issue="jax-ml/jax@b8b690e594f0",
)
NO_MODE_OF_BERNOULLI = deviation(
    "jax<0.6.1",
    params=["bernoulli"],
    error="TypeError",
    match="unexpected keyword argument 'mode'",
    reason="the argument was added in 0.6.1",
    issue="jax-ml/jax@6c56d651e5e4",
)
NO_MODE_OF_CATEGORICAL = deviation(
    "jax<0.6.2",
    params=["categorical", "choice"],
    error="TypeError",
    match="unexpected keyword argument 'mode'",
    reason="the argument was added in 0.6.2",
    issue="jax-ml/jax@437e32bfddab",
)
CERTAIN = {
    "gumbel": (lambda key: jax.random.gumbel(key, (3,), mode="high") < 100, np.full(3, True)),
    "bernoulli": (
        lambda key: jax.random.bernoulli(key, f32(0, 1), mode="high"),
        np.array([False, True]),
    ),
    "categorical": (
        lambda key: jax.random.categorical(key, f32(-np.inf, 0), mode="high"),
        np.int32(1),
    ),
    "choice": (
        lambda key: jax.random.choice(key, 3, (1,), replace=False, p=f32(0, 1, 0), mode="high"),
        np.int32([1]),
    ),
}


@probe(
    source="jax-ml/jax@6c56d651e5e4",
    params=[*CERTAIN],
    deviations=[NO_MODE_OF_GUMBEL, NO_MODE_OF_BERNOULLI, NO_MODE_OF_CATEGORICAL],
)
def draw_with_a_mode(env, name):
    """A sampler with `mode="high"`, a TypeError before; the draws have a certain result."""
    draw, expected = CERTAIN[name]
    return Observed(jax.jit(draw)(jax.random.key(0)), reference=expected)


NO_APPROXIMATE_GAMMA = deviation(
    "jax<0.11.1",
    params=["gamma", "loggamma"],
    error="TypeError",
    match="unexpected keyword argument 'method'",
    reason="the argument was added in 0.11.1",
    issue="jax-ml/jax@fbd60962f811",
)
NO_APPROXIMATE_BETA = deviation(
    "jax<0.11.1",
    params=["beta"],
    error="TypeError",
    match="unexpected keyword argument 'method'",
    reason="the argument was added in 0.11.1",
    issue="jax-ml/jax@2994749a7e68",
)
NO_APPROXIMATE_CHISQUARE = deviation(
    "jax<0.11.1",
    params=["chisquare"],
    error="TypeError",
    match="unexpected keyword argument 'method'",
    reason="the argument was added in 0.11.1",
    issue="jax-ml/jax@a036ac821aac",
)
NO_APPROXIMATE_POISSON = deviation(
    "jax<0.11.1",
    params=["poisson"],
    error="TypeError",
    match="unexpected keyword argument 'method'",
    reason="the argument was added in 0.11.1",
    issue="jax-ml/jax@362cddf8a380",
)
# The mean of 4096 draws of each is 2, or 0.5, to a standard error of 0.03 at most.
APPROXIMATE = {
    "gamma": (lambda key, **more: jax.random.gamma(key, 2.0, (4096,), **more), 2),
    "loggamma": (
        lambda key, **more: jax.numpy.exp(jax.random.loggamma(key, 2.0, (4096,), **more)),
        2,
    ),
    "beta": (lambda key, **more: jax.random.beta(key, 2.0, 2.0, (4096,), **more), 0.5),
    "chisquare": (lambda key, **more: jax.random.chisquare(key, 2.0, (4096,), **more), 2),
    "poisson": (lambda key, **more: jax.random.poisson(key, 2.0, (4096,), **more), 2),
}


@probe(
    source="jax-ml/jax@fbd60962f811",
    params=[*APPROXIMATE],
    rtol=0,
    atol=0.15,
    deviations=[
        NO_APPROXIMATE_GAMMA,
        NO_APPROXIMATE_BETA,
        NO_APPROXIMATE_CHISQUARE,
        NO_APPROXIMATE_POISSON,
    ],
)
def approximate_draw(env, name):
    """The mean of a sampler with `method="approximate"`, a TypeError before."""
    draw, mean = APPROXIMATE[name]
    result = jax.jit(lambda key: draw(key, method="approximate").mean())(jax.random.key(0))
    return Observed(result, reference=np.float64(mean))


NO_THREEFRY_OF_FOUR_WORDS = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="the generator was added in 0.10.2",
    issue="jax-ml/jax@5923cd99de58",
)


@probe(source="jax-ml/jax@5923cd99de58", deviations=[NO_THREEFRY_OF_FOUR_WORDS])
def key_of_four_words(env):
    """`threefry4x32` is a generator from 0.10.2 on; its keys have four words."""
    words = []

    def make():
        key = jax.random.key(0, impl="threefry4x32")
        words.append(jax.random.key_data(key).shape[0])

    # The rest of the message names what imported modules have registered.
    made = refusal(make, "unrecognized PRNG implementation")
    return Observed({"made": made, "words": words}, reference={"made": "ran", "words": [4]})


RANGE_OVERFLOWS = deviation(
    outcome="ok",
    reason="the difference of the bounds overflows, and all numbers are infinite",
    issue="jax-ml/jax#14003",
)


@probe(source="jax-ml/jax#14003", deviations=[RANGE_OVERFLOWS])
def uniform_over_almost_all_floats(env):
    """`uniform` between bounds whose difference overflows is infinite, as from -3e38 to 3e38.

    From -1e38 to 1e38 the numbers are between the bounds.
    """

    def count_between(bound):
        x = jax.random.uniform(jax.random.key(0), (8,), minval=-bound, maxval=bound)
        return int((abs(np.asarray(x)) <= bound).sum())

    return Observed(
        {"3e38": count_between(3e38), "1e38": count_between(1e38)},
        reference={"3e38": 8, "1e38": 8},
    )


PARAMETERS_NOT_BROADCAST = deviation(
    "jax>=0.10.1,<0.12",
    error="TypeError",
    match="same number of dimensions",
    reason="the parameters were no longer broadcast to the shape of the sample",
    issue="jax-ml/jax@a07eff591a82",
)


@probe(source="jax-ml/jax@a07eff591a82", deviations=[PARAMETERS_NOT_BROADCAST])
def f_of_arrays(env):
    """`jax.random.f` draws a number for each pair of a row and a column of parameters."""
    sample = jax.random.f(jax.random.key(0), f32(3, 4), f32(5, 6, 7)[:, None])
    observed = {"shape": list(sample.shape), "positive": bool((sample > 0).all())}
    return Observed(observed, {"shape": [3, 2], "positive": True})
