"""What is told of a case that was cut down: lines for people, data for machines. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.triage.shrink.inquiry import Shrunk


def shrunk_lines(shrunk: Shrunk) -> Iterator[str]:
    """Yield what is told of a case that was cut down.

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
    end = "nothing more can be cut" if shrunk.complete else "more may be cut: --probes, --seconds"
    yield f"{shrunk.probes} probes in {shrunk.seconds:.1f} s; {end}"
    if shrunk.interrupted:
        yield "interrupted: the smallest so far, not tried once more"
    elif not shrunk.confirmed:
        yield "flaky: tried once more in a fresh worker it did not show the same"
    else:
        yield "confirmed: a fresh worker shows the same"
        if not shrunk.alone:
            yield "by itself it does not deviate: nothing in it says what it should do"


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
