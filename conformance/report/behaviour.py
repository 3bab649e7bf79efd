"""Changes of JAX by family: declared ones, and others that goldens show."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.golden.spans import version
from conformance.model.behaviour_change import Family

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.engine.golden_history import GoldenChange
    from conformance.model.behaviour_change import BehaviourChange
    from conformance.model.case import Case

GATES: Final = ("outcome", "error", "value", "facts")
"""What of a golden fails a run when it changes, and so is told also where nobody declared it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredChange:
    """A declared change.

    Attributes:
        change: What is declared.
        evidence: What the goldens show of it, where they put it.
    """

    change: BehaviourChange
    evidence: tuple[GoldenChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChanges:
    """The changes of one release in one family.

    Attributes:
        release: The release.
        told: Declared changes that the goldens put here.
        also: What else changed in what gates.
    """

    release: str
    told: tuple[DeclaredChange, ...] = ()
    also: tuple[GoldenChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyHistory:
    """The changes in one family.

    Attributes:
        name: The family.
        about: What it watches.
        cases: Its cases.
        has_pairs: Whether there is a page of what becomes of what other releases made.
        releases: What releases changed, the newest first; those that changed nothing are left out.
    """

    name: str
    about: str
    cases: tuple[Case, ...]
    has_pairs: bool = False
    releases: tuple[ReleaseChanges, ...] = field(default=())

    @property
    def told(self) -> tuple[DeclaredChange, ...]:
        """Every declared change, the newest first."""
        return tuple(told for one in self.releases for told in one.told)


def collect_histories(
    cases: Sequence[Case], families: Mapping[str, Family], turned: Iterable[GoldenChange]
) -> tuple[FamilyHistory, ...]:
    """Return the changes by family, in the order of their names.

    Args:
        cases: All cases.
        families: What families say of themselves, by name.
        turned: What the goldens say changed.
    """
    by_family: dict[str, list[GoldenChange]] = defaultdict(list)
    for one in turned:
        by_family[one.case.family].append(one)
    said = {name: families.get(name, Family()) for name in sorted({case.family for case in cases})}
    return tuple(
        FamilyHistory(
            name=name,
            about=family.about,
            cases=tuple(case for case in cases if case.family == name),
            has_pairs=bool(family.pairs),
            releases=_releases(family, by_family[name]),
        )
        for name, family in said.items()
    )


def find_evidence(
    change: BehaviourChange, turned: Iterable[GoldenChange]
) -> tuple[GoldenChange, ...]:
    """Return the golden changes that show a declared change, at its release.

    Args:
        change: What is declared.
        turned: What the goldens say changed.
    """
    return tuple(
        one
        for one in turned
        if one.case.id in change.cases
        and one.release == change.shown_at
        and one.shown_by == change.shown_by
    )


def _releases(family: Family, turned: Sequence[GoldenChange]) -> tuple[ReleaseChanges, ...]:
    told = [
        DeclaredChange(change=change, evidence=find_evidence(change, turned))
        for change in family.change
    ]
    said = {(one.case.id, one.release) for each in told for one in each.evidence}
    # Pairs have a page of their own: with each release there are others.
    also = [
        one
        for one in turned
        if one.shown_by in GATES
        and one.case.name not in family.pairs
        and (one.case.id, one.release) not in said
    ]
    names = {each.change.shown_at for each in told} | {one.release for one in also}
    return tuple(
        ReleaseChanges(
            release=release,
            told=tuple(each for each in told if each.change.shown_at == release),
            also=tuple(one for one in also if one.release == release),
        )
        for release in sorted(names, key=version, reverse=True)
    )
