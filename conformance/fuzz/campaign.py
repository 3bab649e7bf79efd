"""Campaigns: rounds of programs, logged so that an interrupted campaign goes on where it ended."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.fuzz.campaign_log import Round
from conformance.fuzz.comparison import Kind
from conformance.fuzz.evaluation import PROCESS
from conformance.fuzz.finding import has_same_root
from conformance.fuzz.findings import date, make_finding
from conformance.fuzz.generation import generate, generate_each, replay
from conformance.fuzz.known_changes import find_known
from conformance.fuzz.strategies import ProgramSpace
from conformance.fuzz.sweep import plan_sweep
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.job import PlannedCell
    from conformance.fuzz.campaign_log import CampaignLog
    from conformance.fuzz.evaluation import Divergence, Evaluation, Evaluator
    from conformance.fuzz.finding import Finding
    from conformance.fuzz.generation import GeneratedProgram
    from conformance.fuzz.operation import Operation
    from conformance.fuzz.program import FuzzProgram
    from conformance.model.case import Case

PROGRAMS: Final = 250
"""Programs of a round."""
RANDOM: Final = 3
"""One round of so many has random programs, the others are a sweep."""
CYCLE: Final = 24
"""Rounds after which those with 64-bit types enabled come again."""
WIDE: Final = (9, 10, 11)
"""Rounds of a cycle with 64-bit types enabled: two of a sweep, and one of random programs."""
MOST_OCCURRENCES: Final = 200
"""Ids of programs that are recorded for one finding."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign that runs.

    Attributes:
        log: Its log.
        evaluator: Evaluates programs on the oldest and the newest release.
        cells: Cells of all releases, the oldest first.
        operations: Operations of the programs.
        changes: Changes that the history knows.
        cases: Cases of the project, whose deviations are known.
        report: Called with a line after each round and finding.
        publish: Called with each finding.
    """

    log: CampaignLog
    evaluator: Evaluator
    cells: Sequence[PlannedCell]
    operations: tuple[Operation, ...]
    changes: Sequence[BehaviourChange]
    cases: Sequence[Case]
    report: Callable[[str], None]
    publish: Callable[[Finding], None]

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
        x64 = number % CYCLE in WIDE
        new = self._select_new(self._generate(number, x64=x64))
        found = self.evaluator.evaluate([one.program for one in new])
        evaluated = time.monotonic() - start
        for one, evaluation in zip(new, found, strict=True):
            for divergence in evaluation.divergences:
                self._take(one, divergence)
        outcomes = Counter(str(each.outcome) for each in found)
        self.log.add_round(
            Round(
                number=number, x64=x64, programs=tuple(one.program.id for one in new),
                outcomes=dict(outcomes), divergent=sum(bool(each.divergences) for each in found),
                seconds=round(evaluated, 2), total_seconds=round(time.monotonic() - start, 2),
            )
        )  # fmt: skip
        self.report(self._describe_round(found, evaluated))

    def _select_new(self, generated: Sequence[GeneratedProgram]) -> list[GeneratedProgram]:
        """Return the programs that were not tried, and are not known to hang on each release."""
        tried = self.log.tried
        hanging = [
            known for known in self.log.findings.values()
            if (known.oracle, known.kind) == (PROCESS, Kind.HANG)
        ]  # fmt: skip
        return [
            one for one in generated
            if one.program.id not in tried
            and not any(known.is_within(one.program) for known in hanging)
        ]  # fmt: skip

    def _generate(self, number: int, *, x64: bool) -> list[GeneratedProgram]:
        """Return the programs of a round: random ones in every third, otherwise of a sweep."""
        # A campaign has a range of seeds of its own.
        seed = self.log.settings.seed * 2**16 + number
        if number % RANDOM == RANDOM - 1:
            space = ProgramSpace(operations=self.operations, x64=x64)
            return generate(space, seed, PROGRAMS)
        start = (number - number // RANDOM) * PROGRAMS
        spaces = plan_sweep(self.operations, start, PROGRAMS, x64=x64)
        return generate_each(spaces, seed)

    def _describe_round(self, found: Sequence[Evaluation], seconds: float) -> str:
        valid = sum(each.outcome is Outcome.OK for each in found)
        return (
            f"round {len(self.log.rounds)}: {valid} of {len(found)} programs are valid, "
            f"{valid / seconds:.1f} a second; {len(self.log.findings)} findings"
        )

    def _take(self, generated: GeneratedProgram, divergence: Divergence) -> None:
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
        finding = make_finding(self.evaluator, generated, divergence)
        if finding is None:
            return
        if finding.id in self.log.findings:
            self._count(self.log.findings[finding.id], generated.program)
            return
        shrunk = replay(generated.space, bytes.fromhex(finding.choices))
        finding = date(finding, shrunk, self.evaluator.executor, self.cells)
        finding = msgspec.structs.replace(
            finding, known=find_known(finding, self.changes, self.cases)
        )
        for other in self.log.findings.values():
            if has_same_root(other, finding):
                self._count(other, generated.program)
                return
        self.log.add_finding(finding)
        self.report(describe_finding(finding))
        self.publish(finding)

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
