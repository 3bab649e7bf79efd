"""The parts of an operation in generic form, as the parser meets them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from conformance.ir.graph import Computation

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Type, Value


class OperationHead(NamedTuple):
    """The part of an operation up to its operands: `%0:2 = "op"(%a, %b)`.

    Attributes:
        name: Name of the result with `%`, empty without a result.
        spelled_count: Number of results as spelled, empty for a single result.
        op: The operation.
        operands: Instruction and path of each operand.
        line: Number of the line.
    """

    name: str
    spelled_count: str
    op: str
    operands: list[Value]
    line: int


class OperationTail(NamedTuple):
    """The part of an operation after its operands and regions.

    Attributes:
        attributes: Properties and discardable attributes.
        type: Type of the result.
        operand_types: Types of the operands.
        result_count: Number of results.
        unknown: Descriptions of the parts that are not understood, for counting.
    """

    attributes: dict[str, Attribute]
    type: Type
    operand_types: tuple[Type, ...]
    result_count: int
    unknown: tuple[str, ...]


@dataclass(slots=True, eq=False)
class OpenOperation:
    """An operation whose regions are being read.

    Attributes:
        head: The operation up to its operands.
        attributes: The attributes read so far.
        bodies: The regions read so far, the open region included.
        region: The open region.
        has_block: Whether the block of the open region has begun.
        has_ended: Whether the terminator of the open region has been read.
        unknown: Descriptions of the attributes that are not understood.
    """

    head: OperationHead
    attributes: dict[str, Attribute]
    bodies: list[tuple[str, Computation]] = field(default_factory=list)
    region: Computation = field(default_factory=lambda: Computation(""))
    has_block: bool = False
    has_ended: bool = False
    unknown: tuple[str, ...] = ()
