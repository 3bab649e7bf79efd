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

from conformance.engine.comparing import Side
from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Outcome
from conformance.triage.programs.target import Program, Target
from conformance.triage.questions.failure import same_failure
from conformance.triage.questions.output import differing_lines, same_output
from conformance.triage.questions.predicate import OUTPUT, SILENT, ending, quoted
from conformance.triage.repro.layout import comment
from conformance.triage.shrink.prober import HANG_SECONDS, LEAST_SECONDS, SLOWER
from conformance.triage.shrink.search import Search, SpentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from conformance.engine.blobs import BlobStore
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
    """What a candidate must show."""

    @property
    def about(self) -> str:
        """What is kept, in a few words."""
        ...

    def may_hold(self, bad: Side) -> bool:
        """Say whether what the cell shows leaves it open."""
        ...

    def holds(self, bad: Side, good: Side | None) -> bool:
        """Say whether a candidate still shows it.

        Args:
            bad: What the cell shows.
            good: What the cell shows in which the script is right, if there is one.
        """
        ...


@dataclass(frozen=True, slots=True)
class FailsAlike:
    """Ends as the script does, where the other cell does not.

    Attributes:
        seen: The script in the cell.
    """

    seen: Side

    @property
    def about(self) -> str:
        """How it ends."""
        return quoted(ending(self.seen.record))

    def may_hold(self, bad: Side) -> bool:
        """Say whether it fails for the same reason."""
        same = same_failure(ending(bad.record), ending(self.seen.record))
        return bad.record.outcome is self.seen.record.outcome and same

    def holds(self, bad: Side, good: Side | None) -> bool:
        """Say whether it fails, and only here."""
        return self.may_hold(bad) and (good is None or good.record.outcome is Outcome.OK)


@dataclass(frozen=True, slots=True)
class DiffersAlike:
    """Prints something else than in the other cell: numbers alone, or the same words.

    Attributes:
        bad: The script in the cell.
        good: The script in the other one.
    """

    bad: Side
    good: Side

    @property
    def about(self) -> str:
        """The first line that differs."""
        _, line, other = next(differing_lines(printed_by(self.bad), printed_by(self.good)))
        return f"prints {quoted(line)!r} for {quoted(other)!r}"

    def may_hold(self, bad: Side) -> bool:
        """Say whether it runs."""
        return bad.record.outcome is Outcome.OK

    def holds(self, bad: Side, good: Side | None) -> bool:
        """Say whether it differs as the script does."""
        if good is None or not self.may_hold(bad) or not self.may_hold(good):
            return False
        one, other = printed_by(bad), printed_by(good)
        if same_output(one, other):
            return False
        words = _words_between(printed_by(self.bad), printed_by(self.good))
        return not words or bool(words & _words_between(one, other))


def _words_between(one: str, other: str) -> set[tuple[str, bool]]:
    """Return the words of one output that the other has less often, with whose they are."""
    counts, others = Counter(_WORD.findall(one)), Counter(_WORD.findall(other))
    only = {(word, True) for word in counts - others}
    return only | {(word, False) for word in others - counts}


