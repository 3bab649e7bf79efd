"""Shrinks a case while it keeps a failure, a wrong value or a fact.

Its own text is cut first, then the jaxpr that it is traced to. Candidates are texts of case files,
run as jobs in workers that live for the whole search. A worker imports one driver case, whose
parameter is the text to run: so a candidate costs only a forked process, leaves nothing in the
worker, and has the packages of the case imported already.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from conformance.bench.measured import make_settings
from conformance.corpus.discovery import BrokenCasesError, discover
from conformance.engine.job import Job
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.judge.conformance import judge_conformance
from conformance.model.case import SIZE
from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import shorten
from conformance.triage.repro.case_source import extract_source
from conformance.triage.shrink.case_text import (
    add_claim,
    add_reference,
    count_lines,
    extract_case,
    format_text,
    inline_jaxpr,
)
from conformance.triage.shrink.criteria import (
    SameCost,
    SameErrorAbsence,
    SameFact,
    SameWrongValue,
)
from conformance.triage.shrink.driver import render_driver
from conformance.triage.shrink.originals import choose_criterion, refuse_conforming, refuse_flaky
from conformance.triage.shrink.report import ShrunkProgram
from conformance.triage.shrink.results import CaseResult
from conformance.triage.shrink.search import (
    CandidateTrials,
    LimitsSpentError,
    ShrinkLimits,
    candidate_timeout,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.local_executor import CellWorker
    from conformance.model.case import Case
    from conformance.search.metrics import Metric
    from conformance.triage.repro.case_source import ReadFile
    from conformance.triage.shrink.criteria import Criterion

REPEATS: Final = 3
"""How often a case is run before it is cut, to find out whether it is flaky."""
CLEAR: Final = 1.5
"""Ratio of time or memory that one measurement of each candidate tells from noise."""
UNFILTERED: Final = {"jax_traceback_filtering": "off"}
"""Option for tracebacks with the frames of jax: a criterion compares the one that raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Confirmation:
    """The result of the smallest text, run once more as a case file in fresh workers."""

    text: str
    same: bool
    alone: bool
    sizes: Mapping[str, int | None]


