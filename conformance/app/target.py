"""A target: a case, a program, or a test of a suite, with its name, tolerance and locks."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from conformance.app.session import Session
from conformance.app.suite_target import SuiteTest
from conformance.judge.tolerance import Tolerance
from conformance.model.case import Case
from conformance.triage.programs.program import ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.engine.preparation import Preparation

    Prepare = Callable[[Iterable[Cell]], Preparation]

Target: TypeAlias = Case | ProgramTarget | SuiteTest


def name_of(target: Target) -> str:
    """Return the id of a case, else the text that named the target."""
    return target.id if isinstance(target, Case) else target.text


def tolerance_of(target: Target) -> Tolerance:
    """Return how far values of a target may differ: what a case states, else the default."""
    return Tolerance.of(target) if isinstance(target, Case) else Tolerance()


def preparer_of(context: ProjectContext, target: Target, wanted: tuple[str, ...]) -> Prepare:
    """Return what looks up the locks of cells for a target.

    Args:
        context: The project.
        target: The target.
        wanted: What cells of a case get in addition to their own packages. A program finds its
            requirements where it runs, and a test of a suite knows its own.
    """
    if isinstance(target, SuiteTest):
        return target.prepare
    needed = wanted if isinstance(target, Case) else ()
    return partial(Session(context=context).prepare, wanted=needed)


def log_name_of(target: Target, question: str) -> str:
    """Return the name of the folder in which searches about a target are logged.

    Args:
        target: The target.
        question: The words that name the question.
    """
    name = name_of(target)
    digest = hashlib.sha256(f"{name}\0{question}\0{Path.cwd()}".encode()).hexdigest()[:12]
    word = "".join(sign if sign.isalnum() else "-" for sign in Path(name).name)[:40]
    return f"{word.strip('-')}-{digest}"
