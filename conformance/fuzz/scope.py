"""The scope in which a function is drawn: its variables, and what may be used within it."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.control import current_build_context

from conformance.fuzz.array_type import DTYPES, NARROW, WIDE, ArrayType, get_kind
from conformance.fuzz.program import Part, Step, ValueRange, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.fuzz.program import ProgramFunction

    Draw = Callable[[st.SearchStrategy[Any]], Any]

T = TypeVar("T")
EXTENTS: Final = (2, 3, 4, 1, 5, 8, 0)
"""Extents of new dimensions, the simplest first."""
MOSTLY: Final = 95
"""Per cent of the draws of a length and of a range that are the whole of it."""
MOST_ELEMENTS: Final = 4096
"""Elements of a result: programs compute little and print as a whole."""


class Pick(NamedTuple):
    """An operand that was drawn.

    Attributes:
        position: Position of the choice between a new parameter and a known variable.
        variable: The operand.
        type: Start and end of the choices of the type of a new parameter; None for a known
            variable.
    """

    position: int
    variable: Variable
    type: tuple[int, int] | None = None


def count_choices() -> int:
    """Return of how many choices of Hypothesis the program is made so far."""
    return len(current_build_context().data.nodes)


@dataclass(slots=True)
class Scope:
    """A function while it is drawn.

    Attributes:
        draw: Draws from a strategy.
        x64: Whether 64-bit types are enabled.
        length: Length of new vectors, which new arrays are then where they may be; 0 for none.
        axes: Sizes of the named axes that collectives may use, by name.
        outer: The scope around this one, whose variables it may use; None for the outermost.
        numbers: Numbers of new names.
        inputs: Parameters so far; an operation that finds no operand adds one.
        variables: Parameters and results of steps so far, the newest last.
        steps: Steps so far.
        parts: See `FuzzProgram`.
        ranges: See `FuzzProgram`.
        picks: Operands in the order in which they were drawn.
    """

    draw: Draw
    x64: bool = False
    length: int = 0
    axes: Mapping[str, int] = field(default_factory=dict)
    outer: Scope | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)
    inputs: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    ranges: list[ValueRange] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)

    @contextlib.contextmanager
    def record(self) -> Iterator[list[tuple[int, int]]]:
        """Yield a list that gets the start and the end of the choices of Hypothesis within."""
        found: list[tuple[int, int]] = []
        start = count_choices()
        yield found
        found.append((start, count_choices()))

    def choose(self, values: Sequence[T]) -> T:
        """Draw one of some values; Hypothesis shrinks to the first."""
        chosen: T = self.draw(st.sampled_from(values)) if len(values) > 1 else values[0]
        return chosen

    def choose_fitting(self, values: Sequence[T], fits: Callable[[T], bool]) -> T | None:
        """Draw one of some values, and return the first one from there on that fits.

        What fits changes with the rest of the program: that way, a choice means the same value
        after another part of the program was left out.

        Args:
            values: The values.
            fits: Whether one can be used.
        """
        if not values:
            return None
        start = self.integer(0, len(values) - 1)
        around = (*values[start:], *values[:start])
        return next(filter(fits, around), None)

    def flip(self) -> bool:
        """Draw a truth value; Hypothesis shrinks to False."""
        return bool(self.draw(st.booleans()))

    def rarely(self, rate: int) -> bool:
        """Draw True once in so many times; Hypothesis shrinks to False."""
        return self.integer(0, rate - 1) == rate - 1

    def happens(self, percent: int) -> bool:
        """Draw True with a probability; Hypothesis shrinks to False."""
        return self.integer(0, 99) >= 100 - percent

    def integer(self, smallest: int, largest: int) -> int:
        """Draw an integer; Hypothesis shrinks to 0, or to the one next to it."""
        return int(self.draw(st.integers(smallest, largest)))

    def choose_range(self, size: int, repeats: int) -> slice:
        """Draw a range of a table, mostly all of it; Hypothesis shrinks to the first value.

        Args:
            size: Size of the table.
            repeats: See `ValueRange`.
        """
        position = count_choices()
        # All three are drawn even for the whole table: later choices stay where they are.
        whole, start, more = self.happens(MOSTLY), *(self.integer(0, size - 1) for _ in range(2))
        chosen = slice(0, size) if whole else slice(start, min(start + 1 + more, size))
        self.ranges.append(ValueRange(position, chosen.start, chosen.stop - chosen.start, repeats))
        return chosen

    def choose_dtype(self, kinds: Sequence[str], *, narrow: bool = False) -> str:
        """Draw a dtype.

        Args:
            kinds: Kinds that it may have, or dtypes.
            narrow: Whether it may be one of `NARROW`.
        """
        return self.choose(
            [
                dtype
                for dtype in DTYPES
                if (get_kind(dtype) in kinds or dtype in kinds)
                and (narrow or dtype not in NARROW)
                and (self.x64 or dtype not in WIDE)
            ]
        )

    def choose_shape(self, smallest: int = 0, largest: int = 3, least: int = 0) -> tuple[int, ...]:
        """Draw a shape, mostly that of a long vector where the scope has a length.

        Args:
            smallest: Smallest rank.
            largest: Largest rank.
            least: Smallest extent of a dimension.
        """
        if self.length and smallest <= 1 <= largest and self.length >= least:
            self.parts.append(Part(switch=count_choices()))
            return (self.length if self.happens(MOSTLY) else 1,)
        ranks = sorted(range(smallest, largest + 1), key=lambda rank: (rank != 1, rank))
        extents = [extent for extent in EXTENTS if extent >= least]
        return tuple(self.choose(extents) for _ in range(self.choose(ranks)))

    def choose_axis(self, type_: ArrayType, least: int = 0) -> int | None:
        """Draw an axis, in half of the cases negative; None if no extent is large enough.

        Args:
            type_: Type of the array.
            least: Smallest extent along the axis.
        """
        axes = [axis for axis, extent in enumerate(type_.shape) if extent >= least]
        if not axes:
            return None
        axis = self.choose(axes)
        return axis - type_.rank if self.flip() else axis

    def add_input(self, type_: ArrayType) -> Variable:
        """Add a parameter."""
        variable = Variable(f"x{next(self.numbers)}", type_)
        self.inputs.append(variable)
        self.variables.append(variable)
        return variable

    def pick(self, accept: Callable[[ArrayType], bool], make: Callable[[], ArrayType]) -> Variable:
        """Draw a new operand, or one of the variables of a fitting type, the newest first.

        Args:
            accept: Whether a type fits.
            make: Draws the type of a new parameter.
        """
        if self.length:  # two vectors hold all pairs of values
            return self.add_input(make())
        known = [variable for variable in reversed(self.variables) if accept(variable.type)]
        # Zero is the new one, so that a choice means the same after another step was cut.
        # It is drawn even where nothing fits, for the same reason.
        position = count_choices()
        number = self.integer(0, max(1, len(known)))
        if 0 < number <= len(known):
            self.picks.append(Pick(position, known[number - 1]))
            return known[number - 1]
        if self.outer is not None:
            # A function within another one has fixed parameters: it closes over a variable.
            return self.outer.pick(accept, make)
        with self.record() as choices:
            type_ = make()
        self.picks.append(Pick(position, self.add_input(type_), choices[0]))
        return self.inputs[-1]

    def pick_kind(
        self,
        kinds: Sequence[str],
        *,
        smallest: int = 0,
        largest: int = 3,
        least: int = 0,
        narrow: bool = False,
    ) -> Variable:
        """Draw an operand of some kinds.

        Args:
            kinds: Kinds that its dtype may have, or dtypes.
            smallest: Smallest rank.
            largest: Largest rank.
            least: Smallest extent of a dimension.
            narrow: Whether its dtype may be one of `NARROW`.
        """

        def accept(type_: ArrayType) -> bool:
            return (
                (type_.kind in kinds or type_.dtype in kinds)
                and smallest <= type_.rank <= largest
                and all(extent >= least for extent in type_.shape)
                and (narrow or type_.dtype not in NARROW)
            )

        def make() -> ArrayType:
            shape = self.choose_shape(smallest, largest, least)
            return ArrayType(shape, self.choose_dtype(kinds, narrow=narrow))

        return self.pick(accept, make)

    def add(
        self,
        operation: str,
        code: str,
        operands: Sequence[Variable],
        *results: ArrayType,
        twin: str = "",
        functions: tuple[ProgramFunction, ...] = (),
    ) -> tuple[Variable, ...]:
        """Add a step, and return its results.

        Args:
            operation: Name of the operation.
            code: Expression with `{0}`, `{1}`, ... for the operands.
            operands: The operands.
            results: Types of the results.
            twin: The same in NumPy, empty for none.
            functions: Functions that the call takes.
        """
        names = [operand.name for operand in operands]
        made = tuple(Variable(f"v{next(self.numbers)}", result) for result in results)
        self.steps.append(
            Step(
                operation=operation,
                code=code.format(*names),
                twin=twin.format(*names),
                operands=tuple(names),
                results=made,
                functions=functions,
            )
        )
        self.variables += made
        return made
