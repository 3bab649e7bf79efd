"""Trying candidates: texts of case files, as jobs in workers that stay for the whole search.

A worker imports one driver, which runs whatever text it is handed: so a candidate costs no more
than a forked process, leaves nothing in the worker, and has the case's packages imported already.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from conformance.corpus.discover import BrokenCasesError, discover
from conformance.engine.job import Job
from conformance.model.outcome import Outcome
from conformance.triage.shrink.search import SpentError
from conformance.triage.shrink.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.local import CellWorker
    from conformance.model.case import Case
    from conformance.triage.shrink.question import Question

SLOWER: Final = 5.0
"""How many times longer than the case a candidate may take."""
LEAST_SECONDS: Final = 3.0
"""Seconds that a candidate may take at least."""
HANG_SECONDS: Final = 4.0
"""Seconds after which a candidate counts as hung, where hanging is what is kept."""
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


def driver(imports: Sequence[str]) -> str:
    """Return the text of a driver that imports what candidates will.

    Args:
        imports: Import statements.
    """
    guarded = (f"with contextlib.suppress(Exception):\n    {line}\n" for line in imports)
    return DRIVER.format(imports="".join(guarded))


@dataclass(kw_only=True)
class Budget:
    """How many candidates may be tried, and until when.

    Attributes:
        probes: How many candidates may be tried.
        deadline: When it must be over, as `time.monotonic` counts.
        tried: How many were tried.
    """

    probes: int
    deadline: float
    tried: int = 0

    def take(self, texts: Sequence[str]) -> Sequence[str]:
        """Count texts as tried, and return those that may be.

        Raises:
            SpentError: If the budget is spent.
        """
        if self.tried >= self.probes or time.monotonic() >= self.deadline:
            raise SpentError
        granted = texts[: self.probes - self.tried]
        self.tried += len(granted)
        return granted


def time_limit(outcome: Outcome, seconds: float, most: float) -> float:
    """Return the seconds that a candidate may take: little more than the original.

    Args:
        outcome: How the original ended.
        seconds: How long it took.
        most: How long anything may take.
    """
    limit = max(SLOWER * seconds, LEAST_SECONDS)
    return min(HANG_SECONDS if outcome is Outcome.TIMED_OUT else limit, most)


@dataclass(kw_only=True)
class Prober:
    """Tries texts of one case in one cell, or in two.

    Attributes:
        case: The case.
        workers: Worker of the cell, and of the one in which the case conforms.
        folder: A folder of its own, with `driver.py` in it.
        blobs: Where what is looked at goes.
        budget: What the search may take.
        question: What a candidate must show; set before the first is tried.
    """

    case: Case
    workers: Sequence[CellWorker]
    folder: Path
    blobs: BlobStore
    budget: Budget
    question: Question | None = None
    jobs: int = 0
    _timeouts: dict[str, float] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def cells(self) -> list[PlannedCell]:
        """The cells, the one at hand first."""
        return [worker.planned for worker in self.workers]

    def expect(self, shown: Sequence[Shown]) -> None:
        """Note how long the case takes in each cell: candidates get little more."""
        for worker, one in zip(self.workers, shown, strict=True):
            limit = time_limit(one.outcome, one.seconds, self.case.timeout)
            self._timeouts[worker.planned.cell.id] = limit

    def original(self, number: int = 0, *, alone: bool = False) -> Shown:
        """Run the case itself, from its own file, in one of the cells."""
        worker = self.workers[number]
        case = self.unfiltered(self.case)
        return self.ran(worker, Job(case=case, planned=worker.planned, alone=alone))

    def first(self, texts: Sequence[str]) -> int | None:
        """Try some texts at a time; return the number of the first that still shows it.

        Raises:
            SpentError: If what was granted is spent.
        """
        texts = self.budget.take(texts)
        # Read here, one after the other: on Python 3.11 two threads that parse break each other.
        cases = [self._read(text) for text in texts]
        with ThreadPoolExecutor(len(texts)) as pool:
            found = list(pool.map(self._shows, cases, texts))
        return found.index(True) if True in found else None

    def shows(self, text: str) -> bool:
        """Say whether a text still shows it."""
        return self._shows(self._read(text), text)

    def _shows(self, case: Case | None, text: str) -> bool:
        """Say whether a text still shows it, by its case; one that is none does not."""
        assert self.question is not None  # noqa: S101 - see the class
        if case is None:
            return False
        bad = self._one(self.workers[0], case, text)
        if not self.question.may_hold(bad):
            return False
        good = [self._one(worker, case, text) for worker in self.workers[1:]]
        return self.question.holds(bad, good[0] if good else None)

    def traced(self, text: str) -> tuple[bytes, int] | None:
        """Return the jaxpr of a text, and its equations; None where it cannot be traced."""
        case = self._read(text)
        one = None if case is None else self._one(self.workers[0], case, text)
        if one is None or one.measures is None:
            return None
        return one.finished.blobs["jaxpr"], one.measures[0]

    def shown(self, text: str) -> list[Shown]:
        """Return what the last text shows in each cell; nothing if it is no case."""
        case = self._read(text)
        if case is None:
            return []
        self._timeouts.clear()  # it is the last: what takes long now took long on a busy host
        return [self._one(one, case, text) for one in self.workers]

    def _read(self, text: str) -> Case | None:
        """Return the case of a text; None if it is none that the cells could run."""
        file = self.folder / f"candidate_{next(self._numbers)}.py"
        file.write_text(text, encoding="utf-8")
        try:
            found = [one for one in discover([file]) if one.name == self.case.name]
        except BrokenCasesError:
            return None
        finally:
            file.unlink()
        return found[0] if len(found) == 1 else None

    def _one(self, worker: CellWorker, case: Case, text: str) -> Shown:
        cell = worker.planned.cell.id
        driven = replace(
            case,
            id=self.case.id,
            family=self.folder.name,
            name=f"candidate_{case.kind}",
            file=self.folder / "driver.py",
            params={"text": text, "name": case.name},
            timeout=self._timeouts.get(cell, self.case.timeout),
            memory=self.case.memory,
        )
        job = Job(case=self.unfiltered(driven), planned=worker.planned)
        return self.ran(worker, job)

    @staticmethod
    def unfiltered(case: Case) -> Case:
        """Return a case whose tracebacks name the function that raised."""
        return replace(case, config={**UNFILTERED, **case.config})

    def ran(self, worker: CellWorker, job: Job) -> Shown:
        """Run a job to its end."""
        self.jobs += 1
        return Shown(worker.run(job), self.blobs)

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()
