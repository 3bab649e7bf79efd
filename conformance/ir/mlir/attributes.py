"""Attributes: from MLIR's spellings to plain immutable values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.ir.graph import IrSyntaxError, Opaque, Tensor
from conformance.ir.mlir import literals
from conformance.ir.mlir.dialects import (
    Dialects,
    UndefinedSymbolError,
    plain_attribute,
    put_attribute,
)
from conformance.ir.mlir.tensors import Types, is_type

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute
    from conformance.ir.hlo.shardings import Mesh
    from conformance.ir.mlir.scan import Scanner

_NUMBER = re.compile(r"[-+]?\d")
_DECIMAL = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")
_SPACE = re.compile(r"\s+")
_TEXTS = ("dense_resource", "sparse", "affine_map", "affine_set", "strided", "opaque")
"""What has no meaning here but its text."""


class Attributes:
    """Reads attributes.

    Attributes:
        meshes: The module's meshes by name.
        literal: Whether dense elements are the value of a constant, not a list of integers.
    """

    def __init__(self, aliases: dict[str, str], types: Types, unknown: list[str]) -> None:
        self.meshes: dict[str, Mesh] = {}
        self.literal = False
        self._types = types
        self._aliases = aliases
        self._unknown = unknown
        self._known: dict[str, object] = {}
        self._dialects = Dialects(self.meshes, self.value)
        self._by_sign = {
            '"': self._string,
            "[": self._array,
            "{": self._pairs,
            "#": self._dialect,
            "@": self._symbol,
            "(": self._function,
        }
        self._by_word = {
            **dict.fromkeys(("true", "false", "unit"), self._truth),
            **dict.fromkeys(_TEXTS, self._kept),
            "array": self._plain_array,
            "dense": self._dense,
            "loc": self._location,
        }

    def dictionary(self, scan: Scanner, found: dict[str, Attribute]) -> None:
        """Read `{a = 1, b}` into a dictionary.

        Raises:
            IrSyntaxError: If a name is there twice.
        """
        scan.listed("{", "}", lambda: self._entry(scan, found))

    def _entry(self, scan: Scanner, found: dict[str, Attribute]) -> None:
        name = scan.string() if scan.next[:1] == '"' else scan.word()
        if name in found:
            scan.fail(f"'{name}' once")
        put_attribute(found, name, self._value(scan) if scan.accept("=") else True)

    def value(self, scan: Scanner) -> Attribute:
        """Return the attribute that stands next."""
        return plain_attribute(self._value(scan))

    def _value(self, scan: Scanner) -> object:
        """Read an attribute; a sharding comes with Shardy's notes."""
        read = self._by_sign.get(scan.next[:1]) or self._by_word.get(scan.next)
        if read is not None:
            return read(scan)
        if _NUMBER.match(scan.next):
            return self._number(scan)
        return self._types.read(scan) if is_type(scan.next) else scan.fail("an attribute")

    def _truth(self, scan: Scanner) -> bool:
        return scan.advance() != "false"

    def _string(self, scan: Scanner) -> str:
        text = scan.string()
        if scan.accept(":"):
            self._types.read(scan)
        return text

    def _array(self, scan: Scanner) -> tuple[Attribute, ...]:
        return tuple(scan.listed("[", "]", lambda: self.value(scan)))

    def _pairs(self, scan: Scanner) -> Attribute:
        found: dict[str, Attribute] = {}
        self.dictionary(scan, found)
        return tuple(sorted(found.items()))

    def _symbol(self, scan: Scanner) -> str:
        name = "@" + scan.symbol()
        while scan.accept("::"):
            name += "::@" + scan.symbol()
        return name

    def _function(self, scan: Scanner) -> str:
        begin = scan.start
        self._types.signature(scan)
        return _SPACE.sub(" ", scan.text[begin : scan.before])

    def _number(self, scan: Scanner) -> Attribute:
        """Read `1 : i64` or `1.5 : f32`, whose bits may stand there in hexadecimal."""
        token = scan.advance()
        dtype = "f64" if _DECIMAL.fullmatch(token) and not token[1:].isdecimal() else "s64"
        if token.isdecimal():
            dtype = "s64"
        if scan.accept(":"):
            of = self._types.read(scan)
            dtype = of.dtype if isinstance(of, Tensor) else dtype
        try:
            if dtype != "index" and dtype[0] not in "psu":
                return literals.number(token, dtype)
            return int(token, 0)
        except ValueError:
            scan.fail(f"a number of type {dtype} before it")

    def _plain_array(self, scan: Scanner) -> tuple[Attribute, ...]:
        """Read `array<i64: 1, 2>`."""
        scan.advance()
        scan.expect("<")
        of = self._types.read(scan)
        dtype = of.dtype if isinstance(of, Tensor) else ""
        found: list[Attribute] = []
        while scan.accept(":" if not found else ","):
            found.append(self._element(scan, dtype))
        scan.expect(">")
        return tuple(found)

    def _element(self, scan: Scanner, dtype: str) -> Attribute:
        if dtype == "pred" and scan.next in {"true", "false"}:
            return self._truth(scan)
        try:
            if literals.is_whole(dtype):
                return scan.integer()
            return literals.number(scan.advance(), dtype)
        except ValueError:
            scan.fail(f"a number of type {dtype} before it")

    def _dense(self, scan: Scanner) -> Attribute:
        """Read `dense<[1, 2]> : tensor<2xi64>`."""
        begin = scan.start
        scan.advance()
        start = scan.start
        close = scan.text.find(">", start)
        text = scan.text[start + 1 : close]
        if scan.next == "<" and close > 0 and '"' not in text:
            scan.seek(close + 1)
        else:
            text = scan.bracketed()
        scan.expect(":")
        tensor = self._types.read(scan)
        if not isinstance(tensor, Tensor):
            scan.fail("the type of a tensor before it")
        try:
            found = literals.elements(text.strip(), tensor)
            if found is None:
                whole = scan.text[begin : scan.before]
                return self._not_understood(f"dense<> of {tensor.dtype}", whole)
            if self.literal or not literals.is_whole(tensor.dtype):
                return literals.text_of(found, tensor)
            return literals.nested(found, tensor)
        except literals.NotALiteral as error:
            scan.fail(f"{error} in the constant before it")

    def _location(self, scan: Scanner) -> Opaque:
        scan.advance()
        return self._not_understood("loc", f"loc({scan.bracketed()})")

    def _kept(self, scan: Scanner) -> Opaque:
        """Keep `name<...>`, with the type after it, as text."""
        begin = scan.start
        name = scan.advance()
        scan.bracketed()
        if scan.accept(":"):
            self._types.read(scan)
        return self._not_understood(name, scan.text[begin : scan.before])

    def _not_understood(self, name: str, text: str) -> Opaque:
        self._unknown.append(f"attribute {name}")
        return Opaque(_SPACE.sub(" ", text))

    def _dialect(self, scan: Scanner) -> object:
        """Read `#stablehlo<transpose NO>`, `#stablehlo.dot<...>`, `#alias`; equal texts once."""
        end, line = scan.end, scan.line
        name = scan.advance()
        if scan.next != "<" or scan.start != end:
            return self._alias(name, scan, line)
        text = f"{name}<{scan.bracketed()}>"
        if text in self._known:
            return self._known[text]
        before = len(self._unknown)
        found = self._meaning(name, scan.nested(text, line))
        if len(self._unknown) == before:
            self._known[text] = found
        return found

    def _alias(self, name: str, scan: Scanner, line: int) -> object:
        if name not in self._aliases:
            if "." in name:
                return self._not_understood(name, name)
            scan.fail(f"'<', {name} is not defined")
        inner = scan.nested(self._aliases[name], line)
        found = self._value(inner)
        if inner.next:
            inner.fail("the end of the attribute")
        return found

    def _meaning(self, name: str, scan: Scanner) -> object:
        """Return the value of a dialect's attribute; its text if its grammar is not known."""
        text = scan.text
        before = len(self._unknown)
        scan.advance()
        try:
            found = self._dialects.read(name, scan)
            if not scan.next:
                return found
        except UndefinedSymbolError:
            raise
        except IrSyntaxError:
            pass
        del self._unknown[before:]
        return self._not_understood(name, text)
