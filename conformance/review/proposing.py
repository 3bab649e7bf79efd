"""What a group of jobs would have its cases declare: the tightest deviation, or the end of one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.judge.errors import without_label
from conformance.judge.verdict import IF_INTENDED
from conformance.model.case import Deviation
from conformance.model.observation import is_case_error
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.review.ranges import narrowed, tightest
from conformance.review.refusing import CASE_IS_WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.review.groups import Member

DECLARABLE: Final = frozenset(
    {Outcome.RAISED, Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY}
)
_LONGEST: Final = 70
"""Characters of a proposed pattern."""
_SHORTEST: Final = 8
_LOOKED_AT: Final = 1_000
"""Characters of a message among which they are looked for."""
_VARYING: Final = re.compile(r"\S*\d\S*|\S*/\S*|[\x00-\x1f\x7f-\x9f]")
"""What of a message differs from cell to cell: words with numbers, paths, control codes."""
_SPECIAL: Final = re.compile(r"([.^$*+?{}\[\]\\|()])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One edit of a case's deviations.

    Attributes:
        file: The case file.
        function: Name of the case.
        params: Parametrisations that a new deviation is for; empty for all.
        deviation: What is declared anew; None where one that is declared ends.
        ends: What is declared now and ends.
        releases: The range that is left of it; None for none.
    """

    file: Path
    function: str
    params: tuple[str, ...] = ()
    deviation: Deviation | None = None
    ends: Deviation | None = None
    releases: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the reviewer says of a deviation; None is as proposed."""

    reason: str = ""
    issue: str = ""
    releases: str | None = None
    platform: str | None = None
    match: str | None = None


def agreed_value(proposed: Sequence[Declaration], field: str) -> str | None:
    """Return the value that declarations propose for a field of a deviation.

    Args:
        proposed: The declarations.
        field: Name of the field.

    Returns:
        Their common value, or a phrase if they differ; None if the field cannot be chosen.
    """
    if all(one.deviation is None for one in proposed):
        left = {one.releases for one in proposed}
        return (left.pop() or "") if field == "releases" and len(left) == 1 else None
    found = {getattr(one.deviation, field) for one in proposed if one.deviation is not None}
    return str(found.pop()) if len(found) == 1 else "as proposed for each"


def undeclarable(members: Iterable[Member]) -> str:
    """Return why no deviation can be declared, or ended, for some jobs; empty when one can.

    Args:
        members: Jobs of one group.
    """
    for member in members:
        record = member.record
        if record.verdict in {Verdict.FIXED, Verdict.STALE} and ending_of(member):
            continue
        if is_case_error(record.error):
            return CASE_IS_WRONG
        if record.verdict in {Verdict.FLAKY, Verdict.INFRA, Verdict.EXCLUDED}:
            return f"what is {record.verdict} is no deviation"
        if record.outcome not in DECLARABLE and record.conformance is not Conformance.DEVIATES:
            return "it conforms to its reference, or has none: there is nothing to declare"
    return ""


def ending_of(member: Member) -> tuple[Deviation, ...]:
    """Return the declared deviations of a job that it is said to show no longer."""
    fixed = member.record.verdict in {Verdict.FIXED, Verdict.STALE}
    return _declared(member) if fixed else ()


def declarations(
    members: Sequence[Member], everything: Iterable[Member], known: Sequence[str], wish: Wish
) -> tuple[Declaration, ...]:
    """Return the edits that declare what some jobs show, or end what they no longer do.

    Args:
        members: Jobs of one group, for which `undeclarable` says nothing.
        everything: All jobs of the run.
        known: Every jax release there is.
        wish: What the reviewer says.
    """
    names = {_function(member) for member in members}
    by_function: dict[tuple[Path, str], list[Member]] = {}
    for member in everything:
        if _function(member) in names:
            by_function.setdefault(_function(member), []).append(member)
    pattern = wish.match if wish.match is not None else common(list(map(_said, members)))
    ends: list[Declaration] = []
    new: list[Declaration] = []
    for (file, function), jobs in by_function.items():
        mine = [member for member in members if _function(member) == (file, function)]
        over = [member for member in mine if ending_of(member)]
        ends += _ends(over, jobs, known, wish)
        showing = [member for member in mine if member not in over]
        if showing:
            new += _new(showing, jobs, known, replace(wish, match=pattern))
    return (*ends, *new)


def _function(member: Member) -> tuple[Path, str]:
    return member.job.case.file, member.job.case.name


def _said(member: Member) -> str:
    """Return the text that the pattern of a deviation is searched in."""
    record = member.record
    if record.outcome is Outcome.OK or record.error is None:
        said = "\n".join(reason.partition(IF_INTENDED)[0] for reason in record.reasons)
        return without_label(said)
    return record.error.message


def common(texts: Sequence[str]) -> str:
    """Return a pattern of the longest words that all texts have, numbers and paths left out.

    Args:
        texts: Messages.
    """
    first = texts[0].strip().partition("\n")[0][:_LOOKED_AT] if texts else ""
    pieces = [part.strip() for part in _VARYING.split(first)]
    shared = [piece for piece in pieces if all(piece in text for text in texts)]
    longest = max(shared, key=len, default="")
    if len(longest) > _LONGEST:
        longest = longest[:_LONGEST].rpartition(" ")[0] or longest[:_LONGEST]
    return _SPECIAL.sub(r"\\\1", longest) if len(longest) >= _SHORTEST else ""


def _new(
    showing: Sequence[Member],
    jobs: Sequence[Member],
    known: Sequence[str],
    wish: Wish,
) -> list[Declaration]:
    """Return new deviations of one function: one for the parametrisations that it is alike for."""
    file, function = _function(showing[0])
    others = [m for m in jobs if m not in showing and m.record.outcome.observed]
    by_seen: dict[tuple[Outcome, str], list[Member]] = {}
    for member in showing:
        error = member.record.error
        type_ = error.type if error is not None and member.record.outcome is not Outcome.OK else ""
        by_seen.setdefault((member.record.outcome, type_), []).append(member)
    found: dict[_Hashed, list[str]] = {}
    for (outcome, type_), alike in by_seen.items():
        seen = Deviation(
            outcome=str(outcome),
            error=type_,
            match=wish.match or "",
            reason=wish.reason,
            issue=wish.issue,
        )
        for case in dict.fromkeys(member.record.case for member in alike):
            where = [m for m in alike if m.record.case == case]
            elsewhere = [m for m in (*others, *showing) if m.record.case == case and m not in where]
            for releases, platform in _ranges(where, elsewhere, known, wish):
                key = _Hashed(replace(seen, releases=releases, platform=platform))
                found.setdefault(key, []).append(_param(case))
    params = {_param(member.record.case) for member in jobs}
    return [
        Declaration(
            file=file,
            function=function,
            params=() if set(named) == params else tuple(named),
            deviation=deviation.deviation,
        )
        for deviation, named in found.items()
    ]


def _ranges(
    seen: Sequence[Member], unseen: Sequence[Member], known: Sequence[str], wish: Wish
) -> list[tuple[str, str]]:
    """Return the ranges and platforms that cover some jobs and, if that can be, none of others."""
    platforms = list(dict.fromkeys(_platform(member) for member in seen))
    if wish.platform is not None:
        platforms = [wish.platform] if wish.platform else []
    elif not _apart(seen, unseen):
        platforms = []
    if not platforms:
        return [(_of(seen, unseen, known, wish), "")]
    told = []
    for platform in platforms:
        mine = [member for member in seen if _platform(member) == platform] or seen
        theirs = [member for member in unseen if _platform(member) == platform]
        told.append((_of(mine, theirs, known, wish), platform))
    return told


def _apart(seen: Sequence[Member], unseen: Sequence[Member]) -> bool:
    """Say whether the platform must be told to tell the jobs apart."""
    releases = {member.release for member in seen}
    places = {(member.release, _platform(member)) for member in seen}
    return any(m.release in releases and (m.release, _platform(m)) not in places for m in unseen)


def _of(seen: Sequence[Member], unseen: Sequence[Member], known: Sequence[str], wish: Wish) -> str:
    if wish.releases is not None:
        return wish.releases
    return tightest({m.release for m in seen}, {m.release for m in unseen}, known)


def _platform(member: Member) -> str:
    return member.job.planned.cell.platform


def _param(case: str) -> str:
    return case.partition("[")[2].removesuffix("]")


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A deviation as a key: its packages are a mapping, none of which are proposed."""

    deviation: Deviation

    def __hash__(self) -> int:
        told = self.deviation
        return hash((told.releases, told.outcome, told.error, told.match, told.platform))


