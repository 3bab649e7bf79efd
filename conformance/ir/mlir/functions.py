"""What stands in a module: functions, and other operations with a name; and what calls what."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from conformance.ir.graph import Computation, Instruction, Module
from conformance.ir.mlir.roles import CALLS
from conformance.ir.mlir.values import refuse

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute

Attributes = dict[str, "Attribute"]


class Symbols:
    """The functions of a module, and the calls that wait for them.

    Attributes:
        functions: By name, in the order of the text.
        attributes: Other operations of the module, as `sdy.mesh @mesh`, with their attributes.
    """

    __slots__ = ("_calls", "attributes", "functions")

    def __init__(self) -> None:
        self.functions: dict[str, Computation] = {}
        self.attributes: Attributes = {}
        self._calls: list[tuple[Instruction, str, list[str]]] = []

    def called(self, instruction: Instruction) -> None:
        """Note what an operation calls; the graph says it with bodies, not with an attribute."""
        attribute, role = CALLS[instruction.op]
        names = instruction.attributes.get(attribute)
        if not names:
            return
        del instruction.attributes[attribute]
        several = names if isinstance(names, tuple) else (names,)
        if not all(isinstance(name, str) and name[:1] == "@" for name in several):
            refuse(instruction.line, str(names), "the symbols of functions")
        self._calls.append((instruction, role, [str(name)[1:] for name in several]))

    def function(self, body: Computation, attributes: Attributes, line: int) -> None:
        """Take a function, with its attributes as they are spelled.

        Raises:
            IrSyntaxError: If attributes do not fit the function, or its name is taken.
        """
        name = attributes.pop("sym_name", None)
        if not isinstance(name, str) or not name or name in self.functions:
            refuse(line, str(name), "a function with a name of its own")
        body.name = name
        self.functions[name] = body
        kind = attributes.pop("function_type", None)
        if not (body.instructions or body.results) and kind != "() -> ()":
            body.attributes.update({"function_type": kind, **attributes})  # only declared
            return
        parameters = body.parameters
        given = _dictionaries(attributes.pop("arg_attrs", ()), len(parameters), line)
        for parameter, one in zip(parameters, given, strict=True):
            parameter.attributes.update(one)
        returned = attributes.pop("res_attrs", ())
        for number, one in enumerate(_dictionaries(returned, len(body.results), line)):
            if one:
                attributes[f"result {number}"] = tuple(sorted(one.items()))
        body.attributes.update(attributes)

    def other(self, op: str, attributes: Attributes, line: int) -> None:
        """Take another operation of the module.

        Raises:
            IrSyntaxError: If there is one of that name.
        """
        name = attributes.pop("sym_name", None)
        key = f"{op} @{name or ''}"
        if key in self.attributes:
            refuse(line, key, "a name of its own")
        self.attributes[key] = tuple(sorted(attributes.items()))

    def link(self) -> None:
        """Give every call what it calls.

        Raises:
            IrSyntaxError: If there is no such function.
        """
        for instruction, role, names in self._calls:
            bodies = []
            for number, name in enumerate(names):
                if name not in self.functions:
                    refuse(instruction.line, f"@{name}", "a function the module defines")
                bodies.append((f"{role} {number}" if role == "called" else role, name))
            instruction.bodies += tuple((one, self.functions[name]) for one, name in bodies)

    def entry(self, line: int) -> Computation:
        """Return where the module begins: `main`, or its only public function.

        Raises:
            IrSyntaxError: If that cannot be said.
        """
        public = {
            name: function
            for name, function in self.functions.items()
            if function.attributes.get("sym_visibility", "public") == "public"
        }
        if "main" in public:
            return public["main"]
        if len(public) != 1:
            refuse(line, f"{len(public)} public functions", "'main', or a single one")
        return next(iter(public.values()))

    def module(self, attributes: Attributes, line: int) -> Module:
        """Return the module, all of whose operations have been read."""
        self.link()
        name = attributes.pop("sym_name", "")
        entry = self.entry(line)
        return Module(
            "stablehlo",
            str(name),
            entry,
            {**attributes, **self.attributes},
            self.functions,
        )


def _dictionaries(value: Attribute, count: int, line: int) -> list[Attributes]:
    """Return one dictionary for each argument or result."""
    if not isinstance(value, tuple) or len(value) not in (0, count):
        refuse(line, f"attributes {str(value)[:40]}", f"{count} dictionaries")
    try:
        given = [dict(cast("tuple[tuple[str, Attribute], ...]", one)) for one in value]
    except (TypeError, ValueError):
        refuse(line, f"attributes {str(value)[:40]}", "dictionaries")
    return given or [{} for _ in range(count)]
