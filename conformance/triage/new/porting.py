"""Porting a script to a case: run the script and drafts, find the changes, declare them."""

from __future__ import annotations

import ast
import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import InfrastructureError
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.triage.new.deviations import find_stretches, propose
from conformance.triage.new.draft import draft
from conformance.triage.new.file import append_case, create_file, find_clashes, render_case
from conformance.triage.new.format import format_file
from conformance.triage.new.runner import write_cases
from conformance.triage.new.source import ScriptSource
from conformance.triage.new.sweep import sweep_releases
from conformance.triage.new.trial import Trial, refuse_hopeless

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.triage.new.deviations import DeviationProposal, Stretch
    from conformance.triage.new.draft import Draft
    from conformance.triage.new.file import Declared
    from conformance.triage.new.place import CasePlace
    from conformance.triage.new.runner import CaseRunner
    from conformance.triage.new.script import Script
    from conformance.triage.new.sweep import Sweep
    from conformance.triage.new.trial import TriedDraft
    from conformance.triage.programs.pasted_report import Pasted

    RunScript = Callable[[Path], Mapping[int, Record]]
    """Runs a file in the cells that are tried first; records by number of the release."""

_THREAD: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+")
_USUAL_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRequest:
    """A case to be made.

    Attributes:
        pasted: The script as plain Python.
        script: The script, read.
        name: What the script is called in messages.
        place: The place of its case.
        declared: What its decorator says before anything was tried.
        first: Numbers of the releases that are tried first.
        good: Number of the release whose value is right; None is the newest in which it runs.
    """

    pasted: Pasted
    script: Script
    name: str
    place: CasePlace
    declared: Declared
    first: Sequence[int]
    good: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PortedCase:
    """A script made a case.

    Attributes:
        request: What was asked for.
        releases: Every release, oldest first; numbers are places in it.
        plain: Records of the script itself, by number of the release.
        tried: The draft that shows the same.
        sweep: That draft over releases.
        stretches: The same, release after release.
        draft: The inside of the case.
        proposal: What it declares.
        text: The function of the case.
        file: The content of its file.
        records: Records of the written case, by number of the release.
    """

    request: PortRequest
    releases: Sequence[str]
    plain: Mapping[int, Record]
    tried: TriedDraft
    sweep: Sweep
    stretches: Sequence[Stretch]
    draft: Draft
    proposal: DeviationProposal
    text: str
    file: str
    records: Mapping[int, Record]

    @property
    def undeclared(self) -> dict[int, Record]:
        """The records that are otherwise than the case declares."""
        return {number: record for number, record in self.records.items() if _is_undeclared(record)}


def _is_undeclared(record: Record) -> bool:
    """Say whether a job shows what its case does not declare; without a golden is no fault."""
    if record.verdict is not Verdict.NEW:
        return record.verdict.gates
    return record.outcome is not Outcome.OK or record.conformance is Conformance.DEVIATES


def decide_keywords(
    script: Script, *, source: str, devices: int, requires: Sequence[str], timeout: float
) -> dict[str, Any]:
    """Return the keywords of a decorator that a script itself decides.

    Args:
        script: The script.
        source: Upstream thread.
        devices: Devices it needs.
        requires: Packages it needs.
        timeout: Seconds it may take.
    """
    given: dict[str, Any] = {
        "source": source,
        "devices": devices if devices > 1 else None,
        "requires": list(requires),
        "x64": script.settings.x64,
        "config": script.settings.config,
        "xla_flags": list(script.settings.xla_flags),
        "timeout": timeout if timeout != _USUAL_TIMEOUT else None,
    }
    return {name: value for name, value in given.items() if value}


