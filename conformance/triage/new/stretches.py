"""From what releases show to what a case declares: stretches, ranges, deviations. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.search.bisection import change_points
from conformance.search.state import PointKind
from conformance.triage.repro.surroundings import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.search.state import PointState

PROPOSED: Final = "proposed from what was seen; say why"
_LONGEST: Final = 76
_SENTENCE: Final = 3
"""Words from which a sentence says enough."""
_END: Final = re.compile(r"\w{3,}\W?[.;]$")
"""The last word of a sentence."""
_WORDS: Final = re.compile(r"\S+")
_UNSTABLE: Final = re.compile(r"0x|^\W?/\w|\w/\w+/|\d{5,}|\.py\b")
"""Words that are others on another machine, or another day."""
_SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_EXPRESSIBLE: Final = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
_OF_JAX: Final = re.compile(r"\b(?:jax(?:\.[\w.]+)?|_xc|xla_client)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Releases one after the other that show the same.

    Attributes:
        first: Number of the first release.
        last: Number of the last one that was seen.
        after: Number of the first release seen after it that shows another thing; None at the end.
        state: What they show.
        records: What came of those that were tried.
        oldest: Whether nothing older shows another thing.
    """

    first: int
    last: int
    after: int | None
    state: PointState
    records: tuple[Record, ...]
    oldest: bool

    @property
    def outcome(self) -> Outcome:
        """How they end."""
        return self.records[0].outcome


def stretches(states: Mapping[int, PointState], records: Mapping[int, Record]) -> list[Stretch]:
    """Return the stretches of releases that show the same.

    Args:
        states: State of each release that was tried, by its number.
        records: What came of it.
    """
    known = [number for number in sorted(states) if states[number].is_known]
    edges = {change.after for change in change_points(states)}
    found: list[list[int]] = []
    for number in known:
        if not found or number in edges:
            found.append([])
        found[-1].append(number)
    afters = [*(group[0] for group in found[1:]), None]
    return [
        Stretch(
            first=group[0],
            last=group[-1],
            after=after,
            state=states[group[0]],
            records=tuple(records[number] for number in group),
            oldest=group is found[0],
        )
        for group, after in zip(found, afters, strict=True)
    ]


def range_of(stretch: Stretch, releases: Sequence[str]) -> str:
    """Return a stretch as a specifier, empty for every release.

    Args:
        stretch: It.
        releases: Every release, oldest first.
    """
    parts = [] if stretch.oldest else [f">={spelled(releases[stretch.first])}"]
    if stretch.after is not None:
        parts.append(f"<{spelled(releases[stretch.after])}")
    single = not stretch.oldest and stretch.after == stretch.first + 1
    return f"=={releases[stretch.first]}" if single else ",".join(parts)


def spelled(release: str) -> str:
    """Return a release as an edge of a range is spelled: `0.6` for `0.6.0`."""
    version = Version(release)
    parts = list(version.release)
    while len(parts) > 2 and parts[-1] == 0:  # noqa: PLR2004 - major and minor
        parts.pop()
    return ".".join(map(str, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a case may declare of what was seen.

    Attributes:
        deviations: Each as it is written in a decorator.
        releases: Specifier of the releases it can be expressed on, empty for all.
        why: Why not on the others, empty where it is on all.
    """

    deviations: tuple[str, ...] = ()
    releases: str = ""
    why: str = ""


def proposed(found: Sequence[Stretch], releases: Sequence[str], issue: str = "") -> Proposal:
    """Return what a case may declare.

    Args:
        found: The stretches, oldest first.
        releases: Every release, oldest first.
        issue: Upstream thread.
    """
    rest = list(found)
    parts: list[str] = []
    why: list[str] = []
    if len(rest) > 1 and _is_absent(rest[0]):
        older = rest.pop(0)
        assert older.after is not None  # noqa: S101 - there is another stretch
        parts.append(f">={spelled(releases[older.after])}")
        why.append(_said(older))
    if len(rest) > 1 and rest[-1].outcome is Outcome.UNSUPPORTED:
        newer = rest.pop()
        parts.append(f"<{spelled(releases[newer.first])}")
        why.append(_said(newer))
    bad = [one for one in rest if one.state.kind is not PointKind.GOOD]
    ranges = [_within(range_of(one, releases), parts) for one in bad]
    declared = (
        _deviation(one, where, issue)
        for one, where in zip(bad, ranges, strict=True)
        if one.outcome is not Outcome.UNSUPPORTED
    )
    return Proposal(deviations=tuple(declared), releases=",".join(parts), why="; ".join(why))


def _within(where: str, parts: Iterable[str]) -> str:
    """Return a range without the edge that the case's own range has already."""
    return ",".join(part for part in where.split(",") if part not in set(parts))


def _is_absent(stretch: Stretch) -> bool:
    """Say whether releases do not have what a script uses yet."""
    if stretch.outcome is Outcome.UNSUPPORTED:
        return True
    error = stretch.records[-1].error
    return (
        stretch.outcome is Outcome.RAISED
        and error is not None
        and error.type in _EXPRESSIBLE
        and _OF_JAX.search(error.message) is not None
    )


def _said(stretch: Stretch) -> str:
    error = stretch.records[-1].error
    return "" if error is None else " ".join(error.message.split())[:_LONGEST]


def _deviation(stretch: Stretch, where: str, issue: str) -> str:
    """Return a deviation as it is written in a decorator."""
    given = [quoted(f"jax{where}")] if where else []
    if stretch.outcome is not Outcome.RAISED:
        given.append(f"outcome={quoted(str(stretch.outcome))}")
    else:
        errors = [record.error for record in stretch.records if record.error is not None]
        types = "|".join(dict.fromkeys(error.type for error in errors))
        given.append(f"error={quoted(types)}")
        if match := pattern([error.message for error in errors]):
            given.append(f"match={_raw(match)}")
    given.append(f"reason={quoted(PROPOSED)}")
    if issue:
        given.append(f"issue={quoted(issue)}")
    inner = "".join(f"            {one},\n" for one in given)
    return f"deviation(\n{inner}        )"


def _raw(expression: str) -> str:
    """Return a regular expression as a text in which backslashes stand for themselves."""
    plain = "\\" not in expression or '"' in expression or expression.endswith("\\")
    return quoted(expression) if plain else f'r"{expression}"'


def pattern(messages: Sequence[str]) -> str:
    """Return a regular expression for what messages have in common, empty for nothing that lasts.

    Args:
        messages: Messages of one failure.
    """
    firsts = [_WORDS.findall(message.strip().partition("\n")[0]) for message in messages]
    common = firsts[0]
    for words in firsts[1:]:
        match = SequenceMatcher(None, common, words, autojunk=False).find_longest_match()
        common = common[match.a : match.a + match.size]
    best: list[str] = []
    for stable, group in groupby(common, key=lambda word: not _UNSTABLE.search(word)):
        run = list(group)
        if stable and len(" ".join(run)) > len(" ".join(best)):
            best = run
    ends = [number for number, word in enumerate(best, 1) if _END.search(word)]
    best = best[: next((number for number in ends if number >= _SENTENCE), len(best))]
    while len(_escaped(best)) > _LONGEST:
        best.pop()
    found = _escaped(best)
    return found if all(re.search(found, message) for message in messages) else ""


def _escaped(words: Sequence[str]) -> str:
    return _SPECIAL.sub(lambda sign: "\\" + sign[0], " ".join(words).rstrip(".;:,"))
