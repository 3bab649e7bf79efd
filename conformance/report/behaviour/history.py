"""Changes of JAX by family: declared changes, and undeclared changes in goldens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.corpus.behaviour_changes import Family
from conformance.golden.spans import parse_version
from conformance.report.grouping import group_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.runs.golden_history import GoldenChange
    from conformance.model.case import Case

GATES: Final = ("outcome", "error", "value", "facts")
"""Parts of a golden whose change fails a run; their changes are listed even if undeclared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredChange:
    """A declared change.

    Attributes:
        change: The declaration.
        evidence: Golden changes that show it, at its release.
    """

    change: BehaviourChange
    evidence: tuple[GoldenChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChanges:
    """The changes of one release in one family.

    Attributes:
        release: The release.
        declared: Declared changes that the goldens show at this release.
        undeclared: Other golden changes that gate.
    """

    release: str
    declared: tuple[DeclaredChange, ...] = ()
    undeclared: tuple[GoldenChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyHistory:
    """The changes in one family.

    Attributes:
        name: The family.
        about: Its subject.
        cases: Its cases.
        has_pairs: True if the family has a page of compatibility between releases.
        releases: Releases with changes, the newest first.
    """

    name: str
    about: str
    cases: tuple[Case, ...]
    has_pairs: bool = False
    releases: tuple[ReleaseChanges, ...] = ()

    @property
    def declared(self) -> tuple[DeclaredChange, ...]:
        """Every declared change, the newest first."""
        return tuple(change for release in self.releases for change in release.declared)


def collect_histories(
    cases: Sequence[Case], families: Mapping[str, Family], changes: Iterable[GoldenChange]
) -> tuple[FamilyHistory, ...]:
    """Return the changes by family, in the order of their names.

    Args:
        cases: All cases.
        families: Declarations of families, by name.
        changes: Golden changes of all cases.
    """
    by_family = group_by(changes, key=lambda change: change.case.family)
    histories = []
    for name, members in sorted(group_by(cases, key=lambda case: case.family).items()):
        # A family without `changes.toml` still has a page: undeclared changes are listed on it.
        family = families.get(name, Family())
        history = FamilyHistory(
            name=name,
            about=family.about,
            cases=tuple(members),
            has_pairs=bool(family.pairs),
            releases=_group_releases(family, by_family.get(name, ())),
        )
        histories.append(history)
    return tuple(histories)


def find_evidence(
    declared: BehaviourChange, changes: Iterable[GoldenChange]
) -> tuple[GoldenChange, ...]:
    """Return the golden changes that show a declared change, at its release.

    Args:
        declared: The declaration.
        changes: Golden changes of any cases.
    """
    return tuple(
        change
        for change in changes
        if change.case.id in declared.cases
        and change.release == declared.shown_at
        and (change.shown_by, change.platform) == (declared.shown_by, declared.platform)
    )


def _group_releases(family: Family, changes: Sequence[GoldenChange]) -> tuple[ReleaseChanges, ...]:
    declared = [
        DeclaredChange(change=change, evidence=find_evidence(change, changes))
        for change in family.change
    ]
    # By case and release, not by artifact: a declared change may show in several artifacts of the
    # case at once, and the others would be listed as undeclared.
    explained = {(shown.case.id, shown.release) for each in declared for shown in each.evidence}
    undeclared = [
        change
        for change in changes
        if change.shown_by in GATES
        and not change.platform
        # Every release adds pairs of writer and reader, which is no change of JAX: they are on a
        # page of compatibility instead.
        and change.case.name not in family.pairs
        and (change.case.id, change.release) not in explained
    ]
    names = {each.change.shown_at for each in declared} | {each.release for each in undeclared}
    return tuple(
        ReleaseChanges(
            release=release,
            declared=tuple(each for each in declared if each.change.shown_at == release),
            undeclared=tuple(each for each in undeclared if each.release == release),
        )
        for release in sorted(names, key=parse_version, reverse=True)
    )
