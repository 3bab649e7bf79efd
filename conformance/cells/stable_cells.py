"""Places of cells: what a cell is called in every run, also when its name changes by the day."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.nightly import NIGHTLY, is_nightly_selector, parse_nightly_factor
from conformance.cells.releases import is_nightly

if TYPE_CHECKING:
    from collections.abc import Iterable

_CELL: Final = re.compile(r"jax(?P<release>[^-]+)-(?P<python>py\d+)(?P<rest>(?:-.+)?)")


def stable_cell_ids(cells: Iterable[str]) -> dict[str, str]:
    """Return the place of every cell of a run.

    A cell of a release, or of an environment, is its own place. That of a nightly is `nightly`
    with the platform and the options: neither its date nor the Python that goes with it says
    where it is. Where a run has several, the newest is that; those before it are `nightly-1` and
    so on, as selectors name them, and of one nightly the Python tells them apart. A nightly of
    which it is not known which one that is has the place that it would have.

    Args:
        cells: Cell ids of one run.
    """
    places = {}
    nightlies: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        match = _CELL.fullmatch(cell)
        if match is None or not _is_of_a_night(match["release"]):
            places[cell] = cell
        else:
            nightlies[match["rest"]][match["release"]].append((match["python"], cell))
    for rest, releases in nightlies.items():
        for back, release in enumerate(_newest_first(releases)):
            head = f"{NIGHTLY}-{back}" if back else NIGHTLY
            several = len(releases[release]) > 1
            for python, cell in releases[release]:
                places[cell] = f"{head}-{python}{rest}" if several else f"{head}{rest}"
    return places


def _is_of_a_night(release: str) -> bool:
    return is_nightly(release) or is_nightly_selector(parse_nightly_factor(release))


def _newest_first(releases: Iterable[str]) -> list[str]:
    """Return nightlies by age; those of which it is not known which they are come last."""
    known: list[str] = []
    others: list[str] = []
    for release in releases:
        (known if is_nightly(release) else others).append(release)
    return [*sorted(known, key=Version, reverse=True), *sorted(others, key=_back)]


def _back(release: str) -> tuple[int, ...]:
    """Return how far back a nightly is, of `nightly`, `nightly.3` or `nightly.2025.11.20`."""
    numbers = tuple(map(int, release.split(".")[1:]))
    return numbers if len(numbers) <= 1 else tuple(-number for number in numbers)
