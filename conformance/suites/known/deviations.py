"""The known failures of a suite: the file `deviations.toml`, read, checked and written."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import tomllib
from packaging.specifiers import SpecifierSet

from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.model.case import Deviation, is_on
from conformance.model.ranges import in_range
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.known.release_line import points

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

Place = tuple[str, str, "Mapping[str, str]"]
"""Release, platform and package versions of a cell."""
FILE: Final = "deviations.toml"
MOST: Final = 10
"""Dead names that are told at once."""
OUTCOMES: Final = ("raised", "crashed", "timed_out", "out_of_memory")
_ENTRY: Final = re.compile(r"(?m)^[ \t]*\[\[[ \t]*deviation[ \t]*\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationEntry:
    """Tests that fail for the same cause in the same releases.

    Attributes:
        deviation: How they fail, and where.
        tests: Their names, sorted.
    """

    deviation: Deviation
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What deviations were written from.

    Attributes:
        revision: Commit of the suite.
        examples: How many examples Hypothesis tried of a test, None where that is the suite's.
        seed: What it began with, None for what each test's own source gives.
        releases: By platform, the releases that were seen, each with the version of the standard
            that it was held against.
    """

    revision: str = ""
    examples: int | None = None
    seed: int | None = None
    releases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviations:
    """The known failures of a suite.

    Attributes:
        generated: What they were written from.
        entries: The failures, in the file's order.
    """

    generated: Generated = Generated()
    entries: tuple[DeviationEntry, ...] = ()

    def by_test(self) -> dict[str, tuple[Deviation, ...]]:
        """Return the deviations of each test, by its name."""
        found: dict[str, list[Deviation]] = defaultdict(list)
        for entry in self.entries:
            for test in entry.tests:
                found[test].append(entry.deviation)
        return {test: tuple(own) for test, own in found.items()}


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """The table `generated` as it is written."""

    revision: str = ""
    examples: int | None = None
    seed: int | None = None
    releases: dict[str, dict[str, str]] = {}


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A table `deviation` as it is written."""

    tests: list[str]
    reason: str
    releases: str = ""
    platform: str = ""
    outcome: str = "raised"
    error: str = ""
    match: str = ""
    issue: str = ""
    may_pass: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file, but for what each entry holds."""

    generated: _Head = msgspec.field(default_factory=_Head)
    deviation: list[Any] = []


