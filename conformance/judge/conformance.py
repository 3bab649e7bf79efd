"""Conformance of an observation to its case: reference, claims, variants, declared deviations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, assert_never

from conformance.corpus.claims import FILECHECK
from conformance.errors import UsageError
from conformance.judge.errors import strip_label
from conformance.judge.filecheck import run_filecheck
from conformance.judge.values import compare_reference
from conformance.judge.variants import compare_variants, find_checked_variants
from conformance.model.observation import RANKS_DIFFER, ExpectedError, split_example
from conformance.model.outcome import Conformance, Outcome
from conformance.model.record import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.model.case import Case, Deviation
    from conformance.model.observation import Observation


ConformanceReport = tuple[Conformance, tuple[str, ...]]
"""Whether an observation conforms, and sentences with the reasons."""
SHARDING: Final = "sharding"
"""Optional key of a row of the facts `parameters` and `results`."""


def judge_conformance(case: Case, observation: Observation) -> ConformanceReport:
    """Judge an observation by the case's own reference and claims.

    Args:
        case: The case on the cell's platform, with its claims and declared deviations.
        observation: Observation of the job, with its reference.

    Returns:
        Whether it conforms, and sentences with the reasons. A failure deviates if a reference, a
        claim, a variant or a declared deviation shows that the case expects success; otherwise
        the expected result is unknown.
    """
    match observation.outcome:
        case Outcome.OK:
            return _judge_success(case, observation)
        case Outcome.RAISED | Outcome.CRASHED | Outcome.TIMED_OUT | Outcome.OUT_OF_MEMORY:
            return _judge_failure(case, observation)
        case Outcome.UNSUPPORTED | Outcome.INFRA | Outcome.NOT_RUN:
            return Conformance.UNKNOWN, ()
        case _:
            assert_never(observation.outcome)


def is_expected(expected_types: str, pattern: str, error: ErrorInfo | None) -> bool:
    """Say whether an error has one of the named types and a message that matches.

    Args:
        expected_types: Class names joined by `|`, with or without module; empty is any.
        pattern: Regular expression searched in the message; empty is any.
        error: The observed error, if any.

    Returns:
        True when both hold.

    Raises:
        UsageError: If the pattern is no regular expression.
    """
    if error is None:
        return not expected_types and not pattern
    # Only the class counts: jax moves its exceptions between modules, e.g. `jax._src.errors`.
    names = {name.strip().rpartition(".")[2] for name in expected_types.split("|")} - {""}
    if names and error.type.rpartition(".")[2] not in names:
        return False
    try:
        # Searched and not matched, as `pytest.raises(match=)` does.
        return re.search(pattern, error.message) is not None
    except re.error as wrong:
        raise UsageError(
            f"match={pattern!r} is no regular expression ({wrong}); escape it with re.escape"
        ) from None


def describe_outcome(observation: Observation) -> str:
    """Return the outcome of a job in a few words, e.g. `raised TypeError at trace: bad shape`.

    Args:
        observation: Observation of the job.

    Returns:
        Outcome, error type, stage and the first line of the message; of a law that does not hold,
        also the example.
    """
    words = observation.outcome.value
    if observation.error is None:
        return f"{words} at {observation.stage}"
    message, example = split_example(observation.error.message)
    first = message.strip().partition("\n")[0]
    text = f"{words} {observation.error.type} at {observation.stage}"
    text = f"{text}: {first[:200]}" if first else text
    return f"{text}; {example[:400]}" if example else text


def _judge_success(case: Case, observation: Observation) -> ConformanceReport:
    reasons = list(find_unmet_claims(case.facts, observation.facts, observation.texts))
    checked = bool(case.facts)
    match observation.reference:
        case ExpectedError() as expected:
            checked = True
            reasons.append(f"ran, reference expects {_spell(expected)}")
        case None:
            pass
        case reference if observation.value is not None:
            checked = True
            compared = compare_reference(
                observation.value, reference, case.rtol, case.atol, budgets=case.budgets
            )
            # A difference within the tolerance conforms, so it is no reason.
            reasons.extend(() if compared.agrees else compared.messages)
        case _:
            pass  # compile-only: there is no value for the reference to be compared with
    # Without any check that applies in this cell, a run that succeeded proves nothing.
    checked = checked or bool(find_checked_variants(case, observation))
    for sentences in compare_variants(case, observation).values():
        reasons.extend(sentences)
    if reasons:
        return Conformance.DEVIATES, tuple(reasons)
    return (Conformance.CONFORMS if checked else Conformance.UNKNOWN), ()


def _judge_failure(case: Case, observation: Observation) -> ConformanceReport:
    expected = observation.reference
    if isinstance(expected, ExpectedError):
        raised = observation.outcome is Outcome.RAISED
        if raised and is_expected(expected.type, expected.match, observation.error):
            return Conformance.CONFORMS, ()
        reason = f"{describe_outcome(observation)}; reference expects {_spell(expected)}"
        return Conformance.DEVIATES, (reason,)
    # Processes of one program must agree, even if nothing is known about the right result.
    differ = observation.error is not None and observation.error.type == RANKS_DIFFER
    # A deviation alone shows that success is expected: it declares a failure to be wrong.
    expects_result = expected is not None or case.facts or case.deviations or case.same_as
    if expects_result or differ:
        return Conformance.DEVIATES, (
            f"{describe_outcome(observation)}; the case expects a result",
        )
    return Conformance.UNKNOWN, ()


def find_unmet_claims(
    claims: Mapping[str, Any], facts: Mapping[str, Any], texts: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield one sentence for each unmet claim.

    Args:
        claims: Claims of the case, by name.
        facts: Observed facts; a claim about a missing fact is unmet, never skipped.
        texts: IRs in the canonical form, for FileCheck patterns; a claim about a missing IR is
            unmet, too.

    Yields:
        Name, observed, claimed.
    """
    for name, claimed in claims.items():
        if name == FILECHECK:
            yield from _find_unmet_patterns(claimed, texts or {})
        # A fact is missing if its HLO could not be read; passing then would hide the claim for
        # good.
        elif name not in facts:
            yield f"fact {name} was not observed, claimed {claimed}"
        elif not _meets(_normalise_fact(facts[name]), _normalise_fact(claimed)):
            yield f"fact {name} is {facts[name]}, claimed {claimed}"


