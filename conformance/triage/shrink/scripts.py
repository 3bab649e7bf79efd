"""A script cut down to what makes it fail, or print something else than another release.

The cuts are those of cases: `Search` cuts what a function needs, so that a script is the body of
one while it is cut. Each candidate is a process of its own in the environment of a cell.
"""

from __future__ import annotations

import ast
import itertools
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.job_comparison import StoredJob
from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Outcome
from conformance.search.failures import SILENT, ending, quoted, same_failure
from conformance.search.output import differing_lines, same_output
from conformance.search.predicates import output_of
from conformance.triage.repro.layout import comment
from conformance.triage.shrink.prober import Budget, time_limit
from conformance.triage.shrink.search import Search
from conformance.triage.shrink.text import lines_of_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.running import ProgramRunner

BODY: Final = "_script_body"
"""Name of the function whose body a script is while it is cut."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*|[^\w\s]")


def wrapped(text: str) -> str:
    """Return a script as the body of a function.

    Imports that Python allows at the top of a module alone stay there.

    Args:
        text: The script.

    Raises:
        SyntaxError: If it is no Python.
    """
    tree = ast.parse(text)
    top = [one for one in tree.body if _is_star(one)]
    future = [one for one in tree.body if _is_future(one)]
    body = [one for one in tree.body if one not in top and one not in future]
    function = ast.parse(f"def {BODY}():\n    pass")
    function.body[0].body = body or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(ast.Module(body=[*top, *function.body], type_ignores=[]))


def unwrapped(text: str) -> str:
    """Return the script that `wrapped` made a function of.

    Args:
        text: A module with that function.
    """
    body: list[ast.stmt] = []
    for node in ast.parse(text).body:
        inside = isinstance(node, ast.FunctionDef) and node.name == BODY
        body += node.body if inside else [node]  # type: ignore[attr-defined]
    kept = [one for one in body if not isinstance(one, ast.Pass)]
    return "".join(f"{ast.unparse(one)}\n" for one in kept)


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class ScriptQuestion(Protocol):
    """A condition on candidates: they must show the same failure or difference."""

    @property
    def about(self) -> str:
        """The failure or difference, in a few words."""
        ...

    def may_hold(self, bad: StoredJob) -> bool:
        """Say whether what the cell shows leaves it open."""
        ...

    def holds(self, bad: StoredJob, good: StoredJob | None) -> bool:
        """Say whether a candidate still shows it.

        Args:
            bad: The candidate in the cell.
            good: The candidate in the cell where the script is right, None if there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class FailsAlike:
    """Ends as the script does, where the other cell does not.

    Attributes:
        seen: The script in the cell.
    """

    seen: StoredJob

    @property
    def about(self) -> str:
        """How it ends."""
        return quoted(ending(self.seen.record))

    def may_hold(self, bad: StoredJob) -> bool:
        """Say whether it fails for the same reason."""
        same = same_failure(ending(bad.record), ending(self.seen.record))
        return bad.record.outcome is self.seen.record.outcome and same

    def holds(self, bad: StoredJob, good: StoredJob | None) -> bool:
        """Say whether it fails, and only here."""
        return self.may_hold(bad) and (good is None or good.record.outcome is Outcome.OK)


@dataclass(frozen=True, slots=True)
class DiffersAlike:
    """Prints something else than in the other cell: numbers alone, or the same words.

    Attributes:
        bad: The script in the cell.
        good: The script in the other one.
    """

    bad: StoredJob
    good: StoredJob

    @property
    def about(self) -> str:
        """The first line that differs."""
        _, line, other = next(differing_lines(output_of(self.bad), output_of(self.good)))
        return f"prints {quoted(line)!r} for {quoted(other)!r}"

    def may_hold(self, bad: StoredJob) -> bool:
        """Say whether it runs."""
        return bad.record.outcome is Outcome.OK

    def holds(self, bad: StoredJob, good: StoredJob | None) -> bool:
        """Say whether it differs as the script does."""
        if good is None or not self.may_hold(bad) or not self.may_hold(good):
            return False
        one, other = output_of(bad), output_of(good)
        if same_output(one, other):
            return False
        words = _words_between(output_of(self.bad), output_of(self.good))
        return not words or bool(words & _words_between(one, other))


