"""Preparing cells in a setting; apart from it, for what only lists need not import an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.cells.requirements import wanted_requirement
from conformance.engine.prepare import prepare, recorded_cells

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cells.cell import Cell
    from conformance.cli.setting import Setting
    from conformance.engine.job import PlannedCell
    from conformance.engine.prepare import Preparation


def prepare_in(
    setting: Setting, cells: Iterable[Cell], wanted: Iterable[str] = (), *, download: bool = True
) -> Preparation:
    """Return what can be planned of some cells: their locks and interpreters looked up.

    Args:
        setting: Surroundings: releases, matrix folders and cache.
        cells: The cells.
        wanted: What they are to have beside: requirements, wheels, folders of packages; by
            default what the project says.
        download: Whether uv may download a Python that is missing.

    Returns:
        As `conformance.engine.prepare.prepare` says.
    """
    return prepare(
        cells, setting.releases, folders=setting.matrix_folders, cache=setting.cache,
        wanted=wanted_in(setting, wanted), passed=setting.passed, download=download,
    )  # fmt: skip


def recorded_in(setting: Setting, cells: Iterable[Cell]) -> tuple[PlannedCell, ...]:
    """Return some cells as goldens have them, whatever this host can run.

    Args:
        setting: Surroundings: releases, matrix folders and cache.
        cells: The cells.
    """
    return recorded_cells(
        cells, setting.releases, folders=setting.matrix_folders, cache=setting.cache
    )


def wanted_in(setting: Setting, wanted: Iterable[str]) -> tuple[str, ...]:
    """Return what cells are to have beside their own packages, as requirements.

    Args:
        setting: Surroundings.
        wanted: What is said: requirements, wheels, folders of packages, which are built as they
            are now; where nothing is, what the project says counts.
    """
    said = tuple(wanted) or setting.settings.wanted
    return tuple(wanted_requirement(text, setting.cache) for text in said)
