"""What is asked of a named suite: its tests in a checkout, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from conformance.errors import UsageError
from conformance.suites.catalogue.definition import FILE, named_suite
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.suites.catalogue.definition import NamedSuite

NODE: Final = "::"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The files of a named suite.

    Attributes:
        folder: Where they lie, absolute.
        revision: Commit that they are of, empty where that is not known.
        changed: Whether they differ from that.
        own: Whether they are the user's own, and not in the cache.
        content: Hash of them.
    """

    folder: Path
    revision: str = ""
    changed: bool = False
    own: bool = False
    content: str

    @property
    def told(self) -> str:
        """The revision, which of changed files is not quite it; empty where it is not known."""
        return f"{self.revision}-changed" if self.changed else self.revision


class Home(Protocol):
    """Where named suites are."""

    @property
    def folder(self) -> Path:
        """Folder of the suites' folders."""
        ...

    def checkout(self, suite: NamedSuite) -> Checkout:
        """Return the files of a suite, fetched now if they are not there."""
        ...


def suite_names(folder: Path) -> tuple[str, ...]:
    """Return the names of the suites that are defined in a folder, sorted."""
    return tuple(sorted(path.parent.name for path in folder.glob(f"*/{FILE}")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What words say of a named suite.

    Attributes:
        suite: The suite.
        nodes: The tests that are meant, by their paths below its checkout; empty for all.
        version: The version of its standard that they are held against, empty where none is said.
    """

    suite: NamedSuite
    nodes: tuple[str, ...] = ()
    version: str = ""


def asked_by_name(words: Sequence[str], start: Path, home: Home | None) -> Named | None:
    """Return what words say of a named suite; None where they are paths.

    Args:
        words: A path each, or `NAME`, `NAME::NODE`, or a test's id as it is told. A path that
            exists is a path.
        start: Working directory.
        home: Where named suites are.

    Raises:
        UsageError: If a word is neither, or there are both, or several names.
    """
    others = [word for word in words if not _exists(word, start)]
    if not others:
        return None
    known = () if home is None else suite_names(home.folder)
    found = [_found(word, known, home) for word in others]
    names = sorted({one.suite.name for one in found})
    if len(names) > 1 or len(others) < len(words):
        paths = [word for word in words if word not in others]
        raise UsageError(
            f"{', '.join([*names, *paths])}: expected paths alone, or the name of one suite"
        )
    versions = sorted({one.version for one in found})
    if len(versions) > 1:
        raise UsageError(f"{names[0]}: tests of {len(versions)} versions, expected those of one")
    whole = any(not one.nodes for one in found)
    nodes = () if whole else tuple(node for one in found for node in one.nodes)
    return Named(suite=found[0].suite, nodes=nodes, version=versions[0])


def _exists(word: str, start: Path) -> bool:
    return (start / Path(word.partition(NODE)[0]).expanduser()).exists()


def _found(word: str, known: Sequence[str], home: Home | None) -> Named:
    """Return what a word says that is no path here."""
    name, _, node = word.partition(NODE)
    if home is not None and name in known:
        return Named(suite=named_suite(name, home.folder), nodes=(node,) if node else ())
    top, _, rest = word.partition("/")
    name, _, version = top.partition("@")
    if home is not None and rest and version and name in known:
        return Named(suite=named_suite(name, home.folder), nodes=(rest,), version=version)
    if home is not None and rest:
        suites = (named_suite(one, home.folder) for one in known)
        own = [one for one in suites if top in {p.partition("/")[0] for p in one.definition.paths}]
        if len(own) == 1:
            return Named(suite=own[0], nodes=(word,))
    raise UsageError(_unknown(word.partition(NODE)[0], known))


def _unknown(name: str, known: Sequence[str]) -> str:
    said = f"{name}: no such file or folder"
    if not known or "/" in name or name.endswith(".py"):
        return f"{said}, expected one of tests"
    return (
        f"{said}, and no suite of that name{did_you_mean(name, known)}; "
        f"expected a path of tests, or one of {', '.join(known)}"
    )


def named_paths(named: Named, checkout: Checkout) -> tuple[str, ...]:
    """Return the paths of what is asked for of a named suite, absolute.

    Args:
        named: What is asked for.
        checkout: Its files.

    Raises:
        UsageError: If a file is not there.
    """
    name, given = named.suite.name, named.suite.definition.paths
    paths = []
    for node in named.nodes or given:
        path, sign, rest = node.partition(NODE)
        file = checkout.folder / path
        if not file.exists():
            raise UsageError(
                f"{name}{NODE}{node}: {checkout.folder} has no {path}, expected a test as it is "
                f"told, e.g. {name}{NODE}{given[0]}/test_file.py{NODE}test_function"
            )
        paths.append(f"{file}{sign}{rest}")
    return tuple(paths)


def named_arguments(suite: NamedSuite, number: int | None, more: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of pytest's own that a named suite is run with.

    Args:
        suite: The suite.
        number: Examples that Hypothesis tries of a test, None for as many as the suite says.
        more: What the user says, which counts over the suite's.
    """
    option = suite.definition.max_examples
    examples = (option, str(number)) if option and number is not None else ()
    return (*suite.definition.arguments, *examples, *more)
