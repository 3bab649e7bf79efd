"""Agreement of two results of one case: of two attempts, or of an observation and a golden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.judge.conformance import describe_outcome
from conformance.judge.difference import Agreement
from conformance.judge.errors import make_signature, normalise
from conformance.judge.values import compare_values
from conformance.judge.variants import SAME_AS, describe_variant
from conformance.model.golden import RecordedError
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.judge.tolerance import Tolerance
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation

DISAGREE: Final = "attempts disagree: "
"""Beginning of a sentence about two attempts of a job."""
AGAIN: Final = "then"
"""Name of the other attempt in messages."""
AgreementReport = tuple[Agreement, tuple[str, ...]]
"""How far two results agree, and their differences, one sentence each."""


def make_recorded_error(observation: Observation) -> RecordedError:
    """Return a failure as a golden records it.

    Args:
        observation: Observation of the job.

    Returns:
        Outcome, stage, error type and message in normal form.
    """
    error = observation.error
    return RecordedError(
        outcome=observation.outcome,
        stage=observation.stage.value,
        type=error.type if error else "",
        message=normalise(error.message) if error else "",
    )


def is_same_error(one: RecordedError, other: RecordedError) -> bool:
    """Say whether two failures have the same outcome, error type and message; stages may differ."""
    same = make_signature(one.type, one.message) == make_signature(other.type, other.message)
    return one.outcome is other.outcome and same


def compare_golden(
    observation: Observation, golden: GoldenEntry, tolerance: Tolerance
) -> AgreementReport:
    """Compare an observation with a golden.

    Args:
        observation: Observation of the job, with an outcome that a golden may have.
        golden: The golden, not tainted.
        tolerance: Tolerance of the case.

    Returns:
        How far they agree, and the differences, one sentence each.
    """
    if observation.outcome is not golden.outcome:
        return _report_beyond(f"{describe_outcome(observation)}, golden {_describe_golden(golden)}")
    if golden.error is not None:
        if is_same_error(make_recorded_error(observation), golden.error):
            return Agreement.EQUAL, ()
        return _report_beyond(f"{describe_outcome(observation)}, golden {_describe_golden(golden)}")
    # Compile-only platforms observe no value: equal outcomes are all there is to compare.
    if golden.value is None:
        return Agreement.EQUAL, ()
    if observation.value is None:
        return _report_beyond("no value was observed, golden has one")
    compared = compare_values(observation.value, golden.value, tolerance)
    return compared.agreement, compared.messages


def find_disagreement(one: Observation, other: Observation, tolerance: Tolerance) -> str:
    """Return how two attempts of the same job disagree.

    Args:
        one: First attempt.
        other: Second attempt.
        tolerance: Tolerance of the case.

    Returns:
        One sentence; empty when outcome, error signature and value (within tolerance) agree.
    """
    if one.outcome is not other.outcome:
        return f"{DISAGREE}{describe_outcome(one)}, then {describe_outcome(other)}"
    # Two failures agree by signature: their messages may name addresses, times and process ids.
    if one.outcome is not Outcome.OK:
        if is_same_error(make_recorded_error(one), make_recorded_error(other)):
            return ""
        return f"{DISAGREE}{describe_outcome(one)}, then {describe_outcome(other)}"
    if one.value is None or other.value is None:
        return "" if one.value is other.value else f"{DISAGREE}one gave no value"
    compared = compare_values(one.value, other.value, tolerance, word=AGAIN)
    if not compared.agrees:
        return f"{DISAGREE}{compared.messages[0]}"
    return next(_find_disagreeing_variants(one, other, tolerance), "")


def _find_disagreeing_variants(
    one: Observation, other: Observation, tolerance: Tolerance
) -> Iterator[str]:
    # A variant that only one attempt ran, e.g. after a timeout, proves no disagreement.
    for variant in one.variants.keys() & other.variants.keys():
        first, second = one.variants[variant], other.variants[variant]
        if first.outcome is not second.outcome:
            outcomes = f"{describe_variant(first)}, then {describe_variant(second)}"
            yield f"{DISAGREE}{SAME_AS} {variant}: {outcomes}"
        elif first.value is not None and second.value is not None:
            compared = compare_values(first.value, second.value, tolerance, word=AGAIN)
            yield from (
                ()
                if compared.agrees
                else (f"{DISAGREE}{SAME_AS} {variant}: {compared.messages[0]}",)
            )


def _describe_golden(golden: GoldenEntry) -> str:
    if golden.error is None:
        return f"ok ({golden.span})"
    # A traceback of XLA runs to thousands of characters; the first line names the error.
    first = golden.error.message.partition("\n")[0][:200]
    words = f"{golden.error.outcome} {golden.error.type}".strip()
    return f"{words}: {first} ({golden.span})" if first else f"{words} ({golden.span})"


def _report_beyond(text: str) -> AgreementReport:
    return Agreement.BEYOND, (text,)
