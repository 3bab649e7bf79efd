"""Measurements of a job, as its worker reports them."""

from __future__ import annotations

from enum import StrEnum
from math import log, prod
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from conformance.model.case import FEWEST_SIZES

if TYPE_CHECKING:
    from conformance.model.case import Case

MEASUREMENTS: Final = "measurements"
"""Artifact of a job with what it measured."""
PHASES: Final = ("trace", "lower", "compile", "first", "run", "dispatch")
"""Phases of a program in their order; a probe has `first` and `run`.

`first` is the first call of an executable, `run` a later one, and `dispatch` the time until a call
of the jitted function returns, before its result is there.
"""
COMPILED: Final = frozenset({"trace", "lower", "compile"})
"""Phases that an accelerator which the host lacks has, too."""
LEAK_CALLS: Final = 50
"""Calls that look for a leak."""
SECONDS: Final = 0.4
"""Seconds within which the passes of a measurement are to end."""
SCALES: Final = (1, 2, 4, 8)
"""Factors of the leading axes of a case without sizes, for its growth."""
Size = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Clock(StrEnum):
    """A measure of the cost of a phase."""

    CPU = "cpu"
    """Processor time of all threads: other load of the host hardly changes it."""
    WALL = "wall"
    """Wall-clock time: the only one that shows waiting and lost parallelism."""
    INSTRUCTIONS = "instructions"
    """Instructions in user mode, where the host counts them."""


class Taken(msgspec.Struct, frozen=True):
    """Cost of a phase, in its fastest pass or in one turn.

    Attributes:
        wall: Seconds of wall-clock time.
        cpu: Seconds of processor time of all threads.
        instructions: Instructions in user mode, None on a host that does not count them.
        turns: Cost of each pass and batch of calls, of a job that took turns with another one.
    """

    wall: Seconds
    cpu: Seconds
    instructions: Size | None = None
    turns: tuple[Taken, ...] = ()


def read_clock(taken: Taken | None, clock: Clock) -> float | None:
    """Return a reading, None for none and for 0: a clock that did not move says nothing.

    Args:
        taken: Cost of a phase, None if it was not measured.
        clock: The clock to read.
    """
    value: float | None = None if taken is None else getattr(taken, clock)
    return value or None


def compare_taken(before: Taken | None, after: Taken | None, clock: Clock) -> float | None:
    """Return the logarithm of the ratio of two costs of a phase, None without both.

    Of jobs that took turns it is the median over the turns: in each of them both had the same host.
    The slower half is left out, in which other load interrupted one of the jobs.

    Args:
        before: The first cost.
        after: The second cost.
        clock: The clock to read.
    """
    if before is None or after is None:
        return None
    sides = ((before, after), *zip(before.turns, after.turns, strict=False))
    best, *turns = ((read_clock(a, clock), read_clock(b, clock)) for a, b in sides)
    pairs = sorted(((a, b) for a, b in turns if a and b), key=prod)
    low, high = best
    if pairs and low and high:
        return median(log(b / a) for a, b in pairs[: (len(pairs) + 1) // 2])
    return log(high / low) if low and high else None


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


def make_settings(
    case: Case,
    *,
    seconds: float = SECONDS,
    calls: int = 0,
    scale: bool = False,
    only_largest: bool = False,
    only_needed: bool = False,
) -> dict[str, Any]:
    """Return how a worker measures a case, see `conformance.worker.measuring.Measurer`.

    Args:
        case: The case.
        seconds: Seconds within which its passes are to end.
        calls: Calls that look for a leak.
        scale: Whether a case without sizes is measured with arguments of several lengths.
        only_largest: Whether its largest size is enough, because nothing about growth is asked.
        only_needed: Whether as many sizes are enough as a growth needs.
    """
    scaled = scale and not case.sizes
    sizes = SCALES if scaled else case.sizes or (None,)
    if only_needed and len(sizes) > FEWEST_SIZES:
        sizes = (sizes[0], *sizes[1 - FEWEST_SIZES :])
    return {
        "sizes": sizes[-1:] if only_largest else sizes,
        "scaled": scaled, "seconds": seconds, "calls": calls,
    }  # fmt: skip


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
