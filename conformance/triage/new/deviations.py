"""The releases on which a case deviates, and the declarations that it may have of that. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.model.outcome import Outcome
from conformance.search.bisection import change_points
from conformance.search.predicates import PointKind
from conformance.triage.repro.layout import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.model.record import Record
    from conformance.search.predicates import PointState

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
        numbers: Numbers of the releases that were tried.
        state: Their state.
        records: Their records.
        since: The first release, as the edge of a range.
        range: The stretch as a specifier, empty for every release.
    """

    numbers: Sequence[int]
    state: PointState
    records: Sequence[Record]
    since: str
    range: str

    @property
    def outcome(self) -> Outcome:
        """How they end."""
        return self.records[0].outcome

    @property
    def is_good(self) -> bool:
        """Whether they do what the case should do."""
        return self.state.kind is PointKind.GOOD


def find_stretches(
    states: Mapping[int, PointState], records: Mapping[int, Record], releases: Sequence[str]
) -> list[Stretch]:
    """Return the stretches of releases that show the same.

    Args:
        states: State of each release that was tried, by its number.
        records: The records of those.
        releases: Every release, oldest first.
    """
    edges = {change.after for change in change_points(states)}
    groups: list[list[int]] = []
    for number in sorted(states):
        if states[number].is_known:
            if not groups or number in edges:
                groups.append([])
            groups[-1].append(number)
    found = []
    for place, numbers in enumerate(groups):
        first, since = numbers[0], spell_release(releases[numbers[0]])
        parts = [f">={since}"] if place else []
        if place + 1 < len(groups):
            after = groups[place + 1][0]
            single = bool(place) and after == first + 1
            parts.append(f"<{spell_release(releases[after])}")
            parts = [f"=={releases[first]}"] if single else parts
        found.append(
            Stretch(
                numbers=numbers, state=states[first], since=since, range=",".join(parts),
                records=[records[number] for number in numbers],
            )
        )  # fmt: skip
    return found


def spell_release(release: str) -> str:
    """Return a release as an edge of a range is spelled: `0.6` for `0.6.0`."""
    major, *parts = Version(release).release
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, (major, *parts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationProposal:
    """The declarations that a case may have.

    Attributes:
        deviations: Each as it is written in a decorator.
        releases: Specifier of the releases it can be expressed on, empty for all.
        why: Why not on the others, empty where it is on all.
    """

    deviations: tuple[str, ...] = ()
    releases: str = ""
    why: str = ""


def propose(found: Sequence[Stretch], issue: str = "") -> DeviationProposal:
    """Return the declarations that a case may have.

    Args:
        found: The stretches, oldest first.
        issue: Upstream thread.
    """
    rest = list(found)
    limits: list[str] = []
    why: list[str] = []
    if len(rest) > 1 and _is_absent(rest[0]):
        why.append(_message(rest.pop(0)))
        limits.append(f">={rest[0].since}")
    if len(rest) > 1 and rest[-1].outcome is Outcome.UNSUPPORTED:
        newer = rest.pop()
        limits.append(f"<{newer.since}")
        why.append(_message(newer))
    deviations = (
        _deviation(one, _within(one.range, limits), issue)
        for one in rest
        if not one.is_good and one.outcome is not Outcome.UNSUPPORTED
    )
    return DeviationProposal(
        deviations=tuple(deviations), releases=",".join(limits), why="; ".join(why)
    )


def _within(range_: str, limits: Sequence[str]) -> str:
    """Return a range without the edge that the case's own range has already."""
    return ",".join(part for part in range_.split(",") if part not in limits)


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


def _message(stretch: Stretch) -> str:
    error = stretch.records[-1].error
    return "" if error is None else " ".join(error.message.split())[:_LONGEST]


def _deviation(stretch: Stretch, where: str, issue: str) -> str:
    """Return a deviation as it is written in a decorator."""
    given = [quoted(f"jax{where}")] if where else []
    if stretch.outcome is Outcome.RAISED:
        errors = [record.error for record in stretch.records if record.error is not None]
        given.append(f"error={quoted('|'.join(dict.fromkeys(error.type for error in errors)))}")
        if match := pattern([error.message for error in errors]):
            given.append(f"match={_raw(match)}")
    else:
        given.append(f"outcome={quoted(str(stretch.outcome))}")
    given += [f"reason={quoted(PROPOSED)}", *([f"issue={quoted(issue)}"] if issue else [])]
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
