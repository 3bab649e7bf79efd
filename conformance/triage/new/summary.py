"""A script made a case, as lines of text and as JSON. Pure."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import ending, quoted
from conformance.search.predicates import PointKind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.record import Record
    from conformance.triage.new.porting import PortedCase


def release_lines(ported: PortedCase) -> Iterator[str]:
    """Yield what each release that was tried shows.

    Args:
        ported: The case.
    """
    for number, record in sorted(ported.sweep.records.items()):
        final = ported.records.get(number, record)
        beside = ""
        if (plain := ported.plain.get(number)) is not None:
            beside = f"  (script {'ran' if plain.outcome is Outcome.OK else 'failed'})"
        good = ported.sweep.states[number].kind is PointKind.GOOD
        shown = "as it should" if good and number not in ported.undeclared else _how(final)
        yield f"{ported.releases[number]:<10} {final.verdict!s:<9} {shown}{beside}"


def _how(record: Record) -> str:
    if record.outcome is Outcome.OK:
        deviates = record.conformance is Conformance.DEVIATES
        return "another value" if deviates or not record.reasons else quoted(record.reasons[0])
    return quoted(ending(record))


def summary_lines(ported: PortedCase) -> Iterator[str]:
    """Yield the declarations, and what was kept unchanged.

    Args:
        ported: The case.
    """
    tried, script, releases = ported.tried, ported.request.script, ported.releases
    bad = [one for one in ported.stretches if not one.is_good]
    for one in bad:
        final = ported.records.get(one.numbers[-1], one.records[-1])
        record = final if final.outcome is Outcome.OK else one.records[-1]
        where = f"jax{one.range}" if one.range else "every release tried"
        yield f"seen on {where}: {_how(record)}"
    if not bad:
        yield f"the same on all {plural(len(ported.sweep.records), 'release')} tried"
    if ported.proposal.releases:
        yield f"applies to jax{ported.proposal.releases}: {ported.proposal.why}"
    if tried.draft.compat:
        named = ", ".join(f"env.compat.{name}" for name in tried.draft.compat)
        where = ", ".join(releases[number] for number in tried.spelled)
        yield f"spelled for every release: {named}" + (
            f"; its own is not in {where}" if where else ""
        )
    if skipped := len(releases) - len(ported.sweep.records):
        target = quote(ported.request.place.target)
        yield f"{skipped} releases were not tried: conformance run {target} --cell '>=0.4'"
    if script.caught:
        yield "the case raises what the script catches at its end"
    if script.settings.dropped:
        yield f"left out, for the cell decides: {', '.join(script.settings.dropped)}"
    yield from script.notes


def undeclared_lines(ported: PortedCase) -> Iterator[str]:
    """Yield what the written case does and does not declare.

    Args:
        ported: The case.
    """
    for number, record in sorted(ported.undeclared.items()):
        good = ported.sweep.states[number].kind is PointKind.GOOD
        how = "does not show the same twice: " if good else ""
        yield f"not declared: {ported.releases[number]}: {how}{'; '.join(record.reasons)}"


def todo_lines(ported: PortedCase) -> Iterator[str]:
    """Yield what is left to the author.

    Args:
        ported: The case.
    """
    sweep = ported.sweep
    if sweep.is_ambiguous:
        yield "say which value is right: they differ, and are too long to be written out"
    elif sweep.anchor is not None and sweep.reference:
        yield (
            f"review the reference: it is the value of {ported.releases[sweep.anchor]} (--good "
            "RELEASE takes another); better is one by other means"
        )
    elif sweep.anchor is not None:
        yield "give it a reference, or accept what was seen: conformance accept"
    elif not ported.draft.states:
        yield "it only says that the program runs: observe what it computes"
    if ported.proposal.deviations:
        yield "say why each deviation is, and where upstream talks about it"
    if "source" not in ported.request.declared.keywords:
        yield "name the source: --source OWNER/REPO#N"
    yield "write what the case is about into its docstring"
    if ported.draft.unseen:
        yield "what it prints in functions is not observed"


def ported_json(ported: PortedCase, *, written: bool) -> dict[str, Any]:
    """Return the case as `--json` holds it.

    Args:
        ported: The case.
        written: Whether it was written.
    """
    sweep, releases, place = ported.sweep, ported.releases, ported.request.place
    taken = releases[sweep.anchor] if sweep.anchor is not None and sweep.reference else ""
    return {
        "case": place.id,
        "kind": ported.draft.options.kind,
        "file": str(place.file),
        "written": written,
        "family": {"name": place.folder.name, "why": place.why},
        "reference": "stated" if ported.draft.states else taken,
        "applies_to": ported.proposal.releases,
        "stretches": [
            {
                "releases": one.range,
                "good": one.is_good,
                "outcome": str(one.outcome),
                "signature": ending(one.records[-1]),
            }
            for one in ported.stretches
        ],
        "deviations": list(ported.proposal.deviations),
        "cells": {
            releases[number]: {"verdict": str(record.verdict), "outcome": str(record.outcome)}
            for number, record in sorted(ported.records.items())
        },
        "undeclared": [releases[number] for number in sorted(ported.undeclared)],
        "code": ported.text,
    }
