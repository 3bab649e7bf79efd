"""Events of compilation for the listeners that a program registers."""

from __future__ import annotations

import jax
import jax.monitoring
from jax import lax

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


def listen():
    """Return a list that receives the last part of the name of each duration from now on."""
    events = []

    def receive(event, _, **__):
        events.append(event.rpartition("/")[2])

    jax.monitoring.register_event_duration_secs_listener(receive)
    return events


TRACE_THAT_FAILED = deviation(
    "jax>=0.5.3",
    outcome="ok",
    reason="the event is recorded when the context of the trace ends, also by an error",
    issue="jax-ml/jax@256e37af5faf",
)


@probe(source="jax-ml/jax@256e37af5faf", deviations=[TRACE_THAT_FAILED])
def event_of_a_failed_trace(env):
    """A listener for durations receives nothing of a trace that ends in an error."""
    events = listen()

    def fail(x):
        raise ValueError(x)

    outcome = call_outcome(lambda: jax.jit(fail)(floats(1)))
    return Observed([outcome, *events], reference=["ValueError"])


INNER = jax.jit(lax.neg)
ONLY_THE_OUTER_FUNCTION = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="only a function that is called outside of a trace is reported",
    issue="jax-ml/jax@cea418ae95cf",
)


@probe(source="jax-ml/jax@cea418ae95cf", deviations=[ONLY_THE_OUTER_FUNCTION])
def traces_for_a_listener(env):
    """A listener receives the duration of two traces: of a jitted function, and of its callee."""
    events = listen()
    jax.jit(lambda x: lax.sin(INNER(x)))(floats(1))
    return Observed(events.count("jaxpr_trace_duration"), reference=2)
