"""The circuit breaker: the time that a dead cache costs is bounded, and a hiccup is forgiven."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.remote_cache.circuit_breaker import (
    CONCURRENCY,
    MOST_FAILURES,
    PATIENCE,
    WASTE,
    CircuitBreaker,
)


def test_failures_of_one_moment_are_forgiven() -> None:
    """A loaded server may answer none of them in time; the next ones open it."""
    breaker = CircuitBreaker("name")
    for number in range(CONCURRENCY):
        breaker.report_failure("late", 0.0, PATIENCE + number / 1000)
    assert not breaker.is_open
    breaker.report_failure("late", PATIENCE + 0.1, 2 * PATIENCE + 0.1)
    assert breaker.is_open
    assert breaker.reason == "late"


def test_fast_failures_open_it() -> None:
    """A success in between starts the count again."""
    breaker = CircuitBreaker("name")
    for _ in range(MOST_FAILURES - 1):
        breaker.report_failure("refused", 1.0, 1.0)
    breaker.report_success(1.0)
    breaker.report_failure("refused", 1.0, 1.0)
    assert not breaker.is_open
    for _ in range(MOST_FAILURES - 1):
        breaker.report_failure("refused", 1.0, 1.0)
    assert breaker.is_open


def test_a_failure_among_answers_costs_little() -> None:
    """The caller has not waited for it alone."""
    breaker = CircuitBreaker("name")
    for number in range(20):
        breaker.report_success(number + 0.5)
        breaker.report_failure("late", number, number + 1.0)
    assert not breaker.is_open


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, PATIENCE)), max_size=300))
def test_requests_one_after_another_waste_a_bounded_time(
    requests: list[tuple[bool, float]],
) -> None:
    """However failures and answers alternate."""
    breaker, now, wasted = CircuitBreaker("name"), 1.0, 0.0
    for is_answered, seconds in requests:
        if breaker.is_open:
            break
        if is_answered:
            breaker.report_success(now + seconds)
        else:
            breaker.report_failure("late", now, now + seconds)
            wasted += seconds
        now += seconds + 0.001
    assert wasted <= WASTE + PATIENCE
