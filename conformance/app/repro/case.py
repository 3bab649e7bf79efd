"""The file of `conformance repro` for a case, run alone to check that it shows the same."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.app.output_files import check_writable, write_file
from conformance.app.repro.options import Reproduction, find_check_index, search_origin
from conformance.app.session import Session
from conformance.engine.job_comparison import compare_jobs
from conformance.engine.plan import make_plan
from conformance.errors import (
    ConformanceError,
    InfrastructureError,
    NothingSelectedError,
    UsageError,
)
from conformance.judge.variants import SAME_AS
from conformance.model.outcome import Conformance
from conformance.report.upstream_issue import UpstreamBug, render_issue
from conformance.triage.repro.embedded_modules import LARGEST, load_source
from conformance.triage.repro.observed_jobs import find_golden_span, load_jobs, run_plan
from conformance.triage.repro.verification import NotReproducedError, find_difference
from conformance.triage.repro.writer import ReproductionFile, write_reproduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.app.context import ProjectContext
    from conformance.app.repro.options import ReproOptions
    from conformance.cells.cell import Cell
    from conformance.engine.plan import Plan
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.case import Case
    from conformance.report.upstream_issue import FirstBadRelease
    from conformance.triage.repro.observed_jobs import ObservedJob

MOST: Final = 2
"""Cells of a reproduction: the bad cell, and a cell to compare with in the issue."""
TEST: Final = ".py::"
"""Part of the name of every test, and of no case."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
"""Characters of a case id that are replaced in a file name."""


def reproduce_case(
    context: ProjectContext, target: str, options: ReproOptions, say: Callable[[str], None]
) -> Reproduction:
    """Write the file of a case, and the text of an issue.

    Args:
        context: The project.
        target: The case.
        options: The options.
        say: Called with each step of the search for the first bad release, in a line.

    Raises:
        UsageError: If the target is no case, or options contradict each other.
        NothingSelectedError: If a cell cannot run the case.
        NotReproducedError: If the file does not end alone as the case did.
        InfrastructureError: If the cell cannot be provided.
    """
    # A call of a script is named FILE.py::NAME, too, and is a case.
    if TEST in target and not context.find_snapshots(target):
        raise UsageError(
            f"{target}: is a test of a suite, expected a case; its own file shows it: "
            f"conformance suite run --cell {options.cells[0]} --shrink {quote(target)}"
        )
    case = context.find_case(target)
    cells = [context.find_cell(text) for text in options.cells]
    if len(cells) > MOST:
        raise UsageError(f"got {len(cells)} cells, expected the one, and maybe one to compare with")
    if options.good is not None and not options.issue:
        raise UsageError(f"--good {options.good}: goes with --issue")
    # The search for the first bad release varies the release alone, as `search_origin` passes no
    # other option.
    if options.good is not None and not cells[0].is_plain:
        raise UsageError(
            f"--good {options.good}: goes with a plain cell of a release, got {cells[0].id}"
        )
    file = options.out or Path(_make_file_name(case, cells[0]))
    name = _make_file_name(case, cells[0]) if str(file) == "-" else file.name
    session = Session(context=context)
    wanted = session.build_requirements(options.wanted)
    source, embedded = load_source(case, wanted, _read_text)
    # The source is read first, because a case whose modules cannot be embedded needs no cell.
    plan, preparation = _plan_case(session, case, cells, wanted)
    # Before the case runs: minutes later, an unwritable file would be a loss.
    _check_outputs(file, options)
    failure: ConformanceError | None = None
    with _observe(session, plan, preparation, options.run) as jobs:
        if options.check:
            written, failure = _write_checked(session, jobs[0], wanted, name)
        else:
            written = write_reproduction(jobs[0].job, source, jobs[0].seen, name, embedded)
        # Written even if it does not reproduce, so that the user can find out why.
        write_file("--out", file, written.text.encode())
        if failure is not None:
            raise failure
        issue = ""
        if options.issue:
            origin = search_origin(context, case, cells[0], options, say)
            issue = render_issue(_make_upstream(jobs, written, origin))
    python = "uv run" if cells[0].interpreter is None else quote(str(cells[0].interpreter))
    return Reproduction(
        file=file, cell=cells[0].id, command=f"{python} {quote(str(file))}", checked=options.check,
        issue=issue, remarks=tuple(_render_remarks(jobs[0], written)),
    )  # fmt: skip


