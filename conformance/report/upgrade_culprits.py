"""Packages that may have made a change of an upgrade, and those that a search found."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.cells.resolver import IMPORTED_BY_JAX, JAX_PACKAGES
from conformance.report.text import sanitize
from conformance.report.upgrade_file import Package, Searched
from conformance.report.upgrade_result import group_changes
from conformance.triage.upgrade.culprit_search import choose_predicate_options, find_cells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from conformance.report.upgrade_result import UpgradeResult
    from conformance.search.axes import PackageMove
    from conformance.triage.upgrade.comparison import ComparedCase, Culprits, UpgradeStep
    from conformance.triage.upgrade.effect import Effect

FEW: Final = 3
"""Packages that are named where not all are."""


def suspects(one: ComparedCase, step: UpgradeStep) -> dict[str, tuple[str, str]]:
    """Return the packages that a change may be due to, with their versions before and after.

    Those are what every case imports; and any other, where the case says that it requires one, is
    a test of a suite, or has a user's own package beside those of the cell: what these import is
    not known.

    Args:
        one: The case.
        step: The change.
    """
    sides = find_cells(one, step)
    before, after = (planned.versions for planned in sides)
    unknown = one.case.kind == "test" or any(planned.overlay for planned in sides)
    more = unknown or bool(one.case.requires)
    found = {}
    for name in sorted({**before, **after}):
        of_jax = JAX_PACKAGES.fullmatch(name) is not None or name in IMPORTED_BY_JAX
        pair = before.get(name, "none"), after.get(name, "none")
        if (of_jax or more) and pair[0] != pair[1]:
            found[name] = pair
    return found


def beside(one: ComparedCase, step: UpgradeStep) -> dict[str, tuple[str, str]]:
    """Return the packages other than jax's own that a change may be due to.

    Args:
        one: The case.
        step: The change.
    """
    found = suspects(one, step)
    return {name: found[name] for name in found if not JAX_PACKAGES.fullmatch(name)}


def culprit(one: ComparedCase, step: UpgradeStep) -> str:
    """Return the package that made a change, empty where more than one may have.

    Several that did it together are divided by commas, several of which each did it by itself by
    "or". jax stands for itself and what is released with it.

    Args:
        one: The case.
        step: The change.
    """
    if step.culprits is None:
        return "" if beside(one, step) else "jax"
    return " or ".join(map(_name_packages, step.culprits.guilty))


def _name_packages(packages: Iterable[PackageMove]) -> str:
    names = [moved.package for moved in packages]
    own = "jax" in names and all(map(JAX_PACKAGES.fullmatch, names))
    return "jax" if own else ", ".join(names)


def blame(one: ComparedCase, step: UpgradeStep) -> str:
    """Return the command that tells which of several packages made a change.

    Args:
        one: The case.
        step: The change.
    """
    before, after = (quote(planned.cell.selector) for planned in find_cells(one, step))
    when, fact = choose_predicate_options(step)
    how = (f" --when {when}" if when else "") + (f" --fact {quote(fact)}" if fact else "")
    # To pytest a test is the program that it is, with the packages that it needs.
    target = one.case.arguments.partition(" -- ")[0] or quote(one.case.id)
    return f"conformance blame {target} --good {before} --bad {after}{how}"


def unclear(
    upgraded: UpgradeResult, effects: Collection[Effect]
) -> Iterator[tuple[ComparedCase, UpgradeStep]]:
    """Yield, of what changed in the same way, one change that other packages may have made.

    Args:
        upgraded: The upgrade.
        effects: What an upgrade must do to a case for that to be asked.
    """
    for group in group_changes(upgraded):
        if group.effect in effects:
            members = ((one, one.decisive) for one in group.members)
            changes = ((one, step) for one, step in members if step is not None)
            yield from [pair for pair in changes if pair[1].culprits is None and beside(*pair)][:1]


def with_culprits(upgraded: UpgradeResult, found: Mapping[int, Culprits]) -> UpgradeResult:
    """Return an upgrade with what was found out of its packages.

    Args:
        upgraded: The upgrade.
        found: Culprits by the id of the change that was asked about; they count for all that
            changed in the same way, and that another package than jax's own may have changed.
    """
    told: dict[int, Culprits] = {}
    for group in group_changes(upgraded):
        changes = [(one, step) for one in group.members if (step := one.decisive) is not None]
        if asked := [found[id(step)] for _, step in changes if id(step) in found]:
            told |= {id(step): asked[0] for one, step in changes if beside(one, step)}
    return replace(upgraded, compared=tuple(_add_to_case(one, told) for one in upgraded.compared))


def _add_to_case(one: ComparedCase, told: Mapping[int, Culprits]) -> ComparedCase:
    if not any(id(step) in told for step in one.steps):
        return one
    steps = (replace(s, culprits=told.get(id(s), s.culprits)) for s in one.steps)
    return replace(one, steps=tuple(steps))


def culprit_lines(one: ComparedCase, step: UpgradeStep) -> Iterator[str]:
    """Yield which package made a change, or may have; nothing where only jax's own can have.

    Args:
        one: The case.
        step: The change.
    """
    found = step.culprits
    if found is None:
        if packages := beside(one, step):
            versions = _join_few(f"{name} {a} -> {b}" for name, (a, b) in packages.items())
            yield f"with {versions}: {blame(one, step)}"
        return
    tried = f" (tried with {found.case})" if found.case != one.case.id else ""
    for number, guilty in enumerate(found.guilty):
        as_well = " as well, each for itself" if number else ""
        yield f"to blame{as_well}: {', '.join(map(str, guilty))}{tried}"
    if found.untold:
        head = "" if found.guilty else f"which package could not be told{tried}: "
        yield f"{head}{sanitize(found.untold)}; {blame(one, step)}"


def culprit_cell(one: ComparedCase, step: UpgradeStep) -> str:
    """Return which package made a change, or may have, in a few words.

    Args:
        one: The case.
        step: The change.
    """
    found = step.culprits
    if found is None:
        return _join_few(["jax", *beside(one, step)], " or ")
    if not found.guilty:
        return f"not told: {found.untold}"
    return " or ".join(", ".join(map(str, packages)) for packages in found.guilty)


def _join_few(texts: Iterable[str], sign: str = ", ") -> str:
    first, rest = (several := list(texts))[:FEW], several[FEW:]
    return f"{sign.join(first)}{f' and {len(rest)} more' if rest else ''}"


def searched(found: Culprits | None) -> Searched | None:
    """Return the result of a search for packages, as the file has it; None without a search.

    Args:
        found: The result.
    """
    if found is None:
        return None
    return Searched(
        case=found.case,
        guilty=tuple(tuple(map(_make_package, packages)) for packages in found.guilty),
        beside=tuple(map(_make_package, found.beside)),
        untold=found.untold,
    )


def _make_package(one: PackageMove) -> Package:
    return Package(package=one.package, from_=one.before, to=one.after)
