"""What becomes in one release of what another one made, as the goldens of some cases have it."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.engine.golden_change import MAIN
from conformance.golden.store import GoldenStore
from conformance.model.codec import to_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.model.case import Case

_MADE_BY: Final = re.compile(r"out\['([\d.]+)'\]")


class ReleasePair(NamedTuple):
    """Two releases.

    Attributes:
        writer: The one that made something.
        reader: The one that takes it.
    """

    writer: str
    reader: str


class LoadResult(NamedTuple):
    """What becomes of what was made.

    Attributes:
        said: In the words of the case.
        promised: Whether it is promised to be right.
    """

    said: str
    promised: bool


def recorded_compatibility(
    cases: Iterable[Case], names: Sequence[str], releases: Iterable[str]
) -> Mapping[str, Mapping[ReleasePair, LoadResult]]:
    """Return what the goldens have, by parameter.

    Args:
        cases: All cases of a family.
        names: Names of those that are read; what the first says is promised.
        releases: The releases that read.

    Raises:
        GoldenError: If a golden is corrupt.
    """
    readers = tuple(releases)
    stores: dict[Path, GoldenStore] = {}
    found: dict[str, dict[ReleasePair, LoadResult]] = defaultdict(dict)
    for case in cases:
        if case.name not in names:
            continue
        store = stores.setdefault(case.families, GoldenStore(case.families))
        parameter = case.id.partition("[")[2].removesuffix("]")
        for reader in readers:
            entry = store.lookup(case, MAIN, reader)
            if entry is None or not entry.exact or entry.value is None:
                continue
            for leaf in entry.value.leaves:
                made = _MADE_BY.fullmatch(leaf.path)
                if made is not None:
                    said = LoadResult(str(to_python(leaf)), case.name == names[0])
                    found[parameter][ReleasePair(made[1], reader)] = said
    return found
