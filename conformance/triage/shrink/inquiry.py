"""A case, its cells, and the search: from what is asked to what is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.judge.conformance import conformance
from conformance.model.outcome import Conformance, Outcome
from conformance.search.failures import quoted
from conformance.triage.repro.source import extract
from conformance.triage.shrink.cutting import Cutting
from conformance.triage.shrink.prober import Budget, Prober, driver
from conformance.triage.shrink.shrinking import (
    TIMES,
    confirm,
    measured,
    needs_good_cell,
    question_about,
    refuse_flaky,
    refuse_what_conforms,
)
from conformance.triage.shrink.source import draft_of
from conformance.triage.shrink.text import laid_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.engine.blobs import BlobStore
    from conformance.engine.local import CellWorker
    from conformance.model.case import Case
    from conformance.triage.repro.source import Read
    from conformance.triage.shrink.question import Question
    from conformance.triage.shrink.shown import Shown
    from conformance.triage.shrink.shrinking import Confirmed, Measures

    Open = Callable[[Cell], CellWorker]

NEAR: Final = 4
"""Releases that are tried in turn for one in which the case conforms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked.

    Attributes:
        case: The case.
        cell: Where it deviates.
        others: Cells in which it may conform, the likeliest first.
        named: Whether the other cell was named: then it must conform there.
        fact: The fact to keep, if one is named.
        probes: How many candidates may be tried.
        seconds: How long the search may take.
        width: How many are tried at a time.
    """

    case: Case
    cell: Cell
    others: Sequence[Cell] = ()
    named: bool = False
    fact: str = ""
    probes: int = 400
    seconds: float = 300.0
    width: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What is left of a case.

    Attributes:
        text: A case file.
        about: What was kept.
        cell: Where it deviates.
        good_cell: Where it conforms, empty if that was not asked.
        before: How large the case was.
        after: How large it is; None where the search was interrupted.
        probes: Candidates that were tried.
        jobs: Jobs that took.
        seconds: How long it took.
        generator: `source` where the case's own text was cut, `jaxpr` where it was its jaxpr.
        complete: Whether nothing more could be cut; else what was granted is spent.
        interrupted: Whether the search was.
        confirmed: Whether it showed the same once more, as a file in fresh workers.
        alone: Whether it deviates by its own reference or claims.
    """

    text: str
    about: str
    cell: str
    good_cell: str
    before: Measures
    after: Measures | None
    probes: int
    jobs: int
    seconds: float
    generator: str
    complete: bool
    interrupted: bool = False
    confirmed: bool = False
    alone: bool = False


