"""Comparing what `conformance diff` names: two files, two cells of a run, or two runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.app.diff.inputs import (
    STDIN,
    describe_missing_cell,
    describe_wrong_names,
    is_cell_name,
    is_file,
    load_records,
    read_text,
    select_recorded_cases,
    select_recorded_cells,
)
from conformance.engine.job_comparison import (
    IrLevel,
    compare_irs_of_job,
    compare_jobs,
    load_ir_text,
)
from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.runs.suite_changes import are_suite_tests, compare_cells, compare_runs
from conformance.engine.runs.transitions import make_transition
from conformance.errors import NothingSelectedError, UsageError
from conformance.ir.graph import IRS, IrSyntaxError, kind_of_artifact
from conformance.ir.text_diff import diff_texts
from conformance.model.run import RunCase
from conformance.report.diff_data import (
    JobsDiff,
    NormalForms,
    SuiteDiff,
    TextDiff,
    make_normal_form,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.runs.directory import RunDirectory

    CompletePair = tuple[StoredJob, StoredJob, RunCase]
    Track = Callable[[Sequence[CompletePair]], Iterable[CompletePair]]
    Diff = NormalForms | TextDiff | JobsDiff | SuiteDiff

PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """Options of `conformance diff`.

    Attributes:
        cells: Selectors of cells.
        run: The run with these cells, None for the newest.
        irs: The IRs to compare, by artifact; empty for those that differ for a reason of their
            own.
        between: Two IRs of each job, which are compared instead of jobs.
        kind: The kind of IR in files, None to recognise it.
        level: The normal form in which IRs must be equal.
        only_changed: Whether IRs, and jobs without a change, are left out.
        complete: Whether IRs with equal fingerprints are read too, for their facts.
    """

    cells: tuple[str, ...] = ()
    run: str | None = None
    irs: tuple[str, ...] = ()
    between: tuple[str, str] | None = None
    kind: str | None = None
    level: IrLevel = IrLevel.EXACT
    only_changed: bool = False
    complete: bool = False


@dataclass(frozen=True, slots=True)
class JobPair:
    """The jobs of one case on two sides; a side without the case is None."""

    before: StoredJob | None
    after: StoredJob | None
    case: RunCase

    @property
    def both(self) -> CompletePair | None:
        """Both jobs and their case, None if one job is missing."""
        if self.before is None or self.after is None:
            return None
        return self.before, self.after, self.case


def compare_named(
    context: ProjectContext, names: Sequence[str], options: DiffOptions, track: Track
) -> Diff:
    """Compare two files, cases in cells of a run, or two runs, whichever the names mean.

    Args:
        context: The project.
        names: Two files or one; or two runs, then cases; or cases.
        options: The options.
        track: Iterates over pairs of jobs and shows the progress.

    Raises:
        UsageError: If names or options contradict each other, or mean nothing.
        NothingSelectedError: If there is nothing to compare.
    """
    if options.only_changed and (options.irs or options.between):
        raise UsageError("--only-changed leaves IRs out: give no --ir or --between with it")
    if any(map(is_file, names)):
        _refuse_job_options(names, options)
        return _compare_files(names, options)
    if options.kind is not None:
        raise UsageError("--kind says what files hold; jobs of runs are chosen with --ir")
    # Only the first two names may be runs; those after them are cases, which may be called alike.
    runs = [(name, run) for name in names[:PAIR] if (run := context.runs.find(name)) is not None]
    # Names of runs win over selectors of cells: a folder may be called like a release.
    if not runs and len(names) >= PAIR and all(is_cell_name(context, n) for n in names[:PAIR]):
        if options.cells:
            raise UsageError(
                f"--cell {options.cells[0]}: {' and '.join(names[:PAIR])} are the cells already"
            )
        # `diff A B CASE` is a short form of `diff --cell A --cell B CASE`.
        options, names = replace(options, cells=tuple(names[:PAIR])), names[PAIR:]
    if runs and options.run is not None:
        raise UsageError(f"--run {options.run}: {runs[0][0]} is a run already, expected only one")
    if len(runs) == PAIR:
        both = runs[0][1], runs[1][1]
        return _compare_runs(context, both, names[PAIR:], options, track)
    if runs or not options.cells:
        raise UsageError(describe_wrong_names(context, names, [name for name, _ in runs]))
    run = context.runs.open(options.run)
    if options.between is not None:
        return _compare_irs(context, run, names, options.between, options)
    return _compare_cells(context, run, names, options, track)


def _refuse_job_options(names: Sequence[str], options: DiffOptions) -> None:
    """Refuse options about jobs where files are compared."""
    about_jobs = {
        "--cell": options.cells, "--run": options.run, "--ir": options.irs,
        "--between": options.between, "--only-changed": options.only_changed,
    }  # fmt: skip
    # Refused, not ignored: an ignored --cell would look like an answer about that cell.
    for name, given in about_jobs.items():
        if given:
            raise UsageError(f"{name} is about jobs of runs, got files: {' '.join(names)}")


def _compare_files(names: Sequence[str], options: DiffOptions) -> TextDiff | NormalForms:
    """Compare two files, or return the normal form of one."""
    if len(names) > PAIR:
        raise UsageError(f"got {len(names)} files, expected two to compare, or one to print")
    if names.count(STDIN) == PAIR:
        raise UsageError("- is standard input, which can be only one of the two")
    # Both texts are read before their kinds are compared, so that a missing file is the first
    # error.
    texts = [read_text(name, options.kind) for name in names]
    kinds = [text.kind for text in texts]
    if len(set(kinds)) > 1:
        mismatch = ", ".join(f"{n} is {k}" for n, k in zip(names, kinds, strict=True))
        raise UsageError(f"{mismatch}; expected two texts of one kind")
    for name, text in zip(names, texts, strict=True):
        try:
            if len(names) == 1:
                form = make_normal_form(text)
                return NormalForms(text=form["text"], data=form)
            # Parsed here although `diff_texts` would do it: only here is the name of the file
            # known.
            text.module()
        except IrSyntaxError as error:
            raise UsageError(f"{name}: {error}") from None
    return TextDiff(names=(names[0], names[1]), diff=diff_texts(*texts), level=options.level)


def _compare_cells(
    context: ProjectContext,
    run: RunDirectory,
    selects: Sequence[str],
    options: DiffOptions,
    track: Track,
) -> NormalForms | SuiteDiff | JobsDiff:
    """Compare the first cell with the others; of a single cell, return the normal forms."""
    records = load_records(run)
    cases = select_recorded_cases(selects, records, run.id)
    # The first cell is the side before; each other cell is compared with it, not with the next.
    base, *others = select_recorded_cells(context, run, options.cells)
    jobs = {key: StoredJob(record, run.blobs) for key, record in records.items()}
    if not others:
        stored = [jobs[case, base] for case in cases if (case, base) in jobs]
        return _make_normal_forms(stored, run, options)
    info = run.read_run()
    names = (base, " or ".join(others))
    # Tests of a suite have no IR: their outcomes are compared by test instead.
    if not options.irs and are_suite_tests(info, cases):
        return SuiteDiff(names=names, changes=compare_cells(records, cases, base, others))
    pairs = [
        JobPair(jobs.get((case, base)), jobs.get((case, other)), info.cases.get(case, RunCase()))
        for case in cases
        for other in others
    ]
    return _compare_pairs(pairs, names, options, track)


def _compare_irs(
    context: ProjectContext,
    run: RunDirectory,
    selects: Sequence[str],
    names: tuple[str, str],
    options: DiffOptions,
) -> JobsDiff:
    """Compare two IRs of each job of the chosen cells."""
    if options.irs or len({kind_of_artifact(name) for name in names}) > 1:
        raise UsageError(f"--between {' '.join(names)}: expected two of one kind, and no --ir")
    records = load_records(run)
    cases = select_recorded_cases(selects, records, run.id)
    chosen = [
        StoredJob(records[case, cell], run.blobs)
        for case in cases
        for cell in select_recorded_cells(context, run, options.cells)
        if (case, cell) in records
    ]
    jobs = [job for side in chosen if (job := compare_irs_of_job(side, *names)) is not None]
    if not jobs:
        raise NothingSelectedError(
            f"no job selected of {run.id} has both {names[0]} and {names[1]}, expected one"
        )
    return JobsDiff(names=names, jobs=jobs, level=options.level)


def _compare_runs(
    context: ProjectContext,
    runs: tuple[RunDirectory, RunDirectory],
    selects: Sequence[str],
    options: DiffOptions,
    track: Track,
) -> SuiteDiff | JobsDiff:
    a, b = runs
    if options.between is not None:
        raise UsageError(f"--between is about jobs of one run, got two; choose it: --run {a.id}")
    ours, theirs = load_records(a), load_records(b)
    # Keys in the order of the first run, then those that only the second run has.
    both = {**ours, **theirs}
    cases = set(select_recorded_cases(selects, both, f"{a.id} and {b.id}"))
    cells = {cell for _, cell in both}
    if options.cells:
        # A cell may be in one run only; a selector must match in at least one of them.
        named = [select_recorded_cells(context, run, options.cells, strict=False) for run in runs]
        known, cells = cells, {*named[0], *named[1]}
        if not cells:
            raise UsageError(describe_missing_cell(options.cells[0], f"{a.id} and {b.id}", known))
    keys = [key for key in both if key[0] in cases and key[1] in cells]
    infos = a.read_run(), b.read_run()
    names = (a.id, b.id)
    if not options.irs and all(are_suite_tests(info, cases) for info in infos):
        return SuiteDiff(names=names, changes=compare_runs(infos, (ours, theirs), keys))
    # A case may be in one run only; where both describe it, the second run counts.
    described = {**infos[0].cases, **infos[1].cases}
    pairs = [
        JobPair(
            StoredJob(ours[key], a.blobs) if key in ours else None,
            StoredJob(theirs[key], b.blobs) if key in theirs else None,
            described.get(key[0], RunCase()),
        )
        for key in keys
    ]
    return _compare_pairs(pairs, names, options, track)


def _compare_pairs(
    pairs: Sequence[JobPair], names: tuple[str, str], options: DiffOptions, track: Track
) -> JobsDiff:
    """Compare the pairs that have both jobs."""
    whole = [both for pair in pairs if (both := pair.both) is not None]
    if not whole:
        raise NothingSelectedError(
            f"no case selected has a job in both {names[0]} and {names[1]}, expected one; another "
            "run is named with --run, `conformance run` makes one"
        )
    # None compares all IRs, an empty tuple none.
    irs = () if options.only_changed else options.irs or None
    # Equal fingerprints spare reading and parsing two IRs.
    quick = not options.complete
    jobs = [compare_jobs(before, after, irs, quick=quick) for before, after, _ in track(whole)]
    # Jobs of one side are listed, not compared: a case that was not run is no difference.
    single = [pair for pair in pairs if pair.both is None]
    return JobsDiff(
        names=names, jobs=jobs, level=options.level, only_changed=options.only_changed,
        transitions=[make_transition(*both) for both in whole],
        alone=(_name_jobs(p.before for p in single), _name_jobs(p.after for p in single)),
    )  # fmt: skip


def _name_jobs(sides: Iterable[StoredJob | None]) -> list[str]:
    """Return the jobs in words, each once."""
    names = (f"{one.record.case} on {one.record.cell}" for one in sides if one is not None)
    # With several cells after the first, its job is on the left of each of these pairs.
    return list(dict.fromkeys(names))


def _make_normal_forms(
    jobs: Sequence[StoredJob], run: RunDirectory, options: DiffOptions
) -> NormalForms:
    """Return the normal forms of the IRs of jobs."""
    irs = options.irs or IRS
    texts = [(job.record, text) for job in jobs for ir in irs if (text := load_ir_text(job, ir))]
    if not texts:
        raise NothingSelectedError(
            f"{run.path} holds no {' or '.join(irs)} of what is selected, "
            "expected one to print; name a second --cell to compare"
        )
    forms: list[dict[str, Any]] = []
    for record, text in texts:
        where = {"case": record.case, "cell": record.cell, "ir": text.kind}
        try:
            forms.append({**where, **make_normal_form(text)})
        except IrSyntaxError as error:
            raise UsageError(f"{record.case} on {record.cell}: {error}") from None
    return NormalForms(text="\n".join(form["text"] for form in forms), data=forms)
