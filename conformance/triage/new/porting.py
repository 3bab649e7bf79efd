"""Porting a script to a case: run the script and drafts, find the changes, declare them."""

from __future__ import annotations

import ast
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import InfrastructureError
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.triage.new.case_file import (
    append_case,
    create_file,
    find_clashes,
    format_file,
    render_case,
)
from conformance.triage.new.deviations import find_stretches, propose_deviations, sweep_releases
from conformance.triage.new.draft import make_draft
from conformance.triage.new.script_source import ScriptSource
from conformance.triage.new.trials import DraftTrials, refuse_unusable_script, write_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.triage.new.case_file import Declarations
    from conformance.triage.new.deviations import ReleaseSweep, Stretch
    from conformance.triage.new.draft import Draft
    from conformance.triage.new.placement import CasePlacement
    from conformance.triage.new.script import Script
    from conformance.triage.new.trials import CaseRunner, TriedDraft
    from conformance.triage.programs.pasted_report import PastedScript

    RunScript = Callable[[Path], Mapping[int, Record]]
    """Runs a file in the cells that are tried first; records by number of the release."""

_DEFAULT_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRequest:
    """A request to make a case of a script.

    Attributes:
        pasted: The script as plain Python.
        script: The script, ready to be rewritten.
        name: Name of the script in messages.
        placement: The place of its case.
        declarations: The decorator and docstring before any trial.
        first: Numbers of the releases that are tried first.
        good: Number of the release with the right value; None is the newest in which it runs.
    """

    pasted: PastedScript
    script: Script
    name: str
    placement: CasePlacement
    declarations: Declarations
    first: Sequence[int]
    good: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PortedCase:
    """A case made of a script.

    Attributes:
        request: The request.
        releases: Every release, oldest first; numbers are positions in it.
        script_records: Records of the script itself, by number of the release.
        tried: The draft that behaves like the script.
        sweep: The results of that draft over releases.
        stretches: The stretches of releases with the same result.
        draft: The body of the case.
        declarations: The declarations of the case, with the deviations that are proposed.
        text: The function of the case.
        file: The content of its file.
        records: Records of the written case, by number of the release.
    """

    request: PortRequest
    releases: Sequence[str]
    script_records: Mapping[int, Record]
    tried: TriedDraft
    sweep: ReleaseSweep
    stretches: Sequence[Stretch]
    draft: Draft
    declarations: Declarations
    text: str
    file: str
    records: Mapping[int, Record]

    @property
    def undeclared_records(self) -> dict[int, Record]:
        """The records that show something that the case does not declare."""
        return {number: record for number, record in self.records.items() if _is_undeclared(record)}


def _is_undeclared(record: Record) -> bool:
    # A new case has no golden, so that its verdict alone is no fault.
    if record.verdict is not Verdict.NEW:
        return record.verdict.gates
    return record.outcome is not Outcome.OK or record.conformance is Conformance.DEVIATES


