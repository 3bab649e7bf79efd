"""Cells in tracks: those that differ in nothing but the release, one after another."""

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
"""Kinds of platform, in the order they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The cells of one place, from the oldest release to the newest.

    Attributes:
        name: What the cells have in common, e.g. `cpu8`, `tpu:v5e:2x2` or `cpu8 x64`.
        kind: Kind of platform, e.g. `tpu`.
        cells: The cells.
        baseline: Of a track of `path:` cells, the cell of a release on the same place that they are
            compared with: of the same release, else of the newest before it. It is one of another
            track, too.
    """

    name: str
    kind: str
    cells: tuple[RunCell, ...]
    baseline: RunCell | None = None

    @property
    def compared_cells(self) -> tuple[RunCell, ...]:
        """The cells that are compared, one after another."""
        return self.cells if self.baseline is None else (self.baseline, *self.cells)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the compared cells."""
        first = () if self.baseline is None else (f"{self.baseline.label} (release)",)
        return (*first, *(cell.label for cell in self.cells))


def group_tracks(cells: Iterable[RunCell]) -> tuple[Track, ...]:
    """Return cells in tracks, CPUs first, then by name.

    The Python of a cell follows its release, and sets it apart only where one release is run on
    several.

    Args:
        cells: Cells of one run or of several; the last of those with one id counts.
    """
    unique = {cell.id: cell for cell in cells}
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
    """Return the cell of a release that `path:` cells are compared with, None for other cells."""
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
    # Of several Pythons of that release the own one is nearest.
    return max(
        before,
        key=lambda cell: (_make_order_key(cell)[0], f"-py{found['python']}-" in cell.id),
        default=None,
    )


def _split_place(cell: RunCell) -> tuple[str, str]:
    """Return where a cell runs, but for its release; and its Python."""
    match = _CELL.fullmatch(cell.id)
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
    """Return what releases are sorted by; what is no version comes first, a nightly last.

    Args:
        release: A release of jax, or what a cell calls its own.
    """
    try:
        return Version(release), release
    except ValueError:
        return Version("9999" if is_nightly_selector(release) else "0"), release
