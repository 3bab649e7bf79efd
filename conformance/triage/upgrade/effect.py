"""Effects of changes on an upgrade: a case breaks, silently computes another value, ..."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.engine.runs.stored_job import load_value
from conformance.engine.runs.transitions import ENDING, FACTS, VALUE, VARIANTS, TransitionKind
from conformance.engine.workers.transcript import load_variants
from conformance.judge.ir import FACT, find_changed_facts
from conformance.judge.variants import SAME_AS, describe_variant
from conformance.model.outcome import Conformance, Outcome
from conformance.model.value import to_array, to_python
from conformance.search.equivalence import format_ending, shorten
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.engine.runs.transitions import Transition
    from conformance.judge.difference import Comparison, Difference
    from conformance.model.record import Record
    from conformance.model.value import Value


class Effect(StrEnum):
    """The effect of a change on a program, the gravest first."""

    BROKEN = "broken"
    """Worked before; now raises, crashes, or exceeds its time or memory, also in a variant."""
    WRONG = "wrong"
    """Was right, or raised; now silently computes a value that deviates from the reference."""
    VALUE = "value"
    """Silently computes another value, and no reference decides which is right."""
    FACTS = "facts"
    """Other collectives, placement, memory spaces, donation, dtypes or shardings."""
    LARGER = "larger"
    """More work or memory, by XLA's cost and memory analysis."""
    ENDING = "ending"
    """Fails, or conforms, as before, but with another error or message."""
    FIXED = "fixed"
    """Failed or was wrong; now works or is right."""
    UNCHANGED = "unchanged"
    """None of these; an IR may differ."""


BREAKING: Final = frozenset({Effect.BROKEN, Effect.WRONG, Effect.VALUE})
"""Effects for which an upgrade fails."""
SILENT: Final = frozenset({Effect.WRONG, Effect.VALUE})
"""Breaking effects that raise no error."""
COST_METRICS: Final = {
    "flops": "floating-point operations",
    "bytes": "bytes accessed",
    "temp_bytes": "bytes of temporary memory",
    "peak_bytes": "bytes of memory at the peak",
}
"""Descriptions of the metrics of XLA's cost and memory analyses, by fact."""
GROWN: Final = 1.1
"""Minimum factor of an increase."""
LEAST: Final = 1024
"""Minimum increase in bytes or operations: small programs have a fixed overhead that varies."""


_OTHERWISE: Final = {VALUE: Effect.VALUE, FACTS: Effect.FACTS, VARIANTS: Effect.ENDING}
"""Effects of a difference in a job that ends as before, neither better nor worse."""
_DECLARED: Final = re.compile(r"^(not as the )?deviation [^:]*: ")
"""The beginning of a reason that a deviation declares, whose issue is shown anyway."""
_OF_VARIANT: Final = f"{SAME_AS} "
"""Prefix of a reason about a variant."""
_FAILS: Final = re.compile(rf"{_OF_VARIANT}\w+: ({'|'.join(set(Outcome) - {Outcome.OK})})\b")
"""A reason about a variant that gives no value."""
CONTEXT: Final = 20
"""Characters of the common beginning that are shown before two texts differ."""


class ShownChange(NamedTuple):
    """The part of a change that is shown.

    Attributes:
        artifact: `format_ending`, `value`, `same_as`, or the name of a fact or metric.
        before: Text of the artifact before the change.
        after: Text of the artifact after the change.
    """

    artifact: str
    before: str
    after: str


def classify_change(change: Transition) -> Effect:
    """Return the effect of a change.

    Args:
        change: Two jobs of one case.
    """
    before, after = change.before.record, change.after.record
    # Fixed and regressed first: whether a case works outranks other differences.
    if change.kind is TransitionKind.FIXED:
        return Effect.FIXED
    if change.kind is TransitionKind.REGRESSED:
        ran = after.outcome is Outcome.OK and not _only_variants_fail(change)
        return Effect.WRONG if ran else Effect.BROKEN
    if ENDING in change.changed:
        return _classify_endings(before, after)
    # In order of gravity, since a job may differ in several ways.
    found = next((effect for name, effect in _OTHERWISE.items() if name in change.changed), None)
    return found or (Effect.LARGER if any(_find_grown(before, after)) else Effect.UNCHANGED)


def _only_variants_fail(change: Transition) -> bool:
    """Say whether only variants that worked before fail, and the program itself is right."""
    reasons = list(_list_reasons(change.after.record))
    if VARIANTS not in change.changed or not reasons or not reasons[0].startswith(_OF_VARIANT):
        return False  # errors of the program itself are the first reasons
    return all(_FAILS.match(text) for text in reasons if text.startswith(_OF_VARIANT))


def _classify_endings(before: Record, after: Record) -> Effect:
    """Return the effect of another outcome with the same conformance."""
    if after.conformance is Conformance.CONFORMS:
        return Effect.ENDING
    if after.outcome is not Outcome.OK:
        return Effect.BROKEN if before.outcome is Outcome.OK else Effect.ENDING
    return Effect.WRONG if after.conformance is Conformance.DEVIATES else Effect.FIXED


def show_change(change: Transition) -> ShownChange:
    """Return the gravest part of a change.

    Args:
        change: Two jobs of one case, of which something differs.
    """
    return next(_list_shown_changes(change))


