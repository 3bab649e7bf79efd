"""The evidence for a decision on a group: what was, what is, where, and what was found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.engine.blobs import CorruptBlobError
from conformance.errors import UsageError
from conformance.judge.verdict import IF_INTENDED
from conformance.model.codec import CorruptValueError
from conformance.model.outcome import Outcome
from conformance.review.compared import compared
from conformance.review.groups import Kind
from conformance.review.lines import Line, Tone, head, line
from conformance.review.proposing import Wish, declarations, undeclarable
from conformance.review.ranges import compact
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.model.evidence import Evidence
    from conformance.review.decisions import Decision
    from conformance.review.groups import Group, Member
    from conformance.review.proposing import Declaration

_REASONS: Final = 8
_CASES: Final = 60
_PATTERNS: Final = 20
_QUOTED: Final = 4
_LEAVES: Final = 8
_MESSAGE: Final = 12
_STEP: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What evidence is read from.

    Attributes:
        blobs: Artifacts of the run.
        everything: All jobs of the run.
        known: Every jax release there is.
        found: What was found out about root causes, by id.
        earlier: By group, the name of the last run before in which it was rejected, and that
            decision.
    """

    blobs: BlobStore
    everything: Sequence[Member]
    known: Sequence[str]
    found: Mapping[str, Evidence]
    earlier: Mapping[str, tuple[str, Decision]] = field(default_factory=dict)

    @property
    def releases(self) -> frozenset[str]:
        """The releases of the run: what lies between two of them was not run."""
        return frozenset(member.release for member in self.everything)


def evidence_of(group: Group, files: Files) -> list[Line]:
    """Return what speaks for and against a group, in lines.

    Args:
        group: The group.
        files: What it is read from.
    """
    parts = [_what(group), _where(group, files), _upstream(group)]
    try:
        parts.append(compared(group.members[0], files.blobs))
    except (CorruptBlobError, CorruptValueError) as error:
        parts.append([line(str(error), Tone.WARNING)])
    parts += [_found_out(files.found.get(group.id)), _rejected(group, files)]
    parts.append(_choices(group, files))
    told: list[Line] = []
    for part in parts:
        if part:
            told += [*([Line("")] if told else []), *part]
    return told


def _what(group: Group) -> list[Line]:
    found = Counter(
        reason.partition(IF_INTENDED)[0]
        for member in group.members
        for reason in member.record.reasons
    )
    word = "an IR changed" if group.kind is Kind.IR else str(group.verdict)
    told = [head(f"{word}: {group.size}")]
    for reason, number in found.most_common(_REASONS):
        times = f"  (x{number})" if number > 1 else ""
        told.append(line(f"{reason}{times}", indent=_STEP))
    if len(found) > _REASONS:
        told.append(line(f"and {len(found) - _REASONS} more reasons", Tone.QUIET, _STEP))
    if group.kind is Kind.IR:
        told.append(line(group.title, indent=_STEP))
    return told


def _where(group: Group, files: Files) -> list[Line]:
    told = [head("where")]
    for case in group.cases[:_CASES]:
        mine = [member for member in group.members if member.record.case == case]
        told.append(line(f"{case} on {places(mine, files.releases)}", indent=_STEP))
    if len(group.cases) > _CASES:
        told.append(line(f"and {len(group.cases) - _CASES} more cases", Tone.QUIET, _STEP))
    return told


def places(members: Iterable[Member], known: Collection[str]) -> str:
    """Return the cells of some jobs, releases as ranges: `0.5.0..0.6.2 (py311-cpu8)`.

    Args:
        members: The jobs.
        known: Every release that there could be in a range.
    """
    by_rest: dict[str, list[str]] = {}
    alone: list[str] = []
    for member in members:
        cell = member.record.cell
        if cell.startswith("path-"):
            alone.append(f"{cell} (jax {member.release})")
        else:
            # The Python follows the release: cells are alike in what else sets them apart.
            factors = cell.split("-")[2:]
            by_rest.setdefault("-".join(factors), []).append(member.release)
    told = [f"jax {compact(set(found), known)} ({rest})" for rest, found in by_rest.items()]
    return "; ".join([*told, *dict.fromkeys(alone)])


