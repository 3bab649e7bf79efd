"""A suite as it was asked for, and its tests as cases."""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.model.run import RunSuite
from conformance.suites import plugin
from conformance.suites.catalogue.definition import no_group
from conformance.suites.catalogue.groups import grouping
from conformance.suites.catalogue.named import NODE, asked_by_name, named_arguments, named_paths
from conformance.suites.catalogue.standards import ALL, CLAIMED, Standards, standards_of
from conformance.suites.files import hash_of
from conformance.suites.known.deviations import known_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.model.case import Deviation
    from conformance.suites.catalogue.named import Checkout, Home, Named
    from conformance.suites.running.collection import Collection, Test

PLUGIN: Final = Path(plugin.__file__)
TIMEOUT: Final = 60.0
"""Seconds that one test may take, where neither the user nor the suite says so."""
MEMORY: Final = 8192
"""MiB that a session may hold: what its tests leave behind adds up."""
STANDARD: Final = "--standard"


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
        requires: Packages that its tests need, as it says itself.
        again: What `conformance suite run` is told beside a test, to run that alone.
        folder: Working directory of its sessions.
        checkout: Its files, where it has a name.
        called: Its name, where it has one.
        title: What it is called on pages, empty for its name.
        revision: Commit of its checkout, empty where that is not known.
        complete: Whether it is run whole.
        environment: Environment variables of its sessions.
        facts: What sessions tell of what they test: `module:attribute` by name.
        examples: How Hypothesis looks for examples.
        standards: What releases are held against, None where that has no versions.
        family: What all its tests are of; empty for the folder that each is in.
        settings: What was asked for, as it is told with a run.
        deviations: Known failures, by name of the test.
        home: Folder of its definition, None where it has none.
        group: Returns the group that a test is counted under, by its name; empty for none.
        divide: Whether a file of its tests may be divided among workers.
        seed_random: Whether `random` begins each test with its name.
    """

    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    hash: str
    requires: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    folder: Path
    checkout: Checkout | None = None
    called: str = ""
    title: str = ""
    revision: str = ""
    complete: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    examples: Examples = Examples()
    standards: Standards | None = None
    family: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    deviations: Mapping[str, tuple[Deviation, ...]] = field(default_factory=dict)
    home: Path | None = None
    group: Callable[[str], str] = no_group
    divide: bool = False
    seed_random: bool = False

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.family or self.called or ", ".join(map(_from_here, self.paths))

    @property
    def is_in_cache(self) -> bool:
        """Whether its files are those of the cache, not the user's own."""
        return self.checkout is not None and not self.checkout.own

    @property
    def root(self) -> Path:
        """Folder that its files are told from."""
        return self.folder if self.called else Path.cwd()

    def described(self) -> RunSuite:
        """Return what is told of it with a run."""
        return RunSuite(
            name=self.called or self.name, title=self.title, revision=self.revision,
            complete=self.complete, settings=dict(self.settings),
        )  # fmt: skip

    def each(self) -> tuple[Suite, ...]:
        """Return it once for each version of its standard that is asked for.

        Of several, each has tests of its own: the version is in the name of their family.
        """
        if self.standards is None or self.standards.asked != ALL:
            return (self,)
        return tuple(self._held_against(one) for one in self.standards.each())

    def _held_against(self, standards: Standards) -> Suite:
        version = standards.asked
        told = [text for text in self.again if text != ALL]
        where = told.index(STANDARD) + 1
        return replace(
            self, standards=standards, family=f"{self.called}@{version}",
            hash=hashlib.sha256(f"{self.hash} {version}".encode()).hexdigest()[:16],
            again=(*told[:where], version, *told[where:]),
        )  # fmt: skip

    def _known(self, name: str) -> tuple[Deviation, ...]:
        """Return the known failures of a test; of a module not imported, those of its tests."""
        own = list(self.deviations.get(name, ()))
        if NODE not in name:
            for test, known in self.deviations.items():
                if test.startswith(f"{name}{NODE}"):
                    own += [one for one in known if one not in own]
        return tuple(own)

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
        name = test.name if "/" in test.name else f"{Path(root).name}/{test.name}"
        name = f"{self.family}/{test.name}" if self.family else name
        return Case(
            id=name, family=name.partition("/")[0], topic=Path(file).stem, name=test.name,
            kind="test", file=Path(file), line=test.line, timeout=self.timeout, memory=MEMORY,
            content_hash=self.hash, arguments=shlex.join([self._node(file, test), *self.again]),
            deviations=self._known(test.name), group=self.group(test.name),
        )  # fmt: skip

    def _node(self, file: str, test: Test) -> str:
        """Return what names a test on the command line."""
        node = test.name.partition(NODE)[2]
        if self.called:
            path = Path(file).absolute()
            own = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
            file = f"{self.called}{NODE}{own}"
        return f"{file}{NODE}{node}" if node else file


