"""Upgrades made by hand: cases that did something on each release, compared as upgrades are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Conformance
from conformance.model.run import RunCase
from conformance.report.report import Report
from conformance.report.upgrade.file import decode_upgrade, make_upgrade_file
from conformance.report.upgrade.result import UpgradeResult
from conformance.triage.upgrade.comparison import ComparedCase, UpgradeAxis
from conformance.triage.upgrade.upgrade import CaseUpgrade
from tests.builders import case, f32
from tests.report.runs import Directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.upgrade.file import UpgradeFile

RELEASES = ("0.5.3", "0.6.0", "0.6.1", "0.6.2")
NUMPY = ("2.2.0", "2.2.0", "2.3.0", "2.3.0")
OK: dict[str, Any] = {"value": f32(1, 2)}
WRONG: dict[str, Any] = {"value": f32(1, 3), "conformance": Conformance.DEVIATES}
RAISED: dict[str, Any] = {"error": ("ValueError", "bad shape")}
OTHER: dict[str, Any] = {"error": ("ValueError", "bad | shape")}


def cell_of(release: str, numpy: str) -> PlannedCell:
    """Return the cell of a release."""
    cell = Cell(release=release, python="3.11", devices=8)
    versions = {"jax": release, "jaxlib": release, "numpy": numpy, "flax": f"0.{numpy}"}
    return PlannedCell(cell=cell, versions=versions, lock_hash="l", cell_hash="h")


AXIS = UpgradeAxis(
    platform="cpu8",
    cells=tuple(map(cell_of, RELEASES, NUMPY)),
    labels=RELEASES,
)


class Tried:
    """An upgrade in the making, and the run that it leaves.

    Args:
        folder: Directory of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.made = Directory(folder)
        self.compared: list[ComparedCase] = []

    def case(
        self, name: str, *seen: dict[str, Any] | None, axis: UpgradeAxis = AXIS, **more: Any
    ) -> Tried:
        """Add a case: what it did on each release, None where it was not tried."""
        line = CaseUpgrade(case(name, **more), RunCase(), axis)
        for place, said in enumerate(seen):
            if said is not None:
                self.made.job(name, axis.cells[place].cell.id, **said)
                line.take(place, StoredJob(self.made.records[-1], self.made.run.blobs))
        self.compared.append(line.make_comparison())
        return self

    def upgraded(self, **more: Any) -> UpgradeResult:
        """Return the upgrade."""
        return told(*self.compared, **more)

    def report(self, upgrade: UpgradeFile | None = None, **info: Any) -> Report:
        """Write the run, and return the report on it."""
        run = self.made.loaded(**info)
        return Report((run,), upgrades={run.id: upgrade or file_of(self.upgraded())})


def compared(folder: Path, name: str, *seen: dict[str, Any], **more: Any) -> ComparedCase:
    """Return a case that did something on each release."""
    tried = Tried(folder / name.replace("/", "-")).case(name, *seen, **more)
    return tried.compared[0]


def told(*cases: ComparedCase, **more: Any) -> UpgradeResult:
    """Return an upgrade of some cases."""
    return UpgradeResult(compared=cases, jobs=8, **more)


def file_of(upgraded: UpgradeResult) -> UpgradeFile:
    """Return an upgrade as it is read back."""
    return decode_upgrade(msgspec.json.encode(make_upgrade_file(upgraded)), "upgrade.json")
