"""Differences of one job from its golden and from its reference, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.ir_analysis import canonical_text
from conformance.engine.job_comparison import IrText, diff_texts
from conformance.engine.record_judge import golden_variant, load_observation
from conformance.golden.errors import GoldenError
from conformance.ir.graph import IrSyntaxError, kind_of_artifact
from conformance.judge.comparison import Agreement
from conformance.judge.conformance import ending
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.model.case import Policy
from conformance.model.record import IrStatus
from conformance.model.value import Value
from conformance.report.ir_facts import compare_facts
from conformance.review.lines import (
    AFTER,
    BEFORE,
    QUIET,
    WARNING,
    indent_below,
    limit_lines,
    line,
    section,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from conformance.engine.blobs import BlobStore
    from conformance.engine.record_judge import Judge
    from conformance.judge.comparison import Difference
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation
    from conformance.review.judged_jobs import JudgedJob

_PATTERNS: Final = 20
_QUOTED: Final = 4
_LEAVES: Final = 8
_MESSAGE: Final = 12


def describe_differences(example: JudgedJob, judge: Judge, blobs: BlobStore) -> list[Text]:
    """Return how a job differs from its golden, and from its reference.

    Args:
        example: The job.
        judge: Knows the goldens.
        blobs: Artifacts of its run.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    observation = load_observation(example.record, blobs)
    golden, problem = None, ""
    try:
        job = example.job
        golden = judge.store(job).lookup(job.case, golden_variant(job), job.planned.release)
    except GoldenError as error:
        problem = str(error)
    lines = [line(problem, WARNING)] if problem else []
    if golden is None or golden.tainted:
        lines.append(line("golden none" if golden is None else "golden tainted"))
    else:
        lines.append(line(f"golden {_ending(golden)} ({golden.span})", BEFORE))
    texts = observation.error.message.splitlines() if observation.error is not None else ()
    seen = line(f"seen {ending(observation)}", AFTER)
    lines += indent_below(seen, limit_lines([*map(line, texts)], _MESSAGE, "... {} more lines"))
    lines += _values(example, observation, golden)
    if golden is not None and not golden.tainted:
        rows = compare_facts(golden.facts, example.record.facts) if golden.facts else ()
        facts = [f"{row.name}: {row.before} -> {row.after}" for row in rows if row.gates]
        lines += section("facts:", map(line, facts if example.record.facts else ()), "")
        lines += _irs(example, golden, blobs)
    return section(f"seen in {example.record.case} on {example.record.cell}", lines)


def _ending(golden: GoldenEntry) -> str:
    """Return how the recorded job ended, in a few words."""
    if golden.error is None:
        return str(golden.outcome)
    first = golden.error.message.partition("\n")[0]
    return f"{golden.outcome} {golden.error.type}: {first}"


def _values(one: JudgedJob, observation: Observation, golden: GoldenEntry | None) -> Iterator[Text]:
    """Yield how many elements differ from golden and reference, and how far."""
    seen, case = observation.value, one.job.case
    if seen is None:
        return
    if golden is not None and golden.value is not None:
        found = compare_values(seen, golden.value, Tolerance.of(case)).differences
        yield from _leaves("against the golden:", found)
    if isinstance(observation.reference, Value):
        budgets = case.on(one.job.planned.cell.platform).budgets
        found = compare_reference(
            seen, observation.reference, case.rtol, case.atol, budgets=budgets
        ).differences
        beyond = [each for each in found if each.agreement is Agreement.BEYOND]
        yield from _leaves("against the reference:", beyond) or [
            line("against the reference: conforms")
        ]


def _leaves(title: str, found: Sequence[Difference]) -> list[Text]:
    lines = [
        line(
            f"{one.message}; of all elements at most {one.max_abs:.3g} absolute, "
            f"{one.max_rel:.3g} relative"
            if one.aspect == "numbers"
            else one.message
        )
        for one in found
    ]
    return section(title, limit_lines(lines, _LEAVES, "and {} more leaves"), "")


def _irs(one: JudgedJob, golden: GoldenEntry, blobs: BlobStore) -> Iterator[Text]:
    """Yield how the IRs differ, pattern by pattern, with lines of an example."""
    for ir, kept in one.record.ir.items():
        policy, kind = one.job.case.policy_of(ir), kind_of_artifact(ir)
        if kept.status is not IrStatus.CHANGED or policy is Policy.INFORM:
            continue
        own = one.record.ir.get(kind)
        if own is not None and own is not kept and own.changes == kept.changes:
            yield line(f"{ir} ({policy}): as {kind}")
            continue
        try:
            seen = IrText(canonical_text(one.record, blobs, ir), kind)
            changes = diff_texts(IrText(golden.ir[ir].text, kind), seen).changes
        except (IrSyntaxError, CorruptBlobError) as error:
            shown = [line(str(error), WARNING)]
        else:
            shown = []
            for change in changes[:_PATTERNS]:
                quoted = [line(f"- {text}", BEFORE) for text in change.before[:_QUOTED]]
                quoted += [line(f"+ {text}", AFTER) for text in change.after[:_QUOTED]]
                shown += indent_below(line(change.line), quoted)
            left = len(changes) - _PATTERNS
            shown += [line(f"and {left} more patterns", QUIET)] if left > 0 else []
        yield from section(f"{ir} ({policy}):", shown, "")
