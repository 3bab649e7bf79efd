"""Messages of a worker about a job, as types. They are checked on arrival; secrets are masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from conformance.cells.secret_masking import Masker
    from conformance.worker.frames import Frame


T = TypeVar("T")


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor's final report on a job's process.

    Attributes:
        ended: Why the supervisor ended the process: `timeout`, `memory`, `observation`, `garbled`;
            `infra` if it could not start; empty if the supervisor did not end it.
        exit: Exit status, None if a signal ended it.
        signal: Signal that ended it, None if it exited.
        seconds: Wall-clock seconds of the process.
        max_rss_bytes: Peak resident memory of the process and its children, in bytes.
        stdout: End of its standard output.
        stderr: End of its standard error.
    """

    ended: str | None = ""
    exit: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    max_rss_bytes: int = 0
    stdout: str = ""
    stderr: str = ""


class RankEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the process of a rank that ended before its job did.

    Attributes:
        exit: Exit status, None if a signal ended the process.
        signal: Signal that ended the process, None if it exited.
        garbled: Whether the rank wrote malformed bytes to the worker's channel.
    """

    exit: int | None = None
    signal: int | None = None
    garbled: bool = False


class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """An exception, as `conformance.worker.stages.describe_error` describes it.

    Attributes:
        type: Name of its class.
        message: Its message.
        where: Innermost line of the case's file in the traceback, `file:line`.
        traceback: The traceback as Python prints it, its last 20,000 characters.
        frames: The frames as `conformance.worker.tracebacks` describes them, None if unknown.
    """

    type: str
    message: str
    where: str
    traceback: str
    frames: list[dict[str, Any]] | None = None


class TileSet(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an array that a rank holds.

    Attributes:
        shape: Shape of the whole array.
        at: Start and stop in each dimension, for each part in the order of the data.
    """

    shape: tuple[int, ...]
    at: tuple[tuple[tuple[int, int], ...], ...]


class LeafHeader(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf of a value, without its bytes.

    Attributes:
        path: Path of the leaf in the value, e.g. `out['exp']`.
        kind: `array`, `key`, `numpy` or `python`.
        dtype: Dtype, or the type of a Python scalar.
        shape: Shape.
        weak_type: Whether the dtype is weak.
        sharding: Sharding as text, empty for none.
        memory_kind: Memory kind, empty for the default kind.
        nbytes: Number of bytes.
        tiles: Parts that a rank holds, None if it holds the whole leaf.
    """

    path: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    weak_type: bool
    sharding: str
    memory_kind: str
    nbytes: int
    tiles: TileSet | None = None


class ValueHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A value without the bytes of its leaves, which follow one another.

    Attributes:
        structure: The pytree as text.
        leaves: Leaves in flatten order.
    """

    structure: str
    leaves: tuple[LeafHeader, ...]


def read_message(data: object, kind: type[T]) -> T:
    """Return plain data as a message.

    Args:
        data: The plain data.
        kind: Type of the message.

    Raises:
        ValueError: If the data do not match the type; the message names the field.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{kind.__name__} of the worker: {error}") from None


NOTE: Final = "secrets of the environment are masked in its output"
"""Note on a job with a masked secret: its artifacts depend on the environment of the run."""
_WORDS: Final = frozenset(
    {
        *("artifact", "dtype", "ended", "id", "job", "kind", "same_as", "seconds", "stage"),
        *("begin", "node", "outcome", "phase", "test", "tests"),
    }
)
"""Keys of headers that are never masked: their values are fixed words, which may equal a secret by
chance, or name a test."""


@dataclass(slots=True)
class Masking:
    """Masks the frames of one job.

    Attributes:
        masker: Masks the secrets of the environment.
        found: Whether a frame contained a secret.
    """

    masker: Masker
    found: bool = False

    def mask(self, frame: Frame) -> tuple[dict[str, Any], bytes]:
        """Return the header and the body of a frame, masked.

        Args:
            frame: A frame of the worker. The bytes of a value keep their length, which its header
                states.
        """
        header: dict[str, Any] = self.masker.mask_tree(frame.header, _WORDS)
        # A masked text may be shorter; a value must keep its length.
        mask_bytes = self.masker.mask_content if "artifact" in header else self.masker.mask_data
        body = mask_bytes(frame.body)
        self.found |= header != frame.header or body != frame.body
        return header, body

    def make_notes(self) -> tuple[str, ...]:
        """Return a note if a secret was masked."""
        return (NOTE,) if self.found else ()
