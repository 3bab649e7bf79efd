"""Attributes of MLIR, read as plain immutable values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.ir.graph import IrSyntaxError, Opaque, Tensor
from conformance.ir.mlir import literals
from conformance.ir.mlir.dialects import (
    Dialects,
    UndefinedSymbolError,
    drop_notes,
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
# Attributes that are compared by their text.
_TEXTS = ("dense_resource", "sparse", "affine_map", "affine_set", "strided", "opaque")


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
        self._dialects = Dialects(self.meshes, self.read_value)
        self._by_sign = {
            '"': self._read_string,
            "[": self._read_array,
            "{": self._read_pairs,
            "#": self._read_dialect,
            "@": self._read_symbol,
            "(": self._read_function,
        }
        self._by_word = {
            **dict.fromkeys(("true", "false", "unit"), self._read_truth),
            **dict.fromkeys(_TEXTS, self._keep_text),
            "array": self._read_plain_array,
            "dense": self._read_dense,
            "loc": self._read_location,
        }

    def read_dictionary(self, scan: Scanner, found: dict[str, Attribute]) -> None:
        """Read `{a = 1, b}` into a dictionary.

        Raises:
            IrSyntaxError: If a name occurs twice.
        """
        scan.read_list("{", "}", lambda: self._read_entry(scan, found))

    def _read_entry(self, scan: Scanner, found: dict[str, Attribute]) -> None:
        name = scan.read_string() if scan.next[:1] == '"' else scan.read_word()
        if name in found:
            scan.fail(f"'{name}' once")
        put_attribute(found, name, self._read_any(scan) if scan.accept("=") else True)

    def read_value(self, scan: Scanner) -> Attribute:
        """Read an attribute."""
        return drop_notes(self._read_any(scan))

    def _read_any(self, scan: Scanner) -> object:
        """Read an attribute, a sharding with Shardy's notes."""
        read = self._by_sign.get(scan.next[:1]) or self._by_word.get(scan.next)
        if read is not None:
            return read(scan)
        if _NUMBER.match(scan.next):
            return self._read_number(scan)
        return self._types.read(scan) if is_type(scan.next) else scan.fail("an attribute")

    def _read_truth(self, scan: Scanner) -> bool:
        return scan.advance() != "false"

    def _read_string(self, scan: Scanner) -> str:
        text = scan.read_string()
        if scan.accept(":"):
            self._types.read(scan)
        return text

    def _read_array(self, scan: Scanner) -> tuple[Attribute, ...]:
        return tuple(scan.read_list("[", "]", lambda: self.read_value(scan)))

    def _read_pairs(self, scan: Scanner) -> Attribute:
        found: dict[str, Attribute] = {}
        self.read_dictionary(scan, found)
        return tuple(sorted(found.items()))

    def _read_symbol(self, scan: Scanner) -> str:
        name = "@" + scan.read_symbol()
        while scan.accept("::"):
            name += "::@" + scan.read_symbol()
        return name

    def _read_function(self, scan: Scanner) -> str:
        begin = scan.start
        self._types.read_signature(scan)
        return _SPACE.sub(" ", scan.text[begin : scan.before])

    def _read_number(self, scan: Scanner) -> Attribute:
        """Read `1 : i64` or `1.5 : f32`, which may be spelled by its bits in hexadecimal."""
        # Without a type a number is an i64 or an f64, as in MLIR's grammar.
        token = scan.advance()
        dtype = "f64" if _DECIMAL.fullmatch(token) and not token[1:].isdecimal() else "s64"
        if token.isdecimal():
            dtype = "s64"
        if scan.accept(":"):
            of = self._types.read(scan)
            dtype = of.dtype if isinstance(of, Tensor) else dtype
        try:
            if dtype != "index" and dtype[0] not in "psu":
                return literals.read_number(token, dtype)
            return int(token, 0)
        except ValueError:
            scan.fail(f"a number of type {dtype} before it")

    def _read_plain_array(self, scan: Scanner) -> tuple[Attribute, ...]:
        """Read `array<i64: 1, 2>`."""
        scan.advance()
        scan.expect("<")
        of = self._types.read(scan)
        dtype = of.dtype if isinstance(of, Tensor) else ""
        found: list[Attribute] = []
        while scan.accept(":" if not found else ","):
            found.append(self._read_element(scan, dtype))
        scan.expect(">")
        return tuple(found)

    def _read_element(self, scan: Scanner, dtype: str) -> Attribute:
        if dtype == "pred" and scan.next in {"true", "false"}:
            return self._read_truth(scan)
        try:
            if literals.is_integral(dtype):
                return scan.read_integer()
            return literals.read_number(scan.advance(), dtype)
        except ValueError:
            scan.fail(f"a number of type {dtype} before it")

    def _read_dense(self, scan: Scanner) -> Attribute:
        """Read `dense<[1, 2]> : tensor<2xi64>`."""
        begin = scan.start
        scan.advance()
        start = scan.start
        # Without a string inside, the next bracket is the end: constants have megabytes of digits.
        close = scan.text.find(">", start)
        text = scan.text[start + 1 : close]
        if scan.next == "<" and close > 0 and '"' not in text:
            scan.seek(close + 1)
        else:
            text = scan.read_brackets()
        scan.expect(":")
        tensor = self._types.read(scan)
        if not isinstance(tensor, Tensor):
            scan.fail("the type of a tensor before it")
        try:
            found = literals.read_elements(text.strip(), tensor)
            if found is None:
                whole = scan.text[begin : scan.before]
                return self._keep_unknown(f"dense<> of {tensor.dtype}", whole)
            # `dense<>` was the spelling of integer lists, such as dimensions, before `array<>`.
            if self.literal or not literals.is_integral(tensor.dtype):
                return literals.render_elements(found, tensor)
            return literals.nest_integers(found, tensor)
        except literals.LiteralError as error:
            scan.fail(f"{error} in the constant before it")

    def _read_location(self, scan: Scanner) -> Opaque:
        scan.advance()
        return self._keep_unknown("loc", f"loc({scan.read_brackets()})")

    def _keep_text(self, scan: Scanner) -> Opaque:
        """Read `name<...>`, with the type after it, as text."""
        begin = scan.start
        name = scan.advance()
        scan.read_brackets()
        if scan.accept(":"):
            self._types.read(scan)
        return self._keep_unknown(name, scan.text[begin : scan.before])

    def _keep_unknown(self, name: str, text: str) -> Opaque:
        self._unknown.append(f"attribute {name}")
        return Opaque(_SPACE.sub(" ", text))

    def _read_dialect(self, scan: Scanner) -> object:
        """Read `#stablehlo<transpose NO>`, `#stablehlo.dot<...>`, `#alias`; each text once."""
        end, line = scan.end, scan.line
        name = scan.advance()
        if scan.next != "<" or scan.start != end:
            return self._read_alias(name, scan, line)
        text = f"{name}<{scan.read_brackets()}>"
        if text in self._known:
            return self._known[text]
        before = len(self._unknown)
        found = self._interpret(name, scan.open_nested(text, line))
        # An attribute that is not understood is read each time, so that it is counted each time.
        if len(self._unknown) == before:
            self._known[text] = found
        return found

    def _read_alias(self, name: str, scan: Scanner, line: int) -> object:
        if name not in self._aliases:
            if "." in name:
                return self._keep_unknown(name, name)
            scan.fail(f"'<', {name} is not defined")
        # The line is that of the use: an alias may be defined after the module.
        inner = scan.open_nested(self._aliases[name], line)
        found = self._read_any(inner)
        if inner.next:
            inner.fail("the end of the attribute")
        return found

    def _interpret(self, name: str, scan: Scanner) -> object:
        """Return the value of a dialect's attribute; its text if its grammar is unknown."""
        text = scan.text
        before = len(self._unknown)
        scan.advance()
        try:
            found = self._dialects.read(name, scan)
            if not scan.next:
                return found
        except UndefinedSymbolError:
            raise  # a defect of the module, not an unknown grammar
        except IrSyntaxError:
            pass
        # Parts counted before the failure are within the text that is kept as a whole.
        del self._unknown[before:]
        return self._keep_unknown(name, text)
