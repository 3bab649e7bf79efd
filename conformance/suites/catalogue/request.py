"""Requests for tests of a named suite, and the paths and arguments that pytest gets for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from conformance.errors import UsageError
from conformance.suites.catalogue.definition import find_suites, load_suite
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.suites.catalogue.checkouts import Checkout
    from conformance.suites.catalogue.definition import NamedSuite

NODE: Final = "::"


class SuiteSource(Protocol):
    """Finds named suites, and provides their files."""

    @property
    def folder(self) -> Path:
        """Folder of the suites' folders."""
        ...

    def checkout(self, suite: NamedSuite) -> Checkout:
        """Return the files of a suite, fetched if they are missing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """A request for a named suite, or some of its tests.

    Attributes:
        suite: Requested suite.
        nodes: The requested tests, by their paths below its checkout; empty for all.
        version: The version of its standard in the ids of the tests, empty for none.
    """

    suite: NamedSuite
    nodes: tuple[str, ...] = ()
    version: str = ""


def parse_request(
    words: Sequence[str], start: Path, home: SuiteSource | None
) -> SuiteRequest | None:
    """Return the request that words make for a named suite; None if they are paths.

    Args:
        words: A path each, or `NAME`, `NAME::NODE`, or the id of a test. A path that exists is a
            path.
        start: Working directory.
        home: Finds named suites.

    Raises:
        UsageError: If a word is neither a path nor a name, or the words are of several suites.
    """
    # Paths first: a file or folder of the user never becomes a suite by its name.
    others = [word for word in words if not _exists(word, start)]
    if not others:
        return None
    requests = [_parse_word(word, home) for word in others]
    names = sorted({request.suite.name for request in requests})
    if len(names) > 1 or len(others) < len(words):
        paths = [word for word in words if word not in others]
        raise UsageError(
            f"{', '.join([*names, *paths])}: expected paths alone, or the name of one suite"
        )
    # A session selects the version with an environment variable, so a run has one.
    versions = sorted({request.version for request in requests})
    if len(versions) > 1:
        raise UsageError(
            f"{names[0]}: tests of {len(versions)} versions, expected those of one version"
        )
    # A request for the whole suite includes those for single tests.
    whole = any(not request.nodes for request in requests)
    nodes = () if whole else tuple(node for request in requests for node in request.nodes)
    return SuiteRequest(suite=requests[0].suite, nodes=nodes, version=versions[0])


def _exists(word: str, start: Path) -> bool:
    return (start / Path(word.partition(NODE)[0]).expanduser()).exists()


def _parse_word(word: str, home: SuiteSource | None) -> SuiteRequest:
    """Return the request of a word that is not an existing path."""
    path, _, node = word.partition(NODE)
    known = () if home is None else find_suites(home.folder)
    if home is not None:
        if path in known:
            return SuiteRequest(suite=load_suite(path, home.folder), nodes=(node,) if node else ())
        top, _, rest = word.partition("/")
        name, _, version = top.partition("@")
        if rest and version and name in known:
            suite = load_suite(name, home.folder)
            return SuiteRequest(suite=suite, nodes=(rest,), version=version)
        if rest:
            # The id of a test begins with a folder of its suite, if only one suite has it.
            suites = (load_suite(name, home.folder) for name in known)
            own = [suite for suite in suites if top in _list_top_folders(suite)]
            if len(own) == 1:
                return SuiteRequest(suite=own[0], nodes=(word,))
    problem = f"{path}: no such file or folder"
    if not known or "/" in path or path.endswith(".py"):
        raise UsageError(f"{problem}, expected the path of tests")
    raise UsageError(
        f"{problem}, and no suite of that name{did_you_mean(path, known)}; "
        f"expected a path of tests, or one of {', '.join(known)}"
    )


def _list_top_folders(suite: NamedSuite) -> set[str]:
    return {path.partition("/")[0] for path in suite.definition.paths}


def resolve_paths(request: SuiteRequest, checkout: Checkout) -> tuple[str, ...]:
    """Return the absolute paths of the requested tests.

    Args:
        request: Request for tests of a suite.
        checkout: Files of the suite.

    Raises:
        UsageError: If a file does not exist.
    """
    name, given = request.suite.name, request.suite.definition.paths
    paths = []
    for node in request.nodes or given:
        path, sign, rest = node.partition(NODE)
        file = checkout.folder / path
        if not file.exists():
            raise UsageError(
                f"{name}{NODE}{node}: {checkout.folder} has no {path}, expected the id of a test, "
                f"e.g. {name}{NODE}{given[0]}/test_file.py{NODE}test_function"
            )
        paths.append(f"{file}{sign}{rest}")
    return tuple(paths)


def make_arguments(suite: NamedSuite, number: int | None, more: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of pytest's own that a named suite is run with.

    Args:
        suite: Suite to run.
        number: Examples that Hypothesis tries of a test, None for as many as the suite sets.
        more: Arguments of the user; the last ones count, so they override the suite's.
    """
    option = suite.definition.max_examples
    examples = (option, str(number)) if option and number is not None else ()
    return (*suite.definition.arguments, *examples, *more)
