"""The parser of jaxprs: from the JSON of a worker to the graph."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from conformance.ir.graph import (
    Computation,
    Instruction,
    IrSyntaxError,
    Module,
    Opaque,
    Origin,
    Tensor,
    freeze,
)
from conformance.ir.jaxpr.document import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.ir.graph import Attribute, Value
    from conformance.ir.jaxpr.document import Atom, Eqn, Jaxpr, JaxprDocument

T = TypeVar("T")

ROLES: Final = {"body_jaxpr": "body", "cond_jaxpr": "condition", "branches": "branch"}
"""Roles of inner jaxprs whose parameter has another name."""
RESULT: Final = "result "
"""Prefix of attributes of the results of an instruction."""
_SHORT: Final = {"float": "f", "int": "s", "uint": "u", "complex": "c", "bfloat": "bf"}
_NUMERIC = re.compile(r"(float|int|uint|complex|bfloat)([1-9]\d*)(?:_(e\d+m\d+\w*))?")
_REF = re.compile(r"ref<(.+)>")
_PER_RESULT: Final = ("weak_type", "vma", "unreduced", "reduced", "sharding")


def parse(text: str) -> Module:
    """Read a jaxpr.

    Args:
        text: JSON that `conformance.worker.jaxprs` wrote.

    Returns:
        The module. Literals are instructions of the op `literal`, a new one for each use, constants
        `constant`, both with their `value`; inner jaxprs are bodies. The properties of results
        beyond dtype, shape and memory space are attributes `result weak_type`, `result vma` ...,
        tuples with an entry for every result, present only if any entry is not empty.

    Raises:
        IrSyntaxError: If the text is no document of a jaxpr, or its numbers are out of range.
    """
    module = _Reader(decode(text)).read()
    module.find_reachable()  # raises on recursion
    return module


class _Reader:
    """Builds the graph of a document."""

    def __init__(self, document: JaxprDocument) -> None:
        self._document = document
        # Avals that differ only in properties beyond the type share a tensor.
        tensors: dict[Tensor, Tensor] = {}
        self._avals: list[Tensor] = []
        for aval in document.avals:
            tensor = Tensor(convert_dtype(aval.dtype), tuple(aval.shape), space=aval.more.space)
            self._avals.append(tensors.setdefault(tensor, tensor))
        self._origins = [
            # The worker writes -1 for a source without a file.
            Origin(name, pick(document.files, file, "file") if file >= 0 else "", line)
            for name, file, line in document.sources
        ]
        # All exist before any is read: an equation may call a later jaxpr.
        self._computations = [Computation("") for _ in document.jaxprs]
        self._module = Module("jaxpr", document.name, self._computations[0])
        self._computation = self._computations[0]
        self._variables: list[Value] = []

    def read(self) -> Module:
        self._computation.name = self._document.name or "jaxpr"
        for computation, jaxpr in zip(self._computations, self._document.jaxprs, strict=True):
            self._computation, self._variables = computation, []
            self._fill(jaxpr)
        self._name_bodies()
        return self._module

    def _fill(self, jaxpr: Jaxpr) -> None:
        # The numbers of variables imply this order: constants, inputs, results of equations.
        for constant in jaxpr.consts:
            made = self._add_leaf("constant", constant.aval, "value", constant.value)
            self._variables.append((made, ()))
        for index, aval in enumerate(jaxpr.inputs):
            self._variables.append((self._add_leaf("parameter", aval, "index", index), ()))
        for eqn in jaxpr.eqns:
            self._read_eqn(eqn)
        self._computation.results = [self._read_atom(atom) for atom in jaxpr.out]

    def _read_eqn(self, eqn: Eqn) -> None:
        inputs = [self._read_atom(atom) for atom in eqn.inputs]
        made = self._add(eqn.primitive, eqn.outputs)
        made.inputs = inputs
        made.origin = pick(self._origins, eqn.source, "source")
        # Parameters come first: `_add` has stored the properties of results already.
        made.attributes = {**dict(self._read_params(made, eqn)), **made.attributes}
        # As in HLO, a single result is the instruction itself and not the first of a tuple.
        if len(eqn.outputs) == 1:
            self._variables.append((made, ()))
        else:
            self._variables += [(made, (number,)) for number in range(len(eqn.outputs))]

    def _read_params(self, made: Instruction, eqn: Eqn) -> Iterator[tuple[str, Attribute]]:
        """Yield the parameters that are no jaxprs; jaxprs become the instruction's bodies."""
        bodies: list[tuple[str, Computation]] = []
        for name, value in eqn.params.items():
            rest, inner = _split_jaxprs(value, ROLES.get(name, name))
            bodies += [(role, pick(self._computations, number, "jaxpr")) for role, number in inner]
            if rest is not _NO_REST:
                yield name, self._read_attribute(rest, f"{name} of {eqn.primitive}")
        made.bodies = tuple(bodies)

    def _read_atom(self, atom: Atom) -> Value:
        if isinstance(atom, int):
            return pick(self._variables, atom, "variable")
        return self._add_leaf("literal", atom.aval, "value", atom.value), ()

    def _add_leaf(self, op: str, number: int, name: str, value: Any) -> Instruction:
        made = self._add(op, [number])
        made.attributes = {name: self._read_attribute(value, f"{name} of {op}"), **made.attributes}
        return made

    def _add(self, op: str, numbers: list[int]) -> Instruction:
        """Add an instruction whose results have these avals."""
        tensors = tuple([pick(self._avals, number, "aval") for number in numbers])
        made = Instruction(
            f"v{len(self._computation.instructions)}",
            op,
            tensors[0] if len(tensors) == 1 else tensors,
        )
        for name in _PER_RESULT:
            values = [getattr(self._document.avals[number].more, name) for number in numbers]
            if any(values):
                made.attributes[RESULT + name] = freeze(values)
        self._computation.instructions.append(made)
        return made

    def _name_bodies(self) -> None:
        """Name inner jaxprs after the first equation that calls them."""
        todo = [self._module.entry]
        while todo:
            computation = todo.pop()
            for instruction in computation.instructions:
                for role, inner in instruction.bodies:
                    # Equations may share a jaxpr: the first name stays, and the walk ends.
                    if not inner.name:
                        inner.name = f"{computation.name}.{instruction.name}.{role}"
                        todo.append(inner)

    def _read_attribute(self, value: Any, of: str) -> Attribute:
        """Return a value as an attribute; a text of unknown meaning is counted."""
        if isinstance(value, list):
            return tuple([self._read_attribute(item, of) for item in value])
        if isinstance(value, dict):
            return self._read_tagged(value, of)
        scalar: Attribute = value
        return scalar

    def _read_tagged(self, value: dict[str, Any], of: str) -> Attribute:
        match value:
            case {"dtype": str(name)}:
                return convert_dtype(name)
            case {"aval": int(number)}:
                return pick(self._avals, number, "aval")
            case {"text": str(text)}:
                self._module.not_understood[f"attribute {of}"] += 1
                return Opaque(text)
            case _:
                raise IrSyntaxError(
                    f"jaxpr {of}: got {str(value)[:80]}, expected dtype, aval, jaxpr or text"
                )


