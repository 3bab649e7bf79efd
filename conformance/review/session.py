"""A review under way: what is pending in a run, what was decided, and writing that."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.corpus.discover import discover
from conformance.corpus.metadata import specifier
from conformance.engine.run_directory import CorruptRunError
from conformance.errors import UsageError
from conformance.files import MALFORMED, read_regular, said_by, write_atomically
from conformance.golden.accept import apply, refuse_in_ci
from conformance.locking import locked, locked_file
from conformance.model.evidence import EVIDENCE, Evidence
from conformance.report.text import listed, one_line
from conformance.review.decisions import (
    REVIEW,
    Choice,
    Decided,
    Decision,
    Review,
    as_written,
    chosen,
    decide,
    decided,
    decision_on,
    dumps,
    job_of,
    loads,
    restored,
    take_back,
)
from conformance.review.evidence import Files, proposals
from conformance.review.groups import Member, groups
from conformance.review.judged import judged_run
from conformance.review.writing import outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.cells.releases import Releases
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.case import Case
    from conformance.review.decisions import Chosen
    from conformance.review.groups import Group
    from conformance.review.proposing import Wish
    from conformance.review.writing import Outcomes

    Wanted = Callable[[Member], bool]


NAMED: Final = 5
"""Groups that an error message names."""
TITLE: Final = 60
"""Characters of a group's title in an error message."""
_EARLIER: Final = 50
"""Runs before that are looked at."""


