"""A transform of the table: what it needs, what it offers, and how it is put around a function."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.program import Transform
    from conformance.fuzz.scope import Scope

    Types = tuple[ArrayType, ...]
    Apply = Callable[[Scope, "TransformFrame", Types, Types], Transform | None]
    Make = Callable[[Scope, int], "TransformFrame"]

FORWARD: Final = ("forward",)
REVERSE: Final = ("reverse",)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformFrame:
    """The offer of a transform to the function within it, drawn before that function.

    Attributes:
        number: Position of the transform, for unique names.
        axes: Sizes of the named axes that collectives within it may use, by name.
        mesh: Sizes of the axes of its mesh, by name; empty for none.
    """

    number: int
    axes: Mapping[str, int] = field(default_factory=dict)
    mesh: Mapping[str, int] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """Number of devices that it needs."""
        return math.prod(self.mesh.values())


def make_plain_frame(_: Scope, number: int) -> TransformFrame:
    """Return a frame that offers nothing."""
    return TransformFrame(number=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformKind:
    """A transform of the table.

    Attributes:
        name: Name, e.g. `vmap`.
        apply: Returns the transform around a function, given the types of its parameters and of
            its results; None if it does not apply.
        make_frame: Draws what it offers to the function within it.
        modes: Modes in which it differentiates: `forward`, `reverse`.
        lacks: Modes in which it cannot be differentiated.
        once: Whether a program has it at most once.
    """

    name: str
    apply: Apply
    make_frame: Make = make_plain_frame
    modes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    once: bool = False

    def fits(self, inner: Sequence[TransformKind]) -> bool:
        """Return whether it can be put around others, the innermost first."""
        if self.once and any(one.name == self.name for one in inner):
            return False
        # An exported program of several devices can only be called where its devices are.
        if self.name == "export" and any(one.make_frame is not make_plain_frame for one in inner):
            return False
        return not any({*self.modes} & {*one.lacks} for one in inner)
