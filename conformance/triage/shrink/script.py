"""Shrinks a script while it fails, or prints something else than on another release.

The cuts are those of cases: a search cuts what a function needs, so that a script is the body of
one while it is cut. Each candidate is a process of its own in the environment of a cell.
"""

from __future__ import annotations

import ast
import itertools
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Outcome
from conformance.search.equivalence import SILENT, is_same_output, shorten
from conformance.triage.repro.layout import comment
from conformance.triage.shrink.candidate_trials import (
    CandidateTrials,
    ShrinkLimits,
    Shrunk,
    time_limit,
)
from conformance.triage.shrink.criteria import SameFailure, SameOutputDifference
from conformance.triage.shrink.layout import lines_of_code
from conformance.triage.shrink.results import ScriptResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.runner import ProgramRunner
    from conformance.triage.shrink.criteria import Criterion

BODY: Final = "_script_body"
"""Name of the function whose body a script is while it is cut."""


def wrapped(text: str) -> str:
    """Return a script as the body of a function.

    Imports that Python allows at the top of a module alone stay there.

    Args:
        text: The script.

    Raises:
        SyntaxError: If it is no Python.
    """
    tree, function = ast.parse(text), ast.parse(f"def {BODY}(): pass")
    body = [one for one in tree.body if not (_is_star(one) or _is_future(one))]
    function.body[0].body = body or [ast.Pass()]  # type: ignore[attr-defined]
    tree.body = [*filter(_is_star, tree.body), *function.body]
    return ast.unparse(tree)


def unwrapped(text: str) -> str:
    """Return the script that `wrapped` made a function of.

    Args:
        text: A module with that function.
    """
    body: list[ast.stmt] = []
    for node in ast.parse(text).body:
        inside = isinstance(node, ast.FunctionDef) and node.name == BODY
        body += node.body if inside else [node]  # type: ignore[attr-defined]
    return "".join(f"{ast.unparse(one)}\n" for one in body if not isinstance(one, ast.Pass))


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


@dataclass(kw_only=True)
class ScriptShrinker:
    """A script that is being shrunk.

    Attributes:
        runner: Runs the script.
        cell: The cell in which it fails, or prints something else.
        others: Cells in which it may be right, the likeliest first.
        named: Whether the other cell was named: then it must be right there.
        folder: A folder of its own.
        limits: How much the search may take.
        progress: Called with each step, in words.
    """

    runner: ProgramRunner
    cell: PlannedCell
    others: Iterable[PlannedCell]
    named: bool
    folder: Path
    limits: ShrinkLimits = field(default_factory=ShrinkLimits)
    progress: Callable[[str], None] = field(default=lambda _: None)

    def run(self) -> Shrunk:
        """Shrink the script.

        Raises:
            UsageError: If there is nothing to keep, or it does not do the same twice.
            InfrastructureError: If a cell cannot be had.
        """
        start, source, name = time.monotonic(), self.runner.target.source, self.runner.target.text
        try:
            text = wrapped(source)
        except SyntaxError as error:
            raise UsageError(f"{name}:{error.lineno}: no Python: {error.msg}") from None
        trials, cells = self._begin(start)
        about = trials.criterion.about
        if not trials.holds(text):
            raise UsageError(
                f"{self._where}: does not do the same twice, expected {about}; "
                "make it deterministic first (seeds, threads)"
            )
        search, complete, interrupted, confirmed = trials.search(text), False, False, False
        try:
            complete = search.run()
            confirmed = trials.holds(search.text)
        except KeyboardInterrupt:
            interrupted = True
        left, (cell, *good) = unwrapped(search.text), (one.cell.id for one in cells)
        head = [f"On {cell}: {about}", *(f"Not so on {one}." for one in good)]
        return Shrunk(
            text="\n".join(line for one in head for line in comment(one)) + f"\n\n{left}",
            about=about, cell=cell, good_cell="".join(good),
            before={"lines": lines_of_code(source)}, after={"lines": lines_of_code(left)},
            probes=trials.tried, seconds=time.monotonic() - start, complete=complete,
            interrupted=interrupted, confirmed=confirmed,
        )  # fmt: skip

    @property
    def _where(self) -> str:
        return f"{self.runner.target.text} on {self.cell.cell.id}"

    def _begin(
        self, start: float
    ) -> tuple[CandidateTrials[ProgramRunner, ScriptResult], list[PlannedCell]]:
        """Run the original script, determine what to keep, and return the trials of candidates."""
        self.progress("running the script as it is")
        bad = _run(self.runner, planned=self.cell)
        if bad.outcome in SILENT:
            kind = InfrastructureError if bad.outcome is Outcome.INFRA else UsageError
            raise kind(f"{self._where}: {bad.ending}")
        good_cell, criterion = self._criterion(bad)
        cells = [self.cell, *([good_cell] if good_cell is not None else [])]
        runner = replace(self.runner, timeout=time_limit(bad, self.runner.timeout))
        numbers = itertools.count()

        def prepare(text: str) -> ProgramRunner:
            file = self.folder / f"candidate_{next(numbers)}.py"
            file.write_text(unwrapped(text), encoding="utf-8")
            return replace(runner, target=replace(runner.target, text=str(file)))

        trials = CandidateTrials(
            keep=BODY, prepare=prepare, runs=[partial(_run, planned=one) for one in cells],
            criterion=criterion, limits=self.limits, start=start, progress=self.progress,
            lines=lambda text: lines_of_code(unwrapped(text)),
        )  # fmt: skip
        return trials, cells

    def _criterion(self, bad: ScriptResult) -> tuple[PlannedCell | None, Criterion[ScriptResult]]:
        """Return the cell in which the script is right, and what must stay."""
        fails, tried = bad.outcome is not Outcome.OK, []
        for planned in self.others:
            self.progress(f"looking for a cell in which it is right: {planned.cell.id}")
            other = _run(self.runner, planned=planned)
            tried.append(f"{planned.cell.id}: {shorten(other.ending)}")
            if other.outcome is Outcome.OK and fails:
                return planned, SameFailure(bad)
            if other.outcome is Outcome.OK and not is_same_output(bad.output, other.output):
                return planned, SameOutputDifference(bad, other)
        if fails and not self.named:
            return None, SameFailure(bad)
        raise UsageError(
            f"{self._where}: {shorten(bad.ending)}; expected a cell in which it does something "
            f"else ({'; '.join(tried) or 'none was looked for'}); name one with --good"
        )


def _run(runner: ProgramRunner, *, planned: PlannedCell) -> ScriptResult:
    return ScriptResult(runner.run(planned), runner.blobs)
