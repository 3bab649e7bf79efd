"""`conformance doctor`: is everything here that a run needs?"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.text import Text

from conformance import __version__
from conformance.cells.accelerators import missing_accelerator
from conformance.cells.interpreters import MissingInterpreterError, find_interpreter
from conformance.cells.platform.platform import REAL, get_platform
from conformance.cells.uvtool import run_uv
from conformance.cli.console import open_console
from conformance.cli.disk import show_disk
from conformance.cli.setting import DEFAULT_MATRIX, here
from conformance.errors import ConformanceError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.cli.setting import Setting

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
NEEDED = frozenset({"3.11", "3.12"})
"""Pythons that releases run on unless a cell says otherwise."""
ENOUGH = 2 * 2**30
"""Bytes free below which a matrix is likely to fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at."""

    what: str
    ok: bool
    said: str


@click.command("doctor", short_help="Check that this machine can run the matrix.")
@click.option("--disk", is_flag=True, help="Show what the cache takes of the disk instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, disk: bool, as_json: bool) -> int:
    """Check that this machine can run the matrix.

    Looks at the interpreters, the accelerators, uv, the cache folder and its disk, the cases and
    the matrices. The exit status is 4 when something is missing.

    \b
    conformance doctor
    conformance doctor --disk     what each environment takes, and what nothing wants any more
    """  # noqa: D301 - \b is click's own mark
    if disk:
        show_disk(here(), as_json=as_json)
        return ExitCode.OK
    findings = list(examine(here()))
    if as_json:
        click.echo(readable_json(findings))
    else:
        console = open_console()
        for finding in findings:
            mark = Text("ok   ", "green") if finding.ok else Text("wrong", "bold red")
            console.print(mark.append(f" {finding.what}: {finding.said}", "default"))
    return ExitCode.OK if all(finding.ok for finding in findings) else ExitCode.INFRA


def examine(setting: Setting) -> Iterator[Finding]:
    """Look at everything a run needs.

    Args:
        setting: Surroundings of the command.

    Yields:
        What was found, thing by thing; a fault in one does not hide the next.
    """
    yield Finding(
        what="jax-conformance",
        ok=True,
        said=f"{__version__} on Python {platform.python_version()} ({sys.executable})",
    )
    yield Finding(
        what="host",
        ok=os.name == "posix",
        said=f"{platform.system()} {platform.machine()}, {plural(os.cpu_count() or 1, 'core')}",
    )
    looks: dict[str, Callable[[], str]] = {
        "uv": lambda: run_uv(["--version"], cwd=setting.start).strip(),
        **{f"python {version}": _interpreter(version) for version in PYTHONS},
        **{name: _accelerator(name) for name in sorted(REAL)},
        "cache": lambda: _disk(setting),
        "cases": lambda: f"{len(setting.cases(()))} in {setting.project.cases}",
        "releases": lambda: _releases(setting),
        "matrix": lambda: f"{DEFAULT_MATRIX} has {plural(len(setting.cells(None, ())[0]), 'cell')}",
    }
    for what, look in looks.items():
        yield _finding(what, look)


def _finding(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what=what, ok=True, said=look())
    except MissingInterpreterError as error:
        return Finding(what=what, ok=error.python not in NEEDED, said=str(error))
    except ConformanceError as error:
        return Finding(what=what, ok=False, said=str(error))


def _interpreter(version: str) -> Callable[[], str]:
    # As a run would: of a Python that releases run on, uv downloads one if it is missing.
    return lambda: str(find_interpreter(version, download=version in NEEDED))


def _accelerator(name: str) -> Callable[[], str]:
    return lambda: missing_accelerator(get_platform(name)) or "a driver is here"


def _disk(setting: Setting) -> str:
    free = shutil.disk_usage(setting.cache).free
    if free < ENOUGH:
        raise ConformanceError(
            f"{setting.cache} has {free / 2**30:.1f} GiB free, expected {ENOUGH >> 30} or more"
        )
    return f"{setting.cache}, {free / 2**30:.0f} GiB free"


def _releases(setting: Setting) -> str:
    versions = setting.releases.versions
    return f"{len(versions)}, {versions[0]} to {versions[-1]}"
