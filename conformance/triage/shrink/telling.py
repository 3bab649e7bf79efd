"""Reports on a case or script that was cut down: lines for people, data for machines. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.triage.shrink.inquiry import Shrunk
    from conformance.triage.shrink.scripts import ShrunkScript


def shrunk_lines(shrunk: Shrunk) -> Iterator[str]:
    """Yield the report on a case that was cut down, line by line.

    Args:
        shrunk: What is left.
    """
    yield f"kept: {shrunk.about}"
    yield f"on {shrunk.cell}" + (f", not on {shrunk.good_cell}" if shrunk.good_cell else "")
    if shrunk.after is not None:
        before, after = asdict(shrunk.before), asdict(shrunk.after)
        told = [
            f"{name} {before[name]} -> {after[name]}"
            for name in before
            if before[name] is not None and after[name] is not None
        ]
        yield ", ".join(told)
    if shrunk.generator == "jaxpr":
        yield "its operations were said one by one: that has fewer than its own text"
    yield _spent(shrunk)
    if shrunk.interrupted:
        yield "interrupted: the smallest so far, not tried once more"
    elif not shrunk.confirmed:
        yield "flaky: tried once more in a fresh worker it did not show the same"
    else:
        yield "confirmed: a fresh worker shows the same"
        if not shrunk.alone:
            yield "by itself it does not deviate: nothing in it says what it should do"


def script_lines(shrunk: ShrunkScript) -> Iterator[str]:
    """Yield the report on a script that was cut down, line by line.

    Args:
        shrunk: The script.
    """
    yield f"kept: {shrunk.about}"
    yield f"on {shrunk.cell}" + (f", not on {shrunk.good_cell}" if shrunk.good_cell else "")
    yield f"lines {shrunk.lines[0]} -> {shrunk.lines[1]}"
    yield _spent(shrunk)
    if shrunk.interrupted:
        yield "interrupted: the smallest so far, not tried once more"
    elif not shrunk.confirmed:
        yield "flaky: tried once more it did not show the same"
    else:
        yield "confirmed: it shows the same once more"


def _spent(shrunk: Shrunk | ShrunkScript) -> str:
    end = "nothing more can be cut" if shrunk.complete else "more may be cut: --probes, --seconds"
    return f"{shrunk.probes} probes in {shrunk.seconds:.1f} s; {end}"


def script_json(shrunk: ShrunkScript, script: str, file: str) -> dict[str, Any]:
    """Return the data of a script that was cut down.

    Args:
        shrunk: The script.
        script: Path of the script.
        file: File it was written to, `-` for standard output.
    """
    before, after = shrunk.lines
    return {
        "script": script,
        "cell": shrunk.cell,
        "good_cell": shrunk.good_cell,
        "kept": shrunk.about,
        "file": file,
        "text": shrunk.text,
        "before": {"lines": before},
        "after": {"lines": after},
        "probes": shrunk.probes,
        "seconds": round(shrunk.seconds, 3),
        "complete": shrunk.complete,
        "interrupted": shrunk.interrupted,
        "confirmed": shrunk.confirmed,
    }


def shrunk_json(shrunk: Shrunk, case: str, file: str) -> dict[str, Any]:
    """Return the data of a case that was cut down.

    Args:
        shrunk: What is left.
        case: Id of the case.
        file: File it was written to, `-` for standard output.
    """
    return {
        "case": case,
        "cell": shrunk.cell,
        "good_cell": shrunk.good_cell,
        "kept": shrunk.about,
        "file": file,
        "text": shrunk.text,
        "before": asdict(shrunk.before),
        "after": None if shrunk.after is None else asdict(shrunk.after),
        "generator": shrunk.generator,
        "probes": shrunk.probes,
        "jobs": shrunk.jobs,
        "seconds": round(shrunk.seconds, 3),
        "complete": shrunk.complete,
        "interrupted": shrunk.interrupted,
        "confirmed": shrunk.confirmed,
        "alone": shrunk.alone,
    }
