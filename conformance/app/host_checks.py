"""Checks of the host: whether it has everything that a run of the matrix needs."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance import __version__
from conformance.app.context import DEFAULT_MATRIX, RELEASES
from conformance.cells.accelerators import find_missing_accelerator
from conformance.cells.interpreters import MissingInterpreterError, find_interpreter
from conformance.cells.platforms import REAL, get_platform
from conformance.cells.uvtool import run_uv
from conformance.errors import ConformanceError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.app.context import ProjectContext

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""Pythons that are looked for, also if no release needs them."""
_ONLINE = "nightly"
"""The matrix of nightlies, which is skipped: its cells would need the network."""
ENOUGH = 2 * 2**30
"""Bytes free below which a matrix is likely to fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check of the host.

    Attributes:
        what: Name of the check.
        ok: Whether the check passed.
        said: Its result, in words.
        status: `ok`; `absent` if the host lacks something that only some cells need; `wrong`.
    """

    # The names are the keys of `doctor --json`, which scripts read.

    what: str
    ok: bool
    said: str
    status: str = ""


def examine_host(context: ProjectContext) -> Iterator[CheckResult]:
    """Check everything that a run needs.

    Args:
        context: The project.

    Yields:
        A finding for each check; a fault in one does not hide the next.
    """
    yield _make_finding(
        "jax-conformance",
        f"{__version__} on Python {platform.python_version()} ({sys.executable})",
    )
    yield _make_finding(
        "host",
        f"{platform.system()} {platform.machine()}, {plural(os.cpu_count() or 1, 'core')}",
        status="ok" if os.name == "posix" else "wrong",
    )
    # The version comes from running uv: a broken uv on PATH would pass a look-up by name.
    yield _check("uv", lambda: run_uv(["--version"], cwd=context.start).strip())
    yield from _check_interpreters(context)
    # Functions, so that an error of one check is a finding and the next checks still run.
    checks: dict[str, Callable[[], str]] = {
        **{name: _make_accelerator_check(name) for name in sorted(REAL)},
        "cache": lambda: _check_disk(context),
        "cases": lambda: f"{len(context.select_cases(()))} in {context.project.cases}",
        "releases": lambda: _describe_releases(context),
        "matrix": lambda: (
            f"{DEFAULT_MATRIX} has {plural(len(context.select_cells(None, ())[0]), 'cell')}"
        ),
    }
    for what, check in checks.items():
        yield _check(what, check)


def _make_finding(what: str, said: str, status: str = "ok") -> CheckResult:
    return CheckResult(what=what, ok=status == "ok", said=said, status=status)


def _check(what: str, check: Callable[[], str]) -> CheckResult:
    try:
        return _make_finding(what, check())
    except ConformanceError as error:
        return _make_finding(what, str(error), "wrong")


def _check_interpreters(context: ProjectContext) -> Iterator[CheckResult]:
    """Yield a finding for each Python; for a missing one, whether a cell needs it."""
    needed = _find_needed_pythons(context)
    for version in sorted({*PYTHONS, *needed}, key=Version):
        what = f"python {version}"
        try:
            # As in a run: uv downloads a missing Python, but only one that a release needs.
            yield _make_finding(what, str(find_interpreter(version, download=version in needed)))
        except MissingInterpreterError as error:
            if version in needed:
                yield _make_finding(what, str(error), "wrong")
            elif cells := _describe_cells_on(context, version):
                yield _make_finding(what, f"{cells}: {error}", "absent")
            else:
                # Reported as ok: a host without it can run every matrix.
                yield _make_finding(what, "not on this host, and no cell of a matrix needs it")


def _find_needed_pythons(context: ProjectContext) -> set[str]:
    """Return the default Pythons of all releases."""
    try:
        return {context.releases.find_python(version) for version in context.releases.versions}
    except ConformanceError:  # reported as the finding on releases
        return set()


def _describe_cells_on(context: ProjectContext, python: str) -> str:
    """Return how many cells of which matrices need a Python, empty if none does."""
    numbers = {}
    # A set: a matrix may be in several folders, of which the first counts.
    names = {file.stem for folder in context.matrix_folders for file in folder.glob("*.toml")}
    for name in sorted(names - {Path(RELEASES).stem, _ONLINE}):
        with suppress(ConformanceError):
            cells, _ = context.select_cells(name, ())
            numbers[name] = sum(cell.python == python for cell in cells)
    counts = [
        f"{plural(count, 'cell')} of matrix {name}" for name, count in numbers.items() if count
    ]
    need = "needs" if sum(numbers.values()) == 1 else "need"
    return f"{' and '.join(counts)} {need} it" if counts else ""


def _make_accelerator_check(name: str) -> Callable[[], str]:
    return lambda: find_missing_accelerator(get_platform(name)) or "a driver is here"


def _check_disk(context: ProjectContext) -> str:
    free = shutil.disk_usage(context.cache).free
    if free < ENOUGH:
        raise ConformanceError(
            f"{context.cache} has {free / 2**30:.1f} GiB free, expected {ENOUGH >> 30} or more"
        )
    return f"{context.cache}, {free / 2**30:.0f} GiB free"


def _describe_releases(context: ProjectContext) -> str:
    versions = context.releases.versions
    return f"{len(versions)}, {versions[0]} to {versions[-1]}"
