"""A requested pytest suite, and its tests as cases."""

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
from conformance.suites.catalogue.definition import (
    UNNAMED,
    Definition,
    find_no_group,
    load_grouping,
)
from conformance.suites.catalogue.request import (
    NODE,
    make_arguments,
    parse_request,
    resolve_paths,
)
from conformance.suites.catalogue.standards import ALL, CLAIMED, Standards, select_standards
from conformance.suites.files import hash_inputs, scan_files
from conformance.suites.known.deviations import load_known_failures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.model.case import Deviation
    from conformance.suites.catalogue.checkouts import Checkout
    from conformance.suites.catalogue.definition import NamedSuite
    from conformance.suites.catalogue.request import SuiteRequest, SuiteSource
    from conformance.suites.files import FileStates
    from conformance.suites.running.collection import Collection, Test

PLUGIN: Final = Path(plugin.__file__)
TIMEOUT: Final = 60.0
"""Time limit of a test in seconds, if neither the user nor the suite sets one."""
MEMORY: Final = 8192
"""Memory limit of a session in MiB. High, because all tests of a session add up."""
STANDARD: Final = "--standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Settings of Hypothesis, for tests that use it.

    Attributes:
        number: Examples to try of each test, None for as many as the suite sets.
        seed: Seed of the examples, None for one that depends on the source of each test.
        shrink: Whether a failing example is made smaller, which costs many runs of a test.
    """

    number: int | None = None
    seed: int | None = None
    shrink: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests of pytest, as they were requested.

    Attributes:
        paths: Absolute paths of files and folders, each optionally with the node of a test.
        arguments: Arguments of pytest.
        timeout: Time limit of a test, in seconds.
        hash: Hash of everything that decides the results of the tests, except the cell.
        options: Options of `conformance suite run` that repeat the request for one test.
        folder: Working directory of its sessions.
        named: The named suite, None if the tests were requested by path.
        checkout: Files of the named suite.
        complete: Whether all of its tests run.
        examples: Settings of Hypothesis.
        standards: Versions of its standard, None if it has no standard.
        family: Family of all its tests; if empty, the top folder of each test.
        settings: Requested settings, as recorded with a run.
        deviations: Known failures, by name of the test.
        group: Returns the group of a test by its name, empty for none.
    """

    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    hash: str
    options: tuple[str, ...] = ()
    folder: Path
    named: NamedSuite | None = None
    checkout: Checkout | None = None
    complete: bool = False
    examples: Examples = Examples()
    standards: Standards | None = None
    family: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    deviations: Mapping[str, tuple[Deviation, ...]] = field(default_factory=dict)
    group: Callable[[str], str] = find_no_group

    @property
    def definition(self) -> Definition:
        """The definition of the named suite; that of any other suite requires nothing."""
        return UNNAMED if self.named is None else self.named.definition

    @property
    def name(self) -> str:
        """The name of the suite in messages."""
        known = self.family or (self.named and self.named.name)
        return known or ", ".join(map(_relativize, self.paths))

    @property
    def is_in_cache(self) -> bool:
        """Whether its files are a checkout in the cache."""
        return self.checkout is not None and not self.checkout.own

    @property
    def root(self) -> Path:
        """The folder that the paths of its files are relative to."""
        return Path.cwd() if self.named is None else self.folder

    def scan_files(self) -> FileStates:
        """Return the states of its files, to find those that its tests change."""
        return scan_files(self.paths, self.folder if self.is_in_cache else None)

    def describe(self) -> RunSuite:
        """Return the description of the suite that is recorded with a run."""
        return RunSuite(
            name=self.named.name if self.named else self.name, title=self.definition.title,
            revision=self.checkout.label if self.checkout else "",
            complete=self.complete, settings=dict(self.settings),
        )  # fmt: skip

    def split_standards(self) -> tuple[Suite, ...]:
        """Return the suite once for each requested version of its standard.

        If there are several, the family of the tests contains the version.
        """
        if self.standards is None or self.standards.requested != ALL:
            return (self,)
        return tuple(map(self._select_standard, self.standards.versions))

    def _select_standard(self, version: str) -> Suite:
        assert self.standards is not None and self.named is not None  # noqa: S101, PT018 - for mypy
        at = self.options.index(STANDARD) + 1
        return replace(
            self, standards=replace(self.standards, requested=version),
            family=f"{self.named.name}@{version}",
            hash=hashlib.sha256(f"{self.hash} {version}".encode()).hexdigest()[:16],
            options=(*self.options[:at], version, *self.options[at + 1 :]),
        )  # fmt: skip

    def make_cases(self, collections: Iterable[Collection]) -> tuple[Case, ...]:
        """Return every test that is collected in some cell, and modules that no cell could import.

        Args:
            collections: The collection of each cell.
        """
        found: dict[str, Case] = {}
        known = list(collections)
        for collection in known:
            for test in collection.tests:
                # Of the first cell: the file and line of a test are the same in all of them.
                found.setdefault(test.name, self._make_case(collection.root, test))
        # A module that cannot be imported anywhere has no test, and must be reported as a case.
        for collection in known:
            for problem in collection.problems:
                if problem.broken and not any(problem.covers(name) for name in found):
                    test = problem.make_test(collection.root)
                    found[problem.node] = self._make_case(collection.root, test)
        return tuple(found.values())

    def _make_case(self, root: str, test: Test) -> Case:
        file = _relativize(test.file or root)
        # The id of a case needs a family: for a test at the top of its project it is the project's
        # folder.
        name = test.name if "/" in test.name else f"{Path(root).name}/{test.name}"
        name = f"{self.family}/{test.name}" if self.family else name
        return Case(
            id=name, family=name.partition("/")[0], topic=Path(file).stem, name=test.name,
            kind="test", file=Path(file), line=test.line, timeout=self.timeout, memory=MEMORY,
            content_hash=self.hash,
            arguments=shlex.join([self._format_node(file, test), *self.options]),
            deviations=self._find_deviations(test.name), group=self.group(test.name),
        )  # fmt: skip

    def _find_deviations(self, name: str) -> tuple[Deviation, ...]:
        """Return the known failures of a test; of a module, those of all its tests."""
        own = list(self.deviations.get(name, ()))
        if NODE not in name:
            for test, known in self.deviations.items():
                if test.startswith(f"{name}{NODE}"):
                    own += [deviation for deviation in known if deviation not in own]
        return tuple(own)

    def _format_node(self, file: str, test: Test) -> str:
        """Return the word that names a test on the command line."""
        node = test.name.partition(NODE)[2]
        if self.named is not None:
            path = Path(file).absolute()
            own = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
            file = f"{self.named.name}{NODE}{own}"
        return f"{file}{NODE}{node}" if node else file


