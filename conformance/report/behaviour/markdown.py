"""The history of JAX's behaviour as Markdown: a page for each family, and one for all releases."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from conformance.corpus.behaviour_changes import SOURCE_WORDS
from conformance.golden.spans import parse_version
from conformance.judge.values import compare_values
from conformance.model.upstream import find_thread_url
from conformance.model.value import CorruptValueError, to_array, to_python
from conformance.report.grouping import group_by
from conformance.report.ir_differences import compare_facts
from conformance.report.markup import fold, to_code, to_table, wrap
from conformance.report.text import flatten, join_names
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.runs.golden_history import GoldenChange
    from conformance.golden.contents import Content
    from conformance.model.case import Case
    from conformance.model.golden import RecordedError
    from conformance.model.value import Leaf, Value
    from conformance.report.behaviour.history import DeclaredChange, FamilyHistory, ReleaseChanges

SHOWN: Final = 3
"""Cases of a declared change that are shown with both sides."""
FUNCTIONS: Final = 6
"""Functions that are named of those that changed in the same way."""
FEW_LEAVES: Final = 3
"""Leaves of a value that are shown."""
FEW_NUMBERS: Final = 6
"""Elements of the largest array that is shown with its numbers."""
MOST: Final = 160
"""Characters of a message."""
CONTEXT: Final = 4
"""Words that are shown before the first word in which two messages differ."""
ROWS: Final = 3
"""Facts or differences that are shown."""
HEAD: Final = """\
Releases are in order of version; before means the next lower version, and a release without a
change has no heading. Made by `conformance report --goldens` from the goldens (recorded results) of
each release on CPU, with the packages current on its release date.

The check is `check_vma` of `jax.shard_map` (`check_rep` of `jax.experimental.shard_map`); a map is
a function under `shard_map`, unless the line names `vmap`, `pmap` or `lax.map`.

