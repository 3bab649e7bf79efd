"""The graph of an IR: HLO text, StableHLO and jaxprs are parsed into it.

A `Module` holds `Computation`s, these hold `Instruction`s in the order of the text. An operand is
a pair of the instruction that produces it and a path into its result: `()` is the whole result,
`(1,)` the second of several, `(1, 0)` the first within a nested tuple.

The parsers build it, the passes of `conformance.ir.normal` rewrite it in place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Node = TypeVar("Node", "Instruction", "Computation")

IRS: Final = ("jaxpr", "stablehlo", "hlo")
"""The kinds of IR, in the order in which a program is lowered."""

CROSS_LOWERED: Final = ("stablehlo-tpu", "stablehlo-cuda", "stablehlo-rocm")
"""A program's StableHLO for platforms other than its cell's, by the artifact's name."""

FACTS_IR: Final = "hlo"
"""The IR whose facts are those of a job."""


def kind_of_artifact(name: str) -> str:
    """Return which kind of IR an artifact holds: `stablehlo-tpu` holds `stablehlo`."""
    return name.partition("-")[0]


class IrSyntaxError(ConformanceError):
    """A text that is not understood; the message names kind, line and token."""


class Tensor(NamedTuple):
    """The type of an array, token or opaque value; equal ones are one object within a module.

    Attributes:
        dtype: Element type in HLO's spelling (`f32`, `s32`, `pred`, `bf16`), `token`, `opaque`,
            or the IR's own word where HLO has none (`key<fry>`).
        shape: Sizes; a dynamic size is a string (`?`, `<=8`).
        layout: The text in braces after an HLO shape, without memory space; may be empty.
        space: Memory space as spelled (`5`), empty for the default one.
    """

    dtype: str
    shape: tuple[int | str, ...] = ()
    layout: str = ""
    space: str = ""


Type: TypeAlias = Tensor | tuple["Type", ...]
"""Type of a result: a tensor, or several (the results of an operation, an HLO tuple)."""


class Sharding(NamedTuple):
    """The device of each tile of an array, the same for every spelling of a sharding.

    Attributes:
        kind: `replicated`, `maximal`, `manual`, `unknown`, `unreduced`, `tiled` or `tuple`.
        tiles: Number of tiles along each dimension, for `tiled`; subgroups are further dimensions.
        devices: Device of each tile, row-major over `tiles`; the single device for `maximal`.
        subgroups: Meaning of each trailing dimension of `tiles`: `replicated`, `manual`,
            `unreduced`; empty if all dimensions cut the data.
        parts: Shardings of the parts, for `tuple`.
    """

    kind: str
    tiles: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    subgroups: tuple[str, ...] = ()
    parts: tuple[Sharding, ...] = ()


class Opaque(NamedTuple):
    """A text of unknown meaning: it is compared and counted, never dropped."""

    text: str


Attribute: TypeAlias = (
    str | int | float | bool | Sharding | Opaque | Tensor | tuple["Attribute", ...] | None
)
"""Value of an attribute: plain, immutable, hashable."""


def freeze(value: Any) -> Attribute:
    """Return a value of JSON as an attribute: lists as tuples, objects as pairs sorted by key."""
    if isinstance(value, dict):
        # GPU plug-ins print the keys of a backend_config in any order.
        return tuple([(key, freeze(value[key])) for key in sorted(value)])
    return tuple(map(freeze, value)) if isinstance(value, list) else value


class Origin(NamedTuple):
    """The place in the user's program that an instruction comes from.

    Attributes:
        name: The name stack, e.g. `jit(f)/while/body/psum`; empty when unknown.
        file: The user's source file, empty when unknown.
        line: Line in it, 0 when unknown.
    """

    name: str = ""
    file: str = ""
    line: int = 0


NOWHERE = Origin()

Path: TypeAlias = tuple[int, ...]
Value: TypeAlias = "tuple[Instruction, Path]"
"""A result or a part of it: the instruction, and the path into its result."""