@dataclass(kw_only=True)
class Inquiry:
    """A case that is being cut down.

    Attributes:
        wanted: What is asked.
        open_cell: Returns a worker of a cell; refuses a cell that the case does not run in.
        read: Returns the text of a file.
        folder: A folder of its own.
        blobs: Where what is looked at goes.
        progress: Told what is done, and how large the text is by then.
    """

    wanted: Wanted
    open_cell: Open
    read: Read
    folder: Path
    blobs: BlobStore
    progress: Callable[[str], None] = field(default=lambda _: None)
    _workers: list[CellWorker] = field(default_factory=list)

    def run(self) -> Shrunk:
        """Cut the case down.

        Raises:
            UsageError: If there is nothing to keep, it is flaky, or there is no cell in which it
                conforms where one is needed.
            InfrastructureError: If a cell cannot be had.
        """
        start = time.monotonic()
        try:
            prober, text, shown = self._begun(start)
            return self._searched(prober, text, shown, start)
        finally:
            for worker in self._workers:
                worker.close()

    def _opened(self, cell: Cell) -> CellWorker:
        worker = self.open_cell(cell)
        self._workers.append(worker)
        return worker

    def _begun(self, start: float) -> tuple[Prober, str, list[Shown]]:
        """Try the case as it is, and find out what must stay."""
        case, wanted = self.wanted.case, self.wanted
        text = draft_of(case, self.read)
        home = self.folder / "search" / case.family
        home.mkdir(parents=True)
        imports = extract(case.file, case.name, self.read).imports
        (home / "driver.py").write_text(driver(imports), encoding="utf-8")
        prober = Prober(
            case=case, workers=[self._opened(wanted.cell)], folder=home, blobs=self.blobs,
            budget=Budget(probes=wanted.probes, deadline=start + wanted.seconds),
        )  # fmt: skip
        self.progress("trying the case as it is")
        tried = [prober.original() for _ in range(TIMES)]
        if tried[0].outcome is Outcome.INFRA:
            raise InfrastructureError(f"{case.id} on {wanted.cell.id}: {quoted(tried[0].ending)}")
        refuse_flaky(case, wanted.cell.id, tried)
        if not wanted.fact:
            refuse_what_conforms(case, wanted.cell.id, tried[0])
        good = self._good(prober, tried[0])
        shown = [tried[0], *([good] if good is not None else [])]
        prober.expect(shown)
        prober.question = question_about(case, text, tried[0], good, wanted.fact)
        if not prober.shows(text):
            refuse_flaky(case, wanted.cell.id, [*tried, prober.original()])
            raise UsageError(
                f"{case.id}: apart from its file it does something else than "
                f"{quoted(prober.question.about)}; put what it needs to its module into the case"
            )
        return prober, text, shown

    def _good(self, prober: Prober, bad: Shown) -> Shown | None:
        """Find a cell in which the case conforms, and let candidates be tried there too."""
        case, wanted = self.wanted.case, self.wanted
        required = needs_good_cell(bad) and not wanted.fact
        if wanted.fact and not wanted.named:
            return None
        seen: list[str] = []
        for cell in wanted.others[:NEAR]:
            self.progress(f"looking for a cell in which it conforms: {cell.id}")
            try:
                worker = self._opened(cell)
            except ConformanceError:
                if wanted.named:
                    raise
                continue
            prober.workers = [prober.workers[0], worker]
            shown = prober.original(1)
            if wanted.named and wanted.fact:
                return shown
            conforms, reasons = conformance(case, shown.observation)
            seen.append(f"{cell.id}: {quoted(reasons[0] if reasons else shown.ending)}")
            runs = not required and shown.outcome is Outcome.OK
            if conforms is Conformance.CONFORMS or (runs and conforms is Conformance.UNKNOWN):
                return shown
            worker.close()
            prober.workers = prober.workers[:1]
        if required or wanted.named:
            told = "; ".join(seen) if seen else "none is known"
            raise UsageError(
                f"{case.id} on {wanted.cell.id}: expected a cell in which it conforms, for a wrong "
                f"value is told by one that is right; {told}; name one with --good-cell"
            )
        return None

    def _searched(self, prober: Prober, text: str, shown: list[Shown], start: float) -> Shrunk:
        case, question = self.wanted.case, prober.question
        assert question is not None  # noqa: S101 - _begun sets it
        counted = [one for one in shown if one.measures is not None] or shown
        before = measured(laid_out(text), case.devices, counted[0])
        cutting = Cutting(prober=prober, text=text, width=self.wanted.width, progress=self.progress)
        interrupted = False
        confirmed: Confirmed | None = None
        try:
            cutting.run()
            confirmed = self._confirmed(cutting.text, prober, question)
        except KeyboardInterrupt:
            interrupted = True
        head = self._head(prober, question)
        return Shrunk(
            text=confirmed.text if confirmed is not None else laid_out(cutting.text, head),
            about=question.about,
            cell=self.wanted.cell.id,
            good_cell=prober.cells[1].cell.id if len(prober.cells) > 1 else "",
            before=before,
            after=confirmed.measures if confirmed is not None else None,
            probes=prober.budget.tried,
            jobs=prober.jobs,
            seconds=time.monotonic() - start,
            generator=cutting.generator,
            complete=cutting.complete,
            interrupted=interrupted,
            confirmed=confirmed is not None and confirmed.same,
            alone=confirmed is not None and confirmed.alone,
        )

    def _confirmed(self, text: str, prober: Prober, question: Question) -> Confirmed:
        """Try what is left as a file, in workers of its own."""
        self.progress("trying what is left once more")
        fresh = [self._opened(planned.cell) for planned in prober.cells]
        home = self.folder / "left" / self.wanted.case.family
        home.mkdir(parents=True)
        return confirm(text, prober, fresh, home, self._head(prober, question))

    def _head(self, prober: Prober, question: Question) -> list[str]:
        cells = [planned.cell.id for planned in prober.cells]
        head = [f"{self.wanted.case.id} on {cells[0]}, cut down.", f"Kept: {question.about}"]
        return [*head, *(f"Not so on {cell}." for cell in cells[1:])]
