"""Tries a script and drafts of a case; chooses the first draft that behaves like the script."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.corpus.discovery import discover
from conformance.engine.job import Job
from conformance.engine.plan import find_exclusion_reason
from conformance.engine.runs.stored_job import StoredJob, load_value
from conformance.errors import UsageError
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.search.equivalence import SILENT, format_ending, is_same_failure, shorten
from conformance.search.prober import make_unrun_record
from conformance.triage.new.case_file import create_file, render_case
from conformance.triage.new.draft import DraftOptions, make_draft
from conformance.triage.new.reference import has_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.value import Value
    from conformance.triage.new.case_file import Declarations
    from conformance.triage.new.draft import Draft
    from conformance.triage.new.script import Script

ROUNDS: Final = 3
"""Rounds of trials: each may find more values that are no arrays."""
ABSENCE_ERRORS: Final = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})
"""Errors of a release that does not have a name yet."""
# Messages of `worker.values`, `worker.stages` and `engine.dependencies`.
_NOT_AN_ARRAY: Final = re.compile(r"^(out\S*) is an? .+, expected an array or a Python scalar")
_NOTHING: Final = "the case captured nothing"
_MISSING: Final = re.compile(r"imports '(\w+)', and the cell has no package of that name")
_ASSERTIONS: Final = frozenset({"AssertionError", "exit", "SystemExit"})
"""Errors by which a script reports a wrong value."""
_INCOMPLETE: Final = frozenset({"NameError", "SyntaxError", "IndentationError"})
_NOT_RUN: Final = frozenset({Outcome.INFRA, Outcome.NOT_RUN})
_ORDER: Final = (
    (
        DraftOptions(kind="program", use_compat=True),
        DraftOptions(kind="program"),
        DraftOptions(use_compat=True),
        DraftOptions(),
        DraftOptions(use_compat=True, as_conditions=True),
        DraftOptions(as_conditions=True),
    ),
    (DraftOptions(use_compat=True, only_runs=True), DraftOptions(only_runs=True)),
)
"""Options from the most to the least informative; the second group only if the first fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRunner:
    """Runs cases in the cells of all releases.

    Attributes:
        cells: One for each release, oldest first.
        job_runner: Runs jobs.
        width: Jobs at the same time.
    """

    cells: Sequence[PlannedCell]
    job_runner: JobRunner
    width: int

    @property
    def releases(self) -> list[str]:
        """The releases."""
        return [planned.release for planned in self.cells]

    def run(self, cases: Sequence[Case], numbers: Iterable[int]) -> dict[str, dict[int, Record]]:
        """Run cases in some cells.

        Args:
            cases: The cases.
            numbers: Numbers of the cells.

        Returns:
            The judged records, by name of the case and number of the cell.
        """
        found: dict[str, dict[int, Record]] = {case.name: {} for case in cases}
        jobs: dict[tuple[str, str], tuple[Job, int]] = {}
        for number in numbers:
            for case in cases:
                planned = self.cells[number]
                # A case may not apply to a cell, e.g. by its number of devices; that is a result,
                # too.
                if reason := find_exclusion_reason(case, planned):
                    record = make_unrun_record(case.id, case.content_hash, planned, reason)
                    found[case.name][number] = replace(record, verdict=Verdict.EXCLUDED)
                else:
                    job = Job(case=case, planned=planned)
                    jobs[job.id] = job, number
        for job, record in self.job_runner.run(job for job, _ in jobs.values()):
            # Results arrive in any order.
            found[job.case.name][jobs[job.id][1]] = record
        return found

    def load_value(self, record: Record) -> Value:
        """Return the value that a job observed."""
        return load_value(StoredJob(record, self.job_runner.blobs))


