"""`conformance report --goldens`: the state and history of JAX as the project's goldens have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.corpus.behaviour_changes import load_families
from conformance.engine.plan import make_plan
from conformance.engine.runs.golden_history import (
    find_compatibility,
    find_golden_changes,
    find_recorded_outcomes,
)
from conformance.errors import ConformanceError
from conformance.files import write_atomically
from conformance.locking import lock_folders
from conformance.report.behaviour.compatibility import render_pairs
from conformance.report.behaviour.golden_coverage import Recorded, RecordedState, render_state
from conformance.report.behaviour.history import collect_histories
from conformance.report.behaviour.markdown import render_behaviour_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.app.context import ProjectContext

MATRICES: Final = ("releases", "platforms")
"""Matrices whose cells the page of the state has."""
HISTORY: Final = "docs/history"
"""Folder of the history, in the project."""


class StaleStateError(ConformanceError):
    """A committed page differs from the goldens."""

    exit_code = 1


def write_state(context: ProjectContext, file: Path, *, check: bool) -> None:
    """Write the pages, or check whether they are current.

    Args:
        context: The project.
        file: The page of the state; pages of the history are in `HISTORY`.
        check: Whether the pages are only compared with the goldens.

    Raises:
        StaleStateError: If a page is compared, and differs.
    """
    # A check takes no lock: CI may run it on a read-only checkout, and it writes nothing.
    if check:
        _check_pages(_render_pages(context, file))
        return
    # Goldens that are accepted in the meantime would be on some of the pages only.
    with lock_folders({context.project.cases}, print_note):
        for page, text in _render_pages(context, file).items():
            write_atomically(page, text.encode())


def _render_pages(context: ProjectContext, file: Path) -> dict[Path, str]:
    """Return every page by its path."""
    dates = {release.version: f"{release.date:%Y-%m-%d}" for release in context.releases.rows}
    folder = context.project.root / HISTORY
    pages = {folder / name: text for name, text in _render_history(context, dates)}
    # All pages are returned at once: an error while one is rendered leaves every old page.
    pages[file] = f"{_render_state(context, dates)}\n"
    return pages


def _check_pages(pages: Mapping[Path, str]) -> None:
    for page, text in pages.items():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            raise StaleStateError(
                f"{page}: differs from the goldens; regenerate it: conformance report --goldens"
            )


def _render_history(context: ProjectContext, dates: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    cases = context.select_cases(())
    families = load_families(context.project.cases)
    declared = [change for family in families.values() for change in family.change]
    found = collect_histories(cases, families, find_golden_changes(cases, declared))
    yield from render_behaviour_pages(found, dates, context.project.root)
    for name, family in families.items():
        if family.pairs:
            members = [case for case in cases if case.family == name]
            tables = find_compatibility(members, family.pairs, context.releases.versions)
            title = f"{name}: who reads what"
            yield f"{name}_pairs.md", render_pairs(title, tables, family.about_pairs)


def _render_state(context: ProjectContext, dates: Mapping[str, str]) -> str:
    cells = [cell for name in MATRICES for cell in context.select_cells(name, ())[0]]
    # Recorded cells need no Python or accelerator, so the page is the same on every host.
    plan = make_plan(context.select_cases(()), Session(context=context).plan_recorded(cells))
    recorded = {job.id: Recorded.of(job, ending) for job, ending in find_recorded_outcomes(plan)}
    root = context.project.root
    return render_state(RecordedState(plan=plan, recorded=recorded, dates=dates, root=root))