def port(
    request: PortRequest,
    runner: CaseRunner,
    run_script: RunScript,
    scratch: Path,
    report: Callable[[str], None],
) -> PortedCase:
    """Make a case of a script.

    Args:
        request: The case to be made.
        runner: Runs drafts of it.
        run_script: Runs the script itself.
        scratch: A folder for what is tried.
        report: Called with what is done next.

    Raises:
        UsageError: If no case can be made of it; nothing is written then.
        InfrastructureError: If the disk refuses.
    """

    def named(numbers: Sequence[int]) -> str:
        return ", ".join(runner.releases[number] for number in numbers)

    script, place = request.script, request.place
    report(f"running the script on {named(request.first)}")
    file = scratch / "script.py"
    file.write_text(_with_variables(request.pasted), encoding="utf-8")
    plain = run_script(file)
    refuse_hopeless(plain, request.name)
    report("running it as a case there")
    trial = Trial(
        script=script, runner=runner, declared=request.declared, name=request.name,
        file=scratch / "drafts" / place.folder.name / "draft.py",
    )  # fmt: skip
    tried = trial.choose(request.first, plain)
    sweep = sweep_releases(
        tried, runner, request.good, lambda points: report(f"looking between, at {named(points)}")
    )
    stretches = find_stretches(sweep.states, sweep.records, runner.releases)
    declared, proposal = _declared(request.declared, sweep, stretches)
    one = _final_draft(request, tried, sweep, runner.releases)
    text, whole = _written(one, place, declared)
    report("running the case as it is written")
    case = _copy(scratch, place, whole)
    records = runner.run([case], sorted(sweep.records))[place.name]
    return PortedCase(
        request=request, releases=runner.releases, plain=plain, tried=tried, sweep=sweep,
        stretches=stretches, draft=one, proposal=proposal, text=text, file=whole, records=records,
    )  # fmt: skip


def _with_variables(pasted: Pasted) -> str:
    """Return a script that sets what it was run with."""
    if not pasted.variables:
        return pasted.text
    source = ScriptSource.parse(pasted.text)
    futures = [
        number
        for number, node in enumerate(source.tree.body, 1)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    setting = f"__import__('os').environ.update({dict(pasted.variables)!r})"
    return source.insert(source.tree.body[max(futures, default=0)], setting).text


def _declared(
    declared: Declared, sweep: Sweep, stretches: Sequence[Stretch]
) -> tuple[Declared, DeviationProposal]:
    """Return what a case declares in all, and what of that was seen."""
    source = str(declared.keywords.get("source", ""))
    proposal = propose(stretches, source if _THREAD.fullmatch(source) else "")
    if sweep.is_ambiguous:
        sure = (one for one in proposal.deviations if 'outcome="ok"' not in one)
        proposal = replace(proposal, deviations=tuple(sure))
    range_ = {"releases": f"jax{proposal.releases}"} if proposal.releases else {}
    keywords = {**declared.keywords, **range_}
    return replace(declared, keywords=keywords, deviations=proposal.deviations), proposal


def _final_draft(
    request: PortRequest, tried: TriedDraft, sweep: Sweep, releases: Sequence[str]
) -> Draft:
    """Return a draft with a reference, which imports what its file means something else by."""
    note = ""
    if sweep.reference and sweep.anchor is not None:
        note = f"Proposed, to be reviewed: this is what jax {releases[sweep.anchor]} gives."
    one = draft(request.script, tried.draft.options, sweep.reference, note)
    assert one is not None  # noqa: S101 - it was made before, that way
    taken = find_clashes(request.place.there or "", one)
    outer = {name: line for name, line in one.outer.items() if name not in taken}
    inner = (*(one.outer[name] for name in sorted(taken)), *one.inner)
    return replace(one, outer=outer, inner=inner)


def _written(one: Draft, place: CasePlace, declared: Declared) -> tuple[str, str]:
    """Return the function of a case, and its file, of which nothing else changes."""
    deviates = bool(declared.deviations)
    doc = f"Programs of upstream reports, about {place.folder.name.replace('_', ' ')}."
    alone = create_file(render_case(one, place.name, declared), one, doc, deviates=deviates)
    alone = format_file(alone, place.file)
    source = ScriptSource.parse(alone)
    text = source.code(source.tree.body[-1:]).lstrip("\n")
    if place.there is None:
        return text, alone
    return text, append_case(place.there, text, one, deviates=deviates)


def _copy(scratch: Path, place: CasePlace, file: str) -> Case:
    """Write a case file, with copies of the helpers of its family, and return its new case."""
    folder = scratch / "whole" / place.folder.name
    try:
        folder.mkdir(parents=True)
        for helper in place.folder.glob("_*.py"):
            shutil.copy(helper, folder)
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be written: {error}") from error
    return write_cases(folder / place.file.name, file)[place.name]
