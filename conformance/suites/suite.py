"""A suite as it was asked for, and its tests as cases."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.suites import plugin
from conformance.suites.files import hash_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.model.case import Deviation
    from conformance.suites.collection import Collection, Test

PLUGIN: Final = Path(plugin.__file__)
NODE: Final = "::"
MEMORY: Final = 8192
"""MiB that a session may hold: what its tests leave behind adds up."""


def no_group(_: str) -> str:
    """Return the group of a test in a suite without groups."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """How Hypothesis looks for examples, in tests that use it.

    Attributes:
        number: How many it tries of a test, None for as many as the suite says.
        seed: What it begins with, None for what each test's own source gives.
        shrink: Whether the example that fails is made smaller; that costs many runs of a test.
    """

    number: int | None = None
    seed: int | None = None
    shrink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests of pytest, as they were asked for.

    Attributes:
        paths: Absolute paths of files and folders, maybe with the node of a test.
        arguments: Arguments of pytest's own.
        timeout: Seconds that one test may take.
        hash: Hash of all that decides what they do, but for the cell.
        wanted: Packages that cells have beside their own, as they were asked for.
        folder: Working directory of its sessions.
        called: Its name, where it has one.
        title: What it is called on pages, empty for its name.
        revision: Commit of its checkout, empty where that is not known.
        complete: Whether it is run whole.
        environment: Environment variables of its sessions.
        facts: What sessions tell of what they test: `module:attribute` by name.
        examples: How Hypothesis looks for examples.
        deviations: Known failures, by name of the test.
        group: Returns the group that a test is counted under, by its name; empty for none.
    """

    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    hash: str
    wanted: tuple[str, ...] = ()
    folder: Path
    called: str = ""
    title: str = ""
    revision: str = ""
    complete: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    examples: Examples = Examples()
    deviations: Mapping[str, tuple[Deviation, ...]] = field(default_factory=dict)
    group: Callable[[str], str] = no_group

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.called or ", ".join(map(_from_here, self.paths))

    def cases(self, collections: Iterable[Collection]) -> tuple[Case, ...]:
        """Return every test that is collected in some cell, and what none could collect.

        Args:
            collections: What was collected, cell by cell.
        """
        found: dict[str, Case] = {}
        known = list(collections)
        for one in known:
            for test in one.tests:
                found.setdefault(test.name, self._case(one.root, test))
        # A module that cannot be imported anywhere is no test, and is told of all the same.
        for one in known:
            for problem in one.problems:
                covers = any(problem.covers(name) for name in found)
                if problem.broken and not covers:
                    found[problem.node] = self._case(one.root, problem.as_test(one.root))
        return tuple(found.values())

    def _case(self, root: str, test: Test) -> Case:
        file = _from_here(test.file or root)
        node = test.name.partition(NODE)[2]
        name = test.name if "/" in test.name else f"{Path(root).name}/{test.name}"
        return Case(
            id=name, family=name.partition("/")[0], topic=Path(file).stem, name=test.name,
            kind="test", file=Path(file), line=test.line, timeout=self.timeout, memory=MEMORY,
            content_hash=self.hash, arguments=self._alone(f"{file}{NODE}{node}" if node else file),
            deviations=self.deviations.get(test.name, ()), group=self.group(test.name),
        )  # fmt: skip

    def _alone(self, test: str) -> str:
        """Return what runs one test: its node, the packages that it needs, pytest's arguments."""
        packages = (word for text in self.wanted for word in ("--with", text))
        more = ["--", *self.arguments] if self.arguments else []
        return shlex.join([test, *packages, *more])


def suite_of(
    words: Sequence[str], *, timeout: float, wanted: Sequence[str] = (), start: Path
) -> Suite:
    """Return a suite as it is asked for.

    Args:
        words: Paths of files and folders, maybe with the node of a test; then, from the first that
            begins with a dash, arguments of pytest's own.
        timeout: Seconds that one test may take.
        wanted: Packages that cells have beside their own.
        start: Working directory.

    Raises:
        UsageError: If a path is not there, or cannot be read, or there is none.
    """
    count = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    named, arguments = words[:count], tuple(words[count:])
    if not named:
        raise UsageError("no suite is named, expected the path of a file or folder of tests")
    files, paths = [], []
    for word in named:
        path, sign, node = word.partition(NODE)
        file = start / Path(path).expanduser()
        if not file.exists():
            raise UsageError(f"{path}: no such file or folder, expected one of tests")
        files.append(file.absolute())
        paths.append(f"{file.absolute()}{sign}{node}")
    facts = (PLUGIN.read_text(encoding="utf-8"), *arguments, str(start))
    return Suite(
        paths=tuple(paths), arguments=arguments, timeout=timeout, wanted=tuple(wanted),
        hash=hash_of(files, *facts), folder=start,
    )  # fmt: skip


def _from_here(path: str) -> str:
    """Return a path as it is spelled in the working directory, absolute where it lies elsewhere."""
    here = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(here)
