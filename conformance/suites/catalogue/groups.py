"""The groups that the tests of a named suite are counted under."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.suites.catalogue.definition import no_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FILE: Final = "groups.toml"
OTHER: Final = "other"
"""The group of tests that no rule knows: none of them is lost."""
_FUNCTION: Final = "function"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What some tests count under.

    Attributes:
        match: Regular expression, searched in the name of a test.
        group: Their group; empty where the part `function` of the pattern names what they test.
    """

    match: str
    group: str = ""


class Groups(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The groups of a suite, as `suites/NAME/groups.toml` has them.

    Attributes:
        tests: Rules; the first that says anything of a test counts.
        functions: The functions of each group.
        beside: Families of cases that test what the suite does not.
    """

    tests: tuple[Rule, ...] = ()
    functions: dict[str, tuple[str, ...]] = {}
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Grouping:
    rules: tuple[tuple[re.Pattern[str], str], ...]
    group_of: Mapping[str, str]

    def __call__(self, test: str) -> str:
        """Return the group of a test by its name."""
        for pattern, group in self.rules:
            found = pattern.search(test)
            if found is not None:
                said = group or self.group_of.get(found[_FUNCTION], "")
                if said:
                    return said
        return OTHER


def groups_of(folder: Path) -> Groups | None:
    """Return the groups of a named suite, None where it has none.

    Args:
        folder: Where its definition lies.

    Raises:
        UsageError: If the file cannot be read, or a rule is wrong.
    """
    file = folder / FILE
    try:
        found = msgspec.toml.decode(file.read_bytes(), type=Groups)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except MALFORMED as error:
        raise UsageError(f"{file}: {error}") from None
    for number, rule in enumerate(found.tests, 1):
        if wrong := _wrong(rule):
            raise UsageError(f"{file}: rule {number}: {wrong}")
    return found


def _wrong(rule: Rule) -> str:
    """Return what is wrong with a rule, empty if nothing is."""
    try:
        parts = re.compile(rule.match).groupindex
    except re.error as error:
        return f"expected a regular expression, got {rule.match!r}: {error}"
    if rule.group or _FUNCTION in parts:
        return ""
    return f"expected a group, or a part of the pattern called {_FUNCTION}, got {rule.match!r}"


def grouping(folder: Path) -> Callable[[str], str]:
    """Return what tells the group of a test of a named suite, by its name.

    Args:
        folder: Where the suite's definition lies. Without groups no test is in any.

    Raises:
        UsageError: If the groups cannot be read.
    """
    found = groups_of(folder)
    if found is None:
        return no_group
    rules = tuple((re.compile(rule.match), rule.group) for rule in found.tests)
    group_of = {name: group for group, names in found.functions.items() for name in names}
    return cache(_Grouping(rules, group_of))
