"""The pipeline of a job: result cache, execution, record, verdict, confirmation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from conformance.engine.record_judge import execute_jobs, make_infra_end, name_golden_variant
from conformance.errors import InfrastructureError
from conformance.golden.document import GoldenError
from conformance.golden.spans import find_span
from conformance.judge.agreement import DISAGREE
from conformance.model.outcome import Outcome, Verdict
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.cache.results import ResultCache
    from conformance.engine.calibration import Calibration, UnstableJob
    from conformance.engine.job import Executor, Job
    from conformance.engine.record_judge import Judge
    from conformance.golden.spans import SpanMatch
    from conformance.model.record import Record
    from conformance.model.value import Value


ATTEMPTS: Final = 2
"""Attempts of a job before an unexpected result is reported."""
RATED: Final = 5
"""Attempts of a job whose attempts disagree: enough to report a rate."""

EQUAL: Final = (Verdict.MATCH, Verdict.KNOWN)
"""Verdicts of a job that equals its golden."""
SHARED: Final = (*EQUAL, Verdict.DRIFTED)
"""Verdicts that count although other jobs ran in the same process.

On another processor than that of the goldens, many results differ in their last digits.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunner:
    """Runs and judges jobs: from the result cache where possible, executed otherwise.

    Attributes:
        executor: Executes the jobs that are not cached.
        cache: Observations of earlier runs; receives the new ones.
        judge: Judges the records, with the same blobs.
        blobs: Receives the artifacts.
        rerun: Called with each unexpected record whose job `run_confirmed` runs again.
        cached: Ids of the jobs that `run_confirmed` found in the cache or added to it.
    """

    executor: Executor
    cache: ResultCache
    judge: Judge
    blobs: BlobStore
    rerun: Callable[[Record], None] = field(default=lambda _: None)
    cached: set[tuple[str, str]] = field(default_factory=set)

    def run(self, jobs: Iterable[Job], *, again: bool = False) -> Iterator[tuple[Job, Record]]:
        """Run each job once, as a search does: unexpected results are not confirmed.

        Args:
            jobs: Jobs to run.
            again: Whether to ignore cached results.

        Yields:
            Each job with its judged record, in any order.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        missing = []
        for job in jobs:
            known = None if again else self._load_cached(job)
            if known is None:
                missing.append(job)
            else:
                yield job, known
        for job, record, values, same_host in execute_jobs(self.executor, missing, self.blobs):
            # Before it is judged: the cache holds observations, which do not depend on goldens.
            if same_host:
                self.cache.put(job, record, self.blobs)
            yield job, self._judge(job, record, values)

    def run_confirmed(self, jobs: Iterable[Job], calibration: Calibration) -> Iterator[Record]:
        """Run jobs, and rerun those with unexpected results.

        Args:
            jobs: Jobs to run.
            calibration: The jobs that are known to be unstable on this host.

        Yields:
            The final record of each job, in any order.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        missing = []
        # Confirmed after all other jobs, when the neighbours of the first attempts are gone.
        unconfirmed: dict[tuple[str, str], tuple[Job, list[Record]]] = {}
        for job in jobs:
            known = self._load_cached(job)
            if known is None:
                # Most results are expected: in one process these jobs take four fifths of the time.
                missing.append(replace(job, may_share=self.judge.expects_golden(job)))
            elif _needs_confirmation(known):
                unconfirmed[job.id] = (job, [known])
                self.rerun(known)
            else:
                yield known
                self.cached.add(job.id)
        for job, record, values, same_host in execute_jobs(self.executor, missing, self.blobs):
            judged = self._judge(job, record, values)
            # Another job of its process may be the reason: this was no attempt.
            is_void = job.may_share and judged.verdict not in SHARED
            if is_void or _needs_confirmation(judged):
                unconfirmed[job.id] = (job, [] if is_void else [record])
                if judged.unexpected:
                    self.rerun(judged)
            else:
                # The record first: a cache whose disk is full must not cost the run a record.
                yield judged
                self._cache(job, record, judged, same_host=same_host)
        yield from self._confirm(unconfirmed, calibration)

    def _confirm(
        self,
        unconfirmed: dict[tuple[str, str], tuple[Job, list[Record]]],
        calibration: Calibration,
    ) -> Iterator[Record]:
        """Rerun jobs until their attempts agree or give a rate, and yield the final records.

        Args:
            unconfirmed: Each job and its attempts so far, by id; emptied.
            calibration: See `run_confirmed`.
        """
        while unconfirmed:
            # In reverse order, each in a separate process: a neighbour may be the reason.
            repeated = [
                replace(job, alone=True, may_share=False)
                for job, _ in reversed(unconfirmed.values())
            ]
            for job, record, values, same_host in execute_jobs(self.executor, repeated, self.blobs):
                judged = self._judge(job, record, values)
                # A record that cannot be judged counts as `infra`, in spite of its own outcome.
                again = judged if judged.outcome is Outcome.INFRA else record
                attempts = unconfirmed[job.id][1]
                attempts.append(again)
                unstable = calibration.find(job)
                judged = judge_attempts(self.judge, job, attempts, unstable)
                is_sure = judged.verdict is not Verdict.FLAKY and unstable is None
                needed = (ATTEMPTS if judged.unexpected else 1) if is_sure else RATED
                if len(attempts) >= needed:
                    del unconfirmed[job.id]
                    yield judged
                    # A flaky job is never cached: another run must see its attempts disagree.
                    if is_sure:
                        confirmed = replace(again, attempts=len(attempts))
                        self._cache(job, confirmed, judged, same_host=same_host)

    def find_golden_span(self, job: Job) -> SpanMatch[str] | None:
        """Return the golden value or error of a job, None if there is none that can be read.

        Args:
            job: Any job.
        """
        if job.case.kind == "test":
            return None
        try:
            spans = self.judge.store(job).load_ending_spans(job.case, name_golden_variant(job))
        except GoldenError:  # a verdict says so
            return None
        return find_span(spans, job.planned.release)

    def equals_golden(self, job: Job, record: Record) -> bool:
        """Return whether a judged record equals the golden of its release, an earlier attempt.

        Args:
            job: The job.
            record: Its record.
        """
        found = self.find_golden_span(job) if record.verdict in EQUAL else None
        return found is not None and found.exact

    def cache_confirmed(self, job: Job, record: Record, attempts: int) -> None:
        """Cache a job whose attempts agreed, so that it is not confirmed again.

        Args:
            job: Job whose attempts agreed.
            record: The record of an attempt.
            attempts: Number of attempts.
        """
        self.cache.put(job, replace(record, attempts=attempts), self.blobs)

    def _load_cached(self, job: Job) -> Record | None:
        """Return the judged record of an unchanged job, None if it must run.

        A record that cannot be judged is dropped, and its job runs again.
        """
        record = self.cache.take(job, self.blobs)
        if record is None:
            return None
        try:
            return replace(self.judge.judge(job, record), attempts=record.attempts)
        except InfrastructureError:
            raise
        except Exception:  # noqa: BLE001 - a record of a shared cache may hold anything
            # Damaged in both places: the copy in the run is a hard link to the blob of the cache.
            self.cache.forget(record)
            self.blobs.drop_broken(record.artifacts.values())
            return None

    def _judge(self, job: Job, record: Record, values: Mapping[str, Value]) -> Record:
        """Return a judged record; it is `infra` if the report of the job cannot be judged."""
        try:
            return self.judge.judge(job, record, values=values)
        except InfrastructureError:
            raise
        except Exception as error:  # noqa: BLE001 - a job may report anything
            end = make_infra_end(job, error)
            broken = replace(
                record, outcome=end.outcome, error=end.error, artifacts={}, facts={}, ir={}
            )
            return self.judge.judge(job, broken)

    def _cache(self, job: Job, record: Record, judged: Record, *, same_host: bool) -> None:
        # Another processor may give other last digits: the key names the processor of this host.
        if same_host and self.cache.put(job, record, self.blobs, expected=not judged.unexpected):
            self.cached.add(job.id)


