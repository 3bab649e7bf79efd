"""The report on a case or a script that was shrunk: lines for people, data for machines. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkProgram:
    """A case or a script that was shrunk.

    Attributes:
        text: The file.
        about: The kept behavior.
        cell: The cell in which it deviates.
        good_cell: The cell in which it does not, empty if there is none.
        before: Its sizes before, by name.
        after: Its sizes after; None if the search was interrupted before they were known.
        probes: The number of candidates that were tried.
        seconds: How long it took.
        complete: Whether nothing more can be cut; else the limits were spent.
        interrupted: Whether the user interrupted the search.
        confirmed: Whether the result showed the kept behavior once more.
        of_case: For cases only: `generator` is `source` if the source was cut, `jaxpr` if the
            jaxpr was; `jobs` counts jobs; `alone` is whether it deviates by its own
            reference or claims.
    """

    text: str
    about: str
    cell: str
    good_cell: str
    before: Mapping[str, int | None]
    after: Mapping[str, int | None] | None
    probes: int
    seconds: float
    complete: bool
    interrupted: bool
    confirmed: bool
    of_case: Mapping[str, Any] = field(default_factory=dict)


def render_lines(shrunk: ShrunkProgram) -> Iterator[str]:
    """Yield the report, line by line.

    Args:
        shrunk: The case or script.
    """
    yield f"kept: {shrunk.about}"
    yield f"on {shrunk.cell}" + (f", not on {shrunk.good_cell}" if shrunk.good_cell else "")
    if shrunk.after is not None:
        sizes = [(name, size, shrunk.after[name]) for name, size in shrunk.before.items()]
        # A probe has no equations, and a program that fails while it is traced has no jaxpr.
        yield ", ".join(f"{name} {a} -> {b}" for name, a, b in sizes if None not in {a, b})
    if shrunk.of_case.get("generator") == "jaxpr":
        yield "each operation of its jaxpr is a statement: these are fewer than its source has"
    end = "nothing more can be cut" if shrunk.complete else "more may be cut: --probes, --timeout"
    yield f"{shrunk.probes} probes in {shrunk.seconds:.1f} s; {end}"
    if shrunk.interrupted:
        yield "interrupted: the smallest so far, not tried once more"
    elif not shrunk.confirmed:
        # A script has no worker: each run is a process.
        where = " in a fresh worker" if shrunk.of_case else ""
        yield f"flaky: tried once more{where} it did not show the same"
    elif not shrunk.of_case:
        yield "confirmed: it shows the same once more"
    else:
        yield "confirmed: a fresh worker shows the same"
        if not shrunk.of_case["alone"]:
            yield "it does not deviate by itself: it has no reference or claim for this"


def make_json(shrunk: ShrunkProgram, target: str, file: str) -> dict[str, Any]:
    """Return the report as data.

    Args:
        shrunk: The case or script.
        target: Id of the case, or path of the script.
        file: File it was written to, `-` for standard output.
    """
    data = asdict(shrunk)
    # A script has none of its keys, and the JSON of a case has them at the top level.
    of_case = data.pop("of_case")
    return {
        "case" if of_case else "script": target,
        "file": file,
        "kept": data.pop("about"),
        **data,
        "seconds": round(shrunk.seconds, 3),
        **of_case,
    }
