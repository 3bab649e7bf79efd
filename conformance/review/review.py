"""A review of a run: pending groups, decisions on them, and the writes that carry them out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.corpus.discovery import discover
from conformance.corpus.metadata import normalize_specifier
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.golden.accept import apply
from conformance.golden.writing import refuse_in_ci
from conformance.locking import lock_file, lock_folders
from conformance.report.text import flatten, join_names
from conformance.review.decisions import (
    REVIEW,
    Choice,
    Decision,
    DecisionLog,
    OpenDecision,
    Progress,
    Terms,
)
from conformance.review.groups import ReviewGroup, group_changes
from conformance.review.judged_jobs import JudgedJob, judge_run
from conformance.review.outcomes import Outcomes, plan_outcomes
from conformance.review.run_data import RunData, read_decisions, read_rejections, read_triage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.cells.releases import Releases
    from conformance.engine.record_judge import Judge
    from conformance.engine.runs.directory import RunDirectory
    from conformance.model.case import Case

NAMED: Final = 5
"""Groups that an error message names."""
TITLE: Final = 60
"""Characters of a group's title in an error message."""


class Review:
    """A review of one run.

    Args:
        directory: The run.
        cases: Returns the current cases.
        releases: Known releases.
        new_judge: Makes a judge of the run's records, by the goldens at that moment.
        wanted: Selects the jobs to review.
        by: The reviewer.
        inform: Receives one line if another process holds a lock at the moment.

    Attributes:
        data: Data of the run, by the goldens as they were when last read.
        groups: The pending groups.
        changed: Cases whose file changed since the run.
        log: The decisions.
    """

    def __init__(
        self,
        directory: RunDirectory,
        cases: Callable[[], Sequence[Case]],
        releases: Releases,
        new_judge: Callable[[], Judge],
        *,
        wanted: Callable[[JudgedJob], bool],
        by: str,
        inform: Callable[[str], None],
    ) -> None:
        self.directory = directory
        self.by = by
        self.inform = inform
        self._cases = cases
        self._releases = releases
        self._new_judge = new_judge
        self._wanted = wanted
        self._unsaved: list[Decision] = []
        self.log = read_decisions(directory)
        self.reload()

    def reload(self) -> None:
        """Read the run again: goldens and case files may have changed."""
        run = judge_run(
            self.directory, self._cases(), self._releases, self._new_judge(), self.log.same
        )
        self.changed = run.changed
        self.data = RunData(
            jobs=run.jobs,
            known=self._releases.versions,
            blobs=self.directory.blobs,
            new_judge=self._new_judge,
            triage=read_triage(self.directory),
            rejected=read_rejections(self.directory),
        )
        self.groups: Sequence[ReviewGroup] = group_changes(
            filter(self._wanted, run.jobs), self.data.triage
        )

    @property
    def pending(self) -> tuple[ReviewGroup, ...]:
        """Groups that have jobs without a decision."""
        return tuple(g for g in self.groups if self.log.progress(g) is not Progress.DONE)

    @property
    def decisions(self) -> tuple[OpenDecision, ...]:
        """Decisions that are not written yet, rejections included."""
        return self.log.find_open(self.groups)

    def find_decision(self, group: ReviewGroup) -> Decision | None:
        """Return the last decision on a group, None if there is none."""
        found = self.log.find_open([group])
        return found[-1].decision if found else None

    def find_group(self, text: str) -> ReviewGroup:
        """Return the group with an id, or with a unique prefix of an id.

        Raises:
            UsageError: If no group has the id, or several have the prefix.
        """
        found = [group for group in self.groups if text and group.id.startswith(text)]
        if len(found) > 1:
            ids = ", ".join(group.id for group in found[:NAMED])
            raise UsageError(f"group {text!r}: several ids begin so: {ids}; give more digits")
        if not found:
            known = [f"{group.id} ({flatten(group.title, TITLE)})" for group in self.groups]
            raise UsageError(
                f"group {text!r}: no group has this id; expected an id, or its first digits, of "
                f"{join_names(known, NAMED) or 'a group, but the run has none'}"
            )
        return found[0]

    def find_refusal(self, group: ReviewGroup, choice: Choice) -> str:
        """Return the reason why a decision cannot be taken, empty if it can."""
        if choice is Choice.ACCEPT:
            # One job that can be accepted is enough; the others are left out.
            reasons = dict.fromkeys(member.refusal for member in group.members)
            return "" if "" in reasons else "; ".join(reasons)
        return self.data.make_proposal(group).refusal if choice is Choice.DEVIATION else ""

    def make_decision(self, group: ReviewGroup, choice: Choice, terms: Terms) -> Decision:
        """Return a decision on a group, not taken yet.

        Args:
            group: The group.
            choice: The decision.
            terms: Reason, and the values of a deviation.

        Raises:
            UsageError: If the decision cannot be taken, or a deviation would not match its jobs.
        """
        if why := self.find_refusal(group, choice):
            other = choice is Choice.ACCEPT and not self.find_refusal(group, Choice.DEVIATION)
            hint = "; declare a deviation, or reject it" if other else "; reject it, or leave it"
            raise UsageError(f"{group.id}: no {choice}: {why}{hint}")
        if choice is not Choice.ACCEPT and not terms.reason.strip():
            raise UsageError(f"{group.id}: a {choice} needs a reason, got none")
        stated = msgspec.structs.asdict(terms)
        stated |= {"reason": terms.reason.strip(), "issue": terms.issue.strip()}
        stated |= {
            "releases": None if terms.releases is None else normalize_specifier(terms.releases)
        }
        # Jobs that cannot become golden stay pending, and are shown again.
        jobs = [one for one in group.members if choice is not Choice.ACCEPT or not one.refusal]
        decision = Decision(
            group=group.id,
            choice=choice,
            jobs=tuple(one.key for one in jobs),
            title=group.title,
            **stated,
            by=self.by,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if choice is Choice.DEVIATION:
            # A trial, so that a deviation that does not apply is refused now and not when all is
            # written.
            plan_outcomes(DecisionLog(decisions=(decision,)).find_open([group]), self.data)
        return decision

    def take(self, decision: Decision) -> None:
        """Take a decision that is only saved next to the run by `save` or `write`."""
        self.log = self.log.add(decision)
        self._unsaved.append(decision)

    def restore(self, group: ReviewGroup, before: tuple[Decision, ...] = ()) -> None:
        """Restore earlier decisions on a group, and save them.

        Args:
            group: The group.
            before: The former decisions, of all groups; none by default.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        self.save(lambda log: log.restore(group, before))

    def save(self, change: Callable[[DecisionLog], DecisionLog] = lambda log: log) -> None:
        """Save the decisions next to the run, together with those of other reviewers.

        Args:
            change: Changes all current decisions.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        file = self.directory.path / REVIEW
        with lock_file(file, self.inform):
            # Read again under the lock: another reviewer may have saved meanwhile.
            log = change(read_decisions(self.directory).add(*self._unsaved))
            write_atomically(file, log.dumps(), durable=True)
        self.log = log
        self._unsaved.clear()

    def plan(self) -> Outcomes:
        """Return the outcomes of the decisions.

        Raises:
            UsageError: If a case file cannot be edited, or a deviation is not shown.
        """
        return plan_outcomes(self.decisions, self.data)

    def write(self, check: Callable[[Outcomes], None]) -> Outcomes:
        """Write goldens and case files, and read the run again.

        They are read again under the lock: another process may have changed them since they were
        shown.

        Args:
            check: Raises if an outcome may not be written.

        Returns:
            The goldens and case files that were written.

        Raises:
            UsageError: If the variable CI is set, or a decision no longer applies.
            InfrastructureError: If the disk refuses.
        """
        # Before the lock and the plan, which CI has no use for.
        refuse_in_ci()
        roots = {one.job.case.families for decision in self.decisions for one in decision.members}
        with lock_folders(roots, self.inform):
            outcomes = self.plan()
            check(outcomes)
            for plan in outcomes.plans:
                apply(plan)
            for file, data in outcomes.sources.items():
                write_atomically(file, data, durable=True)
            written = [one.decision for one in outcomes.decisions]
            # Case files changed, so the records of the run would no longer belong to them.
            same = self._hash_written_files(outcomes)
            self.save(lambda log: log.mark_written(written, same))
        self.reload()
        return outcomes

    def _hash_written_files(self, outcomes: Outcomes) -> dict[str, str]:
        """Return the hashes of written case files, by their former hashes and those of the run."""
        after = {file: discover([file])[0].content_hash for file in outcomes.sources}
        return {
            before: after[one.job.case.file]
            for one in self.data.jobs
            if one.job.case.file in after
            for before in (one.job.case.content_hash, one.record.case_hash)
        }
