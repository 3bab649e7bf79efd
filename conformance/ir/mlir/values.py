"""Values by their names, as far as they are seen from where the reader is."""

from __future__ import annotations

from typing import NoReturn, TypeAlias

from conformance.ir.graph import Instruction, IrSyntaxError

Link: TypeAlias = tuple[Instruction, tuple[int, ...]]
"""A value: the instruction that makes it, and the path into its result."""


class Values:
    """The values a function has defined; inner regions see those of outer ones."""

    __slots__ = ("_links", "_scopes")

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._scopes: list[list[str]] = []

    def enter(self) -> None:
        """Begin a region, whose values end with it."""
        self._scopes.append([])

    def leave(self) -> None:
        """End a region."""
        for key in self._scopes.pop():
            del self._links[key]

    def define(self, key: str, made: Instruction, count: int) -> None:
        """Take the results of an instruction under a name, with `%`.

        Raises:
            IrSyntaxError: If the name is taken.
        """
        links = self._links
        if key in links or f"{key}#0" in links:
            refuse(made.line, key, "a value of a new name")
        if count == 1:
            links[key] = (made, ())
            self._scopes[-1].append(key)
            return
        for number in range(count):
            one = f"{key}#{number}"
            links[one] = (made, (number,))
            self._scopes[-1].append(one)

    def named(self, operands: str, line: int) -> list[Link]:
        """Return the values that names with commas between them stand for.

        Raises:
            IrSyntaxError: If one is not defined.
        """
        links = self._links
        try:
            return [links[name] for name in operands.split(", ")]
        except KeyError:
            return [self._named(name.strip(), line) for name in operands.split(",")]

    def _named(self, name: str, line: int) -> Link:
        """Return the value of a name, `%1` for `%1#0` and the other way round also."""
        links = self._links
        found = links.get(name) or links.get(f"{name}#0") or links.get(name.removesuffix("#0"))
        return found or refuse(line, name, "a value that is defined above")


def refuse(line: int, got: str, expected: str) -> NoReturn:
    """Say what stands in a line, and what should.

    Raises:
        IrSyntaxError: Always.
    """
    raise IrSyntaxError(f"stablehlo line {line}: got '{got}', expected {expected}")