def _ends(
    over: Sequence[Member],
    jobs: Sequence[Member],
    known: Sequence[str],
    wish: Wish,
) -> list[Declaration]:
    """Return the ends of what jobs of one function no longer show."""
    ending: list[tuple[Deviation, Member]] = []
    for member in over:
        known_already = [one for one, _ in ending]
        ending += [(one, member) for one in ending_of(member) if one not in known_already]
    return [
        Declaration(
            file=member.job.case.file,
            function=member.job.case.name,
            ends=one,
            releases=wish.releases if wish.releases is not None else _left(one, over, jobs, known),
        )
        for one, member in ending
    ]


def _left(
    declared: Deviation, over: Sequence[Member], jobs: Sequence[Member], known: Sequence[str]
) -> str | None:
    gone = {member.release for member in over if declared in ending_of(member)}
    showing = {Verdict.KNOWN, Verdict.CHANGED}
    still = {
        member.release
        for member in jobs
        if member.record.verdict in showing and declared in _declared(member)
    }
    return narrowed(declared.releases, gone - still, still, known)


def _declared(member: Member) -> tuple[Deviation, ...]:
    planned, declared = member.job.planned, member.job.case.deviations
    platform = planned.cell.platform
    return tuple(d for d in declared if d.covers(planned.release, platform, planned.versions))
