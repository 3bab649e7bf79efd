"""The report on a script made a case, as lines of text and as JSON. Pure."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from conformance.model.outcome import Conformance, Outcome
from conformance.search.equivalence import format_ending, shorten
from conformance.search.predicates import PointKind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.record import Record
    from conformance.triage.new.porting import PortedCase


def render_releases(ported: PortedCase) -> Iterator[str]:
    """Yield the result on each release that was tried.

    Args:
        ported: The case.
    """
    for number, record in sorted(ported.sweep.records.items()):
        # The written case counts, not the draft that was searched with.
        final = ported.records.get(number, record)
        of_script = ""
        if (script_record := ported.script_records.get(number)) is not None:
            of_script = f"  (script {'ran' if script_record.outcome is Outcome.OK else 'failed'})"
        good = ported.sweep.states[number].kind is PointKind.GOOD
        shown = (
            "as it should"
            if good and number not in ported.undeclared_records
            else _summarize(final)
        )
        yield f"{ported.releases[number]:<10} {final.verdict!s:<9} {shown}{of_script}"


def _summarize(record: Record) -> str:
    if record.outcome is Outcome.OK:
        deviates = record.conformance is Conformance.DEVIATES
        return "another value" if deviates or not record.reasons else shorten(record.reasons[0])
    return shorten(format_ending(record))


def render_summary(ported: PortedCase) -> Iterator[str]:
    """Yield the declarations, and the parts that were left out.

    Args:
        ported: The case.
    """
    tried, script, releases = ported.tried, ported.request.script, ported.releases
    bad = [stretch for stretch in ported.stretches if not stretch.is_good]
    for stretch in bad:
        final = ported.records.get(stretch.numbers[-1], stretch.records[-1])
        # A written case that fails may fail by its declarations; the draft shows the failure of the
        # program.
        record = final if final.outcome is Outcome.OK else stretch.records[-1]
        where = f"jax{stretch.range}" if stretch.range else "every release tried"
        yield f"seen on {where}: {_summarize(record)}"
    if not bad:
        yield f"the same on all {plural(len(ported.sweep.records), 'release')} tried"
    if ported.declarations.releases:
        yield f"applies to jax{ported.declarations.releases}: {ported.declarations.why}"
    if tried.draft.compat_names:
        names = ", ".join(f"env.compat.{name}" for name in tried.draft.compat_names)
        where = ", ".join(releases[number] for number in tried.compat_only)
        yield f"uses {names}" + (f"; the script itself fails on {where}" if where else "")
    if skipped := len(releases) - len(ported.sweep.records):
        # A case outside the project is named by its path, which may contain spaces.
        target = quote(ported.request.placement.target)
        yield f"{skipped} releases were not tried: conformance run {target} --cell '>=0.4'"
    if script.catches_error:
        yield "the case raises the exception that the script catches at its end"
    if script.settings.dropped:
        yield f"left out, for the cell decides: {', '.join(script.settings.dropped)}"
    yield from script.notes


def render_undeclared(ported: PortedCase) -> Iterator[str]:
    """Yield the results that the written case does not declare.

    Args:
        ported: The case.
    """
    for number, record in sorted(ported.undeclared_records.items()):
        good = ported.sweep.states[number].kind is PointKind.GOOD
        # The sweep ran the same program: if it was good there, only an unstable result differs.
        unstable = "the result changed between two runs: " if good else ""
        yield f"not declared: {ported.releases[number]}: {unstable}{'; '.join(record.reasons)}"


def render_todo(ported: PortedCase) -> Iterator[str]:
    """Yield the tasks that are left to the author.

    Args:
        ported: The case.
    """
    sweep = ported.sweep
    if sweep.is_ambiguous:
        yield "say which value is right: they differ, and are too long to be written out"
    elif sweep.anchor is not None and sweep.reference:
        yield (
            f"review the reference: it is the value of {ported.releases[sweep.anchor]} (--good "
            "RELEASE takes another); one computed by other means is better"
        )
    elif sweep.anchor is not None:
        yield "give it a reference, or accept the observed value: conformance accept"
    elif not ported.draft.states_reference:
        yield "it only says that the program runs: observe what it computes"
    if ported.declarations.deviations:
        yield "give the reason of each deviation, and its upstream thread"
    if "source" not in ported.declarations.keywords:
        yield "name the source: --source OWNER/REPO#N"
    yield "describe the case in its docstring"
    if ported.draft.unobserved_prints:
        yield "values printed in functions are not observed"


def make_json(ported: PortedCase, *, written: bool) -> dict[str, Any]:
    """Return the case as `--json` writes it.

    Args:
        ported: The case.
        written: Whether the case was added to its file.
    """
    sweep, releases, placement = ported.sweep, ported.releases, ported.request.placement
    anchor = releases[sweep.anchor] if sweep.anchor is not None and sweep.reference else ""
    return {
        "case": placement.id,
        "kind": ported.draft.options.kind,
        "file": str(placement.file),
        "written": written,
        "family": {"name": placement.folder.name, "why": placement.why},
        "reference": "stated" if ported.draft.states_reference else anchor,
        "applies_to": ported.declarations.releases,
        "stretches": [
            {
                "releases": stretch.range,
                "good": stretch.is_good,
                "outcome": str(stretch.outcome),
                "signature": format_ending(stretch.records[-1]),
            }
            for stretch in ported.stretches
        ],
        "deviations": list(ported.declarations.deviations),
        "cells": {
            releases[number]: {"verdict": str(record.verdict), "outcome": str(record.outcome)}
            for number, record in sorted(ported.records.items())
        },
        "undeclared": [releases[number] for number in sorted(ported.undeclared_records)],
        "code": ported.text,
    }
