"""A script as a file for an upstream report: its header pins the packages. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.corpus.python_source import STANDARD_LIBRARY, find_imported_modules, parse
from conformance.model.outcome import Outcome
from conformance.triage.programs.requirements import strip_header
from conformance.triage.repro.header import (
    CORE,
    IMPORTED,
    describe_uv,
    render_metadata,
    render_pip,
)
from conformance.triage.repro.layout import render_comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.engine.job import PlannedCell
    from conformance.model.record import ErrorInfo, Record
    from conformance.triage.programs.runner import ProgramRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """A script with its result in a cell.

    Attributes:
        name: Name of the script.
        source: Its text.
        planned: The cell.
        versions: Versions of all packages in the cell.
        outcome: Its outcome.
        error: Its error, if it failed.
        stdout: Its output.
        variables: Environment variables that it was run with, in addition to those of the cell.
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
        """Its ending in one line."""
        if self.error is None:
            return "it ends well"
        first = next(iter(self.error.message.strip().splitlines()), "")
        return f"{self.error.type}: {first}" if first else self.error.type

    @property
    def pins(self) -> list[str]:
        """Requirements of the file: jax with its imports, and the packages of the script."""
        imported = find_imported_modules(parse(self.source))
        names = set(self.versions)
        if not imported - IMPORTED - STANDARD_LIBRARY:
            # The script imports nothing else, so that other packages are not necessary.
            names &= CORE
        first = ["jax", "jaxlib"]
        return [f"{name}=={self.versions[name]}" for name in (*first, *sorted(names - {*first}))]


def make_script_run(runner: ProgramRunner, planned: PlannedCell, record: Record) -> ScriptRun:
    """Return a script with its result in a cell.

    Args:
        runner: The runner that ran it.
        planned: The cell.
        record: Its record there.
    """
    script = runner.target
    stdout = runner.blobs.get(record.artifacts["stdout"]).decode("utf-8", "replace")
    return ScriptRun(
        name=Path(script.text).name, source=script.source, planned=planned,
        versions=runner.get_versions(planned), outcome=record.outcome, error=record.error,
        stdout=stdout, variables=script.variables,
    )  # fmt: skip


def render_script_file(run: ScriptRun, name: str) -> str:
    """Return the text of a file that behaves as a script did in a cell.

    Args:
        run: The script with its result.
        name: Name of the file.
    """
    return "\n".join(_render_lines(run, name)).rstrip() + "\n"


def _render_lines(run: ScriptRun, name: str) -> Iterator[str]:
    cell = run.planned.cell
    yield from render_metadata(cell.python, run.pins)
    yield from render_comment(f"jax {run.planned.release}, Python {cell.python}: {run.ending}")
    yield from render_comment(describe_uv(name, cell.python))
    yield from render_pip(name, run.pins)
    yield ""
    variables = dict(run.variables)
    if cell.devices > 1:
        # The cell sets the number of devices in the environment, which the file does not have.
        flag = f"--xla_force_host_platform_device_count={cell.devices}"
        # After the flags of the script: XLA takes the last of two values.
        variables["XLA_FLAGS"] = f"{variables.get('XLA_FLAGS', '')} {flag}".strip()
    if variables:
        yield "import os"
        yield ""
        # Above the script: jax reads its variables while it is imported.
        yield from (f"os.environ[{n!r}] = {value!r}" for n, value in variables.items())
        yield ""
    # A script with two blocks of metadata is invalid by PEP 723.
    yield strip_header(run.source).strip("\n")


def is_same_ending(run: ScriptRun, outcome: Outcome, error: ErrorInfo | None) -> bool:
    """Return whether a file ends as its script did.

    Args:
        run: The script.
        outcome: Outcome of the file.
        error: Error of the file, if it failed.
    """
    if outcome is not run.outcome or (error is None) is not (run.error is None):
        return False
    if error is None or run.error is None or outcome is not Outcome.RAISED:
        return True
    # Later lines of a message may contain paths and the whole program.
    first, other = (info.signature.partition("\n")[0] for info in (error, run.error))
    return first == other