def _list_shown_changes(change: Transition) -> Iterator[ShownChange]:
    before, after = change.before.record, change.after.record
    if ENDING in change.changed:
        yield ShownChange(ENDING, *contrast(describe_outcome(before), describe_outcome(after)))
    if VALUE in change.changed and change.value is not None:
        yield ShownChange(VALUE, *_contrast_values(change, change.value))
    if VARIANTS in change.changed:
        texts = _describe_variants(change.before), _describe_variants(change.after)
        if texts[0] != texts[1]:
            yield ShownChange(VARIANTS, *contrast(*texts))
    if before.conformance is not after.conformance and describe_outcome(before) != describe_outcome(
        after
    ):
        yield ShownChange(ENDING, *contrast(describe_outcome(before), describe_outcome(after)))
    for sentence in find_changed_facts(after.facts, before.facts):
        name = sentence.removeprefix(FACT).partition(":")[0].partition("[")[0]
        yield ShownChange(name, *_contrast_facts(before.facts[name], after.facts[name]))
    for name in _find_grown(before, after):
        yield ShownChange(name, str(int(before.facts[name])), str(int(after.facts[name])))
    if before.conformance is not after.conformance:
        yield ShownChange(VALUE, str(before.conformance), str(after.conformance))
    yield ShownChange("ir", ", ".join(change.changed), "")


def describe_outcome(record: Record) -> str:
    """Return the outcome of a job, with the reason if it ran and deviates.

    Args:
        record: The job.
    """
    if record.outcome is Outcome.OK and record.conformance is Conformance.DEVIATES:
        return f"ok, but {next(_list_reasons(record), 'wrong')}"
    return format_ending(record)


def _list_reasons(record: Record) -> Iterator[str]:
    """Yield the reasons of a deviation, without its description."""
    return (_DECLARED.sub("", reason) for reason in record.reasons)


def _describe_variants(side: StoredJob) -> str:
    """Return the variants that disagree with the program, and their differences.

    If the reasons are only about the program itself, the failures of its variants are read.
    """
    of_variants = [text for text in _list_reasons(side.record) if text.startswith(_OF_VARIANT)]
    texts = [text.removeprefix(_OF_VARIANT) for text in of_variants]
    if not texts:
        seen = load_variants(side.record.artifacts, side.blobs)
        failed = {name: v for name, v in seen.items() if v.was_run and v.value is None}
        texts = [f"{name}: {describe_variant(variant)}" for name, variant in failed.items()]
    return "; ".join(texts) or "agrees"


def contrast(before: str, after: str) -> tuple[str, str]:
    """Return two texts, each shortened to a line in which they differ.

    Args:
        before: Text before the change.
        after: Text after the change.
    """
    short = shorten(before), shorten(after)
    if short[0] != short[1]:
        return short
    # Both texts were shortened to the same beginning: show where they begin to differ.
    same = next(n for n, (a, b) in enumerate(zip_longest(before, after)) if a != b)
    start = max(0, before.rfind(" ", 0, max(0, same - CONTEXT)) + 1)
    # With the type of the error, since the excerpt begins in the middle of the message.
    head = before[: before.find(":") + 1]
    return shorten(f"{head} ... {before[start:]}"), shorten(f"{head} ... {after[start:]}")


def _contrast_values(change: Transition, compared: Comparison) -> tuple[str, str]:
    """Return the elements of both values that differ most."""
    worst = next(d for d in compared.differences if d.agreement is compared.agreement)
    old, new = (_format_value(load_value(side), worst) for side in (change.before, change.after))
    # Equal texts of different bits, e.g. two NaNs, have no place where they differ.
    return (old, new) if old == new else contrast(old, new)


def _format_value(value: Value, worst: Difference) -> str:
    """Return the part of a value that differs, in a few words."""
    leaf = next((leaf for leaf in value.leaves if leaf.path == worst.path), None)
    if leaf is None or worst.aspect == "structure":
        return shorten(f"{plural(len(value.leaves), 'leaf', 'leaves')}, {value.structure}")
    if worst.aspect == "numbers" and worst.size:
        return f"{worst.path}{list(worst.worst) or ''} = {to_array(leaf)[worst.worst]}"
    if worst.aspect == "numbers" and leaf.kind == "python":
        return f"{worst.path} = {to_python(leaf)!r}"
    texts = getattr(leaf, worst.aspect.replace(" ", "_"), "")
    return f"{worst.path} {worst.aspect} {texts or 'none'}"


def _contrast_facts(before: Any, after: Any) -> tuple[str, str]:
    """Return two facts as text, without equal parts."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [n for n in {**before, **after} if before.get(n, 0) != after.get(n, 0)]
        old_text, new_text = (
            shorten(", ".join(f"{n} {of.get(n, 0)}" for n in names)) for of in (before, after)
        )
        return old_text, new_text
    if isinstance(before, list) and isinstance(after, list):
        gone = [_format_item(item) for item in before if item not in after]
        new = [_format_item(item) for item in after if item not in before]
        return shorten(", ".join(gone) or "none"), shorten(", ".join(new) or "none")
    return shorten(str(before)), shorten(str(after))


def _format_item(item: Any) -> str:
    return " ".join(map(str, item.values())) if isinstance(item, dict) else str(item)


def _find_grown(before: Record, after: Record) -> Iterator[str]:
    """Yield the metrics that increased."""
    for name in COST_METRICS:
        old, new = before.facts.get(name), after.facts.get(name)
        if old is not None and new is not None and new > GROWN * old and new - old >= LEAST:
            yield name
