"""Measurements of a job, as its worker reports them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

MEASUREMENTS: Final = "measurements"
"""Artifact of a job with what it measured."""
PHASES: Final = ("trace", "lower", "compile", "first", "run", "dispatch")
"""Phases of a program in their order; a probe has `first` and `run`.

`first` is the first call of an executable, `run` a later one, and `dispatch` the time until a call
of the jitted function returns, before its result is there.
"""
Size = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Taken(msgspec.Struct, frozen=True):
    """Cost of a phase, in its fastest pass.

    Attributes:
        wall: Seconds of wall-clock time.
        cpu: Seconds of processor time of all threads.
        instructions: Instructions in user mode, None on a host that does not count them.
    """

    wall: Seconds
    cpu: Seconds
    instructions: Size | None = None


class Compiled(msgspec.Struct, frozen=True):
    """Properties of an executable, as the compiler reports them.

    Attributes:
        cost: Its estimates, e.g. `flops` and `bytes accessed`.
        plan: Bytes of arguments, outputs, temporaries and others.
        hlo_bytes: Bytes of the text of the optimised HLO.
        hlo_instructions: Instructions of all computations in it.
        fusions: Fusions in it.
    """

    cost: dict[str, float] = {}
    plan: dict[str, int] = {}
    hlo_bytes: Size | None = None
    hlo_instructions: Size | None = None
    fusions: Size | None = None


class Measured(msgspec.Struct, frozen=True):
    """Measurements of one job at one size of a case.

    Attributes:
        size: The size, None for a case without sizes.
        passes: Passes over the phases.
        phases: Cost of each phase.
        memory: Bytes: `baseline` before the case; `compile` and `run` by how much the resident
            memory rises meanwhile; `live` of arrays that the first call leaves; `leak` that each
            of many calls leaves, which may be negative.
        compiled: Properties of the executable, empty for a probe.
    """

    size: Size | None
    passes: Size
    phases: dict[str, Taken]
    memory: dict[str, int] = {}
    compiled: Compiled = Compiled()


def decode_measured(data: bytes) -> tuple[Measured, ...]:
    """Return the measurements of a worker, by ascending size.

    Args:
        data: The artifact `MEASUREMENTS`.

    Raises:
        ValueError: If it is malformed: a job can write anything to the channel of its worker.
    """
    try:
        return msgspec.json.decode(data, type=tuple[Measured, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"measurements of a worker: {error}") from error
