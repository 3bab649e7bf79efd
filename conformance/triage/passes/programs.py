"""Runs one program repeatedly, with HLO passes disabled and other flags."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from conformance.engine.job_comparison import StoredJob
from conformance.errors import InfrastructureError
from conformance.scratch import temporary_folder
from conformance.search.failures import ending
from conformance.triage.passes.answer import DISABLED
from conformance.triage.passes.prober import DUMP
from conformance.triage.programs.program import ProgramKind, ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from conformance.engine.job import PlannedCell
    from conformance.triage.programs.running import ProgramRunner

OPTIONS: Final = ProgramTarget(
    kind=ProgramKind.COMMAND,
    text="python -c 'import jax, json; print(json.dumps({name: value for name, value in "
    "dict(jax.config.values).items() if isinstance(value, (bool, int, float, str))}))'",
)
"""A program that prints the plain options of jax, with their values."""


class ProgramPasses:
    """Tries a script, a test or a command; see `conformance.triage.passes.prober.PassProber`.

    A pass is disabled for all that the program compiles, each time in a process of its own.

    Args:
        runner: Runs it.
        planned: Where.
    """

    lost = 0
    """Processes that ended before they answered: each trial has its own."""

    def __init__(self, runner: ProgramRunner, planned: PlannedCell) -> None:
        self._runner = runner
        self._planned = planned

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._runner.stopped.set()

    @property
    def config(self) -> Mapping[str, Any]:
        """Every plain option of `jax.config` in the cell, with its value there."""
        record = replace(self._runner, target=OPTIONS, facts=False).run(self._planned)
        said = self._runner.blobs.get(record.artifacts["stdout"]) if record.artifacts else b""
        try:
            found: dict[str, Any] = msgspec.json.decode(said, type=dict[str, Any])
        except msgspec.DecodeError:
            raise InfrastructureError(
                f"{self._planned.cell.id}: its options cannot be had: {ending(record)}"
            ) from None
        return found

    def renew(self) -> None:
        """Do nothing: each trial has a process of its own."""

    def compiled(self, options: Mapping[str, Any]) -> StoredJob:
        """Run the program with flags of XLA.

        Args:
            options: The flags by name; `xla_disable_hlo_passes` names passes.
        """
        return self._side(flags=flags_of(options))

    def dumped(self, disabled: Sequence[str] = ()) -> list[str]:
        """Return the names of the files that XLA dumps of its passes.

        Args:
            disabled: Passes that are disabled meanwhile.
        """
        with temporary_folder("programs") as folder:
            flags = flags_of({DISABLED: ",".join(disabled), "xla_dump_to": folder, **DUMP})
            replace(self._runner, facts=False).run(self._planned, flags=flags)
            return [file.name for file in folder.iterdir()]

    def configured(self, name: str, value: Any) -> StoredJob:
        """Run the program with an option of `jax.config`, by its variable.

        Args:
            name: The option.
            value: Its value, unless the program sets it itself.
        """
        return self._side(variables={name.upper(): _text(value)})

    def _side(self, **how: Any) -> StoredJob:
        return StoredJob(self._runner.run(self._planned, **how), self._runner.blobs)


def flags_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return compiler options as flags of XLA; an empty list of passes needs none.

    Args:
        options: Value by name.
    """
    return tuple(f"--{name}={_text(value)}" for name, value in options.items() if value != "")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