def _meets(fact: Any, claimed: Any) -> bool:
    """Say whether a fact is as claimed; a row without a sharding claims none."""
    if not isinstance(fact, list) or not isinstance(claimed, list) or len(fact) != len(claimed):
        return bool(fact == claimed)
    return all(map(_meets_row, fact, claimed))


def _meets_row(row: Any, claimed: Any) -> bool:
    # Releases and platforms differ in whether their HLO states shardings.
    if isinstance(row, dict) and isinstance(claimed, dict) and SHARDING not in claimed:
        row = {name: value for name, value in row.items() if name != SHARDING}
    return bool(row == claimed)


def _find_unmet_patterns(claimed: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[str]:
    for ir, pattern in claimed.items():
        if ir not in texts:
            first = pattern.strip().partition("\n")[0]
            yield f"{FILECHECK} of {ir}: none was observed that is understood, claimed `{first}`"
        elif problem := run_filecheck(texts[ir], pattern):
            yield f"{FILECHECK} of {ir}: {problem} (of the form neutral)"


def _normalise_fact(value: Any) -> Any:
    """Return a fact as JSON decodes it: tuples are lists, and counts of 0 are left out."""
    if isinstance(value, list | tuple):
        return [_normalise_fact(item) for item in value]
    if isinstance(value, dict):
        # A claim may list a collective with the count 0; the facts list only those that occur.
        return {str(key): _normalise_fact(item) for key, item in value.items() if item != 0}
    return value


def _spell(expected: ExpectedError) -> str:
    return f"{expected.type} matching {expected.match!r}" if expected.match else expected.type


def select_deviations(
    case: Case, release: str, platform: str, versions: Mapping[str, str]
) -> tuple[Deviation, ...]:
    """Return the deviations a case declares for a cell.

    Args:
        case: The case.
        release: The cell's jax release.
        platform: The cell's platform.
        versions: Package versions of the cell.

    Returns:
        The deviations whose release range, platform and packages cover the cell.
    """
    return tuple(d for d in case.deviations if d.covers(release, platform, versions))


def matches_deviation(
    deviation: Deviation,
    observation: Observation,
    conforms: Conformance,
    reasons: tuple[str, ...] = (),
) -> bool:
    """Say whether an observation shows a declared deviation.

    Args:
        deviation: The declared deviation.
        observation: Observation of the job.
        conforms: Whether the observation conforms.
        reasons: Reasons why the observation does not conform.

    Returns:
        True when outcome, error type and message are as declared. For `outcome="ok"` the program
        ran but deviates, and the pattern is searched in the reasons.
    """
    if observation.outcome != deviation.outcome:
        return False
    if observation.outcome is Outcome.OK:
        # A program that ran raised no error, so the pattern is matched with the differences
        # instead.
        return conforms is Conformance.DEVIATES and is_expected(
            "", deviation.match, _make_error(reasons)
        )
    return is_expected(deviation.error, deviation.match, observation.error)


def describe_deviation(deviation: Deviation) -> str:
    """Return a deviation in a few words: range, platform and issue.

    Args:
        deviation: The declared deviation.

    Returns:
        E.g. `deviation jax<0.6 (jax-ml/jax#27664)`.
    """
    where = f"jax{deviation.releases}" if deviation.releases else "every release"
    where += f" on {deviation.platform}" if deviation.platform else ""
    return f"deviation {where}" + (f" ({deviation.issue})" if deviation.issue else "")


def _make_error(reasons: tuple[str, ...]) -> ErrorInfo:
    # Declared patterns, `inf against 1.26`, hold with the label of the number and without.
    texts = dict.fromkeys((*reasons, *map(strip_label, reasons)))
    return ErrorInfo(type="", message="\n".join(texts))
