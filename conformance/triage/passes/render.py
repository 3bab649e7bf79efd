"""The answer of a pass bisection in words, as JSON, and as code to paste. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.search.answers import (
    FLAKY,
    count_verdicts,
    describe_origin,
    format_seconds,
    format_some,
    make_predicate_json,
    render_flaky,
)
from conformance.search.equivalence import format_ending
from conformance.search.predicates import PointKind
from conformance.triage.passes.settings import CONFIG, DISABLED, FLAG, PASS
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.ir.change import IrDiff
    from conformance.search.answers import SearchStep
    from conformance.search.predicates import PointState
    from conformance.triage.passes.pass_bisection import PassAnswer
    from conformance.triage.passes.settings import Setting

LISTS_SINCE: Final = Version("0.6.0")
"""Release of jax from which a compiler option may be a list."""
PATTERNS: Final = 6
"""Patterns of HLO changes that are shown."""
LISTED: Final = 2
"""Disabled passes that fit in the line of a step."""
NAMED: Final = 8
"""Maximum number of passes in a line."""
_VERDICTS: Final = {PointKind.GOOD: "flips", PointKind.BAD: "stays"}


def _format_verdict(state: PointState | None) -> str:
    return "unknown" if state is None else _VERDICTS.get(state.kind, "unknown")


def format_step(step: SearchStep[Setting]) -> str:
    """Return a step in a line, e.g. `flips    0.07 s  without 12 passes: algsimp ... dce`."""
    setting = step.point
    tried = (
        f"{setting.name}={setting.value}" if setting.name else _format_disabled(setting.disabled)
    )
    failed = step.samples[0].outcome is not Outcome.OK
    remark = describe_origin(step) + (f": {step.summary[:100]}" if failed else "")
    return f"{_format_verdict(step.state):<8} {step.seconds:5.2f} s  {tried}{remark}"


def _format_disabled(disabled: Sequence[str]) -> str:
    if not disabled:
        return "unchanged"
    if len(disabled) <= LISTED:
        return f"without {', '.join(disabled)}"
    return f"without {plural(len(disabled), 'pass', 'passes')}: {disabled[0]} ... {disabled[-1]}"


def render_answer(answer: PassAnswer) -> Iterator[str]:
    """Yield the lines of an answer, the culprits first; lines of any length."""
    yield f"the program {answer.predicate.about}"
    if answer.is_compiled:
        yield from _render_passes(answer)
    else:
        stage = answer.bad.record.stage
        yield f"it ends at {stage}, before any pass is run: only options of jax were tried"
    yield from _render_settings(answer)
    if answer.is_confirmed:
        yield "confirmed: all of it did the same once more, in a new process"
    yield from _list_flaky(answer)
    if answer.culprits and answer.changes is not None:
        passes = "it" if len(answer.culprits) == 1 else "them"
        yield f"without {passes} the optimised HLO changes:"
        yield from _render_patterns(answer.changes)
    # A lost process is no error, but explains a long search.
    processes = plural(answer.lost, "process", "processes")
    lost = f"; {processes} ended on the way, and another went on" if answer.lost else ""
    yield f"{plural(len(answer.steps), 'trial')}, {format_seconds(answer.steps)}{lost}"


def _render_passes(answer: PassAnswer) -> Iterator[str]:
    count = len(answer.passes)
    trials = plural(len(answer.select_steps(PASS)), "trial")
    of = f"of {plural(count, 'pass that changes', 'passes that change')} it, {trials}"
    named = ", ".join(answer.culprits)
    if len(answer.culprits) == 1:
        yield f"it does not with one pass disabled: {named} ({of})"
    elif answer.culprits:
        passes = plural(len(answer.culprits), "pass", "passes")
        yield f"it does not with {passes} disabled, all of them: {named} ({of})"
    elif not count:
        yield "XLA named no pass that changes it"
    else:
        yield (
            f"no pass does it, alone or together ({of}): disabling all {len(answer.together)} that "
            "may be disabled does not change it, nor does any of them alone or in groups"
        )
    if answer.refused:
        refused = plural(len(answer.refused), "pass", "passes")
        named = format_some(answer.refused, NAMED)
        yield f"{refused} cannot be disabled with the others: {named}"


def _render_settings(answer: PassAnswer) -> Iterator[str]:
    for step in answer.settings:
        kind = "the XLA flag" if step.point.kind == FLAG else "the option of jax"
        yield f"it does not with {kind} {step.point.name}={_format_python(step.point.value)}"
    options = answer.select_steps(CONFIG)
    if not answer.flags and not options:
        return
    flags = plural(len({step.point.name for step in answer.flags}), "XLA flag")
    more = "no other makes" if answer.settings else "none makes"
    unknown = plural(len(answer.unknown_flags), "flag")
    left = f", without {unknown} that it does not know" if answer.unknown_flags else ""
    tried = f"{flags} and {plural(len(options), 'option of jax', 'options of jax')}"
    yield f"tried alone: {tried}{left}; {more} that difference"


def _list_flaky(answer: PassAnswer) -> list[str]:
    """Return a line for each setting whose trials disagree."""
    return [
        render_flaky(f"the program, {setting},", count_verdicts(seen, _format_verdict))
        for setting, seen in answer.flaky.items()
    ]


def _render_patterns(changes: IrDiff) -> Iterator[str]:
    if not changes.changes:
        yield "  not at all, in structure"
    for change in changes.changes[:PATTERNS]:
        yield f"  {change.line}"
    if len(changes.changes) > PATTERNS:
        yield f"  and {len(changes.changes) - PATTERNS} more patterns"


def render_paste(answer: PassAnswer, release: str) -> Iterator[str]:
    """Yield lines of code with which the program becomes good.

    Args:
        answer: The answer.
        release: The jax release of the cell.
    """
    if answer.culprits:
        culprits = ",".join(answer.culprits)
        # Before, a list of passes works as a flag only.
        if Version(release) >= LISTS_SINCE:
            yield f'jax.jit(f, compiler_options={{"{DISABLED}": "{culprits}"}})'
        yield f"XLA_FLAGS=--{DISABLED}={culprits}"
    for step in answer.settings:
        name, value = step.point.name, _format_python(step.point.value)
        if step.point.kind == FLAG:
            yield f'jax.jit(f, compiler_options={{"{name}": {value}}})'
        else:
            yield f'jax.config.update("{name}", {value})'


def _format_python(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def make_answer_json(
    answer: PassAnswer, *, target: str, cell: str, good_cell: str
) -> dict[str, Any]:
    """Return an answer as `--json` has it.

    Args:
        answer: The answer.
        target: The name of the target.
        cell: Cell in which the target is bad.
        good_cell: Cell for comparison; empty for none.
    """
    changes = answer.changes
    return {
        "target": target,
        "cell": cell,
        "good_cell": good_cell,
        "predicate": make_predicate_json(answer),
        "passes": list(answer.passes),
        "culprits": list(answer.culprits),
        "needed": list(answer.refused),
        "flags": [_make_setting_json(step) for step in answer.flags],
        "unknown_flags": answer.unknown_flags,
        "config": [_make_setting_json(step) for step in answer.select_steps(CONFIG)],
        "changes": [change.line for change in changes.changes] if changes else [],
        "steps": [_make_step_json(step) for step in answer.steps],
        "flaky": [line.removeprefix(FLAKY) for line in _list_flaky(answer)],
        "confirmed": answer.is_confirmed,
    }


def _make_setting_json(step: SearchStep[Setting]) -> dict[str, Any]:
    return {
        "name": step.point.name, "value": step.point.value, "verdict": _format_verdict(step.state)
    }  # fmt: skip


def _make_step_json(step: SearchStep[Setting]) -> dict[str, Any]:
    setting, (record,) = step.point, step.samples
    return {
        "what": setting.kind,
        "disabled": list(setting.disabled),
        "set": {setting.name: setting.value} if setting.name else {},
        "outcome": str(record.outcome),
        "ending": format_ending(record),
        "verdict": _format_verdict(step.state),
        "seconds": round(step.seconds, 4),
        "again": step.again,
    }
