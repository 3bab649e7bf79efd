"""The verdict on one job: its observation against reference, golden and declared deviations."""

from __future__ import annotations

from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Final, assert_never

from conformance.judge.agreement import compare_golden, find_disagreement
from conformance.judge.conformance import (
    describe_deviation,
    describe_outcome,
    judge_conformance,
    matches_deviation,
    select_deviations,
)
from conformance.judge.difference import Agreement
from conformance.judge.ir import compare_ir, find_changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import GOLDEN, REFERENCE
from conformance.judge.variants import find_checked_variants
from conformance.model.case import Policy
from conformance.model.observation import ExpectedError, is_case_error
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.ranges import in_range
from conformance.model.record import IrStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.model.case import Case, Deviation
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation

IF_INTENDED: Final = "; if intended: "
"""Separates a reason from the command that accepts the observation."""
TAINTED: Final = "golden is tainted"
"""Beginning of the reason if a golden has another format or normal form."""
FIX_CASE: Final = "the case itself is wrong: fix it"
"""Advice for a case that the harness cannot use: its observation must not become a golden."""
VerdictReport = tuple[Verdict, tuple[str, ...]]
"""A verdict, and its reasons, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one job, with its reasons.

    Attributes:
        conformance: Observation against the case's own reference.
        verdict: Observation against golden, deviations and reference.
        reasons: Reasons of the verdict, a sentence each; empty for a plain match.
        ir: Each IR against its golden.
    """

    conformance: Conformance
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    ir: Mapping[str, IrStatus] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """The comparisons that the verdict depends on.

    Attributes:
        case: The case.
        seen: The observation.
        conforms: Conformance of the observation.
        why: Reasons why the observation does not conform.
        golden: The golden that applies, unless absent or tainted.
        tainted: True for a golden of another format or normal form, which cannot be compared.
        agreement: Agreement of the observation with the golden; EQUAL without a golden.
        changes: Differences from the golden.
    """

    case: Case
    seen: Observation
    conforms: Conformance
    why: tuple[str, ...]
    golden: GoldenEntry | None
    tainted: bool
    agreement: Agreement
    changes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether there is a golden, and it agrees within tolerance."""
        return self.golden is not None and self.agreement is not Agreement.BEYOND

    def add_accept_command(self, text: str) -> str:
        """Return a reason with the command that accepts the observation, if it can be accepted."""
        # Accepting would record the mistake of the case as the behaviour of JAX.
        if is_case_error(self.seen.error):
            return f"{text}; {FIX_CASE}"
        return f"{text}{IF_INTENDED}conformance accept {quote(self.case.id)}"


def judge(  # noqa: PLR0917 - the seven things a verdict depends on, in the order of the plan
    case: Case,
    release: str,
    platform: str,
    versions: Mapping[str, str],
    observation: Observation,
    golden: GoldenEntry | None,
    *,
    attempts: Sequence[Observation] = (),
) -> Judgement:
    """Judge one job; pure, so that recorded runs can be judged again.

    Args:
        case: The case.
        release: The cell's jax release.
        platform: The cell's platform.
        versions: Package versions of the cell.
        observation: Observation of the job.
        golden: Golden of the case for platform and release, if any.
        attempts: Other attempts of the same job; inconclusive outcomes are ignored.

    Returns:
        Conformance, verdict and reasons.
    """
    match observation.outcome:
        case Outcome.INFRA | Outcome.NOT_RUN:
            return make_unjudged(Verdict.INFRA, observation)
        case Outcome.UNSUPPORTED:
            return make_unjudged(Verdict.EXCLUDED, observation)
        case (
            Outcome.OK
            | Outcome.RAISED
            | Outcome.CRASHED
            | Outcome.TIMED_OUT
            | Outcome.OUT_OF_MEMORY
        ):
            pass
        case _:
            assert_never(observation.outcome)
    tolerance = Tolerance.of(case)
    evidence = _gather(case.select_platform(platform), observation, golden, tolerance)
    irs = {} if evidence.golden is None else _compare_irs(observation, evidence.golden)
    # Before any other verdict: one attempt of an unstable job proves neither a change nor a fix.
    flaky = _find_disagreement(observation, attempts, tolerance)
    report: VerdictReport = (Verdict.FLAKY, (flaky,))
    if not flaky:
        report = _decide(evidence, select_deviations(case, release, platform, versions))
    verdict, reasons = report
    return Judgement(conformance=evidence.conforms, verdict=verdict, reasons=reasons, ir=irs)


def _compare_irs(seen: Observation, golden: GoldenEntry) -> dict[str, IrStatus]:
    return {ir: compare_ir(record, golden.ir.get(ir)) for ir, record in seen.ir.items()}


def _find_gating(case: Case, seen: Observation, golden: GoldenEntry) -> Iterator[str]:
    """Yield differences of the facts and IRs that gate by the case's policy."""
    if case.policy_of("facts") is Policy.GATE:
        yield from find_changed_facts(seen.facts, golden.facts)
    for ir, status in _compare_irs(seen, golden).items():
        if status is IrStatus.CHANGED and case.policy_of(ir) is Policy.GATE:
            yield f"{ir} changed"