def _words_between(one: str, other: str) -> set[tuple[str, bool]]:
    """Return the words of one output that the other has less often, with whose they are."""
    counts, others = Counter(_WORD.findall(one)), Counter(_WORD.findall(other))
    only = {(word, True) for word in counts - others}
    return only | {(word, False) for word in others - counts}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkScript:
    """A script that was cut down.

    Attributes:
        text: The script.
        about: What was kept.
        cell: Where it fails, or prints something else.
        good_cell: Where it does not, empty if there is no such cell.
        lines: Lines of code before and after.
        probes: Candidates that were tried.
        seconds: How long it took.
        complete: Whether nothing more could be cut; else what was granted is spent.
        interrupted: Whether the search was.
        confirmed: Whether it showed the same once more.
    """

    text: str
    about: str
    cell: str
    good_cell: str
    lines: tuple[int, int]
    probes: int
    seconds: float
    complete: bool
    interrupted: bool
    confirmed: bool


@dataclass(kw_only=True)
class ScriptProber:
    """Runs candidates, and says which of them still show it.

    Attributes:
        runner: Runs the script; a candidate runs as it does.
        cell: Where the script fails, or prints something else.
        good_cell: Where it does not, None if there is no such cell.
        question: What a candidate must show.
        folder: A folder of its own.
        budget: What the search may take.
    """

    runner: ProgramRunner
    cell: PlannedCell
    good_cell: PlannedCell | None
    question: ScriptQuestion
    folder: Path
    budget: Budget
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def first(self, texts: Sequence[str]) -> int | None:
        """Try some texts at a time; return the number of the first that still shows it.

        Args:
            texts: Scripts as `wrapped` returns them.

        Raises:
            SpentError: If the budget is spent.
        """
        scripts = [unwrapped(text) for text in self.budget.take(texts)]
        with ThreadPoolExecutor(len(scripts)) as pool:
            found = list(pool.map(self.shows, scripts))
        return found.index(True) if True in found else None

    def shows(self, script: str) -> bool:
        """Say whether a script still shows it."""
        file = self.folder / f"candidate_{next(self._numbers)}.py"
        file.write_text(script, encoding="utf-8")
        target = replace(self.runner.target, text=str(file))
        runner = replace(self.runner, target=target)
        bad = run_in(runner, self.cell)
        if not self.question.may_hold(bad):
            return False
        good = None if self.good_cell is None else run_in(runner, self.good_cell)
        return self.question.holds(bad, good)


def run_in(runner: ProgramRunner, planned: PlannedCell) -> StoredJob:
    """Run a program in a cell.

    Args:
        runner: Runs the program.
        planned: The cell.
    """
    return StoredJob(runner.run(planned), runner.blobs)


