"""The committed data of a conformance history: a test's line names only releases that changed it.

A new release thus changes only the lines of the tests that it changed, which keeps pull requests
readable.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED
from conformance.report.suites.conformance_history import (
    ABSENT,
    SuiteHistory,
    SuiteOutcome,
    SuiteRelease,
    SuiteResult,
    TrackedTest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT: Final = 1


class _Test(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A test: its results by the first release of each, in force until the next entry."""

    since: dict[str, SuiteOutcome | SuiteResult]
    doc: str = ""


class _Data(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    suite: str
    title: str
    revision: str
    settings: dict[str, Any]
    place: str
    releases: tuple[SuiteRelease, ...]
    tests: dict[str, dict[str, _Test]]
    beside: dict[str, dict[str, _Test]] = {}


def encode_history(history: SuiteHistory) -> bytes:
    """Return a history as JSON, a line for each release and for each test.

    A release that changes nothing adds one line. Equal histories have equal texts.

    Args:
        history: The history to encode.
    """
    fields: dict[str, Any] = {
        "format": FORMAT,
        "suite": history.suite,
        "title": history.title,
        "revision": history.revision,
        # Equal settings may differ in their order, which would rewrite the line.
        "settings": dict(sorted(history.settings.items())),
        "place": history.place,
    }
    names = [held.release for held in history.releases]
    # Written by hand: no option of `json.dumps` gives a line to each test but none to its members.
    lines = [f"{_encode_json(name)}: {_encode_json(value)}," for name, value in fields.items()]
    releases = [f"  {_encode_line(held)}" for held in history.releases]
    parts = [
        "\n".join(["{", *lines, '"releases": [']),
        ",\n".join(releases),
        "],\n" + _encode_groups("tests", history.tests, history.groups, names) + ",",
        _encode_groups("beside", history.own_cases, history.families, names),
        "}\n",
    ]
    return "\n".join(parts).encode()


def decode_history(content: bytes, where: str) -> SuiteHistory:
    """Return the history that a file holds.

    Args:
        content: The file's content.
        where: The file, for messages.

    Raises:
        UsageError: If the content is no history, or of another format.
    """
    try:
        data = msgspec.json.decode(content, type=_Data)
    except MALFORMED as error:
        raise UsageError(f"{where}: expected the data of a conformance history: {error}") from None
    if data.format != FORMAT:
        raise UsageError(
            f"{where}: format {data.format}, expected {FORMAT}; remove it, and generate it again"
        )
    names = [held.release for held in data.releases]
    return SuiteHistory(
        suite=data.suite, title=data.title, revision=data.revision, settings=data.settings,
        place=data.place, releases=data.releases,
        tests=_decode_tests(data.tests, names), own_cases=_decode_tests(data.beside, names),
    )  # fmt: skip


def _encode_groups(
    field: str, tests: Mapping[str, TrackedTest], groups: Iterable[str], releases: list[str]
) -> str:
    texts = []
    for group in groups:
        members = sorted((name, tested) for name, tested in tests.items() if tested.group == group)
        lines = [
            f"  {_encode_json(name)}: {_encode_line(_encode_test(tested, releases))}"
            for name, tested in members
        ]
        texts.append(f"{_encode_json(group)}: {{\n" + ",\n".join(lines) + "\n}")
    return f"{_encode_json(field)}: {{\n" + ",\n".join(texts) + "\n}"


def _encode_test(tested: TrackedTest, releases: list[str]) -> _Test:
    since: dict[str, SuiteOutcome | SuiteResult] = {}
    last = ABSENT
    for release in releases:
        result = tested.of(release)
        if result != last:
            # A result without reasons, most often a pass, is a bare word: most lines are one word.
            plain = not (result.why or result.reason or result.issue)
            since[release] = result.outcome if plain else result
            last = result
    return _Test(since=since, doc=tested.doc)


def _decode_tests(
    grouped: Mapping[str, Mapping[str, _Test]], releases: list[str]
) -> dict[str, TrackedTest]:
    return {
        name: TrackedTest(group=group, results=_expand(test.since, releases), doc=test.doc)
        for group, members in grouped.items()
        for name, test in members.items()
    }


def _expand(
    since: Mapping[str, SuiteOutcome | SuiteResult], releases: list[str]
) -> dict[str, SuiteResult]:
    found, last = {}, ABSENT
    for release in releases:
        entry = since.get(release)
        if entry is not None:
            last = SuiteResult(outcome=entry) if isinstance(entry, SuiteOutcome) else entry
        # An entry `absent` ends a test; a result that is missing means the same to `TrackedTest`.
        if last.outcome is not SuiteOutcome.ABSENT:
            found[release] = last
    return found


def _encode_line(struct: msgspec.Struct) -> str:
    return _encode_json(msgspec.to_builtins(struct))


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
