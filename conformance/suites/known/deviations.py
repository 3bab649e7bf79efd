"""The known failures of a suite: the file `deviations.toml`, read, checked and written."""

from __future__ import annotations

import json
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
from conformance.suites.known.release_line import list_points

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

Place = tuple[str, str, "Mapping[str, str]"]
"""Release, platform and package versions of a cell."""
FILE: Final = "deviations.toml"
MAX_UNKNOWN: Final = 10
"""Maximum number of unknown tests in a message."""
OUTCOMES: Final = ("raised", "crashed", "timed_out", "out_of_memory")
HEAD: Final = """\
# Failures of this suite that are known, written by `conformance suite accept` from what runs
# showed. A failure that was not declared here is a regression, one that is gone is a fix. `match`,
# `reason`, `issue` and `may_pass` are edited by hand and kept; comments are not kept.
"""
# tomllib reports no lines of values: entries are found in the text for messages.
_ENTRY: Final = re.compile(r"(?m)^[ \t]*\[\[[ \t]*deviation[ \t]*\]\]")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key of TOML that needs no quotes."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f']")
"""Characters that a literal string of TOML cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationEntry:
    """Tests that fail for the same cause in the same releases.

    Attributes:
        deviation: The declared failure, with its releases and platform.
        tests: Names of the tests, sorted.
    """

    deviation: Deviation
    tests: tuple[str, ...]


class DeviationOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The runs that deviations were written from: the table `generated` of the file.

    Attributes:
        revision: Commit of the suite.
        examples: Examples that Hypothesis tried of each test, None for the suite's own number.
        seed: Seed of the examples, None for one that depends on the source of each test.
        releases: By platform, the releases of the runs, each with the version of the standard that
            it was held against.
    """

    revision: str = ""
    examples: int | None = None
    seed: int | None = None
    releases: dict[str, dict[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviations:
    """The known failures of a suite.

    Attributes:
        generated: The runs that they were written from.
        entries: The failures, in the file's order.
    """

    generated: DeviationOrigin = field(default_factory=DeviationOrigin)
    entries: tuple[DeviationEntry, ...] = ()

    def group_by_test(self) -> dict[str, tuple[Deviation, ...]]:
        """Return the deviations of each test, by its name."""
        found: dict[str, list[Deviation]] = defaultdict(list)
        for entry in self.entries:
            for test in entry.tests:
                found[test].append(entry.deviation)
        return {test: tuple(own) for test, own in found.items()}


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A table `deviation` of the file."""

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
    """The file. Its entries are converted one by one, for messages with their line."""

    generated: DeviationOrigin = msgspec.field(default_factory=DeviationOrigin)
    deviation: list[Any] = []


def load_deviations(folder: Path) -> Deviations:
    """Return the known failures of the suite of a folder, none without a file.

    Args:
        folder: Folder of the suite's definition.

    Raises:
        UsageError: If the file cannot be read, or is wrong.
    """
    file = folder / FILE
    try:
        return parse_deviations(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        return Deviations()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: expected text in UTF-8") from None


def load_known_failures(
    folder: Path, *, examples: int | None = None, seed: int | None = None, standard: str = CLAIMED
) -> dict[str, tuple[Deviation, ...]]:
    """Return the known failures of the suite of a folder, by name of the test.

    With other examples than in the recorded runs, or against another version of the standard, a
    test may pass by chance: then passing is no sign of a fix.

    Args:
        folder: Folder of the suite's definition.
        examples: Examples that Hypothesis tries of each test, None for the suite's own number.
        seed: Seed of the examples, None for one that depends on the source of each test.
        standard: The requested version of its standard.

    Raises:
        UsageError: If the file cannot be read, or is wrong.
    """
    known = load_deviations(folder)
    failures, origin = known.group_by_test(), known.generated
    # Only the settings of the recorded runs draw the same examples again.
    if (examples, seed, standard) == (origin.examples, origin.seed, CLAIMED):
        return failures
    return {test: tuple(replace(d, may_pass=True) for d in own) for test, own in failures.items()}


def parse_deviations(text: str, where: str) -> Deviations:
    """Return the known failures in the text of a file.

    Args:
        text: TOML text.
        where: Name of the file in messages.

    Raises:
        UsageError: If it is not valid; the message names the entry and its line.
    """
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except (ValueError, RecursionError) as error:  # msgspec.ValidationError is a ValueError
        raise UsageError(f"{where}: {_lower(str(error))}") from None
    places = _find_entry_places(text, len(file.deviation))
    entries = [
        _parse_entry(table, f"{where}{place}: deviation {number}")
        for number, (table, place) in enumerate(zip(file.deviation, places, strict=True), 1)
    ]
    _reject_duplicates(entries, where, places)
    return Deviations(generated=file.generated, entries=tuple(entries))


def _find_entry_places(text: str, count: int) -> list[str]:
    """Return `:LINE` of each entry of a file; empty texts if an entry has no table header."""
    headers = list(_ENTRY.finditer(text))
    if len(headers) != count:
        return [""] * count
    return [f":{text.count(chr(10), 0, header.end()) + 1}" for header in headers]


def _lower(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}"


def _parse_entry(table: Any, where: str) -> DeviationEntry:
    try:
        entry = msgspec.convert(table, _Entry)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_lower(str(error))}") from None
    if problem := next(_find_problems(entry), ""):
        raise UsageError(f"{where}: {problem}")
    values = msgspec.structs.asdict(entry)
    tests = tuple(sorted(values.pop("tests")))
    return DeviationEntry(deviation=Deviation(**values), tests=tests)


def _find_problems(entry: _Entry) -> Iterator[str]:
    if not entry.tests:
        yield "`tests` is empty, expected the names of tests; remove the entry if none fails"
    if not entry.reason.strip():
        yield "`reason` is empty, expected why the tests fail, in a few words"
    if entry.outcome not in OUTCOMES:
        yield f"outcome `{entry.outcome}`, expected {', '.join(OUTCOMES)}"
    try:
        SpecifierSet(entry.releases)
    except ValueError:
        yield f"releases `{entry.releases}`, expected a version specifier, e.g. `>=0.5,<0.6`"
    try:
        re.compile(entry.match)
    # Deep nesting is a RecursionError, a repetition that is too large an OverflowError.
    except (re.error, RecursionError, OverflowError) as error:
        yield f"match `{entry.match[:80]}` is no regular expression: {error}"
    twice = next((test for test in entry.tests if entry.tests.count(test) > 1), None)
    if twice is not None:
        yield f"names {twice} twice, expected each test once"


def _reject_duplicates(entries: Iterable[DeviationEntry], where: str, places: list[str]) -> None:
    """Reject a test that two entries declare for one release."""
    known: dict[str, list[tuple[int, Deviation]]] = defaultdict(list)
    for number, entry in enumerate(entries, 1):
        new = entry.deviation
        for test in entry.tests:
            for before, old in known[test]:
                if do_overlap(old, new):
                    raise UsageError(
                        f"{where}{places[number - 1]}: deviation {number} (`{new.releases}`) and "
                        f"deviation {before} (`{old.releases}`) declare {test} for the same "
                        "releases, expected one deviation for each release"
                    )
            known[test].append((number, new))


def do_overlap(first: Deviation, second: Deviation) -> bool:
    """Say whether two deviations are declared for the same release on the same platform."""
    platforms = first.platform, second.platform
    # In both directions: either may be the wider, as `tpu` includes `tpu:v5e:2x2`.
    if all(platforms) and not is_on(*platforms) and not is_on(*reversed(platforms)):
        return False
    ranges = first.releases, second.releases
    return any(all(in_range(p, specifier) for specifier in ranges) for p in list_points(ranges))


def reject_unknown_tests(
    folder: Path, places: Collection[Place], is_collected: Callable[[str], bool]
) -> None:
    """Reject known failures of tests that no longer exist.

    A test that only other cells have, or that a cell cannot collect now, still exists. Nothing is
    known about a release without a run: if the file lists the releases of its runs, only cells of
    these releases count.

    Args:
        folder: Folder of the suite's definition.
        places: Release, platform and package versions of the cells that collected the suite.
        is_collected: Returns whether any of them has a test with a name, or should have.

    Raises:
        UsageError: If there are some; the message names the file, the entry and the test.
    """
    known = load_deviations(folder)
    releases = known.generated.releases
    # Without a list of releases the file was written by hand: every cell counts.
    places = [place for place in places if not releases or place[0] in releases.get(place[1], {})]
    unknown = [
        (number, test)
        for number, entry in enumerate(known.entries)
        if any(entry.deviation.covers(*place) for place in places)
        for test in entry.tests
        if not is_collected(test)
    ]
    if not unknown:
        return
    file = folder / FILE
    entry_places = _find_entry_places(file.read_text(encoding="utf-8"), len(known.entries))
    named = [
        f"{file}{entry_places[number]}: deviation {number + 1} names {test}"
        for number, test in unknown[:MAX_UNKNOWN]
    ]
    more = f"; and {len(unknown) - MAX_UNKNOWN} more" if len(unknown) > MAX_UNKNOWN else ""
    raise UsageError(
        f"{'; '.join(named)}{more}: no cell collects it, expected an existing test; remove it, "
        "or write its new name"
    )


def render_deviations(known: Deviations) -> str:
    """Return known failures as a file, equal for equal failures; one test a line.

    Args:
        known: The failures; `parse_deviations(render_deviations(known)) == known` once its entries
            are sorted.
    """
    parts = [HEAD, "\n".join(_render_origin(known.generated))]
    # Sorted: a rewritten file differs only where the failures do.
    parts += ["\n".join(_render_entry(entry)) for entry in sort_entries(known.entries)]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def sort_entries(entries: Iterable[DeviationEntry]) -> tuple[DeviationEntry, ...]:
    """Return entries in the order of the file: those of one cause together, by release."""
    return tuple(sorted(entries, key=_make_sort_key))


def _make_sort_key(entry: DeviationEntry) -> tuple[object, ...]:
    own = entry.deviation
    cause = own.platform, own.outcome, own.error, own.match, own.reason, own.issue, own.may_pass
    numbers = tuple(map(_split_version, list_points([own.releases])))
    return (*cause, numbers, own.releases, entry.tests)


def _split_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _render_origin(generated: DeviationOrigin) -> Iterator[str]:
    yield "[generated]"
    if generated.revision:
        yield f"revision = {quote_toml(generated.revision)}"
    if generated.examples is not None:
        yield f"examples = {generated.examples}"
    if generated.seed is not None:
        yield f"seed = {generated.seed}"
    for platform, releases in sorted(generated.releases.items()):
        key = platform if _BARE.fullmatch(platform) else quote_toml(platform)
        yield from ("", f"[generated.releases.{key}]")
        for release in sorted(releases, key=_split_version):
            yield f"{quote_toml(release)} = {quote_toml(releases[release])}"


def _render_entry(entry: DeviationEntry) -> Iterator[str]:
    own = entry.deviation
    yield "[[deviation]]"
    yield f"releases = {quote_toml(own.releases)}"
    # `raised` is the default, and not written.
    values = {"platform": own.platform, "outcome": own.outcome if own.outcome != "raised" else ""}
    values |= {name: getattr(own, name) for name in ("error", "match", "reason", "issue")}
    yield from (f"{name} = {quote_toml(text)}" for name, text in values.items() if text)
    if own.may_pass:
        yield "may_pass = true"
    yield from ("tests = [", *(f"    {quote_toml(test)}," for test in sorted(entry.tests)), "]")


def quote_toml(text: str) -> str:
    """Return a text as a string of TOML, without escapes if possible."""
    if ("\\" in text or '"' in text) and not _CONTROL.search(text):
        return f"'{text}'"
    # A string of JSON is also a basic string of TOML, except for an unescaped DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
