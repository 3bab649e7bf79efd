"""A script made a case: tried as it is and as drafts, its changes found, what was seen declared."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.triage.new.edges import find_edges
from conformance.triage.new.making import make, verified
from conformance.triage.new.trial import Drafts, refuse_hopeless

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.model.record import Record
    from conformance.search.prober import Prober
    from conformance.triage.new.bench import Bench
    from conformance.triage.new.edges import Seen
    from conformance.triage.new.file import Declared
    from conformance.triage.new.making import Made
    from conformance.triage.new.place import Place
    from conformance.triage.new.script import Script
    from conformance.triage.new.trial import Tried
    from conformance.triage.programs.paste import Pasted


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a case is to be made of.

    Attributes:
        pasted: The script as plain Python.
        script: The script, read.
        called: What it is called in messages.
        place: Where its case goes.
        declared: What its decorator says before anything was tried.
        first: Numbers of the releases that are tried first.
        good: Number of the release whose value is right; None is the newest in which it runs.
    """

    pasted: Pasted
    script: Script
    called: str
    place: Place
    declared: Declared
    first: Sequence[int]
    good: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """How the script itself is run.

    Attributes:
        cells: A cell for each release that is tried first, by its number.
        prober: Gives what runs a file there.
    """

    cells: Mapping[int, PlannedCell]
    prober: Callable[[Path], Prober]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    """A script made a case.

    Attributes:
        order: What it was made of.
        releases: Every release, oldest first; numbers are places in it.
        plain: What came of the script itself.
        tried: The draft that shows the same.
        seen: What that shows over releases.
        made: The case.
    """

    order: Order
    releases: Sequence[str]
    plain: Mapping[int, Record]
    tried: Tried
    seen: Seen
    made: Made


def port(
    order: Order, bench: Bench, alone: Alone, scratch: Path, progress: Callable[[str], None]
) -> Ported:
    """Make a case of a script.

    Args:
        order: Of what, and where it goes.
        bench: Where drafts of it are tried.
        alone: How the script itself is run.
        scratch: A folder for what is tried.
        progress: Told what is done next.

    Raises:
        UsageError: If no case can be made of it; nothing is written then.
        InfrastructureError: If the disk refuses.
    """
    progress(f"running the script on {_named(order.first, bench)}")
    plain = _run_alone(order.pasted, alone, scratch / "script.py")
    refuse_hopeless(plain, order.called)
    progress("running it as a case there")
    file = scratch / "drafts" / order.place.folder.name / "draft.py"
    drafts = Drafts(order.script, bench, file, order.declared, order.called)
    tried = drafts.choose(order.first, plain)
    looking = lambda points: progress(f"looking between, at {_named(points, bench)}")  # noqa: E731
    seen = find_edges(tried, bench, order.good, looking)
    made = make(
        tried, seen, bench.releases,
        script=order.script, place=order.place, declared=order.declared,
    )  # fmt: skip
    progress("running the case as it is written")
    made = verified(made, bench, order.place, scratch, sorted(seen.records))
    return Ported(
        order=order, releases=bench.releases, plain=plain, tried=tried, seen=seen, made=made
    )


def _named(numbers: Sequence[int], bench: Bench) -> str:
    return ", ".join(bench.releases[number] for number in numbers)


def _run_alone(pasted: Pasted, alone: Alone, file: Path) -> dict[int, Record]:
    """Return what comes of the script itself, by number of the release."""
    file.write_text(_with_variables(pasted), encoding="utf-8")
    places = {planned.cell.id: number for number, planned in alone.cells.items()}
    records = alone.prober(file).probe(list(alone.cells.values()))
    return {places[record.cell]: record for record in records}


def _with_variables(pasted: Pasted) -> str:
    """Return a script that sets what it was run with."""
    if not pasted.variables:
        return pasted.text
    lines = pasted.text.splitlines()
    futures = [
        node.end_lineno or 0
        for node in ast.parse(pasted.text).body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    at = max(futures, default=0)
    setting = f"__import__('os').environ.update({dict(pasted.variables)!r})"
    return "\n".join([*lines[:at], setting, *lines[at:]]) + "\n"
