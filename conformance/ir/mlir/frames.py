"""Parts of an operation as they are read: head, tail, and what is open between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.ir.graph import Computation

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Type
    from conformance.ir.mlir.values import Link


class Tail(NamedTuple):
    """What follows the operands of an operation.

    Attributes:
        attributes: All of them.
        type: Type of the result.
        takes: Types of the operands.
        gives: How many results there are.
        unknown: What was not understood, for counting.
    """

    attributes: dict[str, Attribute]
    type: Type
    takes: tuple[Type, ...]
    gives: int
    unknown: tuple[str, ...]


class Head(NamedTuple):
    """What stands before: `%0:2 = "op"(%a, %b)`; key and times are empty without a result."""

    key: str
    times: str
    op: str
    links: list[Link]
    line: int


class Open:
    """An operation whose regions are being read.

    Attributes:
        head: How it begins.
        attributes: Those read so far.
        bodies: The regions read so far, with the one that is open.
        begun: Whether the open region's block has begun.
        ended: Whether its terminator has been read.
        unknown: What of its attributes was not understood.
    """

    __slots__ = ("attributes", "begun", "bodies", "ended", "head", "region", "unknown")

    def __init__(self, head: Head, attributes: dict[str, Attribute]) -> None:
        self.head = head
        self.attributes = attributes
        self.bodies: list[tuple[str, Computation]] = []
        self.region = Computation("")
        self.begun = self.ended = False
        self.unknown: tuple[str, ...] = ()
