"""Proposals of deviations: a tight new deviation, or the end of a declared deviation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from conformance.judge.errors import strip_label
from conformance.judge.verdict import IF_INTENDED
from conformance.model.case import Deviation
from conformance.model.observation import is_case_error
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.review.decisions import Terms
from conformance.review.judged_jobs import CASE_IS_WRONG
from conformance.review.release_ranges import find_tightest_range, narrow_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.review.judged_jobs import JudgedJob

DECLARABLE: Final = frozenset(
    {Outcome.RAISED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY}
)
_NO_LONGER_SHOWN: Final = frozenset({Verdict.FIXED, Verdict.STALE})
_LONGEST: Final = 70
"""Characters of a proposed pattern."""
_SHORTEST: Final = 8
_LOOKED_AT: Final = 1_000
"""Characters of a message that are searched for a pattern."""
_VARYING: Final = re.compile(r"\S*\d\S*|\S*/\S*|[\x00-\x1f\x7f-\x9f]")
"""Parts of a message that differ from cell to cell: words with numbers, paths, control codes."""
_SPECIAL: Final = re.compile(r"([.^$*+?{}\[\]\\|()])")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationEdit:
    """One edit of a case's deviations.

    Attributes:
        file: The case file.
        function: Name of the case.
        params: Parametrisations that a new deviation is for; empty for all.
        deviation: A new deviation; None if a declared deviation ends.
        ends: The declared deviation that ends.
        releases: The remaining range; None if the deviation is removed.
    """

    file: Path
    function: str
    params: tuple[str, ...] = ()
    deviation: Deviation | None = None
    ends: Deviation | None = None
    releases: str | None = None

    def __str__(self) -> str:
        """Return the edit in words."""
        new = self.deviation
        if new is None:
            becomes = "goes" if self.releases is None else f"becomes jax{self.releases}"
            return f"of {self.function}, that for {_format_range(self.ends)} {becomes}"
        where = _format_range(new)
        where += f" on {new.platform}" if new.platform else ""
        where += f" [{', '.join(self.params)}]" if self.params else ""
        seen = new.outcome if new.outcome != Outcome.RAISED else new.error or new.outcome
        match = f" matching {new.match!r}" if new.match else ""
        return f"{self.function} on {where}: {seen}{match}"


def _format_range(deviation: Deviation | None) -> str:
    """Return the releases of a deviation; `every release` without a deviation or a range."""
    return f"jax{deviation.releases}" if deviation and deviation.releases else "every release"


class EditProposal(NamedTuple):
    """The edits that would declare the results of some jobs, or the reason for a refusal."""

    declarations: tuple[DeviationEdit, ...] = ()
    refusal: str = ""

    def find_common_value(self, field: str) -> str | None:
        """Return the value that all edits propose for a field of a deviation.

        Args:
            field: Name of the field.

        Returns:
            Their common value, or a phrase if they differ; None if the field cannot be chosen.
        """
        new = [edit.deviation for edit in self.declarations if edit.deviation is not None]
        if not new:
            left = {edit.releases for edit in self.declarations}
            return (left.pop() or "") if field == "releases" and len(left) == 1 else None
        found = {getattr(edit, field) for edit in new}
        return str(found.pop()) if len(found) == 1 else "as proposed for each"


def propose(
    jobs: Sequence[JudgedJob],
    run: Iterable[JudgedJob],
    known: Sequence[str],
    terms: Terms | None = None,
) -> EditProposal:
    """Return the edits that declare the results of some jobs, or end deviations that are over.

    Args:
        jobs: Jobs of one group.
        run: All jobs of the run.
        known: Every known jax release.
        terms: Values that the reviewer chose; the others are proposed.
    """
    terms = terms or Terms()
    if why := next(filter(None, map(_find_refusal, jobs)), ""):
        return EditProposal(refusal=why)
    # One pattern for all jobs of the group, so that one deviation covers them.
    if terms.match is None:
        terms = msgspec.structs.replace(
            terms, match=find_common_pattern([*map(_get_message, jobs)])
        )
    by_function: dict[tuple[Path, str], list[JudgedJob]] = {judged.function: [] for judged in jobs}
    for judged in run:
        if judged.function in by_function:
            by_function[judged.function].append(judged)
    ends: list[DeviationEdit] = []
    new: list[DeviationEdit] = []
    for function, every in by_function.items():
        mine = [judged for judged in jobs if judged.function == function]
        over = [judged for judged in mine if find_ended(judged)]
        ends += _propose_ends(over, every, known, terms)
        new += _propose_new(
            [judged for judged in mine if not find_ended(judged)], every, known, terms
        )
    return EditProposal((*ends, *new))


def _find_refusal(judged: JudgedJob) -> str:
    """Return the reason why no deviation can be declared or ended for a job; empty if it can."""
    record = judged.record
    if find_ended(judged):
        return ""
    if is_case_error(record.error):
        return CASE_IS_WRONG
    if record.verdict in {Verdict.FLAKY, Verdict.INFRA, Verdict.EXCLUDED}:
        return f"what is {record.verdict} is no deviation"
    if record.outcome not in DECLARABLE and record.conformance is not Conformance.DEVIATES:
        return "it conforms to its reference, or has none: there is nothing to declare"
    return ""


def find_ended(judged: JudgedJob) -> tuple[Deviation, ...]:
    """Return the declared deviations that a job no longer shows, by its verdict."""
    return _find_declared(judged) if judged.record.verdict in _NO_LONGER_SHOWN else ()


def _find_declared(judged: JudgedJob) -> tuple[Deviation, ...]:
    planned, declared = judged.job.planned, judged.job.case.deviations
    platform = planned.cell.platform
    return tuple(d for d in declared if d.covers(planned.release, platform, planned.versions))


def _get_message(judged: JudgedJob) -> str:
    """Return the text in which the pattern of a deviation is searched."""
    record = judged.record
    if record.outcome is not Outcome.OK and record.error is not None:
        return record.error.message
    return strip_label("\n".join(text.partition(IF_INTENDED)[0] for text in record.reasons))


def find_common_pattern(texts: Sequence[str]) -> str:
    """Return a pattern of the longest common words of some texts, without numbers and paths.

    Args:
        texts: Messages.
    """
    # The first line: later lines are often hints and frames, which change between releases.
    first = texts[0].strip().partition("\n")[0][:_LOOKED_AT] if texts else ""
    pieces = [part.strip() for part in _VARYING.split(first)]
    shared = [piece for piece in pieces if all(piece in text for text in texts)]
    longest = max(shared, key=len, default="")
    # Longer patterns break with the next edit of the message upstream.
    if len(longest) > _LONGEST:
        # Cut between words, so that the pattern is readable.
        longest = longest[:_LONGEST].rpartition(" ")[0] or longest[:_LONGEST]
    return _SPECIAL.sub(r"\\\1", longest) if len(longest) >= _SHORTEST else ""


def _propose_new(
    showing: Sequence[JudgedJob], every: Sequence[JudgedJob], known: Sequence[str], terms: Terms
) -> Iterable[DeviationEdit]:
    """Yield new deviations of a function, shared by parametrisations with the same result."""
    others = [
        judged for judged in every if judged not in showing and judged.record.outcome.observed
    ]
    by_result: dict[tuple[Outcome, str, str], list[JudgedJob]] = {}
    for judged in showing:
        record = judged.record
        failed = record.error is not None and record.outcome is not Outcome.OK
        error = record.error.type if failed and record.error else ""
        by_result.setdefault((record.outcome, error, judged.param), []).append(judged)
    params: dict[tuple[Outcome, str, str, str], list[str]] = {}
    for (outcome, error, param), where in by_result.items():
        elsewhere = [o for o in (*others, *showing) if o.param == param and o not in where]
        for releases, platform in _propose_ranges(where, elsewhere, known, terms):
            params.setdefault((outcome, error, releases, platform), []).append(param)
    for (outcome, error, releases, platform), named in params.items():
        yield DeviationEdit(
            file=showing[0].job.case.file,
            function=showing[0].job.case.name,
            # Without parameters, so that parametrisations that are added later are covered.
            params=() if set(named) == {judged.param for judged in every} else tuple(named),
            deviation=Deviation(
                outcome=str(outcome),
                error=error,
                releases=releases,
                platform=platform,
                match=terms.match or "",
                reason=terms.reason,
                issue=terms.issue,
            ),
        )


def _propose_ranges(
    seen: Sequence[JudgedJob], unseen: Sequence[JudgedJob], known: Sequence[str], terms: Terms
) -> Iterable[tuple[str, str]]:
    """Yield ranges and platforms that cover some jobs and, if possible, none of others."""
    platforms = list(dict.fromkeys(judged.platform for judged in seen))
    if terms.platform is not None:
        platforms = [terms.platform]
    elif not _is_platform_specific(seen, unseen):
        platforms = [""]
    for platform in platforms:
        # A platform of the reviewer's choice may be a prefix, e.g. `tpu`, which no job has itself.
        mine = [judged for judged in seen if judged.platform == platform] or seen
        theirs = [judged for judged in unseen if not platform or judged.platform == platform]
        tight = find_tightest_range({o.release for o in mine}, {o.release for o in theirs}, known)
        yield tight if terms.releases is None else terms.releases, platform


def _is_platform_specific(seen: Sequence[JudgedJob], unseen: Sequence[JudgedJob]) -> bool:
    """Say whether only the platform sets some jobs apart from others of the same release."""
    releases = {judged.release for judged in seen}
    places = {(judged.release, judged.platform) for judged in seen}
    return any(o.release in releases and (o.release, o.platform) not in places for o in unseen)


def _propose_ends(
    over: Sequence[JudgedJob], every: Sequence[JudgedJob], known: Sequence[str], terms: Terms
) -> Iterable[DeviationEdit]:
    """Yield the ends of deviations that jobs of one function no longer show."""
    ending: list[Deviation] = []
    for judged in over:
        ending += [deviation for deviation in find_ended(judged) if deviation not in ending]
    for deviation in ending:
        gone = {judged.release for judged in over if deviation in find_ended(judged)}
        shown = {
            judged.release
            for judged in every
            if judged.record.verdict in {Verdict.KNOWN, Verdict.CHANGED}
            and deviation in _find_declared(judged)
        }
        # A release where only some cells are fixed keeps its deviation.
        left = narrow_range(deviation.releases, gone - shown, shown, known)
        yield DeviationEdit(
            file=over[0].job.case.file,
            function=over[0].job.case.name,
            ends=deviation,
            releases=left if terms.releases is None else terms.releases,
        )
