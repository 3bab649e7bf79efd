"""Tracks: cells that differ only in the release, in order of their releases."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.nightly import is_nightly_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.run import RunCell

_CELL: Final = re.compile(
    r"(?:jax(?P<release>[^-]+)|path-(?P<stem>[^-]+)-[0-9a-f]{8})-py(?P<python>\d+)-(?P<place>.+)"
)
_FAMILY: Final = re.compile(r"[a-z]+")
KINDS: Final = ("cpu", "tpu", "cuda", "rocm", "gpu")
"""Kinds of platform, in the order in which reports show them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The cells of one place, from the oldest release to the newest.

    Attributes:
        name: Place that the cells have in common, e.g. `cpu8`, `tpu:v5e:2x2` or `cpu8 x64`.
        kind: Kind of platform, e.g. `tpu`; empty if it is unknown.
        cells: The cells.
        baseline: For a track of `path:` cells, the released cell on the same place that they are
            compared with: of the same release, else of the newest release before it. It is also a
            cell of another track. None for other tracks.
    """

    name: str
    kind: str
    cells: tuple[RunCell, ...]
    baseline: RunCell | None = None

    @property
    def compared_cells(self) -> tuple[RunCell, ...]:
        """The baseline, if there is one, and the cells; each is compared with the cell before."""
        return self.cells if self.baseline is None else (self.baseline, *self.cells)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the compared cells."""
        first = () if self.baseline is None else (f"{self.baseline.label} (release)",)
        return (*first, *(cell.label for cell in self.cells))


def group_tracks(cells: Iterable[RunCell]) -> tuple[Track, ...]:
    """Return cells in tracks, CPUs first, then by name.

    The Python of a cell is part of the track only if a release is run on several Pythons.

    Args:
        cells: Cells of runs; the last of the cells with one id counts.
    """
    unique = {cell.id: cell for cell in cells}
    # A cell's Python follows from its release (JAX 0.11 requires 3.12): as a part of every track,
    # it would divide the history of a place in two.
    pythons: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cell in unique.values():
        place, python = _split_place(cell)
        pythons[place, cell.release].add(python)
    several = {place for (place, _), found in pythons.items() if len(found) > 1}
    members: dict[str, list[RunCell]] = defaultdict(list)
    for cell in unique.values():
        place, python = _split_place(cell)
        name = f"{place} py{python}" if place in several and python else place
        members[name].append(cell)
    made = [
        Track(
            name=name, kind=_find_kind(name), cells=tuple(sorted(found, key=_make_order_key)),
            baseline=_find_baseline(found, unique.values()),
        )
        for name, found in members.items()
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda track: (_rank_kind(track.kind), track.name)))


def _find_baseline(members: Iterable[RunCell], cells: Iterable[RunCell]) -> RunCell | None:
    """Return the released cell that `path:` cells are compared with, None for other cells."""
    oldest = min(members, key=_make_order_key)
    found = _CELL.fullmatch(oldest.id)
    if found is None or not found["stem"]:
        return None
    wanted = make_release_key(oldest.release)
    before = [
        cell
        for cell in cells
        if (match := _CELL.fullmatch(cell.id)) is not None
        and not match["stem"]
        and match["place"] == found["place"]
        and make_release_key(cell.release) <= wanted
    ]
    # If the release is run on several Pythons, the same Python is preferred.
    return max(
        before,
        key=lambda cell: (_make_order_key(cell)[0], f"-py{found['python']}-" in cell.id),
        default=None,
    )


def _split_place(cell: RunCell) -> tuple[str, str]:
    """Return the place of a cell, which is its id without release and Python, and its Python."""
    match = _CELL.fullmatch(cell.id)
    # Ids of older or foreign runs may have another form: such a cell forms a separate track.
    if match is None:
        return cell.id, ""
    platform, *options = match["place"].split("-")
    words = [platform.replace(".", ":"), *options]
    if match["stem"]:
        words.append(f"path {match['stem']}")
    return " ".join(words), match["python"]


def _find_kind(name: str) -> str:
    match = _FAMILY.match(name)
    return match[0] if match is not None and match[0] in KINDS else ""


def _rank_kind(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)


def _make_order_key(cell: RunCell) -> tuple[tuple[Version, str], str]:
    return make_release_key(cell.release), cell.id


def make_release_key(release: str) -> tuple[Version, str]:
    """Return the sort key of a release: texts that are no version first, nightlies last.

    Args:
        release: A release of jax, or the label of a cell.
    """
    try:
        return Version(release), release
    except ValueError:
        return Version("9999" if is_nightly_selector(release) else "0"), release