@dataclass(kw_only=True)
class ScriptShrinker:
    """A script that is being cut down.

    Attributes:
        runner: Runs the script.
        cell: Where it fails, or prints something else.
        others: Cells in which it may be right, the likeliest first.
        named: Whether the other cell was named: then it must be right there.
        folder: A folder of its own.
        probes: How many candidates may be tried.
        seconds: How long that may take.
        width: How many are tried at a time.
        progress: Called with each step, in words.
    """

    runner: ProgramRunner
    cell: PlannedCell
    others: Iterable[PlannedCell]
    named: bool
    folder: Path
    probes: int
    seconds: float
    width: int
    progress: Callable[[str], None] = field(default=lambda _: None)

    def run(self) -> ShrunkScript:
        """Cut the script down.

        Raises:
            UsageError: If there is nothing to keep, or it does not do the same twice.
            InfrastructureError: If a cell cannot be had.
        """
        start = time.monotonic()
        source = self.runner.target.source
        text = self._wrapped(source)
        prober = self._prober(start + self.seconds)
        self._refuse_flaky(prober, unwrapped(text))
        search = Search(
            text=text, keep=BODY, probe=prober.first, width=self.width,
            progress=lambda way, text: self._tell(prober, way, text),
        )  # fmt: skip
        complete = interrupted = confirmed = False
        try:
            complete = search.run()
            confirmed = prober.shows(unwrapped(search.text))
        except KeyboardInterrupt:
            interrupted = True
        left, about = unwrapped(search.text), prober.question.about
        good = prober.good_cell.cell.id if prober.good_cell is not None else ""
        head = [f"On {self.cell.cell.id}: {about}", *([f"Not so on {good}."] if good else [])]
        return ShrunkScript(
            text="\n".join(line for one in head for line in comment(one)) + f"\n\n{left}",
            about=about, cell=self.cell.cell.id, good_cell=good,
            lines=(lines_of_code(source), lines_of_code(left)), probes=prober.budget.tried,
            seconds=time.monotonic() - start, complete=complete, interrupted=interrupted,
            confirmed=confirmed,
        )  # fmt: skip

    def _wrapped(self, source: str) -> str:
        try:
            return wrapped(source)
        except SyntaxError as error:
            name = self.runner.target.text
            raise UsageError(f"{name}:{error.lineno}: no Python: {error.msg}") from None

    @property
    def _where(self) -> str:
        """The script and the cell, for messages."""
        return f"{self.runner.target.text} on {self.cell.cell.id}"

    def _prober(self, deadline: float) -> ScriptProber:
        """Run the script as it is, find out what must stay, and return what tries candidates."""
        self.progress("running the script as it is")
        seen = run_in(self.runner, self.cell)
        record = seen.record
        if record.outcome is Outcome.INFRA:
            raise InfrastructureError(f"{self._where}: {ending(record)}")
        if record.outcome in SILENT:
            raise UsageError(f"{self._where}: {ending(record)}")
        good_cell, question = self._asked(seen)
        limit = time_limit(record.outcome, record.seconds.get("job", 0.0), self.runner.timeout)
        return ScriptProber(
            runner=replace(self.runner, timeout=limit), cell=self.cell, good_cell=good_cell,
            question=question, folder=self.folder,
            budget=Budget(probes=self.probes, deadline=deadline),
        )  # fmt: skip

    def _asked(self, seen: StoredJob) -> tuple[PlannedCell | None, ScriptQuestion]:
        """Return the cell in which the script is right, and what must stay."""
        fails = seen.record.outcome is not Outcome.OK
        tried = []
        for planned in self.others:
            self.progress(f"looking for a cell in which it is right: {planned.cell.id}")
            other = run_in(self.runner, planned)
            tried.append(f"{planned.cell.id}: {quoted(ending(other.record))}")
            if other.record.outcome is not Outcome.OK:
                continue
            if fails:
                return planned, FailsAlike(seen)
            if not same_output(output_of(seen), output_of(other)):
                return planned, DiffersAlike(seen, other)
        if fails and not self.named:
            return None, FailsAlike(seen)
        told = "; ".join(tried) if tried else "none was looked for"
        raise UsageError(
            f"{self._where}: {quoted(ending(seen.record))}; expected a cell in which it does "
            f"something else ({told}); name one with --good-cell"
        )

    def _refuse_flaky(self, prober: ScriptProber, script: str) -> None:
        if not prober.shows(script):
            raise UsageError(
                f"{self._where}: does not do the same twice, expected {prober.question.about}; "
                "make it deterministic first (seeds, threads)"
            )

    def _tell(self, prober: ScriptProber, way: str, text: str) -> None:
        told = f"{lines_of_code(unwrapped(text))} lines after {prober.budget.tried} probes"
        self.progress(f"{told}; {way}" if way else told)
