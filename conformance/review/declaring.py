"""Deviations written into a case file; what is not edited stays as written. Pure.

What is written is as the formatter leaves it: an argument a line, each with its comma.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from conformance.corpus.metadata import (
    DeviationMetadata,
    MetadataError,
    deviations_of,
    read_metadata,
    specifier,
)
from conformance.errors import UsageError
from conformance.review.decorator import (
    cut_item,
    cut_keyword,
    exploded,
    find,
    inserted,
    listed,
    prefix_of,
    set_range,
)
from conformance.review.imports import importing, not_importing
from conformance.review.literals import WIDTH, call_lines
from conformance.triage.new.edits import Edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.corpus.metadata import Metadata
    from conformance.model.case import Deviation

NAME = "deviation"
KEYWORD = "deviations"


def metadata_in(text: str, function: str) -> Metadata:
    """Return what a case file says of one of its cases, as discovery reads it.

    Args:
        text: The file.
        function: Name of the case.

    Raises:
        UsageError: If it is not there, or cannot be read.
    """
    site = find(text, function)
    try:
        return read_metadata(site.call, site.kind)
    except MetadataError as error:
        raise UsageError(f"{function}: {error}") from None


def declared(
    text: str,
    function: str,
    deviation: Deviation,
    params: Sequence[str] = (),
    *,
    width: int = WIDTH,
) -> str:
    """Return a case file in which a case declares one deviation more.

    Args:
        text: The file.
        function: Name of the case.
        deviation: What is declared.
        params: Parametrisations that it is for; empty for all.
        width: Columns that the formatter admits.

    Raises:
        UsageError: If the case is not there, or would not be read back as meant.
    """
    before = metadata_in(text, function)
    new = DeviationMetadata(
        releases=f"jax{deviation.releases}" if deviation.releases else "",
        outcome=deviation.outcome,
        error=deviation.error,
        match=deviation.match,
        platform=deviation.platform,
        packages=dict(deviation.packages),
        params=tuple(params),
        reason=deviation.reason,
        issue=deviation.issue,
    )
    prefix = prefix_of(find(text, function).call)
    lines = call_lines(f"{prefix}{NAME}", new, width)
    edited = inserted(exploded(text, function), function, KEYWORD, lines)
    if not prefix:
        edited = importing(edited, NAME, width)
    _check(edited, function, before, (*before.deviations, new))
    return edited


def ended(
    text: str,
    function: str,
    deviation: Deviation,
    releases: str | None,
    *,
    width: int = WIDTH,
) -> str:
    """Return a case file in which a declared deviation is for fewer releases, or gone.

    Args:
        text: The file.
        function: Name of the case.
        deviation: What is declared.
        releases: What its range is to be; None where it goes.
        width: Columns that the formatter admits.

    Raises:
        UsageError: If the case does not declare it, or would not be read back as meant.
    """
    before = metadata_in(text, function)
    site = find(text, function)
    number = _number(before, deviation)
    items = listed(site.call, KEYWORD)
    if number is None or items is None:
        raise UsageError(f"{function}: declares no such deviation (jax{deviation.releases})")
    left = list(before.deviations)
    edits = Edits(text)
    if releases is not None:
        wanted = f"jax{releases}" if releases else ""
        left[number] = msgspec.structs.replace(left[number], releases=wanted)
        set_range(edits, items[number], wanted)
    else:
        del left[number]
        if left:
            cut_item(edits, text, items, number)
        else:
            cut_keyword(edits, text, site.call, KEYWORD)
    edited = edits.applied()
    if not left:
        edited = not_importing(edited, NAME, width)
    _check(edited, function, before, tuple(left))
    return edited


def _number(metadata: Metadata, deviation: Deviation) -> int | None:
    """Return which of the declared deviations one is."""
    for number, one in enumerate(metadata.deviations):
        alone = msgspec.structs.replace(metadata, deviations=(one,))
        param = one.params[0] if one.params else ""
        if deviations_of(alone, param) == (deviation,):
            return number
    return None


def _check(
    text: str, function: str, before: Metadata, wanted: tuple[DeviationMetadata, ...]
) -> None:
    """Make sure that the deviations are as meant, and nothing else is said of the case."""
    try:
        after = metadata_in(text, function)
    except (UsageError, SyntaxError) as error:
        raise _by_hand(function, str(error)) from None
    if _others(before) != _others(after):
        raise _by_hand(function, "something else in it would change")
    if list(map(_meaning, after.deviations)) != list(map(_meaning, wanted)):
        raise _by_hand(function, "the deviation would not be read back as it is meant")


def _by_hand(function: str, why: str) -> UsageError:
    return UsageError(
        f"{function}: its decorator cannot be edited here: {why}; declare the deviation by hand"
    )


def _others(metadata: Metadata) -> list[object]:
    names = (name for name in metadata.__struct_fields__ if name != KEYWORD)
    return [getattr(metadata, name) for name in names]


def _meaning(one: DeviationMetadata) -> DeviationMetadata:
    return msgspec.structs.replace(one, releases=specifier(one.releases))