def judge_attempts(
    judge: Judge, job: Job, attempts: Sequence[Record], unstable: UnstableJob | None = None
) -> Record:
    """Return the record of a job judged by all of its attempts.

    If attempts disagree or have different verdicts, the job is flaky, and the reasons count the
    verdicts. A job that is known to be unstable on this host is `known` instead.

    Args:
        judge: Judges the attempts.
        job: Job of the attempts.
        attempts: Records of the attempts, in order.
        unstable: Calibration entry of the job, None if it is stable.

    Raises:
        CorruptBlobError: If a blob of a record is missing or changed.
    """
    judged = judge.judge(job, attempts[0], attempts[1:])
    # Attempts that the host prevented confirm nothing and are not counted.
    singly = [judge.judge(job, attempt) for attempt in attempts if attempt.outcome.observed]
    judged = replace(judged, attempts=max(len(singly), 1))
    counts = Counter(str(attempt.verdict) for attempt in singly)
    # A suite may declare that a test fails sometimes. An undeclared failure is still flaky.
    may_pass = job.case.kind == "test" and {*counts} <= {Verdict.MATCH, Verdict.KNOWN}
    if judged.verdict is not Verdict.FLAKY and (len(counts) <= 1 or may_pass):
        return judged
    reasons = judged.reasons
    # Attempts may agree within the tolerance and still fall on both sides of a golden or budget.
    if judged.verdict is not Verdict.FLAKY:
        other = next(attempt for attempt in singly if attempt.verdict is not singly[0].verdict)
        reasons = (f"{DISAGREE}{_describe_verdict(singly[0])}, then {_describe_verdict(other)}",)
    rate = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    reasons = (*reasons, f"of {plural(len(singly), 'attempt')}: {rate}")
    if unstable is None:
        return replace(judged, verdict=Verdict.FLAKY, reasons=reasons)
    return replace(judged, verdict=Verdict.KNOWN, reasons=(unstable.sentence, *reasons))


def _describe_verdict(record: Record) -> str:
    reason = f" ({record.reasons[0]})" if record.reasons else ""
    return f"{record.verdict}{reason}"


def _needs_confirmation(record: Record) -> bool:
    """Return whether a judged record is unexpected and was observed only once."""
    return record.unexpected and record.attempts < ATTEMPTS
