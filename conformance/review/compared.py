"""How one job differs from its golden and from its reference, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.ir_analysis import canonical_text
from conformance.engine.job_comparison import IrText, diff_texts
from conformance.engine.record_judge import Judge, golden_variant, observation_of
from conformance.golden.errors import GoldenError
from conformance.ir.graph import IrSyntaxError, kind_of_artifact
from conformance.judge.comparison import Agreement
from conformance.judge.conformance import ending
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.model.case import Policy
from conformance.model.record import IrStatus
from conformance.model.value import Value
from conformance.report.ir_facts import differing_facts
from conformance.review.lines import Line, Tone, head, line, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.judge.comparison import Difference
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation
    from conformance.review.groups import Member

_PATTERNS: Final = 20
_QUOTED: Final = 4
_LEAVES: Final = 8
_MESSAGE: Final = 12
_STEP: Final = 2


def compared(example: Member, blobs: BlobStore) -> list[Line]:
    """Return how a job differs from its golden, and from its reference.

    Args:
        example: The job.
        blobs: Artifacts of its run.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    observation = observation_of(example.record, blobs)
    golden, problem = _golden(example, blobs)
    cell = example.record.cell
    told = [head(f"seen in {example.record.case} on {cell}")]
    if problem:
        told.append(line(problem, Tone.WARNING, _STEP))
    if golden is None or golden.tainted:
        told.append(line("golden   none" if golden is None else "golden   tainted", indent=_STEP))
    else:
        before = _recorded(golden)
        told.append(line(f"golden   {before} ({golden.span})", Tone.BEFORE, _STEP))
    told.append(line(f"seen     {ending(observation)}", Tone.AFTER, _STEP))
    if observation.error is not None:
        told += lines_of(observation.error.message, _MESSAGE, indent=2 * _STEP)
    told += _values(example, observation, golden)
    if golden is not None and not golden.tainted:
        told += _facts(example, golden)
        told += list(_irs(example, golden, blobs))
    return told


def _recorded(golden: GoldenEntry) -> str:
    """Return how the recorded job ended, in a few words."""
    if golden.error is None:
        return str(golden.outcome)
    first = golden.error.message.partition("\n")[0]
    return f"{golden.outcome} {golden.error.type}: {first}"


def _golden(member: Member, blobs: BlobStore) -> tuple[GoldenEntry | None, str]:
    job = member.job
    try:
        store = Judge(blobs).store(job)
        return store.lookup(job.case, golden_variant(job), job.planned.release), ""
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
        budgets = case.on(member.job.planned.cell.platform).budgets
        found = compare_reference(
            seen, observation.reference, case.rtol, case.atol, budgets=budgets
        ).differences
        beyond = tuple(one for one in found if one.agreement is Agreement.BEYOND)
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
            seen = IrText(canonical_text(member.record, blobs, ir), kind)
            changes = diff_texts(IrText(golden.ir[ir].text, kind), seen).changes
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
