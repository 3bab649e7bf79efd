"""Compatibility of releases: a matrix of writers and readers for each parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.engine.runs.golden_history import LoadResult, ReleasePair
from conformance.golden.spans import parse_version
from conformance.report.markup import WIDTH, to_table, wrap
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Pairs = Mapping[ReleasePair, LoadResult]

RIGHT, WRONG, CRASHED, NOTHING = "·", "!", "†", " "
SIGNS: Final = {"right": RIGHT, "wrong": WRONG, "not exported": NOTHING}
"""Signs of results that the page explains once, above all matrices."""
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
HEAD: Final = (
    "Down are the releases that wrote, across those that read. `·` is right, `!` is wrong, `†` "
    "ends the process, a letter is refused as the legend says, a blank was not written. Of what is "
    "promised to be right, what is not stands as a capital letter, `‼` or `‡`. Made by "
    "`conformance report --goldens`."
)
BROKEN: Final = {WRONG: "‼", CRASHED: "‡"}


def render_pairs(title: str, tables: Mapping[str, Pairs], about: str = "") -> str:
    """Return a page with a matrix for each parameter.

    Args:
        title: Title of the page.
        tables: Result of each pair of writer and reader, by parameter.
        about: Introduction, or empty.
    """
    intro = [wrap(about)] if about else []
    parts = [f"# {title}", wrap(HEAD), *intro, "## All", _render_share(tables)]
    for name, pairs in tables.items():
        parts += [f"## {name}", "\n".join(("```text", *_render_matrix(pairs), "```"))]
    return "\n\n".join(parts) + "\n"


def _render_share(tables: Mapping[str, Pairs]) -> str:
    """Return a table of how many pairs load correctly: those that JAX promises, and others."""
    rows = [["", "promised", "older", "newer"]]
    for name, pairs in tables.items():
        written = {pair: one for pair, one in pairs.items() if one.text != "not exported"}
        groups = (
            [one for one in written.values() if one.promised],
            [one for pair, one in written.items() if not one.promised and _is_older(pair)],
            [one for pair, one in written.items() if not one.promised and not _is_older(pair)],
        )
        shares = (
            f"{sum(one.text == 'right' for one in group)} of {len(group)}" for group in groups
        )
        rows.append([name, *shares])
    return to_table(rows)


def _is_older(pair: ReleasePair) -> bool:
    """Say whether the writer of a pair is an older release than its reader."""
    return parse_version(pair.writer) < parse_version(pair.reader)


def _render_matrix(pairs: Pairs) -> Iterator[str]:
    """Yield the lines of a matrix: heading, a row for each writer, legend."""
    writers = _sort_releases(pair.writer for pair in pairs)
    readers = _sort_releases(pair.reader for pair in pairs)
    letters = _assign_letters(pairs.values())
    width = max(map(len, writers), default=0)
    yield from (f"{'':{width}} {line}".rstrip() for line in _render_upright(readers))
    for writer in writers:
        signs = (_find_sign(pairs.get(ReleasePair(writer, reader)), letters) for reader in readers)
        yield f"{writer:>{width}} {''.join(signs)}".rstrip()
    if letters:
        yield ""
    yield from (f"{letter}  {flatten(text, WIDTH - 3)}" for text, letter in letters.items())


def _assign_letters(results: Iterable[LoadResult]) -> dict[str, str]:
    """Return a letter for each way in which an export is refused, in alphabetical order."""
    refused = {
        result.text for result in results if result.text not in SIGNS and not _is_crash(result.text)
    }
    # Sorted, so that the letters of a committed page do not depend on the order of the pairs.
    return {text: LETTERS[number % len(LETTERS)] for number, text in enumerate(sorted(refused))}


def _find_sign(result: LoadResult | None, letters: Mapping[str, str]) -> str:
    if result is None:
        return NOTHING
    sign = CRASHED if _is_crash(result.text) else SIGNS.get(result.text) or letters[result.text]
    if not result.promised or sign in {RIGHT, NOTHING}:
        return sign
    # The signs of a wrong value and of a crash have no upper case.
    return BROKEN.get(sign, sign.upper())


def _is_crash(text: str) -> bool:
    return text.startswith("crashed")


def _render_upright(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of names that are written from top to bottom, a column for each name."""
    height = max(map(len, names), default=0)
    padded = [name.rjust(height) for name in names]
    for number in range(height):
        yield "".join(name[number] for name in padded)


def _sort_releases(releases: Iterable[str]) -> list[str]:
    return sorted(set(releases), key=parse_version)