def printed_by(side: Side) -> str:
    """Return what a script printed, without the facts of its environment."""
    blob = side.record.artifacts.get(OUTPUT, "")
    return side.blobs.get(blob).decode("utf-8", "replace") if blob else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkScript:
    """What is left of a script.

    Attributes:
        text: A script.
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
class ScriptShrinker:
    """A script that is being cut down.

    Attributes:
        runner: Runs the script.
        cell: Where it fails, or prints something else.
        others: Cells in which it may be right, the likeliest first.
        named: Whether the other cell was named: then it must be right there.
        folder: A folder of its own.
        blobs: Where artifacts go.
        probes: How many candidates may be tried.
        seconds: How long that may take.
        width: How many are tried at a time.
        progress: Told what is done.
    """

    runner: ProgramRunner
    cell: PlannedCell
    others: Iterator[PlannedCell]
    named: bool
    folder: Path
    blobs: BlobStore
    probes: int
    seconds: float
    width: int
    progress: Callable[[str], None] = field(default=lambda _: None)
    _good_cell: PlannedCell | None = None
    _question: ScriptQuestion | None = None
    _tried: int = 0
    _deadline: float = 0.0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self) -> ShrunkScript:
        """Cut the script down.

        Raises:
            UsageError: If there is nothing to keep, or it does not do the same twice.
            InfrastructureError: If a cell cannot be had.
        """
        start = time.monotonic()
        self._deadline = start + self.seconds
        source = self.runner.target.source
        text = self._begin(source)
        search = Search(
            text=text, keep=BODY, probe=self._first, width=self.width, progress=self._tell
        )
        complete = interrupted = confirmed = False
        try:
            complete = search.run()
            confirmed = self._shows(unwrapped(search.text))
        except KeyboardInterrupt:
            interrupted = True
        assert self._question is not None  # noqa: S101 - _begin sets it
        return ShrunkScript(
            text=self._headed(unwrapped(search.text)), about=self._question.about,
            cell=self.cell.cell.id, good_cell=self._good_id,
            lines=(_lines_of(source), _lines_of(unwrapped(search.text))), probes=self._tried,
            seconds=time.monotonic() - start, complete=complete, interrupted=interrupted,
            confirmed=confirmed,
        )  # fmt: skip

    @property
    def _good_id(self) -> str:
        return self._good_cell.cell.id if self._good_cell is not None else ""

    def _begin(self, source: str) -> str:
        """Run the script as it is, find out what must stay, and return the text to cut."""
        name = self.runner.target.text
        try:
            text = wrapped(source)
        except SyntaxError as error:
            raise UsageError(f"{name}:{error.lineno}: no Python: {error.msg}") from None
        self.progress("running the script as it is")
        seen = self._run(self.cell)
        if seen.record.outcome is Outcome.INFRA:
            raise InfrastructureError(f"{name} on {self.cell.cell.id}: {ending(seen.record)}")
        if seen.record.outcome in SILENT:
            raise UsageError(f"{name} on {self.cell.cell.id}: {ending(seen.record)}")
        self._question = self._asked(name, seen)
        self._limit(seen)
        if not self._shows(unwrapped(text)):
            raise UsageError(
                f"{name} on {self.cell.cell.id}: does not do the same twice, expected "
                f"{self._question.about}; make it deterministic first (seeds, threads)"
            )
        return text

    def _asked(self, name: str, seen: Side) -> ScriptQuestion:
        """Find the cell in which the script is right; return what must stay."""
        fails = seen.record.outcome is not Outcome.OK
        tried = []
        for planned in self.others:
            self.progress(f"looking for a cell in which it is right: {planned.cell.id}")
            other = self._run(planned)
            tried.append(f"{planned.cell.id}: {quoted(ending(other.record))}")
            if other.record.outcome is not Outcome.OK:
                continue
            if fails:
                self._good_cell = planned
                return FailsAlike(seen)
            if not same_output(printed_by(seen), printed_by(other)):
                self._good_cell = planned
                return DiffersAlike(seen, other)
        if fails and not self.named:
            return FailsAlike(seen)
        told = "; ".join(tried) if tried else "none was looked for"
        raise UsageError(
            f"{name} on {self.cell.cell.id}: {quoted(ending(seen.record))}; expected a cell in "
            f"which it does something else ({told}); name one with --good-cell"
        )

    def _limit(self, seen: Side) -> None:
        """Give candidates little more time than the script takes."""
        seconds = max(SLOWER * seen.record.seconds.get("job", 0.0), LEAST_SECONDS)
        if seen.record.outcome is Outcome.TIMED_OUT:
            seconds = HANG_SECONDS
        self.runner = replace(self.runner, timeout=min(seconds, self.runner.timeout))

    def _run(self, planned: PlannedCell, file: Path | None = None) -> Side:
        target = self.runner.target
        if file is not None:
            target = Target(kind=Program.SCRIPT, text=str(file), variables=target.variables)
        return Side(replace(self.runner, target=target).run(planned), self.blobs)

    def _first(self, texts: Sequence[str]) -> int | None:
        """Try some texts at a time; return the number of the first that still shows it."""
        if self._tried >= self.probes or time.monotonic() >= self._deadline:
            raise SpentError
        texts = texts[: self.probes - self._tried]
        self._tried += len(texts)
        scripts = [unwrapped(text) for text in texts]
        with ThreadPoolExecutor(len(texts)) as pool:
            found = list(pool.map(self._shows, scripts))
        return found.index(True) if True in found else None

    def _shows(self, script: str) -> bool:
        assert self._question is not None  # noqa: S101 - _begin sets it
        file = self.folder / f"candidate_{next(self._numbers)}.py"
        file.write_text(script, encoding="utf-8")
        bad = self._run(self.cell, file)
        if not self._question.may_hold(bad):
            return False
        good = None if self._good_cell is None else self._run(self._good_cell, file)
        return self._question.holds(bad, good)

    def _tell(self, way: str, text: str) -> None:
        told = f"{_lines_of(unwrapped(text))} lines after {self._tried} probes"
        self.progress(f"{told}; {way}" if way else told)

    def _headed(self, script: str) -> str:
        assert self._question is not None  # noqa: S101 - _begin sets it
        head = [f"On {self.cell.cell.id}: {self._question.about}"]
        head += [f"Not so on {self._good_id}."] if self._good_id else []
        return "\n".join(line for one in head for line in comment(one)) + f"\n\n{script}"


def _lines_of(text: str) -> int:
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") for line in text.split("\n")
    )
