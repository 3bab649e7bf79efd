"""What a named suite is: where it comes from, and what it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.requirements import parse_requirement
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = "suite.toml"
COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""A commit, all of it: what is shorter may mean another one day."""


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite as `suites/NAME/suite.toml` defines it.

    Attributes:
        title: What it is called on pages.
        url: Git repository that it comes from.
        revision: Commit, all forty digits of it.
        licence: Its licence, as SPDX spells it.
        paths: Files and folders of tests, below its checkout.
        requires: Packages that its tests need, as requirements.
        environment: Environment variables of its sessions.
        arguments: Arguments of pytest's own.
        max_examples: Argument that says how many examples Hypothesis tries, empty where its
            settings say so.
        examples: How many, where nobody asks for another number; None leaves that to the suite.
        timeout: Seconds that one test may take.
        standards: Versions of the standard that it can be held against, the oldest first.
        standard: Environment variable that says which.
        claim: Where a release says which it keeps, `module:attribute`.
        divide: Whether a file of its tests may be divided among workers: none depends on another.
        seed_random: Whether Python's `random` begins each test with its name, where a test draws
            from it past Hypothesis.
        facts: What sessions tell of what they test: `module:attribute` by name.
    """

    title: str
    url: str
    revision: str
    licence: str
    paths: tuple[str, ...]
    requires: tuple[str, ...] = ()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSuite:
    """A suite that has a name.

    Attributes:
        name: Its name.
        folder: Where its definition lies, its deviations and its groups beside it.
        definition: Its definition.
    """

    name: str
    folder: Path
    definition: Definition


def no_group(_: str) -> str:
    """Return the group of a test in a suite without groups."""
    return ""


def named_suite(name: str, suites: Path) -> NamedSuite:
    """Return the suite of a name.

    Args:
        name: Its name.
        suites: Folder of the suites' folders.

    Raises:
        UsageError: If there is none, or its definition is wrong.
    """
    file = suites / name / FILE
    try:
        definition = msgspec.toml.decode(file.read_bytes(), type=Definition)
    except FileNotFoundError:
        known = ", ".join(sorted(path.parent.name for path in suites.glob(f"*/{FILE}")))
        raise UsageError(f"{name}: no such suite, expected one of {known or 'none'}") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except MALFORMED as error:
        raise UsageError(f"{file}: {error}") from None
    if wrong := _wrong(definition):
        raise UsageError(f"{file}: {wrong}")
    return NamedSuite(name=name, folder=file.parent, definition=definition)


def _wrong(given: Definition) -> str:
    """Return what is wrong with a definition whose fields are of the right types, or nothing."""
    return next(chain(_faults(given), _misnamed(given)), "")


def _faults(given: Definition) -> Iterator[str]:
    """Yield what is wrong with what it says of its files, and how they are run."""
    if not COMMIT.fullmatch(given.revision):
        yield f"revision: expected a commit, all 40 digits of it, got {given.revision!r}"
    if not given.paths:
        yield "paths: expected files or folders of tests, got none"
    for path in map(PurePosixPath, given.paths):
        if path.is_absolute() or ".." in path.parts:
            yield f"paths: expected paths below the checkout, got '{path}'"
    if given.timeout <= 0:
        yield f"timeout: expected seconds, more than 0, got {given.timeout:g}"
    if given.examples is not None and given.examples < 1:
        yield f"examples: expected 1 or more, got {given.examples}"
    if given.standards and not (given.standard and given.claim):
        yield "standards: expected standard and claim beside them"


def _misnamed(given: Definition) -> Iterator[str]:
    """Yield what is wrong with the names of attributes and packages."""
    for name, where in {**given.facts, "claim": given.claim or "a:b"}.items():
        if not all(where.partition(":")[::2]):
            yield f"{name}: expected module:attribute, got {where!r}"
    for text in given.requires:
        try:
            parse_requirement(text)
        except UsageError as error:
            yield f"requires: {error}"