def write_cases(file: Path, text: str) -> Mapping[str, Case]:
    """Write a file of cases, and return them by name.

    Args:
        file: A temporary file.
        text: Its content.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return {case.name: case for case in discover([file])}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDraft:
    """A draft with its results.

    Attributes:
        draft: The draft.
        case: The temporary case that it was tried as.
        records: Its records, by number of the cell.
        compat_only: Numbers of the cells in which it runs and the script does not:
            `env.compat` has names that the release does not have.
    """

    draft: Draft
    case: Case
    records: Mapping[int, Record]
    compat_only: tuple[int, ...] = ()


def refuse_unusable_script(script_records: Mapping[int, Record], name: str) -> None:
    """Refuse a script of which no case can be made, by its results.

    Args:
        script_records: Records of the script itself, by number of the cell.
        name: Name of the script.

    Raises:
        UsageError: If it lacks a package or a file everywhere, is incomplete, or never ends.
    """
    # A silent result, e.g. of a missing environment, refuses a script only if there is no other.
    known = [record for record in script_records.values() if record.outcome not in SILENT]
    if not known:
        endings = "; ".join({format_ending(record) for record in script_records.values()})
        if missing := _MISSING.search(endings):
            raise UsageError(
                f"{name}: needs the package {missing[1]}, which no cell has; a case may use jax, "
                "numpy, scipy and flax"
            )
        raise UsageError(f"{name}: failed to start on every release tried: {shorten(endings)}")
    errors = [record.error for record in known if record.error is not None]
    # It runs on some release: its failures on others are the subject of the case.
    if len(errors) < len(known):
        return
    last = errors[-1]
    if last.type == "FileNotFoundError":
        raise UsageError(f"{name}: reads a file: {last.message}; make its contents in the script")
    if all(record.outcome is Outcome.TIMED_OUT for record in known):
        raise UsageError(f"{name}: {last.message} on any release tried; raise it with --timeout")
    if all(error.type in _INCOMPLETE for error in errors):
        raise UsageError(f"{name}: is incomplete: {last.type}: {last.message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTrials:
    """Tries drafts of one case.

    Attributes:
        script: The script.
        runner: Runs the drafts.
        folder: A temporary folder for their files.
        declarations: Their decorators and docstrings.
        name: Name of the script.
    """

    script: Script
    runner: CaseRunner
    folder: Path
    declarations: Declarations
    name: str

    def choose(self, numbers: Sequence[int], script_records: Mapping[int, Record]) -> TriedDraft:
        """Return the first draft that behaves like the script.

        Args:
            numbers: Numbers of the cells to try the drafts in.
            script_records: Records of the script itself in these cells.

        Raises:
            UsageError: If no draft does; the message has the difference of the last draft.
        """
        difference = ""
        absent = _find_absent(script_records)
        for tried in (tried for group in _ORDER for tried in self._try_drafts(group, numbers)):
            # `env.compat` has names that the release lacks, so the case may run where its script
            # fails.
            skipped = absent if tried.draft.compat_names else ()
            differing = [
                number
                for number, record in sorted(tried.records.items())
                if number not in skipped
                and number in script_records
                and not is_same_behavior(
                    record, script_records[number], catches_error=self.script.catches_error
                )
            ]
            if not differing:
                ran = (n for n in skipped if tried.records[n].outcome is Outcome.OK)
                return replace(tried, compat_only=tuple(ran))
            number = differing[-1]
            difference = (
                f"on {self.runner.releases[number]} the script ends with "
                f"{_summarize(script_records[number])}, a case of it with "
                f"{_summarize(tried.records[number])}"
            )
        raise UsageError(
            f"{self.name}: no case shows the same: {difference}{_suggest_fix(difference)}"
        )

    def _try_drafts(
        self, order: Sequence[DraftOptions], numbers: Sequence[int]
    ) -> list[TriedDraft]:
        """Try drafts, and try them again with values as text that turn out to be no arrays."""
        pending = dict(enumerate(order))
        found: dict[int, TriedDraft] = {}
        for _ in range(ROUNDS):
            # All drafts of a round are one run: their jobs share the start of the workers.
            drafts: dict[int, Draft] = {}
            for key, options in pending.items():
                draft = make_draft(self.script, options)
                # Options that give the same body would only run it twice.
                if draft and draft.body not in {other.body for other in drafts.values()}:
                    drafts[key] = draft
            cases = {key: self._write_draft(f"draft_{key}", drafts[key]) for key in drafts}
            records = self.runner.run([*cases.values()], numbers)
            pending = {}
            for key, case in cases.items():
                found[key] = TriedDraft(draft=drafts[key], case=case, records=records[case.name])
                options = self._make_observable(found[key])
                if options != drafts[key].options:
                    pending[key] = options
            if not pending:
                break
        return [found[key] for key in sorted(found)]

    def _write_draft(self, name: str, draft: Draft) -> Case:
        """Write a draft into a separate file; return its case."""
        # A file for each draft: an import that fails must not fail the others.
        file = create_file(render_case(draft, name, self.declarations), draft, "A draft.")
        return write_cases(self.folder / f"{name}.py", file)[name]

    def _make_observable(self, tried: TriedDraft) -> DraftOptions:
        """Return the options with which all values of a draft can be observed."""
        options, paths = tried.draft.options, tried.draft.paths
        as_text, as_type = set(options.as_text), set(options.as_type)
        for record in tried.records.values():
            message = record.error.message if record.error is not None else ""
            if match := _NOT_AN_ARRAY.match(message):
                as_text |= _find_numbers(paths, match[1])
            elif _NOTHING in message:
                # The message does not name the value.
                as_text |= {*range(len(paths))}
            elif record.outcome is Outcome.OK and has_address(self.runner.load_value(record)):
                # A text with an address differs in each process, and would never be the same on two
                # releases.
                as_type |= as_text
        return replace(options, as_text=frozenset(as_text), as_type=frozenset(as_type))


def _find_numbers(paths: Sequence[str], where: str) -> set[int]:
    """Return the number of the value at a path; all numbers if the path is unknown."""
    found = {
        number
        for number, path in enumerate(paths)
        if where == path or where.startswith((f"{path}[", f"{path}."))
    }
    return found or {*range(len(paths))}


def _find_absent(script_records: Mapping[int, Record]) -> tuple[int, ...]:
    """Return the cells that lack a name which the script uses: older than all that have it."""
    ran = [number for number, record in script_records.items() if record.outcome is Outcome.OK]
    return tuple(
        number
        for number, record in script_records.items()
        if record.error is not None and record.error.type in ABSENCE_ERRORS
        # Only older releases: a name that a newer one removed is the subject of the script.
        and number < min(ran, default=0)
    )  # fmt: skip


def is_same_behavior(
    case_record: Record, script_record: Record, *, catches_error: bool = False
) -> bool:
    """Return whether a case behaves like its script.

    Args:
        case_record: Record of the case.
        script_record: Record of the script.
        catches_error: Whether the script catches the exception that the case raises.
    """
    outcomes = {case_record.outcome, script_record.outcome}
    # A job that was not run contradicts nothing.
    if outcomes & _NOT_RUN:
        return True
    # XLA aborts for an unknown flag: the script crashes, and the worker reports it as unsupported.
    if Outcome.UNSUPPORTED in outcomes:
        return Outcome.OK not in outcomes
    ran = case_record.outcome is Outcome.OK
    deviates = case_record.conformance is Conformance.DEVIATES
    error, expected = case_record.error, script_record.error
    if expected is None:
        return not deviates if ran else catches_error and case_record.outcome is Outcome.RAISED
    # A case observes the value, and its reference takes the place of the assertion.
    if expected.type in _ASSERTIONS:
        return deviates if ran else error is not None and error.type in _ASSERTIONS
    return (
        error is not None
        and not ran
        and (
            error.type == expected.type
            or is_same_failure(format_ending(case_record), format_ending(script_record))
            # The message of a crash or a timeout depends on how the program was started.
            or case_record.outcome is script_record.outcome is not Outcome.RAISED
        )
    )


def _summarize(record: Record) -> str:
    if record.conformance is Conformance.DEVIATES and record.outcome is Outcome.OK:
        return "another value than it asserts"
    return shorten(format_ending(record))


def _suggest_fix(difference: str) -> str:
    if "FileNotFoundError" in difference:
        return "; a case reads no files: make their contents in the script"
    if "SystemExit" in difference or "exited with status" in difference:
        return "; remove the call that ends the interpreter"
    return ""
