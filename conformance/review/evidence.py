"""The evidence for a decision on a group: what was, what is, where, and what was found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.comparing import IrText, difference
from conformance.engine.irs import neutral_text
from conformance.engine.judging import Judge, observation_of, variant
from conformance.errors import UsageError
from conformance.golden.errors import GoldenError
from conformance.ir.graph import IrSyntaxError, kind_of_artifact
from conformance.judge.conformance import ending
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.judge.verdict import IF_INTENDED
from conformance.model.case import Policy
from conformance.model.codec import CorruptValueError
from conformance.model.outcome import Outcome
from conformance.model.record import IrStatus
from conformance.model.value import Value
from conformance.report.ir_facts import differing_facts
from conformance.review.groups import Kind
from conformance.review.lines import Line, Tone, head, line, lines_of
from conformance.review.proposing import Wish, declarations, undeclarable
from conformance.review.ranges import compact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.judge.comparison import Difference
    from conformance.model.evidence import Evidence
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation
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
    example = group.members[0]
    try:
        parts.append(_compared(example, files))
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


def _compared(example: Member, files: Files) -> list[Line]:
    """Return how one job of the group differs from its golden, and from its reference."""
    observation = observation_of(example.record, files.blobs)
    golden, problem = _golden(example, files.blobs)
    cell = example.record.cell
    told = [head(f"seen in {example.record.case} on {cell}")]
    if problem:
        told.append(line(problem, Tone.WARNING, _STEP))
    if golden is None or golden.tainted:
        told.append(line("golden   none" if golden is None else "golden   tainted", indent=_STEP))
    else:
        before = ending_of_golden(golden)
        told.append(line(f"golden   {before} ({golden.span})", Tone.BEFORE, _STEP))
    told.append(line(f"seen     {ending(observation)}", Tone.AFTER, _STEP))
    if observation.error is not None:
        told += lines_of(observation.error.message, _MESSAGE, indent=2 * _STEP)
    told += _values(example, observation, golden)
    if golden is not None and not golden.tainted:
        told += _facts(example, golden)
        told += list(_irs(example, golden, files.blobs))
    return told


def ending_of_golden(golden: GoldenEntry) -> str:
    """Return how the recorded job ended, in a few words."""
    if golden.error is None:
        return str(golden.outcome)
    first = golden.error.message.partition("\n")[0]
    return f"{golden.outcome} {golden.error.type}: {first}"


def _golden(member: Member, blobs: BlobStore) -> tuple[GoldenEntry | None, str]:
    job = member.job
    try:
        store = Judge(blobs).store(job)
        return store.lookup(job.case, variant(job), job.planned.release), ""
    except GoldenError as error:
        return None, str(error)


def _values(member: Member, observation: Observation, golden: GoldenEntry | None) -> list[Line]:
    """Return how many elements differ from golden and reference, and how far."""
    seen, case = observation.value, member.job.case
    told: list[Line] = []
    if seen is None:
        return told
    if golden is not None and golden.value is not None:
        found = compare_values(seen, golden.value, Tolerance.of(case)).differences
        told += _differences("against the golden", found)
    if isinstance(observation.reference, Value):
        found = compare_reference(seen, observation.reference, case.rtol, case.atol).differences
        beyond = tuple(one for one in found if one.agreement > 1)
        told += _differences("against the reference", beyond) or [
            line("against the reference: conforms", indent=_STEP)
        ]
    return told


def _differences(title: str, found: Sequence[Difference]) -> list[Line]:
    if not found:
        return []
    told = [line(f"{title}:", indent=_STEP)]
    told += [line(_difference(one), indent=2 * _STEP) for one in found[:_LEAVES]]
    if len(found) > _LEAVES:
        told.append(line(f"and {len(found) - _LEAVES} more leaves", Tone.QUIET, 2 * _STEP))
    return told


def _difference(one: Difference) -> str:
    if one.aspect != "numbers":
        return one.message
    return (
        f"{one.message}; of all elements at most {one.max_abs:.3g} absolute, "
        f"{one.max_rel:.3g} relative"
    )


def _facts(member: Member, golden: GoldenEntry) -> list[Line]:
    if not golden.facts or not member.record.facts:
        return []
    rows = [row for row in differing_facts(golden.facts, member.record.facts) if row.gates]
    told = [line(f"{row.name}: {row.before} -> {row.after}", indent=2 * _STEP) for row in rows]
    return [line("facts:", indent=_STEP), *told] if told else []


def _irs(member: Member, golden: GoldenEntry, blobs: BlobStore) -> Iterator[Line]:
    """Yield how the IRs differ, pattern by pattern, with lines of an example."""
    for ir, kept in member.record.ir.items():
        policy = member.job.case.policy_of(ir)
        if kept.status is not IrStatus.CHANGED or policy is Policy.INFORM:
            continue
        own = member.record.ir.get(kind_of_artifact(ir))
        if own is not None and own is not kept and own.changes == kept.changes:
            yield line(f"{ir} ({policy}): as {kind_of_artifact(ir)}", indent=_STEP)
            continue
        yield line(f"{ir} ({policy}):", indent=_STEP)
        try:
            kind = kind_of_artifact(ir)
            seen = IrText(neutral_text(member.record, blobs, ir), kind)
            changes = difference(IrText(golden.ir[ir].text, kind), seen).changes
        except (IrSyntaxError, CorruptBlobError) as error:
            yield line(str(error), Tone.WARNING, 2 * _STEP)
            continue
        for change in changes[:_PATTERNS]:
            yield line(change.line, indent=2 * _STEP)
            for text in change.before[:_QUOTED]:
                yield line(f"- {text}", Tone.BEFORE, 3 * _STEP)
            for text in change.after[:_QUOTED]:
                yield line(f"+ {text}", Tone.AFTER, 3 * _STEP)
        if len(changes) > _PATTERNS:
            yield line(f"and {len(changes) - _PATTERNS} more patterns", Tone.QUIET, 2 * _STEP)


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
    told = [line(f"accept: takes {number} of {total} jobs", indent=_STEP)] if number else []
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
