"""Generation of programs by Hypothesis, reproducible by a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.control import current_build_context
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes

from conformance.fuzz.strategies import programs
from conformance.laws.reproducible import without_local_constants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.fuzz.program import FuzzProgram
    from conformance.fuzz.strategies import ProgramSpace

KEY = b"program"
PER_SEED = 10
"""Programs that are drawn with one seed of Hypothesis."""
DRAWS = 5
"""Programs that are drawn for one with a certain operation."""


class GeneratedProgram(NamedTuple):
    """A generated program.

    Attributes:
        program: The program.
        choices: The choices that Hypothesis made for it, from which it can be shrunk.
        space: The programs that it was drawn from.
    """

    program: FuzzProgram
    choices: bytes
    space: ProgramSpace


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
            for one in _collect(space, seed * 2**20 + number, PER_SEED):
                found.setdefault(one.program.id, one)
    return list(found.values())


def generate_each(spaces: Iterable[ProgramSpace], seed: int) -> list[GeneratedProgram]:
    """Generate a program of each of some spaces; equal ones are dropped.

    Args:
        spaces: The programs to draw from.
        seed: See `generate`.
    """
    found: dict[str, GeneratedProgram] = {}
    with without_local_constants():
        for number, space in enumerate(spaces):
            # The first program that Hypothesis draws is the simplest one. An operation whose
            # operands do not fit, or a transform that does not, is missing from some.
            drawn = _collect(space, seed * 2**20 + number, DRAWS)[1:]
            names = {operation.name for operation in space.operations}
            one = max(drawn, key=lambda each: _count_wanted(each.program, names))
            found.setdefault(one.program.id, one)
    return list(found.values())


def _count_wanted(program: FuzzProgram, operations: set[str]) -> tuple[bool, int]:
    return not operations.isdisjoint(program.operations), len(program.around)


def _collect(space: ProgramSpace, seed: int, count: int) -> list[GeneratedProgram]:
    """Return the programs of one seed of Hypothesis, at least one."""
    found: list[GeneratedProgram] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(space))
    def collect(program: FuzzProgram) -> None:
        choices = current_build_context().data.choices
        found.append(GeneratedProgram(program, choices_to_bytes(choices), space))

    collect()
    return found


def set_database_key(test: Callable[[], None]) -> None:
    """Let a test of Hypothesis replay what is stored under `KEY`, as `hypothesis.find` does."""
    test._hypothesis_internal_database_key = KEY  # type: ignore[attr-defined] # noqa: SLF001


def replay(space: ProgramSpace, choices: bytes) -> FuzzProgram:
    """Return the program of some choices.

    Args:
        space: The programs that it was drawn from.
        choices: The choices, from `generate` or `shrink`.
    """
    found = draw_choices(space, choices)
    assert found is not None, choices  # noqa: S101 - see above
    return found.program


def draw_choices(space: ProgramSpace, choices: bytes) -> GeneratedProgram | None:
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
        found.append(GeneratedProgram(program, choices_to_bytes(used), space))

    set_database_key(collect)
    collect()
    return found[0] if found else None
