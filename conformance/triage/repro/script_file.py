"""A script that somebody wrote as one file to send upstream: its header pins the packages. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.corpus.python_source import STANDARD_LIBRARY, find_imported_modules, parse
from conformance.model.outcome import Outcome
from conformance.triage.programs.requirements import strip_header
from conformance.triage.repro.header import (
    CORE,
    IMPORTED,
    metadata_lines,
    pip_lines,
    uv_instruction,
)
from conformance.triage.repro.layout import comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.engine.job import PlannedCell
    from conformance.model.record import ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """A script, and how it ended in a cell.

    Attributes:
        name: What the script is called.
        source: Its text.
        planned: The cell.
        versions: Versions of all packages that it had there.
        outcome: How it ended.
        error: The error, if there was one.
        stdout: What it printed.
        variables: Environment variables that it was run with, beside those of the cell.
    """

    name: str
    source: str
    planned: PlannedCell
    versions: Mapping[str, str]
    outcome: Outcome
    error: ErrorInfo | None
    stdout: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def ending(self) -> str:
        """How it ended, in a line."""
        if self.error is None:
            return "it ends well"
        first = next(iter(self.error.message.strip().splitlines()), "")
        return f"{self.error.type}: {first}" if first else self.error.type

    @property
    def pins(self) -> list[str]:
        """Requirements of the file: jax with what it imports, and the script's own packages."""
        imported = find_imported_modules(parse(self.source))
        names = set(self.versions)
        if not imported - IMPORTED - STANDARD_LIBRARY:
            names &= CORE
        first = ["jax", "jaxlib"]
        return [f"{name}=={self.versions[name]}" for name in (*first, *sorted(names - {*first}))]


def script_file(run: ScriptRun, name: str) -> str:
    """Return the text of a file that does what a script did in a cell.

    Args:
        run: The script, and how it ended.
        name: Name of the file.
    """
    return "\n".join(_lines(run, name)).rstrip() + "\n"


def _lines(run: ScriptRun, name: str) -> Iterator[str]:
    cell = run.planned.cell
    yield from metadata_lines(cell.python, run.pins)
    yield from comment(f"jax {run.planned.release}, Python {cell.python}: {run.ending}")
    yield from comment(uv_instruction(name, cell.python))
    yield from pip_lines(name, run.pins)
    yield ""
    variables = dict(run.variables)
    if cell.devices > 1:
        flag = f"--xla_force_host_platform_device_count={cell.devices}"
        variables["XLA_FLAGS"] = f"{variables.get('XLA_FLAGS', '')} {flag}".strip()
    if variables:
        yield "import os"
        yield ""
        yield from (f"os.environ[{n!r}] = {value!r}" for n, value in variables.items())
        yield ""
    yield strip_header(run.source).strip("\n")


def same_ending(run: ScriptRun, outcome: Outcome, error: ErrorInfo | None) -> bool:
    """Say whether a file ends as its script did.

    Args:
        run: The script.
        outcome: How the file ended.
        error: Its error, if there was one.
    """
    if outcome is not run.outcome or (error is None) is not (run.error is None):
        return False
    if error is None or run.error is None or outcome is not Outcome.RAISED:
        return True
    first, other = (one.signature.partition("\n")[0] for one in (error, run.error))
    return first == other
