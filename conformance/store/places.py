"""Places of cells: what a cell is called in every run, also when its name changes by the day."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.nightly import NIGHTLY
from conformance.cells.releases import is_nightly

if TYPE_CHECKING:
    from collections.abc import Iterable

_CELL: Final = re.compile(r"jax(?P<release>[^-]+)-(?P<python>py\d+)(?P<rest>(?:-.+)?)")


def places_of(cells: Iterable[str]) -> dict[str, str]:
    """Return the place of every cell of a run.

    A cell of a release, or of an environment, is its own place. That of a nightly is `nightly`
    with the platform and the options: neither its date nor the Python that goes with it says
    where it is. Where a run has several, the newest is that; those before it are `nightly-1` and
    so on, as selectors name them, and of one nightly the Python tells them apart.

    Args:
        cells: Cell ids of one run.
    """
    places = {}
    nightlies: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        match = _CELL.fullmatch(cell)
        if match is None or not is_nightly(match["release"]):
            places[cell] = cell
        else:
            nightlies[match["rest"]][match["release"]].append((match["python"], cell))
    for rest, releases in nightlies.items():
        for back, release in enumerate(sorted(releases, key=Version, reverse=True)):
            head = f"{NIGHTLY}-{back}" if back else NIGHTLY
            several = len(releases[release]) > 1
            for python, cell in releases[release]:
                places[cell] = f"{head}-{python}{rest}" if several else f"{head}{rest}"
    return places