def decide_keywords(
    script: Script, *, source: str, devices: int, requires: Sequence[str], timeout: float
) -> dict[str, Any]:
    """Return the keywords of a decorator that follow from the script.

    Args:
        script: The script.
        source: Upstream thread.
        devices: Number of devices it needs.
        requires: Packages it needs.
        timeout: Its timeout in seconds.
    """
    keywords: dict[str, Any] = {
        "source": source,
        "devices": devices if devices > 1 else None,
        "requires": list(requires),
        "x64": script.settings.x64,
        "config": script.settings.config,
        "xla_flags": list(script.settings.xla_flags),
        # A keyword with its default value would only lengthen the decorator.
        "timeout": timeout if timeout != _DEFAULT_TIMEOUT else None,
    }
    return {name: value for name, value in keywords.items() if value}


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
        scratch: A temporary folder.
        report: Called with the next step.

    Raises:
        UsageError: If no case can be made of it; nothing is written then.
        InfrastructureError: If a file cannot be written.
    """

    def list_releases(numbers: Sequence[int]) -> str:
        return ", ".join(runner.releases[number] for number in numbers)

    placement = request.placement
    report(f"running the script on {list_releases(request.first)}")
    # Run as a script first, to compare the drafts with it: code may behave in another way within a
    # function.
    file = scratch / "script.py"
    file.write_text(_set_variables(request.pasted), encoding="utf-8")
    script_records = run_script(file)
    # Before any draft, which would fail for the same reason.
    refuse_unusable_script(script_records, request.name)
    report("running it as a case on the same releases")
    trials = DraftTrials(
        script=request.script, runner=runner, declarations=request.declarations,
        # The folder names the family in the ids of the drafts.
        folder=scratch / "drafts" / placement.folder.name, name=request.name,
    )  # fmt: skip
    tried = trials.choose(request.first, script_records)
    sweep = sweep_releases(
        tried, runner, request.good,
        lambda points: report(f"searching between them, on {list_releases(points)}"),
    )  # fmt: skip
    stretches = find_stretches(sweep.states, sweep.records, runner.releases)
    declarations = propose_deviations(request.declarations, stretches)
    if sweep.is_ambiguous:  # which values deviate is for the author to decide
        certain = (text for text in declarations.deviations if 'outcome="ok"' not in text)
        declarations = replace(declarations, deviations=tuple(certain))
    draft = _add_reference(request, tried, sweep, runner.releases)
    text, content = _render_file(draft, placement, declarations)
    report("running the case as written")
    case = _write_copy(scratch, placement, content)
    # On every release of the sweep: declarations change verdicts, and a clash of names shows only
    # in the whole file.
    records = runner.run([case], sorted(sweep.records))[placement.name]
    return PortedCase(
        request=request, releases=runner.releases, script_records=script_records, tried=tried,
        sweep=sweep, stretches=stretches, draft=draft, text=text, file=content,
        declarations=declarations, records=records,
    )  # fmt: skip


def _set_variables(pasted: PastedScript) -> str:
    """Return a script that sets the environment variables that it was run with."""
    if not pasted.variables:
        return pasted.text
    source = ScriptSource.parse(pasted.text)
    # Only a docstring, comments and other such imports may precede an import from __future__.
    futures = [
        number
        for number, node in enumerate(source.tree.body, 1)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    setting = f"__import__('os').environ.update({dict(pasted.variables)!r})"
    return source.insert(source.tree.body[max(futures, default=0)], setting).text


def _add_reference(
    request: PortRequest, tried: TriedDraft, sweep: ReleaseSweep, releases: Sequence[str]
) -> Draft:
    """Return the draft with a reference; imports that clash with its file are in the function."""
    note = ""
    if sweep.reference and sweep.anchor is not None:
        note = f"Proposed, to be reviewed: this is what jax {releases[sweep.anchor]} gives."
    draft = make_draft(request.script, tried.draft.options, sweep.reference, note)
    if draft is None:
        raise AssertionError("these options made a draft before")
    # An import within the function hides what the file binds to the same name.
    clashes = find_clashes(request.placement.content or "", draft)
    outer = {name: line for name, line in draft.outer.items() if name not in clashes}
    inner = (*(draft.outer[name] for name in sorted(clashes)), *draft.inner)
    return replace(draft, outer=outer, inner=inner)


def _render_file(
    draft: Draft, placement: CasePlacement, declarations: Declarations
) -> tuple[str, str]:
    """Return the function of a case, and its file with all else unchanged."""
    doc = f"Programs of upstream reports, about {placement.folder.name.replace('_', ' ')}."
    # Formatted alone: Ruff would also format the rest of an existing file.
    alone = create_file(render_case(draft, placement.name, declarations), draft, doc)
    alone = format_file(alone, placement.file)
    source = ScriptSource.parse(alone)
    text = source.render(source.tree.body[-1:]).lstrip("\n")
    if placement.content is None:
        return text, alone
    return text, append_case(placement.content, text, draft)


def _write_copy(scratch: Path, placement: CasePlacement, content: str) -> Case:
    """Write a case file, with copies of the helpers of its family, and return its new case."""
    # A copy: nothing is written into the project before the case has run.
    folder = scratch / "whole" / placement.folder.name
    try:
        folder.mkdir(parents=True)
        # The file may import its helpers relatively.
        for helper in placement.folder.glob("_*.py"):
            shutil.copy(helper, folder)
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be written: {error}") from error
    return write_cases(folder / placement.file.name, content)[placement.name]
