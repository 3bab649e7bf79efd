"""Known failures as the text of their file, the same for the same failures."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from conformance.suites.known.release_line import points

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.suites.known.deviations import DeviationEntry, Deviations, Generated

HEAD: Final = """\
# Failures of this suite that are known, written by `conformance suite accept` from what runs
# showed. A failure that was not declared here is a regression, one that is gone is a fix. `match`,
# `reason`, `issue` and `may_pass` are kept as they are written by hand; comments are not.
"""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f']")


def dumps(known: Deviations) -> str:
    """Return known failures as a file: entries of one cause beside each other, tests one a line.

    Args:
        known: The failures; `parse(dumps(known)) == known` once entries are in order.
    """
    parts = [HEAD, "\n".join(_head(known.generated))]
    parts += ["\n".join(_table(entry)) for entry in ordered(known.entries)]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def ordered(entries: Iterable[DeviationEntry]) -> tuple[DeviationEntry, ...]:
    """Return entries in the order of the file."""
    return tuple(sorted(entries, key=_place))


def _place(entry: DeviationEntry) -> tuple[object, ...]:
    own = entry.deviation
    cause = own.platform, own.outcome, own.error, own.match, own.reason, own.issue, own.may_pass
    return (*cause, tuple(map(_number, points([own.releases]))), own.releases, entry.tests)


def _number(point: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", point)))


def _head(generated: Generated) -> Iterator[str]:
    yield "[generated]"
    if generated.revision:
        yield f"revision = {quoted(generated.revision)}"
    if generated.examples is not None:
        yield f"examples = {generated.examples}"
    if generated.seed is not None:
        yield f"seed = {generated.seed}"
    for platform, releases in sorted(generated.releases.items()):
        yield ""
        yield f"[generated.releases.{platform if _BARE.fullmatch(platform) else quoted(platform)}]"
        order = sorted(releases, key=_number)
        yield from (f"{quoted(release)} = {quoted(releases[release])}" for release in order)


def _table(entry: DeviationEntry) -> Iterator[str]:
    own = entry.deviation
    yield "[[deviation]]"
    yield f"releases = {quoted(own.releases)}"
    if own.platform:
        yield f"platform = {quoted(own.platform)}"
    if own.outcome != "raised":
        yield f"outcome = {quoted(own.outcome)}"
    for name in ("error", "match", "reason", "issue"):
        if text := getattr(own, name):
            yield f"{name} = {quoted(text)}"
    if own.may_pass:
        yield "may_pass = true"
    yield "tests = ["
    yield from (f"    {quoted(test)}," for test in sorted(entry.tests))
    yield "]"


def quoted(text: str) -> str:
    """Return a text as a string of TOML, as it is where it can be."""
    if ("\\" in text or '"' in text) and not _CONTROL.search(text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