class Session:
    """A review of one run.

    Args:
        directory: The run.
        cases: Returns the cases as they are now.
        releases: Known releases.
        wanted: Which jobs it is about.
        by: Who decides.
        inform: Receives one line if another reviewer writes decisions on the run at the moment.

    Attributes:
        groups: What is pending, by the goldens as they were when last looked at.
        changed: Cases whose file changed since the run.
        review: What is decided.
    """

    def __init__(
        self,
        directory: RunDirectory,
        cases: Callable[[], Sequence[Case]],
        releases: Releases,
        *,
        wanted: Wanted,
        by: str,
        inform: Callable[[str], None],
    ) -> None:
        self.directory = directory
        self._inform = inform
        self._taken: list[Decision] = []
        self.by = by
        self._cases = cases
        self._releases = releases
        self._wanted = wanted
        self.review = self._kept()
        self.groups: tuple[Group, ...] = ()
        self.changed: tuple[Case, ...] = ()
        self._everything: tuple[Member, ...] = ()
        self._found = self._evidence()
        self._earlier = self._rejected_before()
        self.reload()

    def reload(self) -> None:
        """Look at the run anew: goldens and case files may have changed."""
        found = judged_run(self.directory, self._cases(), self._releases, self.review.same)
        self._everything = tuple(Member(job=job, record=record) for job, record in found.jobs)
        self.changed = found.changed
        wanted = (member for member in self._everything if self._wanted(member))
        self.groups = groups(wanted, self._found)

    @property
    def files(self) -> Files:
        """What evidence is read from."""
        return Files(
            blobs=self.directory.blobs,
            everything=self._everything,
            known=self._releases.versions,
            found=self._found,
            earlier=self._earlier,
        )

    @property
    def pending(self) -> tuple[Group, ...]:
        """The groups on which, or on some jobs of which, nothing is decided."""
        return tuple(g for g in self.groups if self.decided(g) is not Decided.DONE)

    def decided(self, group: Group) -> Decided:
        """Say how far a group is decided on."""
        return decided(self.review, group)

    def decision(self, group: Group) -> Decision | None:
        """Return what is decided on a group, None for nothing."""
        return decision_on(self.review, group)

    def group(self, text: str) -> Group:
        """Return the group of an id, or of the beginning of one.

        Raises:
            UsageError: If there is none, or several.
        """
        found = [group for group in self.groups if text and group.id.startswith(text)]
        if len(found) > 1:
            ids = ", ".join(group.id for group in found[:NAMED])
            raise UsageError(f"group {text!r}: several ids begin so: {ids}; give more digits")
        if not found:
            known = [f"{group.id} ({one_line(group.title, TITLE)})" for group in self.groups]
            raise UsageError(
                f"group {text!r}: no group has this id; expected an id, or its first digits, of "
                f"{listed(known, NAMED) or 'a group, but the run has none'}"
            )
        return found[0]

    def refusal(self, group: Group, choice: Choice) -> str:
        """Return why a decision cannot be taken, empty if it can."""
        if choice is Choice.ACCEPT:
            reasons = dict.fromkeys(member.refusal for member in group.members)
            return "" if "" in reasons else "; ".join(reasons)
        return proposals(group, self.files)[0] if choice is Choice.DEVIATION else ""

    def made(self, group: Group, choice: Choice, wish: Wish) -> Decision:
        """Return a decision on a group, not taken yet.

        Args:
            group: The group.
            choice: What becomes of it.
            wish: Why; and of a deviation, how it is to be.

        Raises:
            UsageError: If it cannot be taken, or would not come to what it should.
        """
        if why := self.refusal(group, choice):
            other = choice is Choice.ACCEPT and not self.refusal(group, Choice.DEVIATION)
            hint = "; declare a deviation, or reject it" if other else "; reject it, or leave it"
            raise UsageError(f"{group.id}: no {choice}: {why}{hint}")
        if choice is not Choice.ACCEPT and not wish.reason.strip():
            raise UsageError(f"{group.id}: a {choice} needs a reason, got none")
        made = Decision(
            group=group.id,
            choice=choice,
            jobs=tuple(job_of(m) for m in group.members if self._takes(m, choice)),
            title=group.title,
            reason=wish.reason.strip(),
            issue=wish.issue.strip(),
            releases=None if wish.releases is None else specifier(wish.releases),
            platform=wish.platform,
            match=wish.match,
            by=self.by,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if choice is Choice.DEVIATION:
            self._outcomes(chosen(Review(decisions=(made,)), self.groups))
        return made

    @staticmethod
    def _takes(member: Member, choice: Choice) -> bool:
        return choice is not Choice.ACCEPT or not member.refusal

    def take(self, decision: Decision) -> None:
        """Take a decision that is not kept beside the run before `keep`, or `write`."""
        self.review = decide(self.review, decision)
        self._taken.append(decision)

    def decide(self, decision: Decision) -> None:
        """Take a decision, and keep it.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        self.take(decision)
        self.keep()

    def take_back(self, group: Group) -> None:
        """Take back what is decided on a group.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        self._change(lambda review: take_back(review, group))

    def restore(self, group: Group, review: Review) -> None:
        """Make what is decided on a group what it was before.

        Args:
            group: The group.
            review: The decisions of before; of other groups they do not count.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        self._change(lambda now: restored(now, group, review))

    def keep(self) -> None:
        """Keep the decisions that were taken beside the run.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        self._change(lambda review: review)

    def _change(self, change: Callable[[Review], Review]) -> None:
        """Change the decisions beside the run as they are by now: another reviewer may add some."""
        file = self.directory.path / REVIEW
        with locked_file(file, self._inform):
            review = self._kept()
            for decision in self._taken:
                review = decide(review, decision)
            review = change(review)
            write_atomically(file, dumps(review), durable=True)
        self.review = review
        self._taken.clear()

    @property
    def taken(self) -> tuple[Chosen, ...]:
        """The decisions that are not written yet, those that reject among them."""
        return chosen(self.review, self.groups)

    def outcomes(self) -> Outcomes:
        """Return what the decisions come to.

        Raises:
            UsageError: If a case file cannot be edited, or a deviation is not shown.
        """
        return self._outcomes(self.taken)

    def _outcomes(self, taken: Sequence[Chosen]) -> Outcomes:
        told = [one for one in taken if one.decision.choice is not Choice.REJECT]
        files = self.files
        return outcomes(told, files.everything, files.blobs, files.known)

    def write(
        self,
        env: Mapping[str, str],
        check: Callable[[Outcomes], None],
        inform: Callable[[str], None],
    ) -> Outcomes:
        """Write goldens and case files, and look at the run anew.

        They are read again under the lock: another process may have changed them since they were
        shown.

        Args:
            env: Environment variables.
            check: Raises if an outcome may not be written.
            inform: Receives one line if another process changes them at the moment.

        Returns:
            The goldens and case files that were written.

        Raises:
            UsageError: If the variable CI is set, or a decision no longer applies.
            InfrastructureError: If the disk refuses.
        """
        refuse_in_ci(env)
        roots = {member.job.case.families for one in self.taken for member in one.members}
        with locked(roots, inform):
            done = self.outcomes()
            check(done)
            self._write(done, env)
        self.reload()
        return done

    def _write(self, done: Outcomes, env: Mapping[str, str]) -> None:
        before = {member.job.case.file: member.job.case.content_hash for member in self._everything}
        ran = {
            member.record.case_hash: member.job.case.file
            for member in self._everything
            if member.job.case.file in done.sources
        }
        for plan in done.plans:
            apply(plan, env)
        for file, data in done.sources.items():
            write_atomically(file, data, durable=True)
        after = {file: discover([file])[0].content_hash for file in done.sources}
        same = {before[file]: now for file, now in after.items()}
        same |= {hashed: after[file] for hashed, file in ran.items()}
        self._change(lambda review: as_written(review, done.settled, same))

    def _kept(self) -> Review:
        path = self.directory.path / REVIEW
        try:
            return loads(read_regular(path), str(path))
        except FileNotFoundError:
            return Review()
        except OSError as error:
            raise CorruptRunError(f"{path}: cannot be read: {said_by(error)}") from None

    def _rejected_before(self) -> dict[str, tuple[str, Decision]]:
        """Return what was rejected in the runs before that lie beside this one."""
        found: dict[str, tuple[str, Decision]] = {}
        beside = sorted(self.directory.path.resolve().parent.glob(f"*/{REVIEW}"))
        before = [file for file in beside if file.parent.name < self.directory.path.resolve().name]
        for file in before[-_EARLIER:]:
            with contextlib.suppress(UsageError, OSError):  # it is no part of this run
                for one in loads(file.read_bytes(), str(file)).decisions:
                    if one.choice is Choice.REJECT:
                        found[one.group] = (file.parent.name, one)
        return found

    def _evidence(self) -> dict[str, Evidence]:
        path = self.directory.path / EVIDENCE
        try:
            found = msgspec.json.decode(read_regular(path), type=tuple[Evidence, ...])
        except FileNotFoundError:
            return {}
        except (OSError, *MALFORMED) as error:
            raise CorruptRunError(
                f"{path}: expected what was found out: {str(error).lower()}; delete it"
            ) from None
        return {one.cause: one for one in found}
