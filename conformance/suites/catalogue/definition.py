"""The definition of a named suite: its source, its needs, and the groups of its tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from conformance.cells.requirements import parse_requirement
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE: Final = "suite.toml"
GROUPS_FILE: Final = "groups.toml"
COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A full commit hash: an abbreviation may become ambiguous."""
OTHER: Final = "other"
"""The group of tests that match no rule."""
_FUNCTION: Final = "function"

_T = TypeVar("_T")


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite as `suites/NAME/suite.toml` defines it.

    Attributes:
        title: Name of the suite in reports.
        url: Git repository of the suite.
        revision: Commit, as a full hash.
        licence: Licence of the suite, an SPDX identifier.
        paths: Files and folders of tests, below its checkout.
        requires: Packages that its tests need, as requirements.
        environment: Environment variables of its sessions.
        arguments: Arguments of pytest.
        max_examples: Argument that sets the number of examples of Hypothesis, empty if its
            settings do.
        examples: Default number of examples; None for the number in the suite.
        timeout: Time limit of a test, in seconds.
        standards: Versions of the standard that it can be held against, the oldest first.
        standard: Environment variable that selects the version.
        claim: Attribute with the version that a release claims, `module:attribute`.
        divide: Whether a file of its tests may be divided among workers, as no test depends on
            another.
        seed_random: Whether Python's `random` is seeded with the name of each test, for tests that
            use it in addition to Hypothesis.
        facts: Facts that sessions report of the tested package: `module:attribute` by name.
    """

    title: str
    url: str
    revision: str
    licence: str
    paths: tuple[str, ...]
    requires: tuple[str, ...] = ()
    # msgspec copies an empty default for each instance.
    environment: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    max_examples: str = ""
    examples: int | None = None
    timeout: float = 60.0
    standards: tuple[str, ...] = ()
    standard: str = ""
    claim: str = ""
    divide: bool = False
    seed_random: bool = False
    facts: dict[str, str] = {}


UNNAMED: Final = Definition(title="", url="", revision="", licence="", paths=())
"""The definition of a suite without a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSuite:
    """A named suite.

    Attributes:
        name: Name of the suite.
        folder: Folder of its definition, its deviations and its groups.
        definition: Content of its `suite.toml`.
    """

    name: str
    folder: Path
    definition: Definition


class GroupRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule for the group of some tests.

    Attributes:
        match: Regular expression, searched in the name of a test.
        group: Group of these tests; empty if the part `function` of the pattern names the function.
    """

    match: str
    group: str = ""


class Groups(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The groups of a suite, as `suites/NAME/groups.toml` defines them.

    Attributes:
        tests: Rules; the first that gives a test a group counts.
        functions: The functions of each group.
        beside: Families of cases about features that the suite does not test.
    """

    tests: tuple[GroupRule, ...] = ()
    functions: dict[str, tuple[str, ...]] = {}
    beside: tuple[str, ...] = ()


def find_suites(folder: Path) -> tuple[str, ...]:
    """Return the names of the suites that are defined in a folder, sorted."""
    return tuple(sorted(path.parent.name for path in folder.glob(f"*/{FILE}")))


def load_suite(name: str, suites: Path) -> NamedSuite:
    """Return the suite with a name.

    Args:
        name: Name of the suite, as of its folder.
        suites: Folder of the suites' folders.

    Raises:
        UsageError: If there is no such suite, or its definition is wrong.
    """
    file = suites / name / FILE
    definition = _read_toml(file, Definition)
    if definition is None:
        known = ", ".join(find_suites(suites))
        raise UsageError(f"{name}: no such suite, expected one of {known or 'none'}")
    if problem := next(_find_problems(definition), ""):
        raise UsageError(f"{file}: {problem}")
    return NamedSuite(name=name, folder=file.parent, definition=definition)


def _read_toml(file: Path, type_: type[_T]) -> _T | None:
    """Return the content of a TOML file, None if it does not exist."""
    try:
        return msgspec.toml.decode(file.read_bytes(), type=type_)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except MALFORMED as error:
        raise UsageError(f"{file}: {error}") from None


def _find_problems(definition: Definition) -> Iterator[str]:
    """Yield the faults of a definition whose fields are of the right types."""
    if not COMMIT.fullmatch(definition.revision):
        yield f"revision: expected a commit, all 40 digits of it, got {definition.revision!r}"
    if not definition.paths:
        yield "paths: expected files or folders of tests, got none"
    for path in map(PurePosixPath, definition.paths):
        # Paths are joined to the checkout: these would select files outside of it.
        if path.is_absolute() or ".." in path.parts:
            yield f"paths: expected paths below the checkout, got '{path}'"
    if definition.timeout <= 0:
        yield f"timeout: expected seconds, more than 0, got {definition.timeout:g}"
    if definition.examples is not None and definition.examples < 1:
        yield f"examples: expected 1 or more, got {definition.examples}"
    if definition.standards and not (definition.standard and definition.claim):
        yield "standards: expected standard and claim with it"
    yield from _find_bad_names(definition)


def _find_bad_names(definition: Definition) -> Iterator[str]:
    for name, where in {**definition.facts, "claim": definition.claim or "a:b"}.items():
        if not all(where.partition(":")[::2]):
            yield f"{name}: expected module:attribute, got {where!r}"
    for text in definition.requires:
        try:
            parse_requirement(text)
        except UsageError as error:
            yield f"requires: {error}"


def load_groups(folder: Path) -> Groups | None:
    """Return the groups of a named suite, None if it has no groups.

    Args:
        folder: Folder of the suite's definition.

    Raises:
        UsageError: If the file cannot be read, or a rule is wrong.
    """
    file = folder / GROUPS_FILE
    groups = _read_toml(file, Groups)
    for number, rule in enumerate(groups.tests if groups else (), 1):
        if problem := _find_rule_problem(rule):
            raise UsageError(f"{file}: rule {number}: {problem}")
    return groups


def _find_rule_problem(rule: GroupRule) -> str:
    try:
        parts = re.compile(rule.match).groupindex
    except re.error as error:
        return f"expected a regular expression, got {rule.match!r}: {error}"
    if rule.group or _FUNCTION in parts:
        return ""
    return f"expected a group, or a part of the pattern called {_FUNCTION}, got {rule.match!r}"


def find_no_group(_: str) -> str:
    """Return the group of a test in a suite without groups."""
    return ""


def load_grouping(folder: Path) -> Callable[[str], str]:
    """Return a function that finds the group of a test of a named suite by its name.

    Args:
        folder: Folder of the suite's definition.

    Raises:
        UsageError: If the groups cannot be read.
    """
    groups = load_groups(folder)
    if groups is None:
        return find_no_group
    # Compiled once: a suite has thousands of tests and dozens of rules.
    rules = [(re.compile(rule.match), rule.group) for rule in groups.tests]
    group_of = {name: group for group, names in groups.functions.items() for name in names}

    @cache  # a report asks for each test several times, and patterns are slow
    def find_group(test: str) -> str:
        for pattern, group in rules:
            if (found := pattern.search(test)) and (
                name := group or group_of.get(found[_FUNCTION], "")
            ):
                return name
        return OTHER

    return find_group
