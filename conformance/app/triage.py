"""The triage of a run: each root cause is investigated with the cells and files of a project."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.app.case_choice import list_cases
from conformance.app.investigation import Investigation, Services
from conformance.app.output_files import print_note
from conformance.app.run_request import load_request
from conformance.cells.cell import is_cell_id
from conformance.engine.runs.loader import add_evidence, forget_evidence, load_run, read_evidence
from conformance.engine.runs.root_causes import find_root_causes
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode
from conformance.model.run_files import Evidence
from conformance.triage.evidence import choose_representative, find_objection, render_evidence
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.cells.cell import Cell
    from conformance.engine.runs.directory import RunDirectory
    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.case import Case


class SkippedCause(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause that was not investigated.

    Attributes:
        cause: Id of the cause.
        reason: Reason of its jobs.
        why: Reason why it was not investigated.
    """

    cause: str
    # The key in the JSON is older than the name of the field, and scripts read it.
    reason: str = msgspec.field(name="said")
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageOptions:
    """The options of `conformance triage`.

    Attributes:
        limit: Maximum number of root causes to investigate, None for all.
        timeout: Seconds after which no investigation starts, None for no limit.
        blame: Whether to search for the package.
        fresh: Whether earlier evidence is removed.
        jax_location: Repository of jax in which commits are searched for, empty for no search.
        layers: Whether the layer is searched for.
    """

    limit: int | None
    timeout: float | None
    blame: bool
    fresh: bool
    jax_location: str = ""
    layers: bool = False


@dataclass(slots=True, kw_only=True)
class Triage:
    """The triage of one run.

    Attributes:
        context: The project.
        directory: The run.
        options: The options.
        say: Receives a line for each step.
        found: Evidence, in the order of the root causes.
        left_out: Root causes that were not investigated.
        jobs: Number of jobs of each root cause, by its id.
    """

    context: ProjectContext
    directory: RunDirectory
    options: TriageOptions
    say: Callable[[str], None]
    found: list[Evidence] = field(default_factory=list)
    left_out: list[SkippedCause] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status."""
        # First: the same command may find more once the host or the index answers again.
        if any(one.unfinished for one in self.found):
            return ExitCode.INFRA
        done = all(one.confirmed for one in self.found)
        return ExitCode.OK if done else ExitCode.UNEXPECTED

    @property
    def data(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {
            "run": self.directory.id, "jobs": self.jobs, "evidence": self.found,
            "left_out": self.left_out,
        }  # fmt: skip

    def run(self) -> None:
        """Investigate the root causes one by one, and write the evidence of each immediately.

        Raises:
            CorruptRunError: If the run cannot be read.
            InfrastructureError: If the disk refuses.
        """
        causes = find_root_causes(load_run(self.directory).records)
        if not causes:
            self.say("nothing is unexpected")
            return
        self.jobs = {cause.id: len(cause.records) for cause in causes}
        if self.options.fresh:
            forget_evidence(self.directory)
        known = read_evidence(self.directory)
        evidence = {one.id: known[one.id] for one in causes if one.id in known}
        request = load_request(self.directory)
        cases = {case.id: case for case in list_cases(self.context, request)}
        cells = self._find_cells(causes, request)
        # Largest first, so that a limit or a timeout leaves out the least.
        for number, cause in enumerate(causes, 1):
            # Only the first line: a message of XLA may be pages long.
            first = cause.reason.strip().partition("\n")[0][:200]
            self.say(f"{number}. {cause.id}, {plural(len(cause.records), 'job')}: {first}")
            if cause.id in evidence and not evidence[cause.id].unfinished:
                self._add(evidence[cause.id])
                continue
            if why := find_objection(cause) or self._find_reached_limit():
                self.left_out.append(SkippedCause(cause=cause.id, reason=cause.reason, why=why))
                self.say(f"  not looked into: {why}")
                continue
            evidence[cause.id] = self._investigate(cause, cells, cases, request)
            # Written after each cause, so that a killed triage loses one investigation at most.
            add_evidence(self.directory, evidence[cause.id], self.jobs, print_note)
            self._add(evidence[cause.id])

    def _find_cells(self, causes: Iterable[RootCause], request: RunRequest) -> Mapping[str, Cell]:
        """Return the cells of root causes, by id, without those that no longer exist."""
        wanted = dict.fromkeys(record.cell for cause in causes for record in cause.records)
        found = {}
        for name in filter(is_cell_id, wanted):
            try:
                found[name] = self.context.find_cell(name)
            except ConformanceError:
                continue
        # The id of an environment is a hash of its path, so only the selectors of the run find it.
        if found.keys() != wanted.keys():
            for text in request.cell:
                try:
                    found |= {cell.id: cell for cell in self.context.select_cells(None, [text])[0]}
                except ConformanceError:
                    continue
        return found

    def _investigate(
        self, cause: RootCause, cells: Mapping[str, Cell], cases: Mapping[str, Case],
        request: RunRequest,
    ) -> Evidence:  # fmt: skip
        """Return the evidence on a root cause; an error becomes part of the evidence."""
        first = cause.records[0]
        nothing = Evidence(cause=cause.id, case=first.case, cell=first.cell)
        services = Services(
            self.context, self.directory, request.wanted, self.options.fresh,
            lambda line: self.say(f"    {line}"), self.options.jax_location, self.options.layers,
        )  # fmt: skip
        try:
            record, case, cell = choose_representative(cause, cells, cases)
            return Investigation(
                services, cause.id, record, case, cell, self.options.blame
            ).collect()
        except ConformanceError as error:
            return msgspec.structs.replace(nothing, unresolved=(str(error),))
        except Exception as error:  # noqa: BLE001 - a fault of ours in one cause ends no other
            message = f"{type(error).__name__}: {error}; please report"
            return msgspec.structs.replace(nothing, unresolved=(message,), unfinished=True)

    def _find_reached_limit(self) -> str:
        """Return the limit that is reached, empty if another investigation may start."""
        timeout, limit = self.options.timeout, self.options.limit
        # Checked between causes only, so that an investigation that started has a result.
        if timeout is not None and time.monotonic() >= self._start + timeout:
            return "no time is left; the same command goes on"
        if limit is not None and len(self.found) >= limit:
            return f"{limit} were looked into; the same command goes on with a higher --limit"
        return ""

    def _add(self, found: Evidence) -> None:
        self.found.append(found)
        for line in render_evidence(found):
            self.say(f"  {line}")
