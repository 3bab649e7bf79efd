"""The cases of a run: those that it selects, and those of further folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.corpus.case_selection import select_sample
from conformance.corpus.discovery import discover, find_case_files
from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.model.case import Case


def choose_cases(context: ProjectContext, request: RunRequest) -> tuple[tuple[Case, ...], int]:
    """Return the cases of a run: without any argument, the sample of the project.

    Args:
        context: The project.
        request: The request of the run; one with `--matrix` or `--cell` is no smoke run.

    Returns:
        The cases, and the number of cases to choose from.

    Raises:
        UsageError: If `--all` is combined with a SELECT, or a case file is broken.
    """
    if request.everything and request.select:
        raise UsageError(f"--all with SELECT ({' '.join(request.select)}): give one of them")
    cases = list_cases(context, request)
    if request.everything or request.select or request.matrix or request.cell:
        return cases, len(cases)
    return select_sample(cases, context.project.cases), len(cases)


def list_cases(context: ProjectContext, request: RunRequest) -> tuple[Case, ...]:
    """Return all cases that a run may have.

    Args:
        context: The project.
        request: The request of the run.
    """
    cases = context.select_cases(request.select)
    # A folder of proposed cases has none until there is one, which is no error every night before.
    files = dict.fromkeys(file for folder in request.also for file in find_case_files(Path(folder)))
    more = discover(files, context.case_index) if files else ()
    return tuple({case.id: case for case in (*cases, *more)}.values())