def _upstream(group: Group) -> list[Line]:
    told: dict[str, None] = {}
    for member in group.members:
        case = member.job.case
        if case.source:
            told[f"{case.id.partition('[')[0]} comes from {case.source}"] = None
        for one in case.deviations:
            issue = f" ({one.issue})" if one.issue else ""
            where = f"jax{one.releases}" if one.releases else "every release"
            said = f": {one.reason}" if one.reason else ""
            told[f"declared for {where}{said}{issue}"] = None
    first = group.members[0].job.case.doc.partition("\n")[0]
    lines = [
        line(text, indent=_STEP) for text in [*([first] if first else []), *list(told)[:_CASES]]
    ]
    return (
        [head(f"about {group.members[0].job.case.id.partition('[')[0]}"), *lines] if lines else []
    )


def _found_out(found: Evidence | None) -> list[Line]:
    if found is None:
        return []
    told = [head(f"found out by conformance triage, from {found.case} on {found.cell}")]
    if found.first_bad:
        last = f" (last good {found.last_good})" if found.last_good else ""
        sure = ", confirmed" if found.confirmed else ""
        told.append(line(f"first bad {found.first_bad}{last}{sure}", indent=_STEP))
    told += [
        line(f"culprit {one.package} {one.before} -> {one.after}", indent=_STEP)
        for one in found.culprits
    ]
    if found.repro:
        told.append(line(f"reproduction {found.repro}: {found.command}", indent=_STEP))
    told += [line(f"not found out: {text}", Tone.QUIET, _STEP) for text in found.untold]
    return told


def _rejected(group: Group, files: Files) -> list[Line]:
    if group.id not in files.earlier:
        return []
    run, decision = files.earlier[group.id]
    who = line(f"{decision.by}, {decision.at}: {decision.reason}", indent=_STEP)
    return [head(f"rejected before, in the run {run}"), who]


def _choices(group: Group, files: Files) -> list[Line]:
    """Return what each decision would come to."""
    told = [head("what can be decided"), *accept_lines(group)]
    why, proposed = proposals(group, files)
    if why:
        told.append(line(f"deviation: no, {why}", indent=_STEP))
    return [*told, *(line(f"deviation: {described(one)}", indent=_STEP) for one in proposed)]


def accept_lines(group: Group) -> list[Line]:
    """Return which jobs accepting takes, and why not the others."""
    refused = Counter(member.refusal for member in group.members if member.refusal)
    total = len(group.members)
    number = total - sum(refused.values())
    told = (
        [line(f"accept: takes {number} of {plural(total, 'job')}", indent=_STEP)] if number else []
    )
    for reason, count in refused.items():
        told.append(line(f"accept: refuses {count}: {reason}", indent=_STEP))
    return told


def proposals(
    group: Group, files: Files, wish: Wish | None = None
) -> tuple[str, tuple[Declaration, ...]]:
    """Return why a group cannot become a deviation, else what would be declared.

    Args:
        group: The group.
        files: All jobs of the run, and all releases.
        wish: What the reviewer says of it.
    """
    if why := undeclarable(group.members):
        return why, ()
    try:
        found = declarations(group.members, files.everything, files.known, wish or Wish())
    except UsageError as error:
        return str(error), ()
    return "", found


def described(one: Declaration) -> str:
    """Return an edit of a case's deviations in words."""
    told = one.deviation
    if told is None:
        was = f"jax{one.ends.releases}" if one.ends and one.ends.releases else "every release"
        becomes = "goes" if one.releases is None else f"becomes jax{one.releases}"
        return f"of {one.function}, that for {was} {becomes}"
    where = f"jax{told.releases}" if told.releases else "every release"
    where += f" on {told.platform}" if told.platform else ""
    where += f" [{', '.join(one.params)}]" if one.params else ""
    seen = told.outcome if told.outcome != Outcome.RAISED else told.error or told.outcome
    match = f" matching {told.match!r}" if told.match else ""
    return f"{one.function} on {where}: {seen}{match}"
