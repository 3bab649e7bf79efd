"""What a session tells of itself and of its suite before any test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.input_files import hash_inputs
from conformance.suites.running.collection import Collection, Problem, Test, problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.suites.running.watch import Event

FORKED: Final = "forked"
PROCESSES: Final = "processes"
"""How the workers of a cell came to be."""


@dataclass(slots=True)
class Told:
    """What a process told of itself and of the suite before any test.

    Attributes:
        versions: Version of every package, None where it did not even start.
        collected: Event of what was collected, None where nothing was.
        names: Names of the tests.
        problems: What stands in the way of others.
        forks: Whether it forks workers; None where it is not ready to run tests.
        why: Why it does not.
        warnings: What collecting warned of, but for what is told with tests.
    """

    versions: Mapping[str, str] | None = None
    collected: Event | None = None
    names: frozenset[str] = frozenset()
    problems: list[Problem] = field(default_factory=list)
    forks: bool | None = None
    why: str = ""
    warnings: Sequence[Mapping[str, Any]] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What is told of a cell: how its workers came to be, and what it tests."""
        facts = (self.collected or {}).get("facts", {})
        said = {"facts": facts, "warnings": list(self.warnings)}
        told = {name: value for name, value in said.items() if value}
        workers = {True: {"workers": FORKED}, False: {"workers": PROCESSES, "not forked": self.why}}
        return {**told, **({} if self.forks is None else workers[self.forks])}

    def take(self, event: Event) -> None:
        """Take an event."""
        match event:
            case {"event": "hello", "versions": versions}:
                self.versions = versions
            case {"event": "collected", "tests": tests}:
                self.collected = event
                self.names = frozenset(name for name, *_ in tests)
            case {"event": "broken" | "skipped"}:
                self.problems.append(problem_of(event))
            case {"event": "ready", "forks": forks, "why": why, "warnings": warnings}:
                self.forks, self.why, self.warnings = forks, why, warnings
            case _:
                pass


def collection_of(told: Told) -> Collection:
    """Return what a session collected.

    Args:
        told: What it told.
    """
    said = told.collected or {"root": "", "ini": "", "tests": ()}
    return Collection(
        root=said["root"], ini=said["ini"],
        tests=tuple(
            Test(name=name, file=file, line=line, bound=bound)
            for name, file, line, bound in said["tests"]
        ),
        problems=tuple(told.problems), told=told.facts,
        inputs=hash_inputs(map(Path, said.get("read", ()))),
    )  # fmt: skip
