"""Campaigns: rounds of programs, logged so that an interrupted campaign goes on where it ended."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED, write_atomically
from conformance.fuzz.comparison import Kind
from conformance.fuzz.findings import (
    Finding,
    date,
    find_known,
    has_same_root,
    make_finding,
)
from conformance.fuzz.generation import generate, replay
from conformance.fuzz.strategies import ProgramSpace
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.job import PlannedCell
    from conformance.fuzz.evaluation import Divergence, Evaluation, Evaluator
    from conformance.fuzz.generation import GeneratedProgram
    from conformance.fuzz.operation import Operation
    from conformance.fuzz.program import FuzzProgram

T = TypeVar("T", bound=msgspec.Struct)
SETTINGS: Final = "campaign.json"
ROUNDS: Final = "rounds.jsonl"
FINDINGS: Final = "findings.jsonl"
PROGRAMS: Final = 250
"""Programs of a round."""
WIDE_ROUND: Final = 8
"""One round of so many runs with 64-bit types enabled."""
MOST_OCCURRENCES: Final = 200
"""Ids of programs that are recorded for one finding."""


class CampaignSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decide which programs a campaign tries, and where.

    Attributes:
        seed: Seed of the generation.
        cells: Ids of the cells, the oldest release first.
        operations: Patterns of operations; empty for all.
        hypothesis: Release of Hypothesis, which decides what a seed generates.
    """

    seed: int
    cells: tuple[str, ...]
    operations: tuple[str, ...] = ()
    hypothesis: str


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of a campaign.

    Attributes:
        number: Number, from 0.
        x64: Whether 64-bit types were enabled.
        programs: Ids of its programs.
        outcomes: Programs by outcome on the newest release.
        divergent: Programs that diverged.
        seconds: Seconds of the evaluation of its programs.
        total_seconds: Seconds of the round, findings included.
    """

    number: int
    x64: bool
    programs: tuple[str, ...]
    outcomes: dict[str, int]
    divergent: int
    seconds: float
    total_seconds: float


@dataclass(slots=True)
class CampaignLog:
    """The log of a campaign in its folder.

    Attributes:
        folder: Folder of the campaign.
        settings: Its settings.
        rounds: Finished rounds.
        findings: Findings by id.
    """

    folder: Path
    settings: CampaignSettings
    rounds: list[Round] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def create(cls, folder: Path, settings: CampaignSettings) -> CampaignLog:
        """Create a folder and its log.

        Args:
            folder: A folder without a campaign.
            settings: The settings.

        Raises:
            UsageError: If the folder has a campaign.
        """
        if (folder / SETTINGS).exists():
            raise UsageError(f"{folder} has a campaign: add --resume, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / SETTINGS, msgspec.json.encode(settings) + b"\n")
        return cls(folder, settings)

    @classmethod
    def load(cls, folder: Path) -> CampaignLog:
        """Load a log; a last line that a killed process has not finished is dropped.

        Args:
            folder: Folder of the campaign.

        Raises:
            UsageError: If the folder has no campaign, or its log is malformed.
        """
        try:
            settings = msgspec.json.decode((folder / SETTINGS).read_bytes(), type=CampaignSettings)
        except FileNotFoundError:
            raise UsageError(f"{folder} has no campaign: expected {SETTINGS}") from None
        except MALFORMED as error:
            raise UsageError(f"{folder / SETTINGS}: {error}; expected a campaign") from None
        log = cls(folder, settings)
        log.rounds = list(_read_lines(folder / ROUNDS, Round))
        for finding in _read_lines(folder / FINDINGS, Finding):
            log.findings[finding.id] = finding
        return log

    def add_round(self, done: Round) -> None:
        """Append a finished round."""
        self.rounds.append(done)
        _append_line(self.folder / ROUNDS, done)

    def add_finding(self, finding: Finding) -> None:
        """Append a finding, or another state of one: the last line of an id counts."""
        self.findings[finding.id] = finding
        _append_line(self.folder / FINDINGS, finding)

    @property
    def tried(self) -> frozenset[str]:
        """Ids of all programs of finished rounds."""
        return frozenset(id_ for done in self.rounds for id_ in done.programs)


def _append_line(file: Path, line: msgspec.Struct) -> None:
    with file.open("ab") as stream:
        stream.write(msgspec.json.encode(line) + b"\n")


def _read_lines(file: Path, kind: type[T]) -> Iterable[T]:
    data = file.read_bytes() if file.exists() else b""
    if not data.endswith(b"\n"):
        data = data[: data.rfind(b"\n") + 1]
        if file.exists():
            file.write_bytes(data)  # the next line must not continue half a line
    for number, line in enumerate(data.splitlines(), 1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except MALFORMED as error:
            raise UsageError(f"{file}:{number}: {error}; expected a {kind.__name__}") from None


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign that runs.

    Attributes:
        log: Its log.
        evaluator: Evaluates programs on the oldest and the newest release.
        cells: Cells of all releases, the oldest first.
        operations: Operations of the programs.
        changes: Changes that the history knows.
        report: Called with a line after each round and finding.
    """

    log: CampaignLog
    evaluator: Evaluator
    cells: Sequence[PlannedCell]
    operations: tuple[Operation, ...]
    changes: Sequence[BehaviourChange]
    report: Callable[[str], None]

    def run(self, seconds: float) -> None:
        """Run rounds until the time is over.

        Args:
            seconds: Time limit; a round that has begun is finished.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._run_round(len(self.log.rounds))

    def _run_round(self, number: int) -> None:
        start = time.monotonic()
        x64 = number % WIDE_ROUND == WIDE_ROUND - 1
        space = ProgramSpace(operations=self.operations, x64=x64)
        tried = self.log.tried
        # A campaign has a range of seeds of its own.
        seed = self.log.settings.seed * 2**16 + number
        new = [one for one in generate(space, seed, PROGRAMS) if one.program.id not in tried]
        found = self.evaluator.evaluate([one.program for one in new])
        evaluated = time.monotonic() - start
        for one, evaluation in zip(new, found, strict=True):
            for divergence in evaluation.divergences:
                self._take(space, one, divergence)
        outcomes = Counter(str(each.outcome) for each in found)
        self.log.add_round(
            Round(
                number=number, x64=x64, programs=tuple(one.program.id for one in new),
                outcomes=dict(outcomes), divergent=sum(bool(each.divergences) for each in found),
                seconds=round(evaluated, 2), total_seconds=round(time.monotonic() - start, 2),
            )
        )  # fmt: skip
        self.report(self._describe_round(found, evaluated))

    def _describe_round(self, found: Sequence[Evaluation], seconds: float) -> str:
        valid = sum(each.outcome is Outcome.OK for each in found)
        return (
            f"round {len(self.log.rounds)}: {valid} of {len(found)} programs are valid, "
            f"{valid / seconds:.1f} a second; {len(self.log.findings)} findings"
        )

    def _take(
        self, space: ProgramSpace, generated: GeneratedProgram, divergence: Divergence
    ) -> None:
        """Make a finding of a divergence, or count it for a known one."""
        for known in self.log.findings.values():
            if known.covers(generated.program, divergence):
                self._count(known, generated.program)
                # Its operations may differ for another reason: the second, fourth, eighth ...
                # program is shrunk all the same, unless each trial takes the whole time limit.
                count = len(self.log.findings[known.id].programs)
                if divergence.difference.kind is Kind.HANG or not is_power_of_two(count):
                    return
                break
        finding = make_finding(self.evaluator, space, generated, divergence)
        if finding is None:
            return
        if finding.id in self.log.findings:
            self._count(self.log.findings[finding.id], generated.program)
            return
        shrunk = replay(space, bytes.fromhex(finding.choices))
        finding = msgspec.structs.replace(
            finding, releases=date(finding, shrunk, self.evaluator.executor, self.cells)
        )
        finding = msgspec.structs.replace(finding, known=find_known(finding, self.changes))
        for other in self.log.findings.values():
            if has_same_root(other, finding):
                self._count(other, generated.program)
                return
        self.log.add_finding(finding)
        self.report(describe_finding(finding))

    def _count(self, finding: Finding, program: FuzzProgram) -> None:
        if program.id not in finding.programs and len(finding.programs) < MOST_OCCURRENCES:
            programs = (*finding.programs, program.id)
            self.log.add_finding(msgspec.structs.replace(finding, programs=programs))


def is_power_of_two(number: int) -> bool:
    """Return whether a positive number is a power of two."""
    return number & (number - 1) == 0


def describe_finding(finding: Finding) -> str:
    """Return a finding in a line."""
    where = " + ".join([*finding.operations, *finding.transforms])
    when = ", ".join(finding.releases) or "at no release alone"
    known = f"known: {finding.known}" if finding.known else "new"
    what = f"{finding.oracle}: {finding.kind}, {where}: {finding.detail}"
    return f"{finding.id}  {when}  {what} ({known})"