def make_unjudged(verdict: Verdict, observation: Observation) -> Judgement:
    """Return the judgement of a job with an inconclusive outcome.

    Args:
        verdict: The verdict.
        observation: Observation of the job.
    """
    # Not shortened: the message is one of ours, and ends with an advice.
    reason = observation.error.message if observation.error else describe_outcome(observation)
    return Judgement(conformance=Conformance.UNKNOWN, verdict=verdict, reasons=(reason,))


def _gather(
    case: Case, observation: Observation, golden: GoldenEntry | None, tolerance: Tolerance
) -> _Evidence:
    conforms, why = judge_conformance(case, observation)
    tainted = golden is not None and golden.tainted
    usable = None if tainted else golden
    agreement = Agreement.EQUAL
    changes: tuple[str, ...] = ()
    if usable is not None:
        agreement, changes = compare_golden(observation, usable, tolerance)
        # Facts of a job with another outcome or value differ as a consequence, which is no news.
        if agreement is not Agreement.BEYOND:
            gating = tuple(_find_gating(case, observation, usable))
            if gating:
                agreement, changes = Agreement.BEYOND, (*changes, *gating)
    return _Evidence(
        case=case,
        seen=observation,
        conforms=conforms,
        why=why,
        golden=usable,
        tainted=tainted,
        agreement=agreement,
        changes=changes,
    )


def _find_disagreement(
    observation: Observation, attempts: Sequence[Observation], tolerance: Tolerance
) -> str:
    for attempt in attempts:
        text = (
            find_disagreement(attempt, observation, tolerance) if attempt.outcome.observed else ""
        )
        if text:
            return text
    return ""


def _decide(evidence: _Evidence, declared: tuple[Deviation, ...]) -> VerdictReport:
    # Deviations first: a declared failure is known, also if it is the same as the golden's error.
    for deviation in declared:
        if matches_deviation(deviation, evidence.seen, evidence.conforms, evidence.why):
            return _judge_known(evidence, deviation)
    if evidence.conforms is Conformance.DEVIATES:
        return _judge_deviating(evidence, declared)
    # Before the golden, whose difference would hide that the deviation is gone.
    refuted = [d for d in declared if _refutes(evidence, d)]
    if refuted:
        return _judge_gone(evidence, refuted)
    match evidence.seen.outcome:
        case Outcome.CRASHED | Outcome.OUT_OF_MEMORY | Outcome.TIMED_OUT:
            return judge_failure(evidence.seen), (describe_outcome(evidence.seen),)
        case _:
            return _judge_by_golden(evidence)


def _refutes(evidence: _Evidence, declared: Deviation) -> bool:
    """Say whether an observation that does not deviate shows that a deviation is gone."""
    if declared.outcome != Outcome.OK and evidence.seen.outcome is Outcome.OK:
        return True
    # A job that ran refutes a deviation of its value only if a reference applies and every variant
    # was run.
    unchecked = set(evidence.case.same_as) - set(
        find_checked_variants(evidence.case, evidence.seen)
    )
    ran = evidence.seen.outcome is Outcome.OK
    return evidence.conforms is Conformance.CONFORMS and not (ran and unchecked)


def _judge_known(evidence: _Evidence, deviation: Deviation) -> VerdictReport:
    reason = _get_first(evidence.why, describe_outcome(evidence.seen))
    known = f"{describe_deviation(deviation)}: {reason}"
    golden = evidence.golden
    if golden is None or evidence.agrees or _is_older(golden, deviation):
        return Verdict.KNOWN, (known,)
    return Verdict.CHANGED, (known, *map(evidence.add_accept_command, evidence.changes))


