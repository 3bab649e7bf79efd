"""What an inquiry about passes found, in words and as data. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.triage.passes.prober import DISABLED
from conformance.triage.passes.search import Answer
from conformance.triage.questions.predicate import ending, quoted
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.ir.change import IrDiff
    from conformance.triage.passes.inquiry import Answers, Step

LISTS_SINCE: Final = Version("0.6.0")
"""Release of jax from which a compiler option may be a list."""
PATTERNS: Final = 6
"""Patterns that are shown of how the HLO changes."""
NAMED: Final = 8
"""Passes that are named of many."""
SAID: Final = {
    Answer.FLIPS: "flips",
    Answer.STAYS: "stays",
    Answer.UNKNOWN: "unknown",
}


def step_line(step: Step) -> str:
    """Return a trial in a line, e.g. `flips    0.07 s  without 12 passes: algsimp ... dce`."""
    how = " (again)" if step.again else ""
    tried = f"{step.name}={step.value}" if step.name else _without(step.disabled)
    failed = step.side.record.outcome is not Outcome.OK
    said = f": {quoted(ending(step.side.record))[:100]}" if failed else ""
    return f"{SAID[step.answer]:<8} {step.seconds:5.2f} s  {tried}{how}{said}"


def _without(disabled: Sequence[str]) -> str:
    if not disabled:
        return "as it is"
    if len(disabled) <= 2:  # noqa: PLR2004 - what fits into a line
        return f"without {', '.join(disabled)}"
    return f"without {plural(len(disabled), 'pass', 'passes')}: {disabled[0]} ... {disabled[-1]}"


def answer_lines(answers: Answers) -> Iterator[str]:
    """Yield what was found, the answer first; lines of any length.

    Args:
        answers: It.
    """
    yield f"the program {answers.predicate.about}"
    if not answers.compiled:
        stage = answers.bad.record.stage
        yield f"it ends at {stage}, before any pass is run: only options of jax were tried"
    yield from _about_passes(answers)
    yield from _about_settings(answers)
    yield from _sure(answers)
    if answers.found.culprits and answers.changes is not None:
        what = "it" if len(answers.found.culprits) == 1 else "them"
        yield f"without {what} the optimised HLO changes:"
        yield from _patterns(answers.changes)
    spent = sum(step.seconds for step in answers.steps)
    processes = _counted(answers.lost, "process", "processes")
    lost = f"; {processes} ended on the way, and another went on" if answers.lost else ""
    yield f"{plural(len(answers.steps), 'probe')}, {spent:.1f} s in them{lost}"


def _about_passes(answers: Answers) -> Iterator[str]:
    if not answers.compiled:
        return
    found, count = answers.found, len(answers.found.passes)
    probes = sum(step.what == "pass" and not step.again for step in answers.steps)
    of = f"of {_counted(count, 'pass that changes', 'passes that change')} it, "
    of += _counted(probes, "probe", "probes")
    if len(found.culprits) == 1:
        yield f"it does not with one pass disabled: {found.culprits[0]} ({of})"
    elif found.culprits:
        named = ", ".join(found.culprits)
        passes = plural(len(found.culprits), "pass", "passes")
        yield f"it does not with {passes} disabled, all of them: {named} ({of})"
    elif not count:
        yield "XLA named no pass that changes it"
    else:
        able = len(found.disabled)
        yield (
            f"no pass does it, alone or together ({of}): disabling all {able} that may be "
            "disabled does not change it, nor does any of them alone or in groups"
        )
    if found.needed:
        needed = _counted(len(found.needed), "pass", "passes")
        yield f"{needed} cannot be disabled with the others: {_few(found.needed)}"


def _about_settings(answers: Answers) -> Iterator[str]:
    for step in answers.flips:
        what = "the XLA flag" if step.what == "flag" else "the option of jax"
        yield f"it does not with {what} {step.name}={_python(step.value)}"
    if not answers.flags and not answers.config:
        return
    tried = (
        _counted(len({step.name for step in answers.flags}), "XLA flag", "XLA flags"),
        _counted(len(answers.config), "option of jax", "options of jax"),
    )
    more = "no other makes" if answers.flips else "none makes"
    unknown = len(answers.unknown_flags)
    left = (
        f", without {_counted(unknown, 'flag', 'flags')} that it does not know" if unknown else ""
    )
    yield f"tried alone: {' and '.join(tried)}{left}; {more} that difference"


def _sure(answers: Answers) -> Iterator[str]:
    if answers.confirmed:
        yield "confirmed: all of it did the same once more, in a new process"
    for line in answers.flaky:
        yield f"flaky: {line}"


def _patterns(changes: IrDiff) -> Iterator[str]:
    if not changes.changes:
        yield "  not at all, in structure"
    for change in changes.changes[:PATTERNS]:
        yield f"  {change.line}"
    if len(changes.changes) > PATTERNS:
        yield f"  and {len(changes.changes) - PATTERNS} more patterns"


def lines_to_paste(answers: Answers, release: str) -> Iterator[str]:
    """Yield lines of code that make the program do what is looked for.

    Args:
        answers: What was found.
        release: The jax release of the cell.
    """
    culprits = ",".join(answers.found.culprits)
    if culprits:
        if Version(release) >= LISTS_SINCE:
            yield f'jax.jit(f, compiler_options={{"{DISABLED}": "{culprits}"}})'
        yield f"XLA_FLAGS=--{DISABLED}={culprits}"
    for step in answers.flips:
        if step.what == "flag":
            yield f'jax.jit(f, compiler_options={{"{step.name}": {_python(step.value)}}})'
        else:
            yield f'jax.config.update("{step.name}", {_python(step.value)})'


def _python(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def answer_json(answers: Answers, *, target: str, cell: str, good_cell: str) -> dict[str, Any]:
    """Return what was found as plain data.

    Args:
        answers: It.
        target: What was asked about.
        cell: Where it is as it is.
        good_cell: The cell it was compared with; empty for none.
    """
    changes = answers.changes
    return {
        "target": target,
        "cell": cell,
        "good_cell": good_cell,
        "predicate": {"name": answers.predicate.name, "about": answers.predicate.about},
        "passes": list(answers.found.passes),
        "culprits": list(answers.found.culprits),
        "needed": list(answers.found.needed),
        "flags": [_setting(step) for step in answers.flags],
        "unknown_flags": answers.unknown_flags,
        "config": [_setting(step) for step in answers.config],
        "changes": [change.line for change in changes.changes] if changes else [],
        "steps": [_step(step) for step in answers.steps],
        "flaky": answers.flaky,
        "confirmed": answers.confirmed,
    }


def _setting(step: Step) -> dict[str, Any]:
    return {"name": step.name, "value": step.value, "verdict": str(step.answer)}


def _step(step: Step) -> dict[str, Any]:
    return {
        "what": step.what,
        "disabled": list(step.disabled),
        "set": {step.name: step.value} if step.name else {},
        "outcome": str(step.side.record.outcome),
        "ending": ending(step.side.record),
        "verdict": str(step.answer),
        "seconds": round(step.seconds, 4),
        "again": step.again,
    }
