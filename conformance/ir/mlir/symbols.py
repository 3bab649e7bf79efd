"""Names of a module: values, functions, and the roles of regions and callees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, cast

from conformance.ir.graph import Computation, Instruction, IrSyntaxError, Module

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Value

_REDUCERS = (
    "all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "sort", "map",
)  # fmt: skip
_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "while": ("condition", "body"),
    "select_and_scatter": ("select", "scatter"),
    **dict.fromkeys(_REDUCERS, ("to_apply",)),
}
_BRANCHING = frozenset({"case", "if"})
_DIALECTS = frozenset({"stablehlo", "mhlo"})

CALLS: Final = {
    "func.call": ("callee", "callee"),
    "stablehlo.composite": ("decomposition", "decomposition"),
    "mhlo.composite": ("decomposition", "decomposition"),
    "stablehlo.custom_call": ("called_computations", "called"),
    "mhlo.custom_call": ("called_computations", "called"),
}
"""Operations that call functions: the attribute with their names, and their role."""


def get_role(op: str, number: int) -> str:
    """Return the role of a region of an operation.

    Args:
        op: The operation, with its dialect.
        number: Number of the region.
    """
    # The roles of HLO, so that the two IRs share their passes.
    dialect, _, name = op.partition(".")
    if dialect in _DIALECTS:
        if name in _BRANCHING:
            return f"branch {number}"
        roles = _ROLES.get(name, ())
        if number < len(roles):
            return roles[number]
    return f"region {number}"


class ValueScopes:
    """The values defined in a function; inner regions see those of outer ones."""

    def __init__(self) -> None:
        self._links: dict[str, Value] = {}
        self._scopes: list[list[str]] = []

    def enter(self) -> None:
        """Begin a region."""
        self._scopes.append([])

    def leave(self) -> None:
        """End a region, and forget its values."""
        for key in self._scopes.pop():
            del self._links[key]

    def define(self, key: str, made: Instruction, count: int) -> None:
        """Define the results of an instruction under a name, with `%`.

        Raises:
            IrSyntaxError: If the name is taken.
        """
        links = self._links
        # MLIR forbids shadowing, so a second definition is a malformed text.
        if key in links or f"{key}#0" in links:
            refuse(made.line, key, "a value of a new name")
        if count == 1:
            links[key] = (made, ())
            self._scopes[-1].append(key)
            return
        for number in range(count):
            name = f"{key}#{number}"
            links[name] = (made, (number,))
            self._scopes[-1].append(name)

    def resolve(self, operands: str, line: int) -> list[Value]:
        """Return the values of names, separated by commas.

        Raises:
            IrSyntaxError: If a name is not defined.
        """
        links = self._links
        try:
            return [links[name] for name in operands.split(", ")]
        except KeyError:
            # Other spacing, `%1` for `%1#0`, or a name that is not defined.
            return [self._resolve_variant(name.strip(), line) for name in operands.split(",")]

    def _resolve_variant(self, name: str, line: int) -> Value:
        """Return the value of a name, `%1` for `%1#0` or the reverse."""
        links = self._links
        found = links.get(name) or links.get(f"{name}#0") or links.get(name.removesuffix("#0"))
        return found or refuse(line, name, "a value that is defined above")


class Symbols:
    """The functions of a module, and the calls to be linked to them.

    Attributes:
        functions: Functions by name, in the order of the text.
        attributes: Attributes of other operations of the module, such as `sdy.mesh @mesh`.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Computation] = {}
        self.attributes: dict[str, Attribute] = {}
        self._calls: list[tuple[Instruction, str, list[str]]] = []

    def add_call(self, instruction: Instruction) -> None:
        """Record a call; in the graph a callee is a body, not an attribute."""
        attribute, role = CALLS[instruction.op]
        names = instruction.attributes.get(attribute)
        if not names:
            return
        del instruction.attributes[attribute]
        symbols = names if isinstance(names, tuple) else (names,)
        if not all(isinstance(name, str) and name[:1] == "@" for name in symbols):
            refuse(instruction.line, str(names), "the symbols of functions")
        # Linked at the end, because a function may be defined after its callers.
        self._calls.append((instruction, role, [str(name)[1:] for name in symbols]))

    def add_function(self, body: Computation, attributes: dict[str, Attribute], line: int) -> None:
        """Add a function, with its attributes as spelled.

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
            # A declaration: without a body only its type shows the parameters.
            body.attributes.update({"function_type": kind, **attributes})
            return
        parameters = body.parameters
        dictionaries = _split_dictionaries(attributes.pop("arg_attrs", ()), len(parameters), line)
        for parameter, own in zip(parameters, dictionaries, strict=True):
            parameter.attributes.update(own)
        returned = attributes.pop("res_attrs", ())
        for number, own in enumerate(_split_dictionaries(returned, len(body.results), line)):
            if own:
                attributes[f"result {number}"] = tuple(sorted(own.items()))
        body.attributes.update(attributes)

    def add_operation(self, op: str, attributes: dict[str, Attribute], line: int) -> None:
        """Add another operation of the module.

        Raises:
            IrSyntaxError: If the name is taken.
        """
        name = attributes.pop("sym_name", None)
        key = f"{op} @{name or ''}"
        if key in self.attributes:
            refuse(line, key, "a name of its own")
        self.attributes[key] = tuple(sorted(attributes.items()))

    def _find_entry(self, line: int) -> Computation:
        """Return the entry of the module: `main`, or its only public function."""
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

    def build_module(self, attributes: dict[str, Attribute], line: int) -> Module:
        """Return the module, its calls linked to their functions.

        Raises:
            IrSyntaxError: If a function or the entry is not defined.
        """
        for instruction, role, names in self._calls:
            for number, called in enumerate(names):
                if called not in self.functions:
                    refuse(instruction.line, f"@{called}", "a function the module defines")
                own = f"{role} {number}" if role == "called" else role
                instruction.bodies += ((own, self.functions[called]),)
        name, entry = str(attributes.pop("sym_name", "")), self._find_entry(line)
        return Module("stablehlo", name, entry, attributes | self.attributes, self.functions)


def _split_dictionaries(value: Attribute, count: int, line: int) -> list[dict[str, Attribute]]:
    """Return a dictionary for each argument or result."""
    # MLIR leaves the list out if every dictionary is empty.
    if not isinstance(value, tuple) or len(value) not in (0, count):
        refuse(line, f"attributes {str(value)[:40]}", f"{count} dictionaries")
    try:
        dictionaries = [dict(cast("tuple[tuple[str, Attribute], ...]", item)) for item in value]
    except (TypeError, ValueError):
        refuse(line, f"attributes {str(value)[:40]}", "dictionaries")
    return dictionaries or [{} for _ in range(count)]


def refuse(line: int, got: str, expected: str) -> NoReturn:
    """Report the text found in a line, and the expected text.

    Raises:
        IrSyntaxError: Always.
    """
    raise IrSyntaxError(f"stablehlo line {line}: got '{got}', expected {expected}")
