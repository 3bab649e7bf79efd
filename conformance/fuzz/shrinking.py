"""Shrinking of programs: parts are left out one at a time, then Hypothesis goes on."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.control import current_build_context
from hypothesis.database import InMemoryExampleDatabase, choices_from_bytes, choices_to_bytes

from conformance.fuzz.generation import KEY, GeneratedProgram, draw_choices, set_database_key
from conformance.fuzz.strategies import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hypothesis.internal.conjecture.choice import ChoiceT

    from conformance.fuzz.program import FuzzProgram, MovedOperand, Part

    Fails = Callable[[FuzzProgram], bool]

SECONDARY: Final = KEY + b".secondary"
"""Key from which Hypothesis replays an example and shrinks it; one under `KEY` counts as shrunk."""
PADDING: Final = (0,) * 64
"""Choices for what a program needs in place of a part that was left out."""
MOST_TRIALS: Final = 600
"""Trials of shrinking one program."""


class _TimeIsOverError(Exception):
    """Raised to end shrinking."""


def shrink(
    generated: GeneratedProgram, fails: Fails, seconds: float, position: int | None = None
) -> GeneratedProgram:
    """Return the simplest program found that still fails.

    Args:
        generated: A program that fails.
        fails: Whether a program fails in the same way.
        seconds: Time limit; the simplest program so far is returned then.
        position: Position of a wrong element in the flattened result. The values at this position
            of its inputs are tried first.
    """
    known: dict[str, bool] = {}
    end = time.monotonic() + seconds

    def try_program(program: FuzzProgram) -> bool:
        if program.id not in known:
            known[program.id] = time.monotonic() < end and fails(program)
        return known[program.id]

    single = None if position is None else _select_values(generated, position)
    best = leave_out(single if single and try_program(single.program) else generated, try_program)
    database = InMemoryExampleDatabase()
    database.save(SECONDARY, best.choices)

    @settings(
        max_examples=MOST_TRIALS, database=database, deadline=None, report_multiple_bugs=False,
        phases=[Phase.reuse, Phase.shrink], suppress_health_check=list(HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )  # fmt: skip
    @given(programs(generated.space))
    def search(program: FuzzProgram) -> None:
        nonlocal best
        if time.monotonic() > end:
            raise _TimeIsOverError
        if try_program(program):
            # Hypothesis keeps only examples that are simpler than the last one.
            choices = choices_to_bytes(current_build_context().data.choices)
            one = GeneratedProgram(program, choices, generated.space)
            best = min(best, one, key=lambda each: (len(each.choices), each.choices))
            raise AssertionError

    set_database_key(search)
    with contextlib.suppress(AssertionError, _TimeIsOverError, hypothesis.errors.Flaky):
        search()
    # Hypothesis knows no parts: a program with one more of them can be the simpler one for it.
    return leave_out(best, try_program)


def leave_out(generated: GeneratedProgram, fails: Fails) -> GeneratedProgram:
    """Return a program that still fails without parts, and with fewer values of its inputs.

    Hypothesis leaves out less: what follows a step that is left out often needs more choices than
    before, e.g. for an operand that the step was.

    Args:
        generated: A program that fails.
        fails: Whether a program fails in the same way.
    """
    best = generated
    while True:
        size = _measure(best.program)
        one = _find_failing(_leave_out_parts(best), fails, size)
        one = one or _find_failing(_halve_ranges(best), fails)
        if one is None:
            return best
        best = one


def _find_failing(
    candidates: Iterator[GeneratedProgram | None], fails: Fails, size: tuple[int, int] | None = None
) -> GeneratedProgram | None:
    """Return the first program that fails and is smaller than a size, None if none does."""
    for one in candidates:
        if one and (size is None or _measure(one.program) < size) and fails(one.program):
            return one
    return None


def _measure(program: FuzzProgram) -> tuple[int, int]:
    """Return the number of the parts of a program, and of the elements of its parameters."""
    parts = len(program.body.steps) + len(program.transforms) + bool(program.launch)
    return parts, sum(variable.type.size for variable in program.body.parameters)


def _leave_out_parts(generated: GeneratedProgram) -> Iterator[GeneratedProgram | None]:
    """Yield a program without each of its parts, the last one first; None where there is none."""
    for part in reversed(generated.program.parts):
        for operand in dict.fromkeys((part.operand, None)):
            choices = _leave_out_part(_read_choices(generated), part, operand)
            yield draw_choices(generated.space, choices_to_bytes((*choices, *PADDING)))


def _leave_out_part(
    choices: Sequence[ChoiceT], part: Part, operand: MovedOperand | None
) -> Iterator[ChoiceT]:
    """Yield the choices of a program without a part.

    Args:
        choices: The choices with it.
        part: The part.
        operand: Its operand, which a later step gets; None for none.
    """
    gone = {at for start, end in part.choices for at in range(start, end)}
    if operand:
        gone -= {*range(*operand.values)}
    for at, choice in enumerate(choices):
        if operand and at == operand.position:
            yield 0  # a new parameter
            yield from choices[slice(*operand.type)]
        elif at == part.switch:
            yield 0
        elif at not in gone:
            yield choice


def _halve_ranges(generated: GeneratedProgram) -> Iterator[GeneratedProgram | None]:
    """Yield a program with each half of each of its ranges; None where there is none."""
    for position, start, size, _ in generated.program.ranges:
        choices = _read_choices(generated)
        half = size // 2
        for at, length in ((start, half), (start + half, size - half)):
            if 0 < length < size:
                choices[position : position + 3] = [0, at, length - 1]
                yield draw_choices(generated.space, choices_to_bytes(choices))


def _select_values(generated: GeneratedProgram, position: int) -> GeneratedProgram | None:
    """Return a program with one value in place of each range: that of an element of the result."""
    choices = _read_choices(generated)
    for first, start, size, repeats in generated.program.ranges:
        choices[first : first + 3] = [0, start + position // repeats % size, 0]
    return draw_choices(generated.space, choices_to_bytes(choices))


def _read_choices(generated: GeneratedProgram) -> list[ChoiceT]:
    choices = choices_from_bytes(generated.choices)
    assert choices is not None  # noqa: S101 - they were written by `generate` or `shrink`
    return [*choices]
