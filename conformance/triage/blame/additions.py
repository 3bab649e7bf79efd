"""Packages that a target needs in addition to a cell's, as parts of both ends.

A requirement without a version, e.g. `--with optimistix`, may resolve to another version at each
end. What then changes between them may come from that package, so it must be a candidate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from conformance.cells.lock import Lock, get_host
from conformance.cells.overlay import find_overlay_lock
from conformance.cells.provision import provision
from conformance.engine.preparation import plan_cell_with
from conformance.triage.blame.ends import end_of
from conformance.triage.blame.mixtures import lock_of, mixed_cell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.cells.overlay import OverlayLock
    from conformance.engine.job import PlannedCell
    from conformance.triage.blame.mixtures import End


def with_additions(
    ends: tuple[End, End], wanted: tuple[str, ...], *, locks: dict[str, Lock], cache: Path
) -> tuple[tuple[End, End], tuple[str, ...]]:
    """Make packages in addition to those of the cells part of both ends, where versions differ.

    Args:
        ends: Both ends.
        wanted: Requirements in addition to the packages of the cells.
        locks: Receives the locks of changed originals, by cell id.
        cache: Cache folder.

    Returns:
        The ends, and the requirements that remain: those of the user's own wheels, which have no
        other version. All unchanged where each package has one version at both ends, or an end
        replaces an environment that must not be modified.

    Raises:
        NoSolutionError: If the requirements and an end exclude each other.
        InfrastructureError: If an environment cannot be made, or the index does not answer.
    """
    originals = [end.original for end in ends if end.original is not None]
    if not wanted or any(one.planned.cell.interpreter is not None for one in originals):
        return ends, wanted
    layers = [_layer(end.planned, end.lock, wanted, cache) for end in ends]
    if layers[0].versions == layers[1].versions:
        return ends, wanted
    left = tuple(text for text in wanted if Requirement(text).url)

    def extend(planned: PlannedCell, lock: Lock, layer: OverlayLock) -> tuple[PlannedCell, Lock]:
        added = Lock(text=layer.parts(cache)[0], path=lock.path)
        entries: Mapping[str, str] = {**lock.entries, **added.entries}
        body = "".join(entries[name] for name in sorted(entries))
        cell = mixed_cell(planned, body)
        both = lock_of(
            cell, body, (get_host(),), nightlies=lock.nightlies, index=lock.nightly_index
        )
        return plan_cell_with(cell, both, left, cache, planned.passed), both

    def extend_end(end: End, layer: OverlayLock) -> End:
        planned, lock = extend(end.planned, end.lock, layer)
        original = end.original
        if original is not None:
            own = locks[original.planned.cell.id]
            its_layer = _layer(original.planned, own, wanted, cache)
            cell, own = extend(original.planned, own, its_layer)
            locks[cell.cell.id] = own
            original = replace(original, planned=cell)
        return end_of(planned, lock, cache, original)

    before, after = map(extend_end, ends, layers)
    return (before, after), left


def _layer(planned: PlannedCell, lock: Lock, wanted: tuple[str, ...], cache: Path) -> OverlayLock:
    python = provision(planned.cell, lock=lock, cache=cache).python
    return find_overlay_lock(python, lock, wanted, cache)
