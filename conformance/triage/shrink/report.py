"""Reports on a case or a script that was shrunk: lines for people, data for machines. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.triage.shrink.candidate_trials import Shrunk


def shrunk_lines(shrunk: Shrunk) -> Iterator[str]:
    """Yield the report, line by line.

    Args:
        shrunk: The case or script.
    """
    yield f"kept: {shrunk.about}"
    yield f"on {shrunk.cell}" + (f", not on {shrunk.good_cell}" if shrunk.good_cell else "")
    if shrunk.after is not None:
        pairs = [(name, size, shrunk.after[name]) for name, size in shrunk.before.items()]
        yield ", ".join(f"{name} {a} -> {b}" for name, a, b in pairs if None not in {a, b})
    if shrunk.of_case.get("generator") == "jaxpr":
        yield "its operations were said one by one: that has fewer than its own text"
    end = "nothing more can be cut" if shrunk.complete else "more may be cut: --probes, --timeout"
    yield f"{shrunk.probes} probes in {shrunk.seconds:.1f} s; {end}"
    if shrunk.interrupted:
        yield "interrupted: the smallest so far, not tried once more"
    elif not shrunk.confirmed:
        where = " in a fresh worker" if shrunk.of_case else ""
        yield f"flaky: tried once more{where} it did not show the same"
    elif not shrunk.of_case:
        yield "confirmed: it shows the same once more"
    else:
        yield "confirmed: a fresh worker shows the same"
        if not shrunk.of_case["alone"]:
            yield "by itself it does not deviate: nothing in it says what it should do"


def shrunk_json(shrunk: Shrunk, target: str, file: str) -> dict[str, Any]:
    """Return the report as data.

    Args:
        shrunk: The case or script.
        target: Id of the case, or path of the script.
        file: File it was written to, `-` for standard output.
    """
    data = asdict(shrunk)
    of_case = data.pop("of_case")
    return {
        "case" if of_case else "script": target,
        "file": file,
        "kept": data.pop("about"),
        **data,
        "seconds": round(shrunk.seconds, 3),
        **of_case,
    }