def suite_of(
    words: Sequence[str], *, timeout: float | None = None, wanted: Sequence[str] = (),
    start: Path, home: Home | None = None, examples: Examples = Examples(),
    standard: str = CLAIMED,
) -> Suite:  # fmt: skip
    """Return a suite as it is asked for.

    Args:
        words: Paths of files and folders, or the name of a suite, maybe with the node of a test;
            then, from the first that begins with a dash, arguments of pytest's own.
        timeout: Seconds that one test may take; None for what the suite says.
        wanted: Packages that cells have beside their own, and beside what the suite requires.
        start: Working directory.
        home: Where named suites are; None for paths alone.
        examples: How Hypothesis looks for examples; what is left out is as the suite says.
        standard: The version of its standard that a named suite holds releases against: a version,
            `claimed` or `all`.

    Raises:
        UsageError: If a path is not there, or cannot be read, or there is none; if no suite has
            the name, or it does not go with the options.
        InfrastructureError: If a named suite cannot be fetched.
    """
    count = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    named, arguments = words[:count], tuple(words[count:])
    if not named:
        raise UsageError("no suite is named, expected its name, or the path of a file or folder")
    asked = _Asked(arguments, timeout, tuple(wanted), examples, standard)
    by_name = asked_by_name(named, start, home)
    if by_name is None or home is None:
        return _by_path(named, start, asked)
    if by_name.version and standard == CLAIMED:
        asked = replace(asked, standard=by_name.version)
    return _by_name(by_name, home, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of a suite beside its tests."""

    arguments: tuple[str, ...]
    timeout: float | None
    wanted: tuple[str, ...]
    examples: Examples
    standard: str

    def again(self, *more: str) -> tuple[str, ...]:
        """Return the options that say it again, pytest's own arguments last.

        Args:
            more: Options of named suites.
        """
        examples = self.examples
        told = [word for text in self.wanted for word in ("--with", text)]
        told += ["--max-examples", str(examples.number)] if examples.number is not None else []
        told += ["--seed", str(examples.seed)] if examples.seed is not None else []
        told += ["--shrink"] if examples.shrink else []
        told += [STANDARD, self.standard] if self.standard != CLAIMED else []
        return (*told, *more, *(("--", *self.arguments) if self.arguments else ()))

    def settings(self, number: int | None) -> dict[str, Any]:
        """Return what is told of it with a run.

        Args:
            number: Examples that Hypothesis tries of a test, None where nobody says.
        """
        told: dict[str, Any] = {} if number is None else {"max_examples": number}
        if self.examples.seed is not None:
            told["seed"] = self.examples.seed
        return told | ({"shrink": True} if self.examples.shrink else {})


def _by_path(named: Sequence[str], start: Path, asked: _Asked) -> Suite:
    """Return a suite that is named by its paths."""
    if asked.standard != CLAIMED:
        raise UsageError(f"{STANDARD} {asked.standard}: expected with the name of a suite")
    files, paths = [], []
    for word in named:
        path, sign, node = word.partition(NODE)
        file = start / Path(path).expanduser()
        files.append(file.absolute())
        paths.append(f"{file.absolute()}{sign}{node}")
    facts = (_inside(), *asked.arguments, str(start))
    more = () if asked.examples == Examples() else (repr(asked.examples),)
    return Suite(
        paths=tuple(paths), arguments=asked.arguments, folder=start, again=asked.again(),
        timeout=TIMEOUT if asked.timeout is None else asked.timeout,
        examples=asked.examples, settings=asked.settings(asked.examples.number),
        hash=hash_of(files, *facts, *more),
        complete=not asked.arguments and not any(NODE in word for word in named),
    )  # fmt: skip


def _by_name(named: Named, home: Home, asked: _Asked) -> Suite:
    """Return a suite that has a name."""
    suite, given = named.suite, named.suite.definition
    standards = standards_of(suite, asked.standard)
    checkout = home.checkout(suite)
    number = given.examples if asked.examples.number is None else asked.examples.number
    arguments = named_arguments(suite, number, asked.arguments)
    # An argument of the suite's own says how many, and to whom it does.
    examples = replace(asked.examples, number=None if given.max_examples else number)
    settings = asked.settings(number) | ({"standard": asked.standard} if standards else {})
    facts = (
        _inside(), checkout.content,
        arguments, sorted(given.environment.items()), sorted(given.facts.items()), examples,
        standards, given.seed_random,
    )  # fmt: skip
    own = ("--suite-path", _from_here(str(checkout.folder))) if checkout.own else ()
    return Suite(
        paths=named_paths(named, checkout), arguments=arguments, folder=checkout.folder,
        checkout=checkout, again=asked.again(*own),
        timeout=given.timeout if asked.timeout is None else asked.timeout,
        hash=hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:16],
        requires=given.requires, called=suite.name, title=given.title,
        revision=checkout.told,
        complete=not asked.arguments and not named.nodes,
        environment=given.environment, facts=given.facts, examples=examples,
        standards=standards, settings=settings, home=suite.folder,
        deviations=known_failures(
            suite.folder, examples=number, seed=asked.examples.seed, standard=asked.standard
        ),
        group=grouping(suite.folder), divide=given.divide, seed_random=given.seed_random,
    )  # fmt: skip


@cache
def _inside() -> str:
    """Return all that decides what is told of tests: what runs inside cells, and what hears it."""
    own = (PLUGIN.parent / name for name in ("known/causes.py", "running/outcomes.py"))
    files = (PLUGIN, *sorted((PLUGIN.parent / "inside").glob("*.py")), *own)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def _from_here(path: str) -> str:
    """Return a path as it is spelled in the working directory, absolute where it lies elsewhere."""
    here = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(here)
