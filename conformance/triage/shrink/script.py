"""Shrinks a script while it fails, or while its output differs from that on another release.

The edits are those of cases: they cut everything that a function does not need. So the script is
the body of a function while it is cut. Each candidate is a process in the environment of a cell.
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
from conformance.triage.repro.layout import render_comment
from conformance.triage.shrink.case_text import count_lines
from conformance.triage.shrink.criteria import SameFailure, SameOutputDifference
from conformance.triage.shrink.report import ShrunkProgram
from conformance.triage.shrink.results import ScriptResult
from conformance.triage.shrink.search import CandidateTrials, ShrinkLimits, candidate_timeout
from conformance.triage.shrink.syntax import find_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.runner import ProgramRunner
    from conformance.triage.shrink.criteria import Criterion

BODY: Final = "_script_body"
"""Name of the function whose body a script is while it is cut."""


def wrap_script(text: str) -> str:
    """Return a script as the body of a function.

    Imports that Python allows only at the top of a module stay outside.

    Args:
        text: The script.

    Raises:
        SyntaxError: If it is not valid Python.
    """
    tree, wrapper = ast.parse(text), ast.parse(f"def {BODY}(): pass")
    # An import from `__future__` goes: `simplify` removes all annotations, and everything else is
    # in effect in Python 3.
    body = [node for node in tree.body if not (_is_star_import(node) or _is_future_import(node))]
    find_function(wrapper, BODY).body = body or [ast.Pass()]
    tree.body = [*filter(_is_star_import, tree.body), *wrapper.body]
    return ast.unparse(tree)


def unwrap_script(text: str) -> str:
    """Return the script that `wrap_script` made the body of a function.

    Args:
        text: A module with that function.
    """
    body: list[ast.stmt] = []
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name, body=inner) if name == BODY:
                body += inner
            case _:
                body.append(node)
    return "".join(f"{ast.unparse(node)}\n" for node in body if not isinstance(node, ast.Pass))


def _is_star_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


@dataclass(kw_only=True)
class ScriptShrinker:
    """Shrinks a script.

    Attributes:
        runner: Runs the script.
        cell: The cell in which it fails, or in which its output differs.
        others: Cells in which it may be right, the most likely first.
        is_good_named: Whether the user named the good cell: then the script must differ from it.
        folder: An empty folder.
        limits: Limits of the search.
        progress: Called with each step, in words.
    """

    runner: ProgramRunner
    cell: PlannedCell
    others: Iterable[PlannedCell]
    is_good_named: bool
    folder: Path
    limits: ShrinkLimits = field(default_factory=ShrinkLimits)
    progress: Callable[[str], None] = field(default=lambda _: None)

    def run(self) -> ShrunkProgram:
        """Shrink the script.

        Raises:
            UsageError: If there is nothing to keep, or it is flaky.
            InfrastructureError: If a cell cannot be provided.
        """
        start, source, name = time.monotonic(), self.runner.target.source, self.runner.target.text
        try:
            text = wrap_script(source)
        except SyntaxError as error:
            raise UsageError(f"{name}:{error.lineno}: not valid Python: {error.msg}") from None
        trials, cells = self._prepare_trials(start)
        about = trials.criterion.about
        if not trials.holds(text):
            raise UsageError(
                f"{self._where}: is flaky, expected {about}; "
                "make it deterministic first (seeds, threads)"
            )
        search, complete, interrupted, confirmed = trials.search(text), False, False, False
        try:
            complete = search.run()
            # Once more: a failure that depends on timing may have been met by accident.
            confirmed = trials.holds(search.text)
        except KeyboardInterrupt:
            interrupted = True
        left, (cell, *good) = unwrap_script(search.text), (planned.cell.id for planned in cells)
        head = [f"On {cell}: {about}", *(f"Not so on {other}." for other in good)]
        return ShrunkProgram(
            text="\n".join(line for text in head for line in render_comment(text)) + f"\n\n{left}",
            about=about, cell=cell, good_cell="".join(good),
            before={"lines": count_lines(source)}, after={"lines": count_lines(left)},
            probes=trials.tried, seconds=time.monotonic() - start, complete=complete,
            interrupted=interrupted, confirmed=confirmed,
        )  # fmt: skip

    @property
    def _where(self) -> str:
        return f"{self.runner.target.text} on {self.cell.cell.id}"

    def _prepare_trials(
        self, start: float
    ) -> tuple[CandidateTrials[ProgramRunner, ScriptResult], list[PlannedCell]]:
        """Run the original script, choose the criterion, and return the trials of candidates."""
        self.progress("running the script itself")
        bad = _run(self.runner, planned=self.cell)
        if bad.outcome in SILENT:
            kind = InfrastructureError if bad.outcome is Outcome.INFRA else UsageError
            raise kind(f"{self._where}: {bad.ending}")
        good_cell, criterion = self._choose_criterion(bad)
        cells = [self.cell, *([good_cell] if good_cell is not None else [])]
        runner = replace(self.runner, timeout=candidate_timeout(bad, self.runner.timeout))
        numbers = itertools.count()

        def prepare(text: str) -> ProgramRunner:
            # Candidates of one round run at the same time.
            file = self.folder / f"candidate_{next(numbers)}.py"
            file.write_text(unwrap_script(text), encoding="utf-8")
            return replace(runner, target=replace(runner.target, text=str(file)))

        trials = CandidateTrials(
            keep=BODY, prepare=prepare, runs=[partial(_run, planned=planned) for planned in cells],
            criterion=criterion, limits=self.limits, start=start, progress=self.progress,
            # Without the line of the function that the script is wrapped into.
            count_lines=lambda text: count_lines(unwrap_script(text)),
        )  # fmt: skip
        return trials, cells

    def _choose_criterion(
        self, bad: ScriptResult
    ) -> tuple[PlannedCell | None, Criterion[ScriptResult]]:
        """Return the good cell, and the criterion of candidates."""
        fails, tried = bad.outcome is not Outcome.OK, []
        for planned in self.others:
            self.progress(f"looking for a cell in which it is right: {planned.cell.id}")
            other = _run(self.runner, planned=planned)
            tried.append(f"{planned.cell.id}: {shorten(other.ending)}")
            if other.outcome is Outcome.OK and fails:
                return planned, SameFailure(bad)
            if other.outcome is Outcome.OK and not is_same_output(bad.output, other.output):
                return planned, SameOutputDifference(bad, other)
        # A failure needs no comparison; a difference of outputs does.
        if fails and not self.is_good_named:
            return None, SameFailure(bad)
        raise UsageError(
            f"{self._where}: {shorten(bad.ending)}; expected a cell with another result "
            f"({'; '.join(tried) or 'none was tried'}); name one with --good"
        )


def _run(runner: ProgramRunner, *, planned: PlannedCell) -> ScriptResult:
    return ScriptResult(runner.run(planned), runner.blobs)
