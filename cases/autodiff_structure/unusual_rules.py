"""Rules that users write, and that are not as they should be: not linear, or raising an error."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from conformance.kit import Observed, deviation, probe

from ._helpers import describe_error, floats

CONSTANT_DROPPED = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="a tangent that does not depend on that of the argument counts as zero",
    issue="jax-ml/jax@9fe553ca49e3",
)


@probe(source="jax-ml/jax@9fe553ca49e3", deviations=[CONSTANT_DROPPED])
def constant_as_a_tangent(env):
    """`jax.linearize` and `jax.jvp` agree on a rule whose tangent is a constant."""
    f = jax.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda primals, _: (2 * primals[0], jnp.full_like(primals[0], 7)))
    _, apply = jax.linearize(f, 1.0)
    observed = {"linearize": apply(3.0), "jvp": jax.jvp(f, (1.0,), (3.0,))[1]}
    return Observed(observed, dict.fromkeys(observed, floats(7)[0]))


MESSAGE_EXPECTED = deviation(
    "jax>=0.5.1,<0.8.1",
    outcome="ok",
    reason="the place in the code was added to the message, also if there is none",
    issue="jax-ml/jax@e58f702a786c",
)


@probe(source="jax-ml/jax@e58f702a786c", deviations=[MESSAGE_EXPECTED])
def error_without_a_message(env):
    """A FloatingPointError without a message in a backward rule is the error of the gradient."""
    f = jax.custom_vjp(lambda x: 2 * x)

    def fail(_, cotangent):
        raise FloatingPointError

    f.defvjp(lambda x: (2 * x, None), fail)
    return Observed(describe_error(lambda: jax.grad(f)(1.0)), reference=["FloatingPointError"])
