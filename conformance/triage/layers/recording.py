"""Recordings of computations, and the results of repeating them in another release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from conformance.errors import InfrastructureError
from conformance.files import MALFORMED
from conformance.model.value import dtype_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

COMPUTATIONS: Final = "computations.jsonl"
RESULTS: Final = "results.jsonl"
BLOBS: Final = "blobs"


class CallError(msgspec.Struct, frozen=True, kw_only=True):
    """An error of a call, or of the whole target.

    Attributes:
        type: Name of its class.
        message: Its message.
        stage: `compile` or `execute`; empty for an error of the target.
    """

    type: str
    message: str
    stage: str = ""


class ArrayData(msgspec.Struct, frozen=True, kw_only=True):
    """An array of a call.

    Attributes:
        shape: Shape of each shard.
        dtype: Name of its dtype.
        shards: Digest of the data on each device.
    """

    shape: tuple[int, ...]
    dtype: str
    shards: tuple[str, ...]


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a compiled computation.

    Attributes:
        number: Its number in the recording, from 1.
        name: Name of the module, e.g. `jit_f`.
        modules: Digest of the portable artifact, by version of StableHLO.
        problems: Why an artifact could not be written, by version.
        jaxpr: Digest of the jaxpr, empty if it is unknown.
        options: Options of the compilation.
        reasons: Why the call cannot be repeated; empty if it can.
        inputs: The arguments on the devices; empty if the call was not reached.
        outputs: The results; empty if it failed.
        error: Its error, None if it succeeded.
        truncated: Why the recording ends here, empty for a call.
    """

    number: int
    name: str = ""
    modules: dict[str, str] = {}
    problems: dict[str, str] = {}
    jaxpr: str = ""
    options: dict[str, Any] = {}
    reasons: tuple[str, ...] = ()
    inputs: tuple[ArrayData, ...] = ()
    outputs: tuple[ArrayData, ...] = ()
    error: CallError | None = None
    truncated: str = ""

    @property
    def key(self) -> object:
        """Equal for calls of the same computation with the same arguments, in any release."""
        # Releases name an unnamed function `jit__lambda_` or `jit__lambda`.
        return self.name.strip("_"), self.inputs


class ReplayedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was repeated.

    Attributes:
        number: Number of the recorded call.
        outputs: Its results.
        error: Its error, None if it succeeded.
        hlo: Digest of the optimised HLO.
        seconds: Duration of compilation and execution.
    """

    number: int
    outputs: tuple[ArrayData, ...] = ()
    error: CallError | None = None
    hlo: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class BlobFolder:
    """A folder with contents by digest."""

    folder: Path

    def read(self, digest: str) -> bytes:
        """Return a content.

        Raises:
            InfrastructureError: If it cannot be read.
        """
        try:
            return (self.folder / BLOBS / digest).read_bytes()
        except OSError as error:
            raise InfrastructureError(f"{self.folder}: {error.strerror}") from error

    def load_shards(self, array: ArrayData) -> list[NDArray[Any]]:
        """Return the data of an array on each device."""
        dtype = dtype_of(array.dtype)
        return [
            np.frombuffer(self.read(digest), dtype).reshape(array.shape) for digest in array.shards
        ]


@dataclass(frozen=True)
class Recording(BlobFolder):
    """The computations of a target in one release."""

    @cached_property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls in order.

        Raises:
            InfrastructureError: If the recording is damaged.
        """
        return tuple(_read_lines(self.folder / COMPUTATIONS, RecordedCall))


@dataclass(frozen=True)
class Replay(BlobFolder):
    """The results of repeating a recording."""

    @cached_property
    def results(self) -> Mapping[int, ReplayedCall]:
        """The results by number of the call.

        Raises:
            InfrastructureError: If a result is damaged.
        """
        return {found.number: found for found in _read_lines(self.folder / RESULTS, ReplayedCall)}

    def add_crash(self, number: int, message: str, outcome: str) -> None:
        """Add the result of a call that ended its process.

        Args:
            number: Number of the call.
            message: Message about the end of the process.
            outcome: Outcome of the process.
        """
        error = CallError(type=outcome, message=message, stage="execute")
        line = msgspec.json.encode(ReplayedCall(number=number, error=error))
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / RESULTS).open("ab") as file:
            file.write(line + b"\n")


def _read_lines(file: Path, kind: type[Any]) -> list[Any]:
    if not file.exists():  # nothing was compiled
        return []
    try:
        return [msgspec.json.decode(line, type=kind) for line in file.read_bytes().splitlines()]
    except (OSError, *MALFORMED) as error:
        raise InfrastructureError(f"{file}: cannot be read: {error}") from error