@dataclass(kw_only=True)
class CaseShrinker:
    """Shrinks a case.

    Attributes:
        case: The case.
        cell: The cell in which it deviates.
        others: Cells in which it may conform, the most likely first.
        is_good_named: Whether the user named the good cell: then it must conform in that cell.
        fact: Name of the fact to keep, empty for none.
        metric: Time or memory whose ratio is kept, None for none: then the case is measured at its
            largest size, and candidates one at a time.
        open_cell: Returns a worker of a cell; refuses a cell that the case does not run in.
        read: Returns the text of a file.
        folder: An empty folder.
        blobs: The store of artifacts.
        limits: Limits of the search.
        progress: Called with each step, in words.
    """

    case: Case
    cell: Cell
    others: Sequence[Cell] = ()
    is_good_named: bool = False
    fact: str = ""
    metric: Metric | None = None
    open_cell: Callable[[Cell], CellWorker]
    read: ReadFile
    folder: Path
    blobs: BlobStore
    limits: ShrinkLimits = field(default_factory=ShrinkLimits)
    progress: Callable[[str], None] = field(default=lambda _: None)
    _stack: ExitStack = field(default_factory=ExitStack)
    _workers: list[CellWorker] = field(default_factory=list)
    _timeouts: dict[str, float] = field(default_factory=dict)
    _jobs: int = 0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self) -> ShrunkProgram:
        """Shrink the case.

        Raises:
            UsageError: If there is nothing to keep, it is flaky, or it conforms in no cell although
                the search needs one.
            InfrastructureError: If a cell cannot be provided.
        """
        start = time.monotonic()
        if self.metric is not None and self.case.sizes:
            params = {**self.case.params, SIZE: self.case.sizes[-1]}
            self.case = replace(self.case, params=params, sizes=())
        with self._stack:
            self._workers = [self._open(self.cell)]
            text = extract_case(self.case, self.read)
            (self.folder / "search" / self.case.family).mkdir(parents=True)
            imports = extract_source(self.case.file, self.case.name, self.read).imports
            self._file("driver").write_text(render_driver(imports), encoding="utf-8")
            repeats, good = self._run_originals()
            results = [repeats[0], *([good] if good is not None else [])]
            trials = CandidateTrials(
                keep=self.case.name, prepare=self._prepare, limits=self.limits, start=start,
                runs=[partial(self._run_candidate, worker) for worker in self._workers],
                criterion=self._choose_criterion(text, repeats[0], good),
                count_lines=count_lines, progress=self.progress,
            )  # fmt: skip
            for worker, result in zip(self._workers, results, strict=True):
                # By cell: the good cell may be much faster or slower than the bad one.
                timeout = candidate_timeout(result, self.case.timeout)
                self._timeouts[worker.planned.cell.id] = timeout
            if not trials.holds(text):
                # A flaky case would otherwise be refused with a wrong reason.
                again = self._run(self._workers[0], self.case)
                refuse_flaky(self.case, self.cell.id, [*repeats, again])
                raise UsageError(
                    f"{self.case.id}: outside its file it does not show the same, expected "
                    f"{shorten(trials.criterion.about)}; define what it needs within the case"
                )
            return self._search(trials, text, results)

    def _search(
        self, trials: CandidateTrials[Any, CaseResult], text: str, results: Sequence[CaseResult]
    ) -> ShrunkProgram:
        """Cut the text, then its jaxpr; return the result with fewer equations."""
        measured = next((result for result in results if result.measures is not None), results[0])
        # Measured in either cell: a case that fails in the bad cell while it is traced has no jaxpr
        # there.
        before = _measure(format_text(text), self.case.devices, measured)
        cells, about = [worker.planned.cell.id for worker in self._workers], trials.criterion.about
        head = [f"{self.case.id} on {cells[0]}, cut down.", f"Kept: {about}"]
        head += [f"Not so on {cell}." for cell in cells[1:]]
        search, complete, confirmed = trials.search(text), False, None
        left, generator, interrupted = "", "source", False
        try:
            complete = search.run()
            left = search.text
            if complete and (traced := self._cut_jaxpr(trials, search.text, text)):
                left, generator = traced, "jaxpr"
            self.progress("running the result once more")
            confirmed = self._confirm(trials, left, head)
        # The smallest text so far is a result, too; it is not confirmed.
        except KeyboardInterrupt:
            interrupted = True
        return ShrunkProgram(
            text=format_text(left or search.text, head) if confirmed is None else confirmed.text,
            about=about, cell=cells[0], good_cell="".join(cells[1:]), before=before,
            after=None if confirmed is None else confirmed.sizes, probes=trials.tried,
            seconds=time.monotonic() - trials.start, complete=complete, interrupted=interrupted,
            confirmed=confirmed is not None and confirmed.same,
            of_case={
                "generator": generator, "jobs": self._jobs,
                "alone": confirmed is not None and confirmed.alone,
            },
        )  # fmt: skip

    def _run_originals(self) -> tuple[list[CaseResult], CaseResult | None]:
        """Run the original case repeatedly, and in a good cell, if there is one."""
        self.progress("running the case itself")
        tried = [self._run(self._workers[0], self.case) for _ in range(REPEATS)]
        if tried[0].outcome is Outcome.INFRA:
            ending = shorten(tried[0].ending)
            raise InfrastructureError(f"{self.case.id} on {self.cell.id}: {ending}")
        if self.metric is not None:
            return tried, self._find_faster_cell(tried[0], self.metric)
        refuse_flaky(self.case, self.cell.id, tried)
        if not self.fact:
            refuse_conforming(self.case, self.cell.id, tried[0])
        return tried, self._find_good_cell(tried[0])

    def _find_good_cell(self, bad: CaseResult) -> CaseResult | None:
        """Open a cell in which the case conforms; return its result there."""
        # Only a right value shows that another one is wrong.
        required = bad.outcome is Outcome.OK and not self.fact
        reasons: list[str] = []
        for cell in self.others if self.is_good_named or not self.fact else ():
            self.progress(f"looking for a cell in which it conforms: {cell.id}")
            try:
                worker = self._open(cell)
            # Another cell may do, unless the user named this one.
            except ConformanceError:
                if self.is_good_named:
                    raise
                continue
            found = self._run(worker, self.case)
            conforms, why = judge_conformance(self.case, found.observation)
            runs = not required and found.outcome is Outcome.OK
            is_good = conforms is Conformance.CONFORMS or (runs and conforms is Conformance.UNKNOWN)
            # A fact is compared with any cell that the user names, also if the case deviates in it.
            if is_good or (self.is_good_named and self.fact):
                self._workers.append(worker)
                return found
            reasons.append(f"{cell.id}: {shorten(why[0] if why else found.ending)}")
            # Each worker holds a process that has imported jax.
            worker.close()
        if required or self.is_good_named:
            raise UsageError(
                f"{self.case.id} on {self.cell.id}: needs a cell in which it conforms, to compare "
                f"values with ({'; '.join(reasons) or 'none is known'}); name one with --good"
            )
        return None

    def _find_faster_cell(self, bad: CaseResult, metric: Metric) -> CaseResult:
        """Open a cell in which the case takes less; return its result there."""
        reasons = []
        for cell in self.others:
            self.progress(f"looking for a cell in which it takes less: {cell.id}")
            worker = self._open(cell)
            found = self._run(worker, self.case)
            ratio = SameCost(metric, bad, found).ratio
            if ratio >= CLEAR:
                self._workers.append(worker)
                return found
            reasons.append(f"{cell.id}: {ratio:.2f} times" if ratio else f"{cell.id}: not measured")
            worker.close()
        raise UsageError(
            f"{self.case.id} on {self.cell.id}: takes nowhere less than 1/{CLEAR:g} of its "
            f"{metric.name} ({'; '.join(reasons) or 'no other cell'}); name a cell with --good"
        )

    def _choose_criterion(
        self, text: str, bad: CaseResult, good: CaseResult | None
    ) -> Criterion[CaseResult]:
        if self.metric is not None and good is not None:
            return SameCost(self.metric, bad, good)
        return choose_criterion(self.case, text, bad, good, self.fact)

    def _cut_jaxpr(
        self, trials: CandidateTrials[Any, CaseResult], text: str, whole: str
    ) -> str | None:
        """Cut the jaxpr of a text; return None if that leaves no fewer equations."""
        if self.case.kind != "program" or (equations := self._count_equations(text)) is None:
            return None
        release = self._workers[0].planned.release
        # The jaxpr of the cut text may no longer show the same: then that of the whole is cut.
        for source in (text, whole):
            result = self._run_bad(source)
            if result is None or result.measures is None:
                continue
            written = inline_jaxpr(source, self.case.name, result.job.blobs["jaxpr"], release)
            try:
                if written is None or trials.find_first([written]) is None:
                    continue
            # The cut text is the result then.
            except LimitsSpentError:
                continue
            search = trials.search(written)
            search.run()
            after = self._count_equations(search.text)
            # The jaxpr of a short source may be longer: then the source is easier to read.
            return search.text if after is not None and after < equations else None
        return None

    def _count_equations(self, text: str) -> int | None:
        result = self._run_bad(text)
        return None if result is None or result.measures is None else result.measures[0]

    def _run_bad(self, text: str) -> CaseResult | None:
        """Return the result of a text in the bad cell; None if it is no case."""
        candidate = self._prepare(text)
        return None if candidate is None else self._run_candidate(self._workers[0], candidate)

    def _confirm(
        self, trials: CandidateTrials[Any, CaseResult], text: str, head: Sequence[str]
    ) -> _Confirmation:
        """Run a text as a case file with a reference, in fresh workers."""
        # A result must not depend on what the search left in its workers.
        fresh = [self._open(worker.planned.cell) for worker in self._workers]
        home = self.folder / "left" / self.case.family
        home.mkdir(parents=True)
        tried: list[_Confirmation] = []
        # The reference of the original is the value of the whole program, not of the rest of it.
        referred = self._refer_to_good_cell(trials, text)
        # Without the reference only if the case does not show the same with it.
        for number, candidate in enumerate(dict.fromkeys([referred or text, text])):
            final = format_text(candidate, head)
            file = home / f"{self.case.topic}_{number}.py"
            file.write_text(final, encoding="utf-8")
            (found,) = discover([file])
            results = [self._run(worker, found, alone=True) for worker in fresh]
            same = trials.criterion.holds(results[0], results[1] if len(results) > 1 else None)
            deviates = [
                judge_conformance(found, result.observation)[0] is Conformance.DEVIATES
                for result in results
            ]
            alone = results[0].outcome is not Outcome.OK or (deviates[0] and not any(deviates[1:]))
            sizes = _measure(final, found.devices, results[0])
            tried.append(_Confirmation(text=final, same=same, alone=alone, sizes=sizes))
            if same and alone:
                break
        return next((confirmation for confirmation in tried if confirmation.same), tried[0])

    def _refer_to_good_cell(
        self, trials: CandidateTrials[Any, CaseResult], text: str
    ) -> str | None:
        """Return a case whose reference or claim is the result of the good cell."""
        self._timeouts.clear()  # the search is over: a slow run now only means a busy host
        candidate = self._prepare(text)
        if candidate is None or len(self._workers) == 1:
            return None
        bad, good = (self._run_candidate(worker, candidate) for worker in self._workers)
        if bad.outcome is not Outcome.OK:
            return None
        match trials.criterion:
            case SameFact(name=name):
                return add_claim(text, self.case.name, name, good.stored_job.record.facts)
            case SameErrorAbsence(good=CaseResult() as original):
                expected = original.observation.reference
            case SameWrongValue():
                expected = good.value
            case _:
                return None
        return None if expected is None else add_reference(text, self.case.name, expected)

    def _prepare(self, text: str) -> Case | None:
        """Return a text as a case of the driver; None if it is not a valid case file."""
        # Discovery reads files; the job itself gets the text as a parameter.
        file = self._file(f"candidate_{next(self._numbers)}")
        file.write_text(text, encoding="utf-8")
        try:
            found = [case for case in discover([file]) if case.name == self.case.name]
        except BrokenCasesError:
            return None
        finally:
            file.unlink()
        if len(found) != 1:
            return None
        return replace(
            found[0], id=self.case.id, family=self.case.family, name=f"candidate_{found[0].kind}",
            file=self._file("driver"), params={"text": text, "name": self.case.name},
            memory=self.case.memory,
        )  # fmt: skip

    def _file(self, name: str) -> Path:
        return self.folder / "search" / self.case.family / f"{name}.py"

    def _run_candidate(self, worker: CellWorker, case: Case) -> CaseResult:
        timeout = self._timeouts.get(worker.planned.cell.id, self.case.timeout)
        return self._run(worker, replace(case, timeout=timeout))

    def _run(self, worker: CellWorker, case: Case, *, alone: bool = False) -> CaseResult:
        self._jobs += 1
        # The option of the case comes last: the case may be about tracebacks.
        case = replace(case, config={**UNFILTERED, **case.config})
        settings = None if self.metric is None else make_settings(case)
        job = Job(
            case=case, planned=worker.planned, alone=alone or settings is not None,
            measure=settings,
        )  # fmt: skip
        return CaseResult(worker.run(job), self.blobs)

    def _open(self, cell: Cell) -> CellWorker:
        return self._stack.enter_context(closing(self.open_cell(cell)))


def _measure(text: str, devices: int, result: CaseResult) -> dict[str, int | None]:
    """Return the sizes of a case: lines, devices, equations, elements of its arguments."""
    equations, elements = result.measures or (None, None)
    lines = count_lines(text)
    return {"lines": lines, "devices": devices, "equations": equations, "elements": elements}
