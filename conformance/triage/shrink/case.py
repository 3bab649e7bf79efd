"""Shrinks a case while it fails, gives a wrong value, or states a fact.

Its own text is cut first, then the jaxpr that it is traced to. Candidates are texts of case files,
run as jobs in workers that stay for the whole search. A worker imports one driver, which runs
the text it is handed: so a candidate costs no more than a forked process, leaves nothing in the
worker, and has the case's packages imported already.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from conformance.corpus.discovery import BrokenCasesError, discover
from conformance.engine.job import Job
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.judge.conformance import judge_conformance
from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import shorten
from conformance.triage.repro.source import extract
from conformance.triage.shrink.candidate_trials import (
    CandidateTrials,
    ShrinkLimits,
    Shrunk,
    time_limit,
)
from conformance.triage.shrink.criteria import MissingError, SameFact, SameWrongValue
from conformance.triage.shrink.jaxpr_case import inlined
from conformance.triage.shrink.layout import (
    formatted,
    lines_of_code,
    with_claim,
    with_reference,
)
from conformance.triage.shrink.originals import choose_criterion, refuse_conforming, refuse_flaky
from conformance.triage.shrink.results import CaseResult
from conformance.triage.shrink.search import SpentError
from conformance.triage.shrink.source import draft_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.engine.blobs import BlobStore
    from conformance.engine.local_executor import CellWorker
    from conformance.model.case import Case
    from conformance.triage.repro.source import Read

REPEATS: Final = 3
"""How often a case is tried before it is cut."""
UNFILTERED: Final = {"jax_traceback_filtering": "off"}
"""Tracebacks that name the function which raised."""
DRIVER: Final = '''\
"""Runs the text of a case file that it is handed."""
import contextlib
import dataclasses
import sys
import types

import jax
from conformance.kit import probe, program

{imports}

def run(env, text, name):
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    exec(compile(text, "candidate.py", "exec", dont_inherit=True), module.__dict__)
    built = getattr(module, name)(env)
    # What is not of this name is not lowered for other platforms, which nobody asks of a candidate.
    env.cell = dataclasses.replace(env.cell, platform=env.cell.platform + "-candidate")
    return built


candidate_program = program()(run)
candidate_probe = probe()(run)
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class _Confirmed:
    """The smallest text, tried once more as a case file in workers of its own."""

    text: str
    same: bool
    alone: bool
    sizes: Mapping[str, int | None]


@dataclass(kw_only=True)
class CaseShrinker:
    """A case that is being shrunk.

    Attributes:
        case: The case.
        cell: The cell in which it deviates.
        others: Cells in which it may conform, the likeliest first.
        named: Whether the other cell was named: then it must conform there.
        fact: The fact to keep, if one is named.
        open_cell: Returns a worker of a cell; refuses a cell that the case does not run in.
        read: Returns the text of a file.
        folder: A folder of its own.
        blobs: Where artifacts go.
        limits: How much the search may take.
        progress: Called with each step, in words.
    """

    case: Case
    cell: Cell
    others: Sequence[Cell] = ()
    named: bool = False
    fact: str = ""
    open_cell: Callable[[Cell], CellWorker]
    read: Read
    folder: Path
    blobs: BlobStore
    limits: ShrinkLimits = field(default_factory=ShrinkLimits)
    progress: Callable[[str], None] = field(default=lambda _: None)
    _stack: ExitStack = field(default_factory=ExitStack)
    _workers: list[CellWorker] = field(default_factory=list)
    _limits: dict[str, float] = field(default_factory=dict)
    _jobs: int = 0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self) -> Shrunk:
        """Shrink the case.

        Raises:
            UsageError: If there is nothing to keep, it is flaky, or there is no cell in which it
                conforms where one is needed.
            InfrastructureError: If a cell cannot be had.
        """
        start = time.monotonic()
        with self._stack:
            self._workers = [self._open(self.cell)]
            text = draft_of(self.case, self.read)
            (self.folder / "search" / self.case.family).mkdir(parents=True)
            imports = extract(self.case.file, self.case.name, self.read).imports
            guarded = (f"with contextlib.suppress(Exception):\n    {one}\n" for one in imports)
            driver = DRIVER.format(imports="".join(guarded))
            self._file("driver").write_text(driver, encoding="utf-8")
            tried, good = self._originals()
            results = [tried[0], *([good] if good is not None else [])]
            trials = CandidateTrials(
                keep=self.case.name, prepare=self._prepare, limits=self.limits, start=start,
                runs=[partial(self._run_candidate, worker) for worker in self._workers],
                criterion=choose_criterion(self.case, text, tried[0], good, self.fact),
                lines=lines_of_code, progress=self.progress,
            )  # fmt: skip
            for worker, one in zip(self._workers, results, strict=True):
                self._limits[worker.planned.cell.id] = time_limit(one, self.case.timeout)
            if not trials.holds(text):
                refuse_flaky(self.case, self.cell.id, [*tried, self._original(self._workers[0])])
                raise UsageError(
                    f"{self.case.id}: apart from its file it does something else than "
                    f"{shorten(trials.criterion.about)}; put what it needs to its module into the "
                    "case"
                )
            return self._search(trials, text, results)

    def _search(
        self, trials: CandidateTrials[Any, CaseResult], text: str, results: Sequence[CaseResult]
    ) -> Shrunk:
        """Cut the text, then what it is traced to; keep what has fewer operations."""
        measured = next((one for one in results if one.measures is not None), results[0])
        before = _sizes(formatted(text), self.case.devices, measured)
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
            self.progress("trying what is left once more")
            confirmed = self._confirm(trials, left, head)
        except KeyboardInterrupt:
            interrupted = True
        return Shrunk(
            text=formatted(left or search.text, head) if confirmed is None else confirmed.text,
            about=about, cell=cells[0], good_cell="".join(cells[1:]), before=before,
            after=None if confirmed is None else confirmed.sizes, probes=trials.tried,
            seconds=time.monotonic() - trials.start, complete=complete, interrupted=interrupted,
            confirmed=confirmed is not None and confirmed.same,
            of_case={
                "generator": generator, "jobs": self._jobs,
                "alone": confirmed is not None and confirmed.alone,
            },
        )  # fmt: skip

    def _originals(self) -> tuple[list[CaseResult], CaseResult | None]:
        """Try the original case, also in a cell in which it conforms, if there is one."""
        self.progress("trying the case as it is")
        tried = [self._original(self._workers[0]) for _ in range(REPEATS)]
        if tried[0].outcome is Outcome.INFRA:
            ending = shorten(tried[0].ending)
            raise InfrastructureError(f"{self.case.id} on {self.cell.id}: {ending}")
        refuse_flaky(self.case, self.cell.id, tried)
        if not self.fact:
            refuse_conforming(self.case, self.cell.id, tried[0])
        return tried, self._good(tried[0])

    def _good(self, bad: CaseResult) -> CaseResult | None:
        """Find a cell in which the case conforms, so that candidates are tried there too."""
        # A wrong value is known by a right one.
        required = bad.outcome is Outcome.OK and not self.fact
        reasons: list[str] = []
        for cell in self.others if self.named or not self.fact else ():
            self.progress(f"looking for a cell in which it conforms: {cell.id}")
            try:
                worker = self._open(cell)
            except ConformanceError:
                if self.named:
                    raise
                continue
            found = self._original(worker)
            conforms, why = judge_conformance(self.case, found.observation)
            runs = not required and found.outcome is Outcome.OK
            is_good = conforms is Conformance.CONFORMS or (runs and conforms is Conformance.UNKNOWN)
            if is_good or (self.named and self.fact):
                self._workers.append(worker)
                return found
            reasons.append(f"{cell.id}: {shorten(why[0] if why else found.ending)}")
            worker.close()
        if required or self.named:
            raise UsageError(
                f"{self.case.id} on {self.cell.id}: expected a cell in which it conforms, for a "
                f"wrong value is told by one that is right; {'; '.join(reasons) or 'none is known'}"
                "; name one with --good"
            )
        return None

    def _cut_jaxpr(
        self, trials: CandidateTrials[Any, CaseResult], text: str, whole: str
    ) -> str | None:
        """Cut the operations that a text is traced to; None where that leaves no fewer of them."""
        if self.case.kind != "program" or (equations := self._equations(text)) is None:
            return None
        release = self._workers[0].planned.release
        for one in (text, whole):
            result = self._bad(one)
            if result is None or result.measures is None:
                continue
            written = inlined(one, self.case.name, result.job.blobs["jaxpr"], release)
            try:
                if written is None or trials.first([written]) is None:
                    continue
            except SpentError:
                continue
            search = trials.search(written)
            search.run()
            after = self._equations(search.text)
            return search.text if after is not None and after < equations else None
        return None

    def _equations(self, text: str) -> int | None:
        result = self._bad(text)
        return None if result is None or result.measures is None else result.measures[0]

    def _bad(self, text: str) -> CaseResult | None:
        """Return the result of a text in the cell at hand; None if it is no case."""
        candidate = self._prepare(text)
        return None if candidate is None else self._run_candidate(self._workers[0], candidate)

    def _confirm(
        self, trials: CandidateTrials[Any, CaseResult], text: str, head: Sequence[str]
    ) -> _Confirmed:
        """Try a text as a case file, in fresh workers, with what it should give written down."""
        fresh = [self._open(worker.planned.cell) for worker in self._workers]
        home = self.folder / "left" / self.case.family
        home.mkdir(parents=True)
        tried: list[_Confirmed] = []
        referred = self._referred(trials, text)
        for number, one in enumerate(dict.fromkeys([referred or text, text])):
            final = formatted(one, head)
            file = home / f"{self.case.topic}_{number}.py"
            file.write_text(final, encoding="utf-8")
            (found,) = discover([file])
            results = [self._run(worker, found, alone=True) for worker in fresh]
            same = trials.criterion.holds(results[0], results[1] if len(results) > 1 else None)
            deviates = [
                judge_conformance(found, each.observation)[0] is Conformance.DEVIATES
                for each in results
            ]
            alone = results[0].outcome is not Outcome.OK or (deviates[0] and not any(deviates[1:]))
            sizes = _sizes(final, found.devices, results[0])
            tried.append(_Confirmed(text=final, same=same, alone=alone, sizes=sizes))
            if same and alone:
                break
        return next((one for one in tried if one.same), tried[0])

    def _referred(self, trials: CandidateTrials[Any, CaseResult], text: str) -> str | None:
        """Return a case with what the good cell gives as its reference."""
        self._limits.clear()  # it is the last: what takes long now took long on a busy host
        candidate = self._prepare(text)
        if candidate is None or len(self._workers) == 1:
            return None
        bad, good = (self._run_candidate(worker, candidate) for worker in self._workers)
        if bad.outcome is not Outcome.OK:
            return None
        match trials.criterion:
            case SameFact(name=name):
                return with_claim(text, self.case.name, name, good.stored.record.facts)
            case MissingError(good=CaseResult() as original):
                expected = original.observation.reference
            case SameWrongValue():
                expected = good.value
            case _:
                return None
        return None if expected is None else with_reference(text, self.case.name, expected)

    def _prepare(self, text: str) -> Case | None:
        """Return a text as a case of the driver; None if it is none that the cells could run."""
        file = self._file(f"candidate_{next(self._numbers)}")
        file.write_text(text, encoding="utf-8")
        try:
            found = [one for one in discover([file]) if one.name == self.case.name]
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
        timeout = self._limits.get(worker.planned.cell.id, self.case.timeout)
        return self._run(worker, replace(case, timeout=timeout))

    def _original(self, worker: CellWorker) -> CaseResult:
        """Run the case itself, from its own file."""
        return self._run(worker, self.case)

    def _run(self, worker: CellWorker, case: Case, *, alone: bool = False) -> CaseResult:
        self._jobs += 1
        case = replace(case, config={**UNFILTERED, **case.config})
        job = Job(case=case, planned=worker.planned, alone=alone)
        return CaseResult(worker.run(job), self.blobs)

    def _open(self, cell: Cell) -> CellWorker:
        return self._stack.enter_context(closing(self.open_cell(cell)))


def _sizes(text: str, devices: int, result: CaseResult) -> dict[str, int | None]:
    """Return how large a case is: lines, devices, equations, elements of its arguments."""
    equations, elements = result.measures or (None, None)
    lines = lines_of_code(text)
    return {"lines": lines, "devices": devices, "equations": equations, "elements": elements}