To see a change of a case in full, run `conformance run CASE --cell BEFORE --cell RELEASE`, then
`conformance diff BEFORE RELEASE CASE`. RELEASE is the heading above the change, BEFORE is the next
lower version, and the page of the family names CASE. To see whether the change affects your
program, run `conformance upgrade OLD NEW your_script.py`."""
"""Text at the top of a page."""
OBSERVATIONS: Final = """\
`out` is the value that a case returns. If it is `True` or `False`, see the docstring of the case
for what it checks."""
"""Text at the top of the page of a family, about the evidence on it."""
_INDEX: Final = re.compile(r"\[\d+\]$")


def render_behaviour_pages(
    histories: Sequence[FamilyHistory], dates: Mapping[str, str], root: Path
) -> Iterator[tuple[str, str]]:
    """Yield the pages, each with its file name; links are relative to a folder two below the root.

    Args:
        histories: The changes of all families.
        dates: Release date of each release.
        root: Folder of the project.
    """
    writer = _Writer(dates=dates, root=root)
    yield "README.md", writer.render_index(histories)
    for history in histories:
        yield f"{history.name}.md", writer.render_page(history)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Writes pages.

    Attributes:
        dates: Release date of each release.
        root: Folder of the project.
    """

    dates: Mapping[str, str]
    root: Path

    def render_index(self, histories: Sequence[FamilyHistory]) -> str:
        """Return the page of all families: declared changes by release."""
        declared = [
            (history.name, each.change) for history in histories for each in history.declared
        ]
        # Cases of several families show some changes, e.g. loops those of shard_map.
        alike = group_by(declared, key=lambda each: (each[1].shown_at, each[1].summary))
        count = f"{plural(len(alike), 'change')} of behaviour; the page of a family has its cases."
        parts = ["# What JAX changed", count, HEAD, "## Families", _render_families(histories)]
        by_release = group_by(alike.items(), key=lambda item: item[0][0])
        for release in sorted(by_release, key=parse_version, reverse=True):
            heading = self._render_heading(release)
            anchor = _make_anchor(heading)
            lines = [
                f"- {summary} ({', '.join(f'[{name}]({name}.md#{anchor})' for name, _ in same)})"
                for (_, summary), same in by_release[release]
            ]
            parts += [heading, "\n".join(lines)]
        return "\n\n".join(parts) + "\n"

    def render_page(self, history: FamilyHistory) -> str:
        """Return the page of one family."""
        about = f"{history.about} " if history.about else ""
        pairs = f" · [every pair]({history.name}_pairs.md)" if history.has_pairs else ""
        parts = [
            f"# {history.name}",
            wrap(f"{about}{plural(len(history.cases), 'case')}."),
            HEAD,
            OBSERVATIONS,
            f"[All families](README.md) · [the cases](../../cases/{history.name}){pairs}",
        ]
        for release in history.releases:
            parts += self._render_release(release)
        return "\n\n".join(parts) + "\n"

    def _render_release(self, changes: ReleaseChanges) -> Iterator[str]:
        yield self._render_heading(changes.release)
        if changes.declared:
            yield "\n".join(map(self._render_declared, changes.declared))
        if changes.undeclared:
            number = len({change.case.id for change in changes.undeclared})
            more = " more" if changes.declared else ""
            cases, differ = ("case", "differs") if number == 1 else ("cases", "differ")
            lines = "\n".join(self._render_undeclared(changes.undeclared))
            yield fold(f"{number}{more} {cases} {differ} from the release before", lines)

    def _render_declared(self, declared: DeclaredChange) -> str:
        change = declared.change
        url = find_thread_url(change.source)
        source = f"[{change.source}]({url})" if url else SOURCE_WORDS[change.source]
        lines = [f"- **{change.summary}** {source}"]
        lines += [
            f"  - {self._link_case(shown.case)}{_name_platform(shown)}: "
            f"{self._render_golden_change(shown)}"
            for shown in declared.evidence[:SHOWN]
        ]
        more = [self._link_case(shown.case) for shown in declared.evidence[SHOWN:]]
        lines += [f"  - the same in {', '.join(more)}"] if more else []
        lines += [f"  - advice: {change.advice}"] if change.advice else []
        if change.observed_in:
            lines.append(f"  - upstream says {change.release}: {change.why}")
        if origin := _describe_origin(change):
            lines.append(f"  - found by running: {origin}")
        return "\n".join(lines)

    def _render_undeclared(self, changes: Iterable[GoldenChange]) -> Iterator[str]:
        """Yield a line for each way in which cases changed, with all cases that did so."""
        for text, alike in group_by(changes, key=self._render_golden_change).items():
            yield f"- {self._join_functions(change.case for change in alike)}: {text}"

    def _join_functions(self, cases: Iterable[Case]) -> str:
        """Return the functions of cases, each with its parameters; of many only the first."""
        functions = []
        for link, members in group_by(cases, lambda case: self._link_case(case, case.name)).items():
            parameters = [case.id.partition("[")[2].removesuffix("]") for case in members]
            # A parametrised function has a parameter in each of its ids.
            named = f" ({', '.join(map(to_code, parameters))})" if all(parameters) else ""
            functions.append(f"{link}{named}")
        return join_names(functions, FUNCTIONS)

    def _link_case(self, case: Case, name: str = "") -> str:
        inside = case.file.is_relative_to(self.root)
        file = f"../../{case.file.relative_to(self.root).as_posix()}" if inside else str(case.file)
        return f"[{to_code(name or case.id.partition('/')[2])}]({file})"

    def _render_golden_change(self, change: GoldenChange) -> str:
        """Return a change, and its two releases if releases between them are not recorded."""
        start, end = parse_version(change.last), parse_version(change.release)
        gap = f" (nothing is recorded between {change.last} and {change.release})"
        # Without the note a reader would date the change to the later release, although any of
        # the releases in between may have made it.
        has_gap = any(start < parse_version(release) < end for release in self.dates)
        return f"{describe_golden_change(change)}{gap if has_gap else ''}"

    def _render_heading(self, release: str) -> str:
        date = self.dates.get(release)
        return f"## {release} ({date})" if date else f"## {release}"


def _render_families(histories: Iterable[FamilyHistory]) -> str:
    rows = [["family", "what it watches", "cases", "changes"]]
    for history in histories:
        counts = (str(len(history.cases)), str(len(history.declared)))
        rows.append([f"[{history.name}]({history.name}.md)", history.about, *counts])
    return to_table(rows)


def _name_platform(change: GoldenChange) -> str:
    return f" on {to_code(change.platform)}" if change.platform else ""