_NO_REST: Final = object()


def _split_jaxprs(value: Any, role: str) -> tuple[Any, list[tuple[str, int]]]:
    """Split a parameter into its jaxprs and the rest.

    Args:
        value: The parameter.
        role: Its name.

    Returns:
        The rest, with its role in the place of each jaxpr, or `_NO_REST` if the parameter consists
        of jaxprs; and pairs of role and number. The role in `[NAME, jaxpr]` is the name, in other
        lists the place: `branch 0`.
    """
    if isinstance(value, dict) and "jaxpr" in value:
        number = value["jaxpr"]
        if not isinstance(number, int):
            raise IrSyntaxError(f"jaxpr {role}: got jaxpr {number!r}, expected a number")
        return _NO_REST, [(role, number)]
    if not isinstance(value, list):
        return value, []
    rests: list[Any] = []
    found: list[tuple[str, int]] = []
    for place, item in enumerate(value):
        match item:
            # The worker writes a mapping, and a field of a named tuple, as a pair.
            case [str(name), named]:
                rest, inner = _split_jaxprs(named, name)
                rests.append([name, name if rest is _NO_REST else rest])
            case _:
                name = f"{role} {place}"
                rest, inner = _split_jaxprs(item, name)
                rests.append(name if rest is _NO_REST else rest)
        found += inner
    # The branches of a `cond` are a list of jaxprs alone; the parameter then disappears.
    if found and all(isinstance(item, dict) and "jaxpr" in item for item in value):
        return _NO_REST, found
    return rests, found


def pick(items: Sequence[T], number: int, kind: str) -> T:
    """Return an item by its number.

    Raises:
        IrSyntaxError: If the number is out of range.
    """
    # Python would take a negative number from the end.
    if 0 <= number < len(items):
        return items[number]
    raise IrSyntaxError(f"jaxpr {kind}: got number {number}, expected a number below {len(items)}")


@cache
def convert_dtype(name: str) -> str:
    """Return a dtype as HLO spells it: `f32` for `float32`, `key<fry>` unchanged."""
    if name == "bool":
        return "pred"
    if inner := _REF.fullmatch(name):
        return f"ref<{convert_dtype(inner[1])}>"
    if numeric := _NUMERIC.fullmatch(name):
        return f"{_SHORT[numeric[1]]}{numeric[2]}{numeric[3] or ''}"
    return name