def make_suite(
    words: Sequence[str], *, timeout: float | None = None, wanted: Sequence[str] = (),
    start: Path, home: SuiteSource | None = None, examples: Examples = Examples(),
    standard: str = CLAIMED,
) -> Suite:  # fmt: skip
    """Return the suite that words request.

    Args:
        words: Paths of files and folders, or the name of a suite, maybe with the node of a test;
            then, from the first that begins with a dash, arguments of pytest.
        timeout: Time limit of a test in seconds; None for the limit of the suite.
        wanted: Packages of the cells, in addition to their own and to those that the suite needs.
        start: Working directory.
        home: Finds named suites; None for paths only.
        examples: Settings of Hypothesis, in place of those of the suite.
        standard: The version of its standard that a named suite holds releases against: a version,
            `claimed` or `all`.

    Raises:
        UsageError: If a path does not exist or cannot be read, or none is given; if no suite has
            the name, or it does not go with the options.
        InfrastructureError: If a named suite cannot be fetched.
    """
    count = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    names, arguments = words[:count], tuple(words[count:])
    if not names:
        raise UsageError("no suite is named, expected its name, or the path of a file or folder")
    options = _Options(arguments, timeout, tuple(wanted), examples, standard)
    request = parse_request(names, start, home)
    if request is None or home is None:
        return _make_by_path(names, start, options)
    if request.version and standard == CLAIMED:
        # The id of a test in a run with `--standard all` contains the version: rerunning it by its
        # id selects the same version.
        options = replace(options, standard=request.version)
    return _make_by_name(request, home, options)


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a request, in addition to its tests."""

    arguments: tuple[str, ...]
    timeout: float | None
    wanted: tuple[str, ...]
    examples: Examples
    standard: str

    def format(self, *more: str) -> tuple[str, ...]:
        """Return the options of the command line, pytest's own arguments last.

        Args:
            more: Options of named suites.
        """
        examples = self.examples
        words = [word for text in self.wanted for word in ("--with", text)]
        words += ["--max-examples", str(examples.number)] if examples.number is not None else []
        words += ["--seed", str(examples.seed)] if examples.seed is not None else []
        words += ["--shrink"] if examples.shrink else []
        words += [STANDARD, self.standard] if self.standard != CLAIMED else []
        return (*words, *more, *(("--", *self.arguments) if self.arguments else ()))

    def describe(self, number: int | None) -> dict[str, Any]:
        """Return the settings that are recorded with a run.

        Args:
            number: Examples that Hypothesis tries of a test, None if nothing sets a number.
        """
        settings: dict[str, Any] = {} if number is None else {"max_examples": number}
        if self.examples.seed is not None:
            settings["seed"] = self.examples.seed
        return settings | ({"shrink": True} if self.examples.shrink else {})


def _make_by_path(words: Sequence[str], start: Path, options: _Options) -> Suite:
    if options.standard != CLAIMED:
        raise UsageError(f"{STANDARD} {options.standard}: expected with the name of a suite")
    files, paths = [], []
    for word in words:
        path, sign, node = word.partition(NODE)
        file = (start / Path(path).expanduser()).absolute()
        files.append(file)
        paths.append(f"{file}{sign}{node}")
    facts = (_read_own_sources(), *options.arguments, str(start))
    more = () if options.examples == Examples() else (repr(options.examples),)
    return Suite(
        paths=tuple(paths), arguments=options.arguments, folder=start, options=options.format(),
        timeout=TIMEOUT if options.timeout is None else options.timeout,
        examples=options.examples, settings=options.describe(options.examples.number),
        # Of the suite, not of each test: a test may import any of its files.
        hash=hash_inputs(files, *facts, *more),
        complete=not options.arguments and not any(NODE in word for word in words),
    )  # fmt: skip


def _make_by_name(request: SuiteRequest, home: SuiteSource, options: _Options) -> Suite:
    suite, definition = request.suite, request.suite.definition
    standards = select_standards(suite, options.standard)
    checkout = home.checkout(suite)
    number = definition.examples if options.examples.number is None else options.examples.number
    arguments = make_arguments(suite, number, options.arguments)
    # The suite's own argument sets the number, for the tests that the suite chooses.
    examples = replace(options.examples, number=None if definition.max_examples else number)
    facts = (
        _read_own_sources(), checkout.content, arguments, sorted(definition.environment.items()),
        sorted(definition.facts.items()), examples, standards, definition.seed_random,
    )  # fmt: skip
    # A checkout of the user must be named again to rerun a test; one in the cache is found by its
    # name.
    own = ("--suite-path", _relativize(str(checkout.folder))) if checkout.own else ()
    return Suite(
        paths=resolve_paths(request, checkout), arguments=arguments, folder=checkout.folder,
        named=suite, checkout=checkout, options=options.format(*own),
        timeout=definition.timeout if options.timeout is None else options.timeout,
        hash=hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:16],
        complete=not options.arguments and not request.nodes,
        examples=examples, standards=standards,
        settings=options.describe(number) | ({"standard": options.standard} if standards else {}),
        deviations=load_known_failures(
            suite.folder, examples=number, seed=options.examples.seed, standard=options.standard
        ),
        group=load_grouping(suite.folder),
    )  # fmt: skip


@cache
def _read_own_sources() -> str:
    """Return the sources of this package that decide what is reported of tests.

    Results that another version of them produced are no longer valid.
    """
    own = (PLUGIN.parent / name for name in ("known/error_patterns.py", "running/outcomes.py"))
    files = (PLUGIN, *sorted((PLUGIN.parent / "inside").glob("*.py")), *own)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def _relativize(path: str) -> str:
    """Return a path relative to the working directory, absolute if it is not below it."""
    return path.removeprefix(f"{Path.cwd()}{os.sep}")
