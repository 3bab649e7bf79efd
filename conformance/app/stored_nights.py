"""Runs from the history store; apart, because this imports its database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.store.address import parse_address
from conformance.store.nights import load_known_regressions, load_last_night
from conformance.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.digests import Digest
    from conformance.engine.nights import Night

Known = frozenset[tuple[str, str, str]]


def from_store(
    text: str, matrix: str, part: str, say: Callable[[str], None], *, own: str, name: str
) -> tuple[Night | None, Known]:
    """Return the last night of a matrix that a store has, and what issues are linked to.

    Args:
        text: Path or URL of the store; a file that is not there is not made.
        matrix: Name or file of the matrix.
        part: What of the matrix was asked for.
        say: Told what was mended.
        own: Id of the run that is compared, which is not meant.
        name: Id of the night, if it is to be that one.

    Raises:
        ConformanceError: If the store cannot be read.
    """
    store = _existing(text, say)
    if store is None:
        return None, frozenset()
    return load_last_night(store, matrix, part, own=own, name=name), load_known_regressions(store)


def digests_in(text: str, say: Callable[[str], None]) -> list[Digest]:
    """Return the digests of the runs that a store has.

    Args:
        text: Path or URL of the store; a file that is not there is not made.
        say: Told what was mended.

    Raises:
        ConformanceError: If the store cannot be read.
    """
    store = _existing(text, say)
    return [] if store is None else store.digests()


def _existing(text: str, say: Callable[[str], None]) -> Store | None:
    address = parse_address(text)
    if address.file is not None and not address.file.exists():
        return None
    return Store(address, say)
