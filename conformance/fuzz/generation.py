"""Generation and shrinking of programs by Hypothesis, reproducible by a seed."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.control import current_build_context
from hypothesis.database import (
    InMemoryExampleDatabase,
    choices_from_bytes,
    choices_to_bytes,
)

from conformance.fuzz.strategies import programs
from conformance.laws.reproducible import without_local_constants

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.fuzz.program import FuzzProgram
    from conformance.fuzz.strategies import ProgramSpace

KEY = b"program"
SECONDARY = KEY + b".secondary"
"""Key from which Hypothesis replays an example and shrinks it; one under `KEY` counts as shrunk."""
PER_SEED = 10
"""Programs that are drawn with one seed of Hypothesis."""
PADDING = (0,) * 64
"""Choices for what a program needs in place of a part that was left out."""
MOST_TRIALS = 600
"""Trials of shrinking one program."""


class GeneratedProgram(NamedTuple):
    """A generated program.

    Attributes:
        program: The program.
        choices: The choices that Hypothesis made for it, from which it can be shrunk.
    """

    program: FuzzProgram
    choices: bytes


def generate(space: ProgramSpace, seed: int, count: int) -> list[GeneratedProgram]:
    """Generate different programs.

    Args:
        space: The programs to draw from.
        seed: Seed; the same one gives the same programs with the same release of Hypothesis.
        count: Programs to draw; equal ones are dropped.
    """
    found: dict[str, GeneratedProgram] = {}
    # Hypothesis derives many programs from earlier ones of the same seed: different seeds differ
    # more.
    with without_local_constants():
        for number in range(-(-count // PER_SEED)):
            _collect(space, seed * 2**20 + number, found)
    return list(found.values())


def _collect(space: ProgramSpace, seed: int, found: dict[str, GeneratedProgram]) -> None:
    """Add the programs of one seed of Hypothesis."""

    @hypothesis.seed(seed)
    @settings(
        max_examples=PER_SEED, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(space))
    def collect(program: FuzzProgram) -> None:
        choices = current_build_context().data.choices
        found.setdefault(program.id, GeneratedProgram(program, choices_to_bytes(choices)))

    collect()


def _set_database_key(test: Callable[[], None]) -> None:
    """Let a test of Hypothesis replay what is stored under `KEY`, as `hypothesis.find` does."""
    test._hypothesis_internal_database_key = KEY  # type: ignore[attr-defined] # noqa: SLF001


class _TimeIsOverError(Exception):
    """Raised to end shrinking."""


def shrink(
    space: ProgramSpace,
    generated: GeneratedProgram,
    fails: Callable[[FuzzProgram], bool],
    seconds: float,
) -> GeneratedProgram:
    """Return the simplest program found that still fails.

    Args:
        space: The programs that it was drawn from.
        generated: A program that fails.
        fails: Whether a program fails in the same way.
        seconds: Time limit; the simplest program so far is returned then.
    """
    known: dict[str, bool] = {}
    end = time.monotonic() + seconds

    def try_program(program: FuzzProgram) -> bool:
        if program.id not in known:
            known[program.id] = time.monotonic() < end and fails(program)
        return known[program.id]

    best = _cut(space, generated, try_program)
    database = InMemoryExampleDatabase()
    database.save(SECONDARY, best.choices)

    @settings(
        max_examples=MOST_TRIALS, database=database, deadline=None, report_multiple_bugs=False,
        phases=[Phase.reuse, Phase.shrink], suppress_health_check=list(HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )  # fmt: skip
    @given(programs(space))
    def search(program: FuzzProgram) -> None:
        nonlocal best
        if time.monotonic() > end:
            raise _TimeIsOverError
        if try_program(program):
            # Hypothesis keeps only examples that are simpler than the last one.
            choices = current_build_context().data.choices
            best = min(
                best, GeneratedProgram(program, choices_to_bytes(choices)),
                key=lambda one: (len(one.choices), one.choices),
            )  # fmt: skip
            raise AssertionError

    _set_database_key(search)
    with contextlib.suppress(AssertionError, _TimeIsOverError, hypothesis.errors.Flaky):
        search()
    # Hypothesis knows no parts: a program with one more of them can be the simpler one for it.
    return _cut(space, best, try_program)


def _cut(
    space: ProgramSpace, generated: GeneratedProgram, fails: Callable[[FuzzProgram], bool]
) -> GeneratedProgram:
    """Return a program that still fails after steps and transforms were left out, one at a time.

    Hypothesis leaves out less: what follows a step that is left out often needs more choices than
    before, e.g. for an operand that the step was.

    Args:
        space: The programs that it was drawn from.
        generated: A program that fails.
        fails: Whether a program fails in the same way.
    """
    best = generated
    while True:
        size = _count_parts(best.program)
        choices = choices_from_bytes(best.choices)
        assert choices is not None  # noqa: S101 - they were written by this module
        for start, end in reversed(best.program.parts):
            one = _draw(space, choices_to_bytes((*choices[:start], *choices[end:], *PADDING)))
            if one and _count_parts(one.program) < size and fails(one.program):
                best = one
                break
        else:
            return best


def _count_parts(program: FuzzProgram) -> int:
    return len(program.body.steps) + len(program.transforms)


def replay(space: ProgramSpace, choices: bytes) -> FuzzProgram:
    """Return the program of some choices.

    Args:
        space: The programs that it was drawn from.
        choices: The choices, from `generate` or `shrink`.
    """
    found = _draw(space, choices)
    assert found is not None, choices  # noqa: S101 - see above
    return found.program


def _draw(space: ProgramSpace, choices: bytes) -> GeneratedProgram | None:
    """Return the program of choices, with those that it uses; None if they are too few.

    Args:
        space: The programs to draw from.
        choices: The choices; one that does not fit is replaced by the simplest.
    """
    database = InMemoryExampleDatabase()
    database.save(KEY, choices)
    found: list[GeneratedProgram] = []

    @settings(
        max_examples=1, database=database, deadline=None, phases=[Phase.reuse],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(space))
    def collect(program: FuzzProgram) -> None:
        used = current_build_context().data.choices
        found.append(GeneratedProgram(program, choices_to_bytes(used)))

    _set_database_key(collect)
    collect()
    return found[0] if found else None