def load(folder: Path) -> Deviations:
    """Return the known failures of the suite of a folder; without a file there are none.

    Args:
        folder: Folder of the suite's definition.

    Raises:
        UsageError: If the file cannot be read, or is wrong.
    """
    file = folder / FILE
    try:
        return parse(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        return Deviations()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: expected text in UTF-8") from None


def known_failures(
    folder: Path, *, examples: int | None = None, seed: int | None = None, standard: str = CLAIMED
) -> dict[str, tuple[Deviation, ...]]:
    """Return the known failures of the suite of a folder, by name of the test.

    With other examples than those that they were written from, or held against another version of
    the standard, a failure may not come to light: then passing ends none of them.

    Args:
        folder: Folder of the suite's definition.
        examples: How many examples Hypothesis is to try, None for as many as the suite says.
        seed: What it is to begin with, None for what each test's own source gives.
        standard: The version of its standard that is asked for.

    Raises:
        UsageError: If the file cannot be read, or is wrong.
    """
    known = load(folder)
    found = known.by_test()
    made = known.generated
    if (examples, seed, standard) == (made.examples, made.seed, CLAIMED):
        return found
    return {test: tuple(replace(d, may_pass=True) for d in own) for test, own in found.items()}


def lines_of(text: str) -> list[int]:
    """Return the line that each entry of a file begins in, from 1."""
    return [text.count("\n", 0, match.end()) + 1 for match in _ENTRY.finditer(text)]


def parse(text: str, where: str) -> Deviations:
    """Return the known failures that a file tells of.

    Args:
        text: The file.
        where: What it is called in messages.

    Raises:
        UsageError: If it is wrong: where, what was got, what was expected.
    """
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except (ValueError, RecursionError) as error:
        said = str(error)
        raise UsageError(f"{where}: {said[:1].lower()}{said[1:]}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_told(error)}") from None
    head = file.generated
    lines = lines_of(text)
    entries = []
    for number, table in enumerate(file.deviation):
        line = f":{lines[number]}" if len(lines) == len(file.deviation) else ""
        here = f"{where}{line}: deviation {number + 1}"
        entries.append(_entry(table, here))
    generated = Generated(
        revision=head.revision, examples=head.examples, seed=head.seed, releases=head.releases
    )
    _refuse_twice(entries, where, lines)
    return Deviations(generated=generated, entries=tuple(entries))


def _told(error: msgspec.ValidationError) -> str:
    said = str(error)
    return f"{said[:1].lower()}{said[1:]}"


def _entry(table: Any, here: str) -> DeviationEntry:
    try:
        read = msgspec.convert(table, _Entry)
    except msgspec.ValidationError as error:
        raise UsageError(f"{here}: {_told(error)}") from None
    if problem := next(_problems(read), ""):
        raise UsageError(f"{here}: {problem}")
    values = {name: getattr(read, name) for name in read.__struct_fields__ if name != "tests"}
    return DeviationEntry(deviation=Deviation(**values), tests=tuple(sorted(read.tests)))


def _problems(read: _Entry) -> Iterator[str]:
    """Yield what is wrong with an entry."""
    if not read.tests:
        yield "`tests` is empty, expected the names of tests; remove the entry if none fails"
    if not read.reason.strip():
        yield "`reason` is empty, expected why the tests fail, in a few words"
    if read.outcome not in OUTCOMES:
        yield f"outcome `{read.outcome}`, expected {', '.join(OUTCOMES)}"
    try:
        SpecifierSet(read.releases)
    except ValueError:
        yield f"releases `{read.releases}`, expected a version specifier, e.g. `>=0.5,<0.6`"
    try:
        re.compile(read.match)
    except (re.error, RecursionError, OverflowError) as error:
        yield f"match `{read.match[:80]}` is no regular expression: {error}"
    twice = next((test for test in read.tests if read.tests.count(test) > 1), None)
    if twice is not None:
        yield f"names {twice} twice, expected each test once"


def _refuse_twice(entries: Iterable[DeviationEntry], where: str, lines: list[int]) -> None:
    """Refuse a test that two entries declare for one release."""
    known: dict[str, list[tuple[int, Deviation]]] = defaultdict(list)
    for number, entry in enumerate(entries):
        new = entry.deviation
        for test in entry.tests:
            for before, old in known[test]:
                if overlap(old, new):
                    line = f":{lines[number]}" if number < len(lines) else ""
                    raise UsageError(
                        f"{where}{line}: deviation {number + 1} (`{new.releases}`) and deviation "
                        f"{before + 1} (`{old.releases}`) declare {test} for the same releases, "
                        "expected one for each"
                    )
            known[test].append((number, new))


def overlap(one: Deviation, other: Deviation) -> bool:
    """Say whether two deviations are declared for the same release on the same platform."""
    platforms = one.platform, other.platform
    if all(platforms) and not is_on(*platforms) and not is_on(*reversed(platforms)):
        return False
    ranges = one.releases, other.releases
    return any(all(in_range(p, specifier) for specifier in ranges) for p in points(ranges))


def refuse_dead(
    folder: Path, places: Collection[Place], is_collected: Callable[[str], bool]
) -> None:
    """Refuse known failures of what is no test any more.

    A test that other cells have only, or that they cannot collect now, is not dead. Of releases
    that nobody saw nothing is known: where the file says which were seen, only those count.

    Args:
        folder: Folder of the suite's definition.
        places: Release, platform and package versions of the cells that were looked in.
        is_collected: Says whether any of them has a test of a name, or should have.

    Raises:
        UsageError: If there are some: file, entry and name of each.
    """
    known = load(folder)
    seen = known.generated.releases
    places = [one for one in places if not seen or one[0] in seen.get(one[1], {})]
    dead = [
        (number, test)
        for number, entry in enumerate(known.entries)
        if any(entry.deviation.covers(*place) for place in places)
        for test in entry.tests
        if not is_collected(test)
    ]
    if not dead:
        return
    file = folder / FILE
    lines = lines_of(file.read_text(encoding="utf-8"))
    told = [f"{file}:{lines[n]}: deviation {n + 1} names {test}" for n, test in dead[:MOST]]
    more = f"; and {len(dead) - MOST} more" if len(dead) > MOST else ""
    raise UsageError(
        f"{'; '.join(told)}{more}: no cell collects it, expected tests that there are; remove it, "
        "or write its new name"
    )
