"""Finding out about one root cause: where it was right, what changed it, a file that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from conformance.errors import ConformanceError, InfrastructureError
from conformance.judge.ir import FACT
from conformance.model.evidence import Culprit, Evidence
from conformance.model.outcome import Outcome
from conformance.triage.bisect.telling import moved
from conformance.triage.blame.telling import doubts
from conformance.triage.questions.failure import same_failure
from conformance.triage.questions.predicate import ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.triage.bisect.answer import Answer
    from conformance.triage.blame.blamed import Blamed

_ALL: Final = ""
"""The name of every package, where a blame is sought among all that differ."""


class Means(Protocol):
    """What it is found out with: cells, searches and files."""

    def goods(self, case: Case, cell: Cell) -> Iterable[str]:
        """Yield releases and nights at which a case may have been right, the likeliest first."""
        ...

    def tried(self, case: Case, cell: Cell, release: str) -> Record:
        """Return what comes of a case in a cell with another release, judged."""
        ...

    def searched(self, case: Case, cell: Cell, good: str, when: str) -> Answer:
        """Search for what changed a case, from a release to a cell."""
        ...

    def blamed(self, case: Case, before: Cell, after: Cell, when: str) -> Blamed:
        """Search for the packages that make a difference."""
        ...

    def edited(self, python: Path) -> Mapping[str, tuple[str, ...]]:
        """Return the files of an environment that are not as installed, by package."""
        ...

    def reproduced(self, cause: str, record: Record, case: Case, cell: Cell) -> tuple[str, str]:
        """Write a file that shows a job; return its path in the run directory, and its command."""
        ...


@dataclass(slots=True)
class Finding:
    """What is found out about one root cause.

    Attributes:
        means: What with.
        cause: Id of the cause.
        record: The job that stands for it.
        case: Its case.
        cell: Its cell.
        blame: Whether packages are searched for, which may take new environments.
    """

    means: Means
    cause: str
    record: Record
    case: Case
    cell: Cell
    blame: bool = True
    _untold: list[str] = field(default_factory=list)
    _unfinished: bool = False

    def evidence(self) -> Evidence:
        """Find out; what stands in the way of one thing is told, and the others are found out."""
        found = Evidence(cause=self.cause, case=self.case.id, cell=self.cell.id)
        found = self._step(found, self._reproduced, "no reproduction")
        found = self._step(found, self._searched, "no first bad release")
        return _with(found, untold=tuple(self._untold), unfinished=self._unfinished)

    def _step(
        self, found: Evidence, step: Callable[[Evidence], Evidence], without: str
    ) -> Evidence:
        try:
            return step(found)
        except ConformanceError as error:
            self._unfinished |= isinstance(error, InfrastructureError)
            self._untold.append(f"{without}: {error}")
            return found

    def _reproduced(self, found: Evidence) -> Evidence:
        file, command = self.means.reproduced(self.cause, self.record, self.case, self.cell)
        return _with(found, repro=file, command=command)

    def _searched(self, found: Evidence) -> Evidence:
        good = self._good()
        if good is None:
            return found
        release, record = good
        when = self._when(record)
        answer = self.means.searched(self.case, self.cell, release, when)
        labels = answer.labels
        if not answer.confirmed:
            names = ", ".join(labels[point] for point in answer.flaky)
            self._untold.append(f"{names} did not show the same twice")
        found = _with(
            found, good=release, last_good=labels[answer.last_good],
            first_bad=labels[answer.first_bad], asked=answer.question.about,
            confirmed=answer.confirmed,
        )  # fmt: skip
        between = (answer.points[answer.last_good], answer.points[answer.first_bad])
        return self._step(
            found, lambda one: _with(one, culprits=self._culprits(*between, when)),
            "no culprit",
        )  # fmt: skip

    def _good(self) -> tuple[str, Record] | None:
        """Return the first release at which the case is as expected, and what came of it there."""
        tried = []
        lost = False
        for release in self.means.goods(self.case, self.cell):
            record = self.means.tried(self.case, self.cell, release)
            if record.outcome.observed and not record.unexpected:
                return release, record
            lost |= record.outcome is Outcome.INFRA
            tried.append(f"{release} ({_why(record)})")
        self._unfinished |= lost
        self._untold.append(
            f"nothing is known where it is right; tried {', '.join(tried)}"
            if tried
            else "there is no older release at which it may be right"
        )
        return None

    def _when(self, good: Record) -> str:
        """Return what tells the ends apart, as `--when` says it; empty for whatever does."""
        records = (good, self.record)
        failed = [record.outcome is not Outcome.OK for record in records]
        if all(failed) and not same_failure(*map(ending, records)):
            return "ending"
        first = next(iter(self.record.reasons), "")
        return "facts" if first.startswith(FACT) and not any(failed) else ""

    def _culprits(self, before: PlannedCell, after: PlannedCell, when: str) -> tuple[Culprit, ...]:
        """Return what makes the difference between two points that are next to each other."""
        differ = moved(before.versions, after.versions, but=_ALL)
        if not differ:
            return self._edited(after)
        if len(differ) == 1:
            return tuple(Culprit(package=n, before=a, after=b) for n, a, b in differ)
        if not self.blame:
            self._untold.append(f"{len(differ)} packages differ, and were not told apart")
            return ()
        blamed = self.means.blamed(self.case, before.cell, after.cell, when)
        self._untold += doubts(blamed)
        if not blamed.confirmed:
            return ()
        return tuple(
            Culprit(package=one.package, before=one.before, after=one.after)
            for one in blamed.culprits
        )

    def _edited(self, after: PlannedCell) -> tuple[Culprit, ...]:
        """Return the packages of an environment whose files are not as they were installed."""
        python = after.cell.interpreter
        edited = {} if python is None else self.means.edited(python)
        if not edited:
            self._untold.append(
                "the packages of both have the same versions and the files that were installed; "
                "what else there is was not looked at"
            )
        versions = after.versions
        return tuple(
            Culprit(package=n, before=versions.get(n, ""), after=versions.get(n, ""), files=files)
            for n, files in edited.items()
        )


def _with(found: Evidence, **more: object) -> Evidence:
    """Return evidence with some of it replaced."""
    return msgspec.structs.replace(found, **more)


def _why(record: Record) -> str:
    """Return why a job is not right, in a few words."""
    said = record.reasons[0] if record.reasons else ""
    if not said and record.error is not None:
        said = record.error.message
    first = said.strip().partition("\n")[0]
    return first[:160] or str(record.outcome)
