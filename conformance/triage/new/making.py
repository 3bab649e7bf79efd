"""From a draft that shows what its script does to a file that declares what was seen."""

from __future__ import annotations

import ast
import re
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import InfrastructureError
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.triage.new.bench import written_cases
from conformance.triage.new.case import draft
from conformance.triage.new.file import Declared, appended, case_text, clashes, new_file
from conformance.triage.new.format import formatted
from conformance.triage.new.stretches import proposed, stretches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.model.record import Record
    from conformance.triage.new.bench import Bench
    from conformance.triage.new.case import Draft
    from conformance.triage.new.edges import Seen
    from conformance.triage.new.place import Place
    from conformance.triage.new.script import Script
    from conformance.triage.new.stretches import Proposal, Stretch
    from conformance.triage.new.trial import Tried

_THREAD: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+")
_USUAL_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A case that was made.

    Attributes:
        file: Content of its file.
        text: Its function.
        draft: What it was made of.
        proposal: What it declares.
        stretches: What was seen, release after release.
        records: What came of it as it is written, by number of the cell.
    """

    file: str
    text: str
    draft: Draft
    proposal: Proposal
    stretches: Sequence[Stretch]
    records: Mapping[int, Record] = field(default_factory=dict)

    @property
    def undeclared(self) -> dict[int, Record]:
        """What came of it otherwise than it declares."""
        return {number: record for number, record in self.records.items() if is_undeclared(record)}


def is_undeclared(record: Record) -> bool:
    """Say whether a job shows what its case does not declare; without a golden is no fault."""
    if record.verdict is not Verdict.NEW:
        return record.verdict.gates
    return record.outcome is not Outcome.OK or record.conformance is Conformance.DEVIATES


def first_keywords(
    script: Script, *, source: str, devices: int, requires: Sequence[str], timeout: float
) -> dict[str, Any]:
    """Return the keywords of a decorator that a script itself decides.

    Args:
        script: It.
        source: Upstream thread.
        devices: Devices it needs.
        requires: Packages it needs.
        timeout: Seconds it may take.
    """
    settings = script.settings
    given: dict[str, Any] = {
        "source": source,
        "devices": devices if devices > 1 else None,
        "requires": list(requires),
        "x64": settings.x64,
        "config": settings.config,
        "xla_flags": list(settings.xla_flags),
        "timeout": timeout if timeout != _USUAL_TIMEOUT else None,
    }
    return {name: value for name, value in given.items() if value}


def doc_of(script: Script, name: str) -> str:
    """Return the docstring of a case: what its script says of itself, or that nothing does.

    Args:
        script: It.
        name: What it is called.
    """
    return script.doc or f"What {name} shows."


def make(
    tried: Tried, seen: Seen, releases: Sequence[str], *, script: Script, place: Place,
    declared: Declared,
) -> Made:  # fmt: skip
    """Return a case that declares what was seen.

    Args:
        tried: The draft that shows what a script does.
        seen: What that shows over releases.
        releases: Every release, oldest first.
        script: The script.
        place: Where the case goes.
        declared: What its decorator says so far.
    """
    found = stretches(seen.states, seen.records)
    source = str(declared.keywords.get("source", ""))
    issue = source if _THREAD.fullmatch(source) else ""
    proposal = proposed(found, releases, issue)
    if seen.unstated:
        kept = [one for one in proposal.deviations if 'outcome="ok"' not in one]
        proposal = replace(proposal, deviations=tuple(kept))
    note = ""
    if seen.reference and seen.anchor is not None:
        note = f"Proposed, to be reviewed: this is what jax {releases[seen.anchor]} gives."
    one = draft(script, tried.draft.way, seen.reference, note)
    assert one is not None  # noqa: S101 - it was made before, that way
    if place.there is not None:
        one = _beside(one, clashes(place.there, one))
    keywords = dict(declared.keywords)
    if proposal.releases:
        keywords["releases"] = f"jax{proposal.releases}"
    said = replace(declared, keywords=keywords, deviations=proposal.deviations)
    text, file = _written(one, place, said)
    return Made(file=file, text=text, draft=one, proposal=proposal, stretches=found)


def _beside(one: Draft, taken: set[str]) -> Draft:
    """Return a draft that imports itself what its file means something else by."""
    if not taken:
        return one
    outer = {name: line for name, line in one.outer.items() if name not in taken}
    inner = (*(one.outer[name] for name in sorted(taken)), *one.inner)
    return replace(one, outer=outer, inner=inner)


def _written(one: Draft, place: Place, declared: Declared) -> tuple[str, str]:
    """Return the function of a case, and its file; nothing else of the file is another."""
    deviates = bool(declared.deviations)
    doc = f"Programs of upstream reports, about {place.folder.name.replace('_', ' ')}."
    alone = new_file(case_text(one, place.name, declared), one, doc, deviates=deviates)
    alone = formatted(alone, place.file)
    text = _function(alone, place.name)
    if place.there is None:
        return text, alone
    return text, appended(place.there, text, one, deviates=deviates)


def _function(file: str, name: str) -> str:
    """Return a function of a file, as it is written there."""
    node = next(one for one in ast.parse(file).body if getattr(one, "name", "") == name)
    assert isinstance(node, ast.FunctionDef)  # noqa: S101 - a case is one
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(file.splitlines()[first - 1 : node.end_lineno]) + "\n"


def verified(made: Made, bench: Bench, place: Place, scratch: Path, numbers: Sequence[int]) -> Made:
    """Return a case with what came of it as it is written, beside the helpers of its family.

    Args:
        made: The case.
        bench: Where it is run.
        place: Where it goes.
        scratch: Where a copy of its family lies for that.
        numbers: Numbers of the cells to run it in.

    Raises:
        InfrastructureError: If the copy cannot be made.
    """
    folder = scratch / "whole" / place.folder.name
    try:
        folder.mkdir(parents=True)
        for helper in place.folder.glob("_*.py"):
            shutil.copy(helper, folder)
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be written: {error}") from error
    case = written_cases(folder / place.file.name, made.file)[place.name]
    return replace(made, records=bench.run([case], numbers)[place.name])