def _make_anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading: words and hyphens."""
    # Headings are releases with dates, already in lower case, so the case is not folded.
    return re.sub(r"[^\w -]", "", heading.removeprefix("## ")).replace(" ", "-")


def describe_golden_change(change: GoldenChange) -> str:
    """Return both sides of a golden change, as Markdown in one line.

    Args:
        change: The change.
    """
    if change.endings is not None:
        return _compare_endings(*change.endings)
    if change.facts is not None:
        rows = [row for row in compare_facts(*change.facts) if row.gates]
        return _join_codes(
            [f"{row.name} {row.before} → {row.after}" for row in rows] or ["other facts"]
        )
    ir, _, structure = change.shown_by.partition("-")
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
    message = flatten(error.message, MOST)
    text = f"{error.type}: {message}" if error.type and message else error.type or message
    verb = "raises" if error.outcome == "raised" else f"ends as {error.outcome}:"
    return f"{verb} {to_code(text, MOST)}" if text else verb.removesuffix(":")


def _compare_errors(before: RecordedError, after: RecordedError) -> str:
    """Return both errors, shortened to the words that differ if only the message does."""
    if (before.outcome, before.type) != (after.outcome, after.type):
        return f"{_describe_error(before)} → {_describe_error(after)}"
    # Shown from the beginning, two long messages would both be cut before they differ.
    sides = before.message.split(), after.message.split()
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False))
    start = max(0, sum(1 for _ in alike) - CONTEXT)
    dots = "... " if start else ""
    ends = (to_code(f"{dots}{' '.join(words[start:])}", MOST) for words in sides)
    return f"the {to_code(before.type)} says {' → '.join(ends)}"


def _describe_value(value: Value) -> str:
    leaves = ", ".join(f"{leaf.path} {_describe_leaf(leaf)}" for leaf in value.leaves[:FEW_LEAVES])
    more = len(value.leaves) - FEW_LEAVES
    return to_code(leaves or value.structure, MOST) + (f" and {more} more" if more > 0 else "")


def _describe_leaf(leaf: Leaf) -> str:
    try:
        if leaf.kind == "python":
            return repr(to_python(leaf))
        if _is_small(leaf):
            return f"{leaf.dtype} {to_array(leaf).tolist()}"
    except CorruptValueError:  # strings have no decoded form: the type is shown instead
        pass
    return f"{leaf.dtype}{list(leaf.shape)}"


def _is_small(leaf: Leaf) -> bool:
    return leaf.kind == "python" or math.prod(leaf.shape) <= FEW_NUMBERS


def _compare_values(before: Value, after: Value) -> str:
    if [leaf.path for leaf in before.leaves] != [leaf.path for leaf in after.leaves]:
        # Two lists of different lengths: their members are compared without their indices, else
        # a member that was inserted would make every later one seem to have changed.
        members = list(_compare_members(_count_members(before), _count_members(after)))
        return _join_codes(members or compare_values(after, before, word="before").messages)
    pairs = [pair for pair in zip(before.leaves, after.leaves, strict=True) if pair[0] != pair[1]]
    # A leaf of another kind, e.g. a text that became an array, has no numbers to compare.
    if pairs and all(
        old.kind != new.kind or (_is_small(old) and _is_small(new)) for old, new in pairs[:ROWS]
    ):
        return _join_codes(
            [f"{old.path} {_describe_leaf(old)} → {_describe_leaf(new)}" for old, new in pairs]
        )
    return _join_codes(compare_values(after, before, word="before").messages or ("another value",))


def _count_members(value: Value) -> Counter[tuple[str, str]]:
    """Return the leaves of a value by path and text; those of a list by the path of the list."""
    return Counter((_INDEX.sub("", leaf.path), _describe_leaf(leaf)) for leaf in value.leaves)


def _compare_members(
    before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]
) -> Iterator[str]:
    """Yield the leaves that changed, then those that were removed, then those that were added."""
    removed, added = list((before - after).elements()), list((after - before).elements())
    counts = Counter(path for path, _ in removed), Counter(path for path, _ in added)
    # With a single leaf on each side of a path, that leaf changed. With more, it is unknown which
    # leaf became which: they are listed as removed and added.
    single = {path for path in counts[0] if counts[0][path] == counts[1][path] == 1}
    new = dict(added)
    yield from (f"{path} {leaf} → {new[path]}" for path, leaf in removed if path in single)
    yield from (f"{path} no longer contains {leaf}" for path, leaf in removed if path not in single)
    yield from (f"{path} now contains {leaf}" for path, leaf in added if path not in single)


def _join_codes(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - ROWS} more" if len(texts) > ROWS else ""
    return "; ".join(to_code(text, MOST) for text in texts[:ROWS]) + more


def _describe_origin(change: BehaviourChange) -> str:
    """Return the commit or the package behind a change, and the layer, as far as known."""
    thread = change.culprit.replace("jax@", "jax-ml/jax@")
    url = find_thread_url(thread)
    parts = [f"[{thread}]({url})" if url else thread, change.layer]
    return ", ".join(filter(None, parts))
