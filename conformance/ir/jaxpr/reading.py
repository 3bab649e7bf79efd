"""The JSON that a worker writes of a jaxpr, read to the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from conformance.ir.graph import (
    Computation,
    Instruction,
    IrSyntaxError,
    Module,
    Opaque,
    Origin,
    Sharding,
    Tensor,
)
from conformance.ir.jaxpr.document import Aval, Document, Jaxpr, decode
from conformance.ir.jaxpr.dtypes import hlo_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.ir.graph import Attribute, Type
    from conformance.ir.jaxpr.document import Atom, Eqn

T = TypeVar("T")
Result = tuple[Instruction, tuple[int, ...]]

ROLES: Final = {"body_jaxpr": "body", "cond_jaxpr": "condition", "branches": "branch"}
"""Roles of inner jaxprs whose parameter is named otherwise."""
RESULT: Final = "result "
"""Before the names of attributes that tell of an instruction's results, not of its parameters."""
_PER_RESULT: Final = ("weak_type", "vma", "unreduced", "reduced", "sharding")


def parse(text: str) -> Module:
    """Read a jaxpr.

    Args:
        text: What `conformance.worker.jaxprs` or `dump` wrote.

    Returns:
        The module. Literals are instructions of the op `literal`, one for each use, constants
        `constant`, both with their `value`; inner jaxprs are bodies. What the avals of results
        say beyond dtype, shape and memory space are attributes `result weak_type`, `result vma`
        ..., each a tuple with an entry for every result, and only there where one says something.

    Raises:
        IrSyntaxError: If it is no jaxpr.
    """
    module = _Reader(decode(text)).module()
    module.reachable()  # raises if one calls itself
    return module


class _Reader:
    """Builds the graph of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._tensors: dict[Tensor, Tensor] = {}
        self._avals = [self._tensor(aval) for aval in document.avals]
        self._origins = [self._origin(*source) for source in document.sources]
        self._computations = [Computation("") for _ in document.jaxprs]
        self._module = Module("jaxpr", document.name, self._computations[0])

    def module(self) -> Module:
        module, entry = self._module, self._computations[0]
        entry.name = self._document.name or "jaxpr"
        for computation, jaxpr in zip(self._computations, self._document.jaxprs, strict=True):
            _Filler(self, computation, jaxpr).fill()
        _name_bodies(entry)
        module.attributes = self.attributes(self._document.attributes, "the module")
        return module

    def _tensor(self, aval: Aval) -> Tensor:
        tensor = Tensor(hlo_dtype(aval.dtype), tuple(aval.shape), space=aval.more.space)
        return self._tensors.setdefault(tensor, tensor)

    def _origin(self, name: str, file: int, line: int) -> Origin:
        return Origin(name, pick(self._document.files, file, "file") if file >= 0 else "", line)

    def origin(self, number: int) -> Origin:
        return pick(self._origins, number, "source")

    def aval(self, number: int) -> tuple[Tensor, Aval]:
        return pick(self._avals, number, "aval"), self._document.avals[number]

    def computation(self, number: int) -> Computation:
        return pick(self._computations, number, "jaxpr")

    def attributes(self, values: dict[str, Any], of: str) -> dict[str, Attribute]:
        return {name: self.attribute(value, f"{name} of {of}") for name, value in values.items()}

    def attribute(self, value: Any, of: str) -> Attribute:
        """Return a value as an attribute; what is not understood is kept and counted."""
        if isinstance(value, list):
            return tuple(self.attribute(item, of) for item in value)
        if isinstance(value, dict):
            return self._tagged(value, of)
        return value  # type: ignore[no-any-return] # a scalar of JSON

    def _tagged(self, value: dict[str, Any], of: str) -> Attribute:
        match value:
            case {"dtype": str(name)}:
                return hlo_dtype(name)
            case {"aval": int(number)}:
                return self.aval(number)[0]
            case {"text": str(text)}:
                self._module.not_understood[f"attribute {of}"] += 1
                return Opaque(text)
            case {"tensor": [str(dtype), list(shape), str(layout), str(space)]}:
                return Tensor(dtype, tuple(shape), layout, space)
            case {"sharding": list(parts)}:
                return _sharding(parts)
            case _:
                raise IrSyntaxError(
                    f"jaxpr {of}: got {str(value)[:80]}, expected dtype, aval, jaxpr or text"
                )


def _name_bodies(entry: Computation) -> None:
    """Name inner jaxprs after the equation that has them, shared ones after the first."""
    todo = [entry]
    while todo:
        computation = todo.pop()
        for instruction in computation.instructions:
            for role, inner in instruction.bodies:
                if not inner.name:
                    inner.name = f"{computation.name}.{instruction.name}.{role}"
                    todo.append(inner)


class _Filler:
    """Fills one computation."""

    def __init__(self, reader: _Reader, computation: Computation, jaxpr: Jaxpr) -> None:
        self._reader = reader
        self._computation = computation
        self._jaxpr = jaxpr
        self._variables: list[Result] = []

    def fill(self) -> None:
        for constant in self._jaxpr.consts:
            made = self._leaf("constant", constant.aval, "value", constant.value)
            self._variables.append((made, ()))
        for index, aval in enumerate(self._jaxpr.inputs):
            self._variables.append((self._leaf("parameter", aval, "index", index), ()))
        for eqn in self._jaxpr.eqns:
            self._eqn(eqn)
        self._computation.results = [self._atom(atom) for atom in self._jaxpr.out]
        name = self._computation.name or "a jaxpr"
        self._computation.attributes = self._reader.attributes(self._jaxpr.attributes, name)

    def _eqn(self, eqn: Eqn) -> None:
        inputs = [self._atom(atom) for atom in eqn.inputs]
        avals = [self._reader.aval(number) for number in eqn.outputs]
        made = self._add(eqn.primitive, avals)
        made.operands = tuple(instruction for instruction, _ in inputs)
        made.paths = tuple(path for _, path in inputs)
        made.origin = self._reader.origin(eqn.source)
        made.attributes = {**dict(self._params(made, eqn)), **made.attributes}
        if len(avals) == 1:
            self._variables.append((made, ()))
        else:
            self._variables += [(made, (number,)) for number in range(len(avals))]

    def _params(self, made: Instruction, eqn: Eqn) -> Iterator[tuple[str, Attribute]]:
        """Yield what is no jaxpr; jaxprs become the instruction's bodies."""
        bodies: list[tuple[str, Computation]] = []
        for name, value in eqn.params.items():
            rest, inner = _without_jaxprs(value, ROLES.get(name, name))
            for role, number in inner:
                bodies.append((role, self._reader.computation(number)))
            if rest is not _NOTHING:
                yield name, self._reader.attribute(rest, f"{name} of {eqn.primitive}")
        made.bodies = tuple(bodies)

    def _atom(self, atom: Atom) -> Result:
        if isinstance(atom, int):
            return pick(self._variables, atom, "variable")
        return self._leaf("literal", atom.aval, "value", atom.value), ()

    def _leaf(self, op: str, number: int, name: str, value: Any) -> Instruction:
        made = self._add(op, [self._reader.aval(number)])
        said = self._reader.attribute(value, f"{name} of {op}")
        made.attributes = {name: said, **made.attributes}
        return made

    def _add(self, op: str, avals: Sequence[tuple[Tensor, Aval]]) -> Instruction:
        instructions = self._computation.instructions
        tensors = tuple(tensor for tensor, _ in avals)
        type_: Type = tensors[0] if len(tensors) == 1 else tensors
        made = Instruction(f"v{len(instructions)}", op, type_)
        made.attributes = dict(_of_results([aval for _, aval in avals]))
        instructions.append(made)
        return made


