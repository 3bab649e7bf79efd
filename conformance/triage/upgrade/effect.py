"""The effect of a change on an upgrade: it breaks, silently computes another value, ..."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.engine.stored_job import load_value
from conformance.engine.transcript import load_variants
from conformance.engine.transitions import ENDING, FACTS, VALUE, VARIANTS, TransitionKind
from conformance.judge.ir import FACT, find_changed_facts
from conformance.judge.variants import SAME_AS, describe_variant
from conformance.model.outcome import Conformance, Outcome
from conformance.model.value import to_array, to_python
from conformance.search.equivalence import format_ending, shorten
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.stored_job import StoredJob
    from conformance.engine.transitions import Transition
    from conformance.judge.values import Comparison, Difference
    from conformance.model.record import Record
    from conformance.model.value import Value


class Effect(StrEnum):
    """The effect of a change on a program, the gravest first."""

    BROKEN = "broken"
    """It worked, and raises, crashes, takes too long or too much memory; or does in another way."""
    WRONG = "wrong"
    """It was right, or raised, and silently computes something wrong by its own reference."""
    VALUE = "value"
    """It silently computes something else, and no reference decides which is right."""
    FACTS = "facts"
    """Other collectives, placement, memory spaces, donation, dtypes or shardings."""
    LARGER = "larger"
    """More work or memory, by XLA's cost and memory analysis."""
    ENDING = "ending"
    """It fails, or conforms, as before, but ends with another error or message."""
    FIXED = "fixed"
    """It failed or was wrong, and works or is right."""
    UNCHANGED = "unchanged"
    """None of this; an IR may differ."""


BREAKING: Final = frozenset({Effect.BROKEN, Effect.WRONG, Effect.VALUE})
"""Effects for which an upgrade fails."""
SILENT: Final = frozenset({Effect.WRONG, Effect.VALUE})
"""Those of them that raise no error."""
COST_METRICS: Final = {
    "flops": "floating-point operations",
    "bytes": "bytes accessed",
    "temp_bytes": "bytes of temporary memory",
    "peak_bytes": "bytes of memory at the peak",
}
"""Figures of the cost and memory analyses of XLA, by fact."""
GROWN: Final = 1.1
"""How many times as much counts as more."""
LEAST: Final = 1024
"""Least increase in bytes or operations: small programs have a fixed overhead that varies."""


_OTHERWISE: Final = {VALUE: Effect.VALUE, FACTS: Effect.FACTS, VARIANTS: Effect.ENDING}
"""Effects of a difference in a job that ends as before, neither better nor worse."""
_DECLARED: Final = re.compile(r"^(not as the )?deviation [^:]*: ")
"""The beginning of a reason that a deviation declares, whose issue is shown anyway."""
_OF_WAY: Final = f"{SAME_AS} "
"""How a reason begins that is about another way."""
_FAILS: Final = re.compile(rf"{_OF_WAY}\w+: ({'|'.join(set(Outcome) - {Outcome.OK})})\b")
"""A reason that reports that another way gives no value."""
CONTEXT: Final = 20
"""Characters of the common beginning that are shown before two texts differ."""


class ShownChange(NamedTuple):
    """The part of a change that is shown.

    Attributes:
        artifact: `format_ending`, `value`, `same_as`, the name of a fact or of a figure.
        before: Its text before.
        after: Its text after.
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
    if change.kind is TransitionKind.FIXED:
        return Effect.FIXED
    if change.kind is TransitionKind.REGRESSED:
        ran = after.outcome is Outcome.OK and not _only_ways_fail(change)
        return Effect.WRONG if ran else Effect.BROKEN
    if ENDING in change.changed:
        return _classify_endings(before, after)
    found = next((effect for name, effect in _OTHERWISE.items() if name in change.changed), None)
    return found or (Effect.LARGER if any(_find_grown(before, after)) else Effect.UNCHANGED)


def _only_ways_fail(change: Transition) -> bool:
    """Say whether nothing is wrong but that other ways, in which it worked, give nothing."""
    reasons = list(_list_reasons(change.after.record))
    if VARIANTS not in change.changed or not reasons or not reasons[0].startswith(_OF_WAY):
        return False  # errors of the program itself are the first reasons
    return all(_FAILS.match(text) for text in reasons if text.startswith(_OF_WAY))


def _classify_endings(before: Record, after: Record) -> Effect:
    """Return the effect of another ending, where conformance is the same as before."""
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
        ways = _describe_ways(change.before), _describe_ways(change.after)
        if ways[0] != ways[1]:
            yield ShownChange(VARIANTS, *contrast(*ways))
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
    """Return how a job ended, with the reason if it ran and deviates.

    Args:
        record: The job.
    """
    if record.outcome is Outcome.OK and record.conformance is Conformance.DEVIATES:
        return f"ok, but {next(_list_reasons(record), 'wrong')}"
    return format_ending(record)


def _list_reasons(record: Record) -> Iterator[str]:
    """Yield why a job deviates."""
    return (_DECLARED.sub("", reason) for reason in record.reasons)


def _describe_ways(side: StoredJob) -> str:
    """Return in which other ways a program disagrees with itself, and how.

    The reasons may only be about the program itself; then the failures of its ways are read.
    """
    of_ways = [text for text in _list_reasons(side.record) if text.startswith(_OF_WAY)]
    texts = [text.removeprefix(_OF_WAY) for text in of_ways]
    if not texts:
        seen = load_variants(side.record.artifacts, side.blobs)
        failed = {name: v for name, v in seen.items() if v.was_run and v.value is None}
        texts = [f"{name}: {describe_variant(variant)}" for name, variant in failed.items()]
    return "; ".join(texts) or "agrees"


def contrast(before: str, after: str) -> tuple[str, str]:
    """Return two texts, each in one short line in which they differ.

    Args:
        before: The one.
        after: The other.
    """
    short = shorten(before), shorten(after)
    if short[0] != short[1]:
        return short
    # Both texts were shortened to the same beginning: show where they begin to differ.
    same = next(n for n, (a, b) in enumerate(zip_longest(before, after)) if a != b)
    start = max(0, before.rfind(" ", 0, max(0, same - CONTEXT)) + 1)
    head = before[: before.find(":") + 1]
    return shorten(f"{head} ... {before[start:]}"), shorten(f"{head} ... {after[start:]}")


def _contrast_values(change: Transition, compared: Comparison) -> tuple[str, str]:
    """Return the values, where they differ most."""
    worst = next(d for d in compared.differences if d.agreement is compared.agreement)
    old, new = (_format_value(load_value(side), worst) for side in (change.before, change.after))
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
    """Yield the figures of which there is more."""
    for name in COST_METRICS:
        old, new = before.facts.get(name), after.facts.get(name)
        if old is not None and new is not None and new > GROWN * old and new - old >= LEAST:
            yield name
