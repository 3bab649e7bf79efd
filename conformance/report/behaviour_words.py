"""A change of what is recorded, in words: what was before, what is since."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from conformance.judge.values import compare_values
from conformance.model.codec import CorruptValueError, to_array, to_python
from conformance.report.ir_facts import compare_facts
from conformance.report.markup import code
from conformance.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.engine.golden_history import GoldenChange
    from conformance.golden.contents import Content
    from conformance.model.golden import RecordedError
    from conformance.model.value import Leaf, Value

FEW_LEAVES: Final = 3
"""Leaves of a value that are told one by one."""
FEW_NUMBERS: Final = 6
"""Elements of an array that are told one by one."""
MOST: Final = 160
"""Characters of a message."""
CONTEXT: Final = 4
"""Words that are told before those in which two messages differ."""
ROWS: Final = 3
"""Facts or differences that are told."""
_INDEX: Final = re.compile(r"\[\d+\]$")


def before_and_since(turned: GoldenChange) -> str:
    """Return what a case showed before a release, and what since, as Markdown in one line.

    Args:
        turned: What changed.
    """
    if turned.endings is not None:
        return _compare_endings(*turned.endings)
    if turned.facts is not None:
        return _compare_fact_rows(*turned.facts)
    ir, _, structure = turned.shown_by.partition("-")
    return f"another {ir}{' (in its structure alone)' if structure else ''}"


def _compare_endings(before: Content, after: Content) -> str:
    if before.value is not None and after.value is not None:
        return _compare_values(before.value, after.value)
    if before.error is not None and after.error is not None:
        return _compare_errors(before.error, after.error)
    return f"{_describe_ending(before)} → {_describe_ending(after)}"


def _describe_ending(content: Content) -> str:
    if content.error is not None:
        return _describe_error(content.error)
    return "works" if content.value is None else f"gives {_describe_value(content.value)}"


def _describe_error(error: RecordedError) -> str:
    said = one_line(error.message, MOST)
    kind = f"{error.type}: {said}" if error.type and said else error.type or said
    verb = "raises" if error.outcome == "raised" else f"ends as {error.outcome}:"
    return f"{verb} {code(kind, MOST)}" if kind else verb.removesuffix(":")


def _compare_errors(before: RecordedError, after: RecordedError) -> str:
    """Return both errors, from the words on in which they differ where only the message does."""
    if (before.outcome, before.type) != (after.outcome, after.type):
        return f"{_describe_error(before)} → {_describe_error(after)}"
    one, other = before.message.split(), after.message.split()
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(0, sum(1 for _ in alike) - CONTEXT)
    dots = "... " if start else ""
    said = (code(f"{dots}{' '.join(words[start:])}", MOST) for words in (one, other))
    return f"the {code(before.type)} says {' → '.join(said)}"


def _describe_value(value: Value) -> str:
    told = ", ".join(f"{leaf.path} {_describe_leaf(leaf)}" for leaf in value.leaves[:FEW_LEAVES])
    more = len(value.leaves) - FEW_LEAVES
    return code(told or value.structure, MOST) + (f" and {more} more" if more > 0 else "")


def _describe_leaf(leaf: Leaf) -> str:
    try:
        if leaf.kind == "python":
            return repr(to_python(leaf))
        if math.prod(leaf.shape) <= FEW_NUMBERS:
            return f"{leaf.dtype} {to_array(leaf).tolist()}"
    except CorruptValueError:  # text and the like, which is told by its type
        pass
    return f"{leaf.dtype}{list(leaf.shape)}"


def _compare_values(before: Value, after: Value) -> str:
    if [leaf.path for leaf in before.leaves] != [leaf.path for leaf in after.leaves]:
        said = list(_other_members(_members(before), _members(after)))
        return _join(said or compare_values(after, before, word="before").messages)
    other = [pair for pair in zip(before.leaves, after.leaves, strict=True) if pair[0] != pair[1]]
    if other and all(_is_small(leaf) for pair in other[:ROWS] for leaf in pair):
        return _join(
            [f"{one.path} {_describe_leaf(one)} → {_describe_leaf(two)}" for one, two in other]
        )
    return _join(compare_values(after, before, word="before").messages or ("another value",))


def _members(value: Value) -> Counter[tuple[str, str]]:
    """Return the leaves of a value, each with its path, that of a list where it is in one."""
    return Counter((_INDEX.sub("", leaf.path), _describe_leaf(leaf)) for leaf in value.leaves)


def _other_members(
    before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Yield what became something else, then what is there no more, and what is new."""
    gone, new = list((before - after).elements()), list((after - before).elements())
    paths = Counter(path for path, _ in gone), Counter(path for path, _ in new)
    single = {path for path in paths[0] if paths[0][path] == paths[1][path] == 1}
    since = dict(new)
    yield from (f"{path} {leaf} → {since[path]}" for path, leaf in gone if path in single)
    yield from (f"{path} without {leaf}" for path, leaf in gone if path not in single)
    yield from (f"{path} with {leaf}" for path, leaf in new if path not in single)


def _is_small(leaf: Leaf) -> bool:
    return leaf.kind == "python" or math.prod(leaf.shape) <= FEW_NUMBERS


def _compare_fact_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    rows = [row for row in compare_facts(before, after) if row.gates]
    return _join([f"{row.name} {row.before} → {row.after}" for row in rows] or ["other facts"])


def _join(said: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(said) - ROWS} more" if len(said) > ROWS else ""
    return "; ".join(code(one, MOST) for one in said[:ROWS]) + more
