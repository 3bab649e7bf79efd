"""Events of compilation for the listeners that a program registers."""

from __future__ import annotations

import jax
import jax.monitoring

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import call_outcome, floats

defaults(platforms=("cpu",))


def double(x):
    """Return twice the argument."""
    return 2 * x


LISTENERS_GET_NAMES = deviation(
    "jax>=0.6.1",
    outcome="ok",
    reason="events carry the name of the function as a keyword",
    issue="jax-ml/jax@879eb41c3695",
)


@probe(source="jax-ml/jax@879eb41c3695", deviations=[LISTENERS_GET_NAMES])
def listener_of_two_arguments(env):
    """A listener for durations that takes only the event and the duration."""
    jax.monitoring.register_event_duration_secs_listener(lambda _, __: None)
    return Observed(call_outcome(lambda: jax.jit(double)(floats(1))), "ran")