def _is_older(golden: GoldenEntry, deviation: Deviation) -> bool:
    """Say whether a golden is of a release before the range of a deviation.

    It cannot contradict the deviation then, e.g. on a nightly, which never has a golden.
    """
    last = golden.span.rpartition("..")[2]
    return not golden.exact and not in_range(last, deviation.releases)


def _judge_gone(evidence: _Evidence, declared: list[Deviation]) -> VerdictReport:
    case = evidence.case
    # An exact golden was reviewed at this release: if it agrees, the declaration was wrong
    # already.
    is_recorded = evidence.golden is not None and evidence.golden.exact and evidence.agrees
    verdict, word = (Verdict.STALE, "is stale") if is_recorded else (Verdict.FIXED, "is fixed")
    return verdict, tuple(
        f"{describe_deviation(d)} {word}: {describe_outcome(evidence.seen)}, as it should; "
        f"end its range {d.releases or '(every release)'} in {case.file}:{case.line}"
        for d in declared
    )


def _judge_deviating(evidence: _Evidence, declared: tuple[Deviation, ...]) -> VerdictReport:
    verdict = judge_failure(evidence.seen)
    if verdict is not Verdict.REGRESSED:
        return verdict, evidence.why
    if not declared:
        return Verdict.REGRESSED, _merge_reasons(evidence.why, evidence.changes)
    other = f"not as the {describe_deviation(declared[0])} declares: {_get_first(evidence.why, '')}"
    verdict = Verdict.CHANGED if evidence.agrees else Verdict.REGRESSED
    return verdict, (other, *evidence.why[1:], *evidence.changes)


def _merge_reasons(why: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """Return the differences from reference and golden; equal differences are listed once."""
    # Reference and golden mostly agree, and one wrong number would fill two lines of the report.
    same = {text.replace(f" {GOLDEN} ", f" {REFERENCE} ", 1): text for text in changes}
    both = f" {REFERENCE} and {GOLDEN} "
    reasons = [text.replace(f" {REFERENCE} ", both, 1) if text in same else text for text in why]
    return (*reasons, *(text for key, text in same.items() if key not in why))


def judge_failure(seen: Observation) -> Verdict:
    """Return the verdict on an undeclared failure.

    Args:
        seen: Observation of the job.
    """
    match seen.outcome:
        case Outcome.CRASHED | Outcome.OUT_OF_MEMORY:
            return Verdict.CRASHED
        case Outcome.TIMED_OUT:
            return Verdict.TIMED_OUT
        case _:
            return Verdict.REGRESSED


def _judge_by_golden(evidence: _Evidence) -> VerdictReport:
    if evidence.tainted:
        accept = f"conformance accept {quote(evidence.case.id)}"
        return Verdict.NEW, (
            f"{TAINTED}: convert it with conformance accept --migrate, or replace it with {accept}",
        )
    if evidence.golden is None:
        text = f"no golden yet: conformance accept {quote(evidence.case.id)}"
        if is_case_error(evidence.seen.error):
            text = FIX_CASE
        failed = evidence.seen.outcome is not Outcome.OK
        return Verdict.NEW, (describe_outcome(evidence.seen), text) if failed else (text,)
    match evidence.agreement:
        case Agreement.EQUAL:
            return Verdict.MATCH, ()
        case Agreement.WITHIN:
            return Verdict.DRIFTED, evidence.changes
        case Agreement.BEYOND:
            return _classify_change(evidence), tuple(
                map(evidence.add_accept_command, evidence.changes)
            )
        case _:
            assert_never(evidence.agreement)


def _classify_change(evidence: _Evidence) -> Verdict:
    recorded_ok = evidence.golden is not None and evidence.golden.outcome is Outcome.OK
    seen_ok = evidence.seen.outcome is Outcome.OK
    if seen_ok and not recorded_ok:
        return Verdict.FIXED
    # A new error that the reference asks for is a change of behaviour, no regression.
    expects_error = isinstance(evidence.seen.reference, ExpectedError)
    if recorded_ok and not seen_ok and not expects_error:
        return Verdict.REGRESSED
    return Verdict.CHANGED


def _get_first(texts: tuple[str, ...], default: str) -> str:
    return texts[0] if texts else default
