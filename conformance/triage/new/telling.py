"""What was made of a script, in words and as data. Pure."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from conformance.model.outcome import Conformance, Outcome
from conformance.search.failures import ending, quoted
from conformance.search.state import PointKind
from conformance.triage.new.stretches import range_of
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.record import Record
    from conformance.triage.new.proposal import Ported


def release_lines(ported: Ported) -> Iterator[str]:
    """Yield what each release that was tried shows.

    Args:
        ported: What was made.
    """
    plain, made = ported.plain, ported.made
    for number, record in sorted(ported.seen.records.items()):
        final = made.records.get(number, record)
        ran = number in plain and plain[number].outcome is Outcome.OK
        beside = f"  (script {'ran' if ran else 'failed'})" if number in plain else ""
        good = ported.seen.states[number].kind is PointKind.GOOD
        shown = "as it should" if good and number not in made.undeclared else _how(final)
        yield f"{ported.releases[number]:<10} {final.verdict!s:<9} {shown}{beside}"


def _how(record: Record) -> str:
    if record.outcome is Outcome.OK:
        deviates = record.conformance is Conformance.DEVIATES
        return "another value" if deviates or not record.reasons else quoted(record.reasons[0])
    return quoted(ending(record))


def summary_lines(ported: Ported) -> Iterator[str]:
    """Yield what is declared, and what was left as it is.

    Args:
        ported: What was made.
    """
    made, tried, seen = ported.made, ported.tried, ported.seen
    releases, script = ported.releases, ported.order.script
    bad = [one for one in made.stretches if one.state.kind is not PointKind.GOOD]
    for one in bad:
        where = range_of(one, releases)
        named = f"jax{where}" if where else "every release tried"
        final = made.records.get(one.last, one.records[-1])
        record = final if final.outcome is Outcome.OK else one.records[-1]
        yield f"seen on {named}: {_how(record)}"
    if not bad:
        yield f"the same on all {plural(len(seen.records), 'release')} tried"
    if made.proposal.releases:
        yield f"applies to jax{made.proposal.releases}: {made.proposal.why}"
    if tried.draft.compat:
        named = ", ".join(f"env.compat.{name}" for name in tried.draft.compat)
        where = ", ".join(releases[number] for number in tried.spelled)
        yield f"spelled for every release: {named}" + (
            f"; its own is not in {where}" if where else ""
        )
    if skipped := len(releases) - len(seen.records):
        target = quote(ported.order.place.target)
        yield f"{skipped} releases were not tried: conformance run {target} --cell '>=0.4'"
    if script.caught:
        yield "the case raises what the script catches at its end"
    if script.settings.dropped:
        yield f"left out, for the cell decides: {', '.join(script.settings.dropped)}"
    yield from script.notes


def undeclared_lines(ported: Ported) -> Iterator[str]:
    """Yield what came of the case as it is written that it does not declare.

    Args:
        ported: What was made.
    """
    for number, record in sorted(ported.made.undeclared.items()):
        good = ported.seen.states[number].kind is PointKind.GOOD
        how = "does not show the same twice: " if good else ""
        yield f"not declared: {ported.releases[number]}: {how}{'; '.join(record.reasons)}"


def todo_lines(ported: Ported) -> Iterator[str]:
    """Yield what is left to the author.

    Args:
        ported: What was made.
    """
    made, seen, releases = ported.made, ported.seen, ported.releases
    if seen.unstated:
        yield "say which value is right: they differ, and are too long to be written out"
    elif seen.anchor is not None and seen.reference:
        yield (
            f"review the reference: it is the value of {releases[seen.anchor]} (--good RELEASE "
            "takes another); better is one by other means"
        )
    elif seen.anchor is not None:
        yield "give it a reference, or accept what was seen: conformance accept"
    elif not made.draft.states:
        yield "it only says that the program runs: observe what it computes"
    if made.proposal.deviations:
        yield "say why each deviation is, and where upstream talks about it"
    if "source" not in ported.order.declared.keywords:
        yield "name the source: --source OWNER/REPO#N"
    yield "write what the case is about into its docstring"
    if made.draft.unseen:
        yield "what it prints in functions is not observed"


def ported_json(ported: Ported, *, written: bool) -> dict[str, Any]:
    """Return what was made as `--json` holds it.

    Args:
        ported: What was made.
        written: Whether it was written.
    """
    made, seen, releases = ported.made, ported.seen, ported.releases
    place = ported.order.place
    taken = releases[seen.anchor] if seen.anchor is not None and seen.reference else ""
    return {
        "case": place.id,
        "kind": made.draft.way.kind,
        "file": str(place.file),
        "written": written,
        "family": {"name": place.folder.name, "why": place.why},
        "reference": "stated" if made.draft.states else taken,
        "applies_to": made.proposal.releases,
        "stretches": [
            {
                "releases": range_of(one, releases),
                "good": one.state.kind is PointKind.GOOD,
                "outcome": str(one.outcome),
                "signature": ending(one.records[-1]),
            }
            for one in made.stretches
        ],
        "deviations": list(made.proposal.deviations),
        "cells": {
            releases[number]: {"verdict": str(record.verdict), "outcome": str(record.outcome)}
            for number, record in sorted(made.records.items())
        },
        "undeclared": [releases[number] for number in sorted(made.undeclared)],
        "code": made.text,
    }