def _write_checked(
    session: Session, job: ObservedJob, wanted: tuple[str, ...], name: str
) -> tuple[ReproductionFile, ConformanceError | None]:
    """Return the file, and an error unless the file alone ends like the case.

    If a file with embedded packages fails the check, it is tried again with these packages as
    requirements: a package may need files other than its modules.
    """
    index = find_check_index(session.context, job.job.planned.versions)
    tried: list[tuple[ReproductionFile, ConformanceError]] = []
    for largest in (LARGEST, 0):
        source, embedded = load_source(job.job.case, wanted, _read_text, largest=largest)
        written = write_reproduction(job.job, source, job.seen, name, embedded)
        try:
            # The file runs in its own process, which does not know of the lock.
            with session.device_lock.acquire(job.job.planned.cell.place, lambda: None):
                difference = find_difference(written, job, name, index)
        except InfrastructureError as error:
            tried.append((written, InfrastructureError(f"{name}: could not be checked: {error}")))
            break
        if not difference:
            return written, None
        message = f"{name}: does not show alone what {job.job.case.id} showed: {difference}"
        tried.append((written, NotReproducedError(message)))
        # Nothing was embedded, so a second attempt would write the same file.
        if not embedded.packages:
            break
    # The first file stands alone; the second one would need packages that no index has.
    return tried[0]


def _check_outputs(file: Path, options: ReproOptions) -> None:
    """Check that the outputs can be written, and that at most one is standard output."""
    printed = {
        "--out -": str(file) == "-",
        "--json -": options.prints_json,
        "--issue": options.issue,
    }
    if sum(printed.values()) > 1:
        names = " and ".join(name for name, given in printed.items() if given)
        raise UsageError(f"{names} both print; expected one of them, name files for the others")
    check_writable("--out", file)


def _render_remarks(job: ObservedJob, written: ReproductionFile) -> Iterator[str]:
    """Yield remarks on what the file of a job does not show."""
    if written.unchecked_names:
        names = ", ".join(written.unchecked_names)
        silent = "ends with status 0 although the case deviates there: it "
        remark = f"does not assert {names}, which only the harness can check"
        # Only the harness runs the variants of `same_as`; other claims can be read off the printed
        # HLO.
        variants = all(name.startswith(f"{SAME_AS} ") for name in written.unchecked_names)
        remark += "" if variants else "; it prints the HLO"
        yield f"it {silent if written.silent else ''}{remark}"
    if job.seen.conformance is Conformance.CONFORMS:
        yield f"{job.job.case.id} conforms there: the file shows no fault"


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _make_file_name(case: Case, cell: Cell) -> str:
    name = _NO_NAME.sub("_", case.id.partition("/")[2]).strip("_")
    place = "" if cell.platform == "cpu" else f"_{_NO_NAME.sub('_', cell.platform)}"
    # The release of an environment is its path, which is no part of a file name.
    release = "path" if cell.interpreter is not None else cell.release.replace(".", "_")
    return f"repro_{name}_{release}{place}.py"


def _plan_case(
    session: Session, case: Case, cells: list[Cell], wanted: tuple[str, ...]
) -> tuple[Plan, Preparation]:
    preparation = session.prepare(cells, wanted)
    plan = make_plan([case], preparation.cells, preparation.exclusions)
    # One case in named cells: an exclusion leaves nothing to write.
    for left_out in plan.exclusions:
        raise NothingSelectedError(f"{case.id} on {left_out.cell}: {left_out.reason}")
    if cells[0].place.processes > 1:
        raise UsageError(
            f"{cells[0].id}: a file of its own is one process; "
            f"name a cell of one, e.g. --cell {cells[0].release}"
        )
    return plan, preparation


@contextlib.contextmanager
def _observe(
    session: Session, plan: Plan, preparation: Preparation, run: str | None
) -> Iterator[list[ObservedJob]]:
    if run is not None:
        # The issue is about the recorded result, from which a new run could differ.
        yield load_jobs(plan, session.context.runs.open(run))
        return
    with run_plan(
        plan, session.make_executor(preparation.locks), session.results, session.make_judge
    ) as jobs:
        yield jobs


def _make_upstream(
    jobs: list[ObservedJob], written: ReproductionFile, origin: FirstBadRelease | None
) -> UpstreamBug:
    compared = compare_jobs(jobs[1].side, jobs[0].side) if len(jobs) == MOST else None
    job = jobs[0].job
    return UpstreamBug(
        case=job.case,
        planned=job.planned,
        observation=jobs[0].seen.observation,
        reasons=jobs[0].seen.reasons,
        file=written.text,
        compared=compared,
        span=find_golden_span(job, jobs[0].seen.observation),
        history=origin.text if origin else "",
    )