# Slots and no equality: a module has tens of thousands of instructions, and passes use them as
# keys; a comparison of fields would walk the whole graph below an instruction.
@dataclass(slots=True, eq=False)
class Instruction:
    """An operation, compared by identity; `conformance.ir.fingerprint` compares meanings.

    Attributes:
        name: The name in the text, without `%`.
        op: The operation, in the IR's own spelling: `all-reduce`, `stablehlo.all_reduce`, `psum`.
            The parameters of a computation are instructions of the op `parameter`.
        type: Type of its result.
        operands: The instructions whose results the operation takes.
        paths: For each operand, the path into that instruction's result; `()` is the whole.
        attributes: By name, in the order of the text. A literal is the attribute `value`, the
            number of a parameter is `index`.
        bodies: Computations that it calls, each with its role: `body`, `condition`, `to_apply`,
            `calls`, `branch 0`, `region 0`, `callee` ...
        origin: Place in the user's program.
        line: Line in the text, counted from 1.
    """

    name: str
    op: str
    type: Type
    operands: tuple[Instruction, ...] = ()
    paths: tuple[Path, ...] = ()
    attributes: dict[str, Attribute] = field(default_factory=dict)
    bodies: tuple[tuple[str, Computation], ...] = ()
    origin: Origin = NOWHERE
    line: int = 0

    @property
    def inputs(self) -> list[Value]:
        """The operands with their paths."""
        return list(zip(self.operands, self.paths, strict=True))

    @inputs.setter
    def inputs(self, values: Iterable[Value]) -> None:
        """Replace the operands."""
        # Two tuples, not pairs: most paths are `()`, so that instructions can share those of paths.
        pairs = list(values)
        self.operands = tuple([producer for producer, _ in pairs])
        self.paths = tuple([path for _, path in pairs])

    def get_number(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is a number by construction.

        Raises:
            IrSyntaxError: If the attribute is no number, or is missing without a default.
        """
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise IrSyntaxError(f"{self.name}: got {name} {value!r}, expected a number")
        return value

    def __repr__(self) -> str:
        """Return a short form for debugging."""
        return f"<{self.name} = {self.op}({', '.join(o.name for o in self.operands)})>"


@dataclass(slots=True, eq=False)
class Computation:
    """A function of the module: a named HLO computation, an MLIR function or region, a jaxpr.

    Attributes:
        name: The name in the text; regions and inner jaxprs are named after the instruction that
            they belong to.
        instructions: Instructions, parameters included; producers come before their users.
        results: The values that it returns.
        attributes: Attributes of the computation itself (`execution_thread`, argument
            attributes such as `arg 0 sharding`).
    """

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)

    @property
    def parameters(self) -> list[Instruction]:
        """The parameters, by number."""
        # Texts list parameters in any order, and passes put new ones first.
        found = [i for i in self.instructions if i.op == "parameter"]
        return sorted(found, key=lambda i: i.get_number("index"))

    @property
    def callees(self) -> list[Computation]:
        """The computations that the instructions call, in the order of the instructions."""
        return [inner for node in self.instructions for _, inner in node.bodies]

    def __repr__(self) -> str:
        """Return a short form for debugging."""
        return f"<computation {self.name}: {len(self.instructions)} instructions>"


@dataclass(slots=True, eq=False)
class Module:
    """The graph of a text.

    Attributes:
        kind: `hlo`, `stablehlo` or `jaxpr`.
        name: Name of the module.
        entry: The computation that a caller of the module runs.
        attributes: Attributes of the module's header, by name.
        computations: Every named computation, in the order of the text; regions and inner jaxprs
            are found through the instructions they belong to.
        not_understood: Count of each kind of text kept as `Opaque`, by a short description
            (`attribute foo of custom-call`).
    """

    kind: str
    name: str
    entry: Computation
    attributes: dict[str, Attribute] = field(default_factory=dict)
    computations: dict[str, Computation] = field(default_factory=dict)
    not_understood: Counter[str] = field(default_factory=Counter)

    def find_reachable(self) -> list[Computation]:
        """Return the computations reachable from the entry, callees before callers, each once.

        Raises:
            IrSyntaxError: If a computation calls itself.
        """
        return list(walk_post_order([self.entry], lambda caller: caller.callees))

    def walk(self) -> Iterator[Instruction]:
        """Yield every instruction of every reachable computation."""
        for computation in self.find_reachable():
            yield from computation.instructions


def walk_post_order(
    roots: Sequence[Node], successors: Callable[[Node], Sequence[Node]]
) -> Iterator[Node]:
    """Yield the nodes that can be reached, successors first, each once.

    The stack is explicit, because modules nest deeper than Python recurses.

    Raises:
        IrSyntaxError: If a node reaches itself, which only computations can.
    """
    # A node is entered when it is first met, and finished after its successors.
    entered: set[Node] = set()
    finished: set[Node] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            finished.add(node)
            yield node
        elif node not in entered:
            entered.add(node)
            stack.append((node, True))
            # Reversed, because a stack is last in, first out: the first successor comes first.
            stack += [(successor, False) for successor in reversed(successors(node))]
        elif node not in finished:
            raise IrSyntaxError(f"computation {node.name} calls itself, expected no recursion")
