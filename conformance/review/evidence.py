"""The evidence for a decision on a group, as styled lines."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.text import Text

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.ir_analysis import render_canonical
from conformance.engine.record_judge import load_observation, name_golden_variant
from conformance.golden.document import GoldenError
from conformance.ir.graph import IrSyntaxError, kind_of_artifact
from conformance.ir.text_diff import IrText, diff_texts
from conformance.judge.conformance import describe_outcome
from conformance.judge.difference import Agreement
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.judge.verdict import IF_INTENDED
from conformance.model.case import Policy
from conformance.model.record import IrStatus
from conformance.model.value import CorruptValueError, Value
from conformance.report.ir_differences import compare_facts
from conformance.report.text import flatten
from conformance.review.groups import GroupKind
from conformance.review.release_ranges import format_spans
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.record_judge import Judge
    from conformance.judge.difference import Difference
    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation
    from conformance.model.run_files import Evidence
    from conformance.review.groups import ReviewGroup
    from conformance.review.judged_jobs import JudgedJob
    from conformance.review.run_data import RunData

HEAD: Final = "bold"
QUIET: Final = "bright_black"
BEFORE: Final = "red"
AFTER: Final = "green"
WARNING: Final = "yellow"
# Limits keep the evidence readable; the run directory has everything.
_LONGEST: Final = 1_000
_STEP: Final = 2
_MIN_WIDTH: Final = 20
_REASONS: Final = 8
_CASES: Final = 60
_PATTERNS: Final = 20
_QUOTED: Final = 4
_LEAVES: Final = 8
_MESSAGE: Final = 12


def make_line(text: str, style: str = "") -> Text:
    """Return a line without control characters, which could act on a terminal.

    Args:
        text: Any text.
        style: Style of rich.
    """
    return Text(flatten(text, _LONGEST), style=style)


def indent_lines(title: Text, lines: Iterable[Text]) -> list[Text]:
    """Return a line with others below it, indented."""
    indented = list(lines)
    for line in indented:
        line.pad_left(_STEP)
    return [title, *indented]


def make_section(title: str, lines: Iterable[Text], style: str = HEAD) -> list[Text]:
    """Return a title with lines below it; nothing if there are none.

    Args:
        title: The title.
        lines: The lines.
        style: Style of the title.
    """
    shown = list(lines)
    return indent_lines(make_line(title, style), shown) if shown else []


def limit_lines(lines: Sequence[Text], most: int, more: str) -> list[Text]:
    """Return the first lines, and a line with the number of the others.

    Args:
        lines: The lines.
        most: Maximum number of lines.
        more: Text of the line that replaces the others, `{}` for their number.
    """
    left = len(lines) - most
    return [*lines[:most], *([make_line(more.format(left), QUIET)] if left > 0 else [])]


class WrappedLines:
    """Lines for rich, wrapped to the width of the terminal; continuations are indented further.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines of a console's width."""
        for line in self._lines:
            body = line.plain.lstrip(" ")
            indent = min(len(line.plain) - len(body), options.max_width // 2)
            # rich wraps without a hanging indent.
            parts = textwrap.wrap(
                body,
                max(options.max_width, _MIN_WIDTH),
                initial_indent=" " * indent,
                subsequent_indent=" " * (indent + _STEP),
                break_on_hyphens=False,
            )
            yield from (Text(part, style=line.style) for part in parts or [""])


def collect_evidence(group: ReviewGroup, data: RunData) -> list[Text]:
    """Return the evidence for and against a group, in lines.

    Args:
        group: The group.
        data: Data of its run.
    """
    parts = [_list_reasons(group), _list_places(group, data), _list_upstream_facts(group)]
    try:
        # One job is enough: the members of a group share the cause.
        parts.append(describe_differences(group.members[0], data.new_judge(), data.blobs))
    # A damaged blob must not hide the rest of the evidence.
    except (CorruptBlobError, CorruptValueError) as error:
        parts.append([make_line(str(error), WARNING)])
    if group.id in data.triage:
        found = data.triage[group.id]
        title = f"found out by conformance triage, from {found.case} on {found.cell}"
        parts.append(make_section(title, _list_triage(found)))
    if group.id in data.rejected:
        run, decision = data.rejected[group.id]
        who = make_line(f"{decision.by}, {decision.at}: {decision.reason}")
        parts.append(make_section(f"rejected before, in the run {run}", [who]))
    parts.append(make_section("what can be decided", _list_choices(group, data)))
    lines = [shown for part in parts if part for shown in (make_line(""), *part)]
    return lines[1:]


def _list_reasons(group: ReviewGroup) -> list[Text]:
    found = Counter(
        reason.partition(IF_INTENDED)[0]
        for judged in group.members
        for reason in judged.record.reasons
    )
    lines = [
        make_line(f"{reason}{f'  (x{number})' if number > 1 else ''}")
        for reason, number in found.most_common()
    ]
    is_ir = group.kind is GroupKind.IR
    title = f"{'an IR changed' if is_ir else group.verdict}: {group.size}"
    shown = limit_lines(lines, _REASONS, "and {} more reasons")
    if is_ir:
        shown.append(make_line(group.title))
    return indent_lines(make_line(title, HEAD), shown)


def _list_places(group: ReviewGroup, data: RunData) -> list[Text]:
    by_case: dict[str, list[JudgedJob]] = {}
    for judged in group.members:
        by_case.setdefault(judged.record.case, []).append(judged)
    lines = [
        make_line(f"{case} on {format_places(jobs, data.releases)}")
        for case, jobs in by_case.items()
    ]
    return make_section("where", limit_lines(lines, _CASES, "and {} more cases"))


def format_places(jobs: Iterable[JudgedJob], known: Collection[str]) -> str:
    """Return the cells of some jobs, releases as ranges: `0.5.0..0.6.2 (py311-cpu8)`.

    Args:
        jobs: The jobs.
        known: Every release that a range may contain.
    """
    by_factors: dict[str, set[str]] = {}
    paths: dict[str, None] = {}
    for judged in jobs:
        cell = judged.record.cell
        if cell.startswith("path-"):
            paths[f"{cell} (jax {judged.release})"] = None
        else:
            # The Python follows the release: it does not set cells apart.
            by_factors.setdefault("-".join(cell.split("-")[2:]), set()).add(judged.release)
    ranges = [f"jax {format_spans(found, known)} ({rest})" for rest, found in by_factors.items()]
    return "; ".join([*ranges, *paths])


def _list_upstream_facts(group: ReviewGroup) -> list[Text]:
    facts: dict[str, None] = {}
    for judged in group.members:
        case = judged.job.case
        if case.source:
            facts[f"{case.id.partition('[')[0]} comes from {case.source}"] = None
        for deviation in case.deviations:
            issue = f" ({deviation.issue})" if deviation.issue else ""
            where = f"jax{deviation.releases}" if deviation.releases else "every release"
            reason = f": {deviation.reason}" if deviation.reason else ""
            facts[f"declared for {where}{reason}{issue}"] = None
    first = group.members[0].job.case
    summary = first.doc.partition("\n")[0]
    texts = [*([summary] if summary else []), *list(facts)[:_CASES]]
    return make_section(f"about {first.id.partition('[')[0]}", map(make_line, texts))


def _list_triage(found: Evidence) -> Iterator[Text]:
    if found.first_bad:
        last = f" (last good {found.last_good})" if found.last_good else ""
        yield make_line(
            f"first bad {found.first_bad}{last}{', confirmed' if found.confirmed else ''}"
        )
    for move in found.culprits:
        yield make_line(f"culprit {move.package} {move.before} -> {move.after}")
    if found.repro:
        yield make_line(f"reproduction {found.repro}: {found.command}")
    for text in found.unresolved:
        yield make_line(f"not found out: {text}", QUIET)


def _list_choices(group: ReviewGroup, data: RunData) -> Iterator[Text]:
    """Yield the effect of each possible decision, or the reason why it is refused."""
    refused = Counter(one.refusal for one in group.members if one.refusal)
    total = len(group.members)
    if number := total - refused.total():
        yield make_line(f"accept: takes {number} of {plural(total, 'job')}")
    for reason, count in refused.items():
        yield make_line(f"accept: refuses {count}: {reason}")
    proposal = data.make_proposal(group)
    if proposal.refusal:
        yield make_line(f"deviation: no, {proposal.refusal}")
    for one in proposal.declarations:
        yield make_line(f"deviation: {one}")


def describe_differences(example: JudgedJob, judge: Judge, blobs: BlobStore) -> list[Text]:
    """Return the differences of a job from its golden and from its reference.

    Args:
        example: The job.
        judge: Judge with the goldens of the run.
        blobs: Artifacts of its run.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    observation = load_observation(example.record, blobs)
    golden, problem = None, ""
    try:
        job = example.job
        golden = judge.store(job).lookup(job.case, name_golden_variant(job), job.planned.release)
    except GoldenError as error:
        problem = str(error)
    lines = [make_line(problem, WARNING)] if problem else []
    if golden is None or golden.tainted:
        lines.append(make_line("golden none" if golden is None else "golden tainted"))
    else:
        lines.append(make_line(f"golden {_describe_golden(golden)} ({golden.span})", BEFORE))
    texts = observation.error.message.splitlines() if observation.error is not None else ()
    seen = make_line(f"seen {describe_outcome(observation)}", AFTER)
    lines += indent_lines(
        seen, limit_lines([*map(make_line, texts)], _MESSAGE, "... {} more lines")
    )
    lines += _compare_values(example, observation, golden)
    if golden is not None and not golden.tainted:
        rows = compare_facts(golden.facts, example.record.facts) if golden.facts else ()
        facts = [f"{row.name}: {row.before} -> {row.after}" for row in rows if row.gates]
        lines += make_section("facts:", map(make_line, facts if example.record.facts else ()), "")
        lines += _compare_irs(example, golden, blobs)
    return make_section(f"seen in {example.record.case} on {example.record.cell}", lines)


def _describe_golden(golden: GoldenEntry) -> str:
    """Return the outcome that a golden records, in a few words."""
    if golden.error is None:
        return str(golden.outcome)
    first = golden.error.message.partition("\n")[0]
    return f"{golden.outcome} {golden.error.type}: {first}"


def _compare_values(
    judged: JudgedJob, observation: Observation, golden: GoldenEntry | None
) -> Iterator[Text]:
    """Yield the differences of the value from golden and reference."""
    seen, case = observation.value, judged.job.case
    if seen is None:
        return
    if golden is not None and golden.value is not None:
        found = compare_values(seen, golden.value, Tolerance.of(case)).differences
        yield from _list_leaves("against the golden:", found)
    if isinstance(observation.reference, Value):
        budgets = case.select_platform(judged.job.planned.cell.platform).budgets
        found = compare_reference(
            seen, observation.reference, case.rtol, case.atol, budgets=budgets
        ).differences
        # Rounding within the tolerance is no evidence against the reference.
        beyond = [each for each in found if each.agreement is Agreement.BEYOND]
        yield from _list_leaves("against the reference:", beyond) or [
            make_line("against the reference: conforms")
        ]


def _list_leaves(title: str, found: Sequence[Difference]) -> list[Text]:
    lines = [
        make_line(
            f"{difference.message}; of all elements at most {difference.max_abs:.3g} absolute, "
            f"{difference.max_rel:.3g} relative"
            if difference.aspect == "numbers"
            else difference.message
        )
        for difference in found
    ]
    return make_section(title, limit_lines(lines, _LEAVES, "and {} more leaves"), "")


def _compare_irs(judged: JudgedJob, golden: GoldenEntry, blobs: BlobStore) -> Iterator[Text]:
    """Yield the differences of the IRs, pattern by pattern, with lines of an example."""
    for ir, record in judged.record.ir.items():
        policy, kind = judged.job.case.policy_of(ir), kind_of_artifact(ir)
        # IRs that only inform change with nearly every release, and would bury the others.
        if record.status is not IrStatus.CHANGED or policy is Policy.INFORM:
            continue
        # Cross-lowered StableHLO mostly changes with the StableHLO of the cell itself.
        own = judged.record.ir.get(kind)
        # The same change of two IRs of one kind is shown once.
        if own is not None and own is not record and own.changes == record.changes:
            yield make_line(f"{ir} ({policy}): as {kind}")
            continue
        try:
            seen = IrText(render_canonical(judged.record, blobs, ir), kind)
            changes = diff_texts(IrText(golden.ir[ir].text, kind), seen).changes
        except (IrSyntaxError, CorruptBlobError) as error:
            shown = [make_line(str(error), WARNING)]
        else:
            shown = []
            for change in changes[:_PATTERNS]:
                quoted = [make_line(f"- {text}", BEFORE) for text in change.before[:_QUOTED]]
                quoted += [make_line(f"+ {text}", AFTER) for text in change.after[:_QUOTED]]
                shown += indent_lines(make_line(change.line), quoted)
            left = len(changes) - _PATTERNS
            shown += [make_line(f"and {left} more patterns", QUIET)] if left > 0 else []
        yield from make_section(f"{ir} ({policy}):", shown, "")