def _of_results(avals: list[Aval]) -> Iterator[tuple[str, Attribute]]:
    for name in _PER_RESULT:
        said = [getattr(aval.more, name) for aval in avals]
        if any(said):
            yield RESULT + name, tuple(_frozen(part) for part in said)


def _frozen(value: Any) -> Attribute:
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


_NOTHING: Final = object()


def _without_jaxprs(value: Any, role: str) -> tuple[Any, list[tuple[str, int]]]:
    """Return what is left of a parameter without its jaxprs, and these by role.

    Args:
        value: The parameter.
        role: Its name.

    Returns:
        The rest, with the role in the place of each jaxpr, or `_NOTHING` where the parameter is
        a jaxpr, or several; and pairs of role and number. In `[NAME, jaxpr]` the name is the
        role, in other lists the place: `branch 0`.
    """
    if isinstance(value, dict) and "jaxpr" in value:
        number = value["jaxpr"]
        if not isinstance(number, int):
            raise IrSyntaxError(f"jaxpr {role}: got jaxpr {number!r}, expected a number")
        return _NOTHING, [(role, number)]
    if not isinstance(value, list):
        return value, []
    rests, found = [], []
    for place, item in enumerate(value):
        pair = isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)  # noqa: PLR2004
        name = item[0] if pair else f"{role} {place}"
        rest, inner = _without_jaxprs(item[1] if pair else item, name)
        found += inner
        said = name if rest is _NOTHING else rest
        rests.append([name, said] if pair else said)
    if found and all(isinstance(item, dict) and "jaxpr" in item for item in value):
        return _NOTHING, found
    return rests, found


def _sharding(parts: Any) -> Sharding:
    match parts:
        case [str(kind), list(tiles), list(devices), list(subgroups), list(inner)]:
            return Sharding(
                kind,
                tuple(tiles),
                tuple(devices),
                tuple(subgroups),
                tuple(_sharding(part) for part in inner),
            )
        case _:
            raise IrSyntaxError(f"jaxpr sharding: got {str(parts)[:80]}, expected five parts")


def pick(items: Sequence[T], number: int, what: str) -> T:
    """Return an item by its number.

    Raises:
        IrSyntaxError: If there is none.
    """
    if 0 <= number < len(items):
        return items[number]
    raise IrSyntaxError(f"jaxpr {what}: got number {number}, expected one below {len(items)}")
