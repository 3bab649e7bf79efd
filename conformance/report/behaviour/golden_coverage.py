"""The state of JAX as goldens and declared deviations have it: a page of the repository."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.transitions import COUNTED, TransitionKind
from conformance.golden.spans import parse_version
from conformance.judge.conformance import select_deviations
from conformance.model.run import RunCell
from conformance.report.markup import fold, to_table
from conformance.report.tracks import Track, group_tracks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import Job
    from conformance.engine.plan import Plan
    from conformance.model.case import Case

HEAD: Final = """\
# What JAX does, release by release

Made by `conformance report --goldens` from the goldens and the declared deviations of the cases:
what was run, reviewed and recorded, each release with the dependencies of its date. `56 of 59` are
the cases that do what their own reference says, of those that the release can run; the others are
declared deviations, each with its reason and its upstream thread in the case's file. What a
release changed is seen against the one before: `regressed` and `fixed` by those references,
`changed` is another ending, another value beyond the tolerance or another message.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The recorded outcome of a case in a cell.

    Attributes:
        ending: Name of the golden content with its ending: equal names are equal endings.
        deviates: True if a deviation is declared for it.
    """

    ending: str
    deviates: bool

    @classmethod
    def of(cls, job: Job, ending: str) -> Recorded:
        """Return the recorded outcome of a job; its case declares the deviations."""
        planned = job.planned
        covered = select_deviations(
            job.case, planned.release, planned.cell.platform, planned.versions
        )
        return cls(ending=ending, deviates=bool(covered))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStep:
    """A case that a release changed."""

    case: Case
    kind: TransitionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedState:
    """The recorded outcomes of all cases.

    Attributes:
        plan: Every case in every cell.
        recorded: Recorded outcomes by case id and cell id.
        dates: Day of each release.
        root: Folder of the project; paths are shown relative to it.
    """

    plan: Plan
    recorded: Mapping[tuple[str, str], Recorded]
    dates: Mapping[str, str]
    root: Path


def render_state(state: RecordedState) -> str:
    """Return the page, Markdown with links that are relative to a folder of the project.

    Args:
        state: The recorded outcomes.
    """
    # Tracks are those of runs, so that pages of goldens and of runs name places alike.
    cells = (
        RunCell(id=p.cell.id, versions=dict(p.versions)) for p in state.plan.cells if p.versions
    )
    return "\n".join([HEAD, *(_render_track(track, state) for track in group_tracks(cells))])


def _render_track(track: Track, state: RecordedState) -> str:
    members = {cell.id for cell in track.cells}
    jobs = [job for job in state.plan.jobs if job.planned.cell.id in members]
    families = sorted({job.case.family for job in jobs})
    numbers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for job in jobs:
        recorded = state.recorded.get(job.id)
        # A job without a golden counts in no share: its conformance was never reviewed.
        if recorded is not None:
            numbers[job.planned.cell.id, job.case.family].update(
                all=1, conforming=int(not recorded.deviates)
            )
    changes = _find_steps(track, {job.case.id: job.case for job in jobs}, state)
    overview = _render_table(track, numbers, changes, state.dates)
    folds = [
        fold(f"{release}: {_summarize_steps(steps)}", "\n".join(_render_steps(steps, state.root)))
        for release, steps in changes
        if steps
    ]
    parts = [
        f"## {track.name}",
        overview,
        _render_families(track, families, numbers),
        "\n".join(folds),
    ]
    return "\n\n".join(parts)


def _find_steps(
    track: Track, cases: Mapping[str, Case], state: RecordedState
) -> list[tuple[str, list[StateStep]]]:
    """Return what each release changed, the newest first."""
    found: dict[str, list[StateStep]] = {cell.release: [] for cell in track.cells}
    for name, case in sorted(cases.items()):
        # A release that has no golden is stepped over: its change is dated to the next that has.
        endings = [
            (cell.release, state.recorded[name, cell.id])
            for cell in track.cells
            if (name, cell.id) in state.recorded
        ]
        for (_, before), (release, after) in pairwise(endings):
            kind = classify_step(before, after)
            if kind is not TransitionKind.SAME:
                found[release].append(StateStep(case=case, kind=kind))
    return list(reversed(found.items()))


def classify_step(before: Recorded, after: Recorded) -> TransitionKind:
    """Classify a change between two releases from the point of view of an upgrade.

    Args:
        before: Recorded outcome in the older release.
        after: Recorded outcome in the newer release.
    """
    if before.deviates is not after.deviates:
        return TransitionKind.FIXED if before.deviates else TransitionKind.REGRESSED
    return TransitionKind.SAME if before.ending == after.ending else TransitionKind.CHANGED


def _render_table(
    track: Track,
    numbers: Mapping[tuple[str, str], Counter[str]],
    changes: Iterable[tuple[str, list[StateStep]]],
    dates: Mapping[str, str],
) -> str:
    """Return a table with a row for each release, the newest first: cases that conform, changes."""
    changed = {release: _summarize_steps(steps) for release, steps in changes}
    rows = [["release", "date", "conform", "against the one before"]]
    for cell in reversed(track.cells):
        found = sum((n for (name, _), n in numbers.items() if name == cell.id), Counter[str]())
        release = cell.release
        rows.append([release, dates.get(release, ""), _render_share(found), changed[release]])
    return to_table(rows)


def _render_families(
    track: Track, families: Sequence[str], numbers: Mapping[tuple[str, str], Counter[str]]
) -> str:
    """Return a folded table of shares: a row for each family, a column for each minor version."""
    # The cells are in the order of their releases, so the last patch of a minor version remains:
    # a column for each of more than 30 releases would not fit.
    lines = {_find_minor(cell.release): cell for cell in track.cells}
    rows = [["family", *(cell.release for cell in lines.values())]]
    rows += [
        [family, *(_render_share(numbers[cell.id, family]) for cell in lines.values())]
        for family in families
    ]
    return fold("By family", to_table(rows))


def _find_minor(release: str) -> str:
    """Return the minor version of a release: `0.6` for 0.6.2."""
    found = parse_version(release)
    return f"{found.major}.{found.minor}"


def _render_share(found: Counter[str]) -> str:
    return f"{found['conforming']} of {found['all']}" if found["all"] else "-"


def _summarize_steps(steps: Sequence[StateStep]) -> str:
    found = Counter(step.kind for step in steps)
    return ", ".join(f"{found[kind]} {kind}" for kind in COUNTED if found[kind])


def _render_steps(steps: Sequence[StateStep], root: Path) -> Iterator[str]:
    """Yield a line for each function; its parametrisations are named behind it."""
    functions: dict[tuple[TransitionKind, str], list[Case]] = defaultdict(list)
    for step in steps:
        functions[step.kind, step.case.id.partition("[")[0]].append(step.case)
    for kind in COUNTED:
        for (of, name), cases in functions.items():
            if of is kind:
                yield f"- {kind}: {_link_function(name, cases, root)}"


def _link_function(name: str, cases: Sequence[Case], root: Path) -> str:
    case = cases[0]
    file = case.file.relative_to(root) if case.file.is_relative_to(root) else case.file
    params = [case.id.partition("[")[2].removesuffix("]") for case in cases]
    named = f" ({', '.join(f'`{param}`' for param in params)})" if all(params) else ""
    # The first sentence of its docstring, in one line.
    about = " ".join(case.doc.partition("\n\n")[0].split())
    return f"[`{name}`](../{file}){named}: {about}".rstrip(": ")
