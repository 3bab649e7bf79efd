"""Types of MLIR, such as `tensor<8x16xf32>`, with HLO's element types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.ir.graph import Tensor
from conformance.ir.mlir.scan import Scanner

if TYPE_CHECKING:
    from conformance.ir.graph import Type

# Otherwise `i64` and `tensor<i64>` would be equal types.
SCALAR = "scalar"
"""Layout of a bare `i64` or `index`, which is no tensor."""
_PLAIN = re.compile(r"tensor<[^<>\n]*>")
_SIZES = re.compile(r"(\d{1,18}|[?*])x")
_INTEGER = re.compile(r"(i|ui)([1-9]\d{0,7})", re.ASCII)
_FLOATS = r"tf32|bf16|f(?:16|32|64|80|128)|f[468]E\dM\d(?:FN|FNU|FNUZ|B11FNUZ)?"
_FLOAT = re.compile(_FLOATS)
_WORD = re.compile(
    rf"tensor|memref|vector|tuple|complex|index|none|[su]?i[1-9]\d{{0,7}}|{_FLOATS}", re.ASCII
)
_ELSEWHERE = {"complex<f32>": "c64", "complex<f64>": "c128", "!stablehlo.token": "token"}
_KNOWN_DIALECTS = ("!stablehlo.token", "!quant.")
_BOUNDS = re.compile(r"#stablehlo\.(?:bounds<|type_extensions<bounds = \[)([?\d, ]*)\]?>")


class Types:
    """Reads types; equal ones become one object.

    Attributes:
        aliases: Text of each alias `!name`.
        unknown: Descriptions of the types without a known meaning; the parser clears it.
    """

    def __init__(self, aliases: dict[str, str], unknown: list[str]) -> None:
        self.aliases = aliases
        self.unknown = unknown
        self._known: dict[str, Type] = {}
        self._tensors: dict[Type, Type] = {}

    def read(self, scan: Scanner) -> Type:
        """Read a type."""
        # Most types recur: a look at the text saves all tokens but the first.
        plain = _PLAIN.match(scan.text, scan.start)
        if plain is not None:
            known = self._known.get(plain[0])
            if known is not None:
                scan.seek(plain.end())
                return known
        begin, end = scan.start, scan.end
        name = scan.next
        if not is_type(name):
            scan.fail("a type")
        scan.advance()
        if name in self.aliases:
            return self._read_alias(name, scan)
        body = None
        if scan.start == end and scan.next == "<":
            body = scan.read_brackets()
        text = name if body is None else f"{name}<{body}>"
        known = self._known.get(text)
        if known is None:
            inner = scan.open_nested(body or "", scan.find_line(begin))
            unknown = len(self.unknown)
            known = self._build(name, text, inner)
            known = self._tensors.setdefault(known, known)
            # A type that is not understood is read each time, so that it is counted each time.
            if len(self.unknown) == unknown:
                self._known[text] = known
        return known

    def read_list(self, scan: Scanner) -> tuple[Type, ...]:
        """Read types in parentheses."""
        return tuple(scan.read_list("(", ")", lambda: self.read(scan)))

    def read_signature(self, scan: Scanner) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """Read the types of operands and results, `(...) -> ...`."""
        operands = self.read_list(scan)
        scan.expect("->")
        single = scan.next != "("
        return operands, (self.read(scan),) if single else self.read_list(scan)

    def _read_alias(self, name: str, scan: Scanner) -> Type:
        scan.enter()
        inner = Scanner(self.aliases[name], scan.line)
        inner.depth = scan.depth
        found = self.read(inner)
        if inner.next:
            inner.fail("the end of the type")
        scan.leave()
        return found

    def _build(self, name: str, text: str, body: Scanner) -> Type:
        match name:
            case "tensor":
                return self._read_tensor(body)
            case "memref":
                return self._read_memref(body)
            case "tuple":
                return self._read_tuple(body)
            case _ if name[0] == "!":
                if not name.startswith(_KNOWN_DIALECTS):
                    self.unknown.append(f"type {name}")
                return Tensor(convert_dtype(text), (), "" if text in _ELSEWHERE else SCALAR)
            case _:
                return Tensor(convert_dtype(text), (), SCALAR)

    def _read_tuple(self, body: Scanner) -> Type:
        found = [self.read(body)] if body.next else []
        while body.next:
            body.expect(",")
            found.append(self.read(body))
        return tuple(found)

    def _read_tensor(self, body: Scanner) -> Tensor:
        shape, dtype = self._read_shape(body)
        encoding = self._read_rest(body)
        # A bounded dynamic size is spelled as in HLO: `<=8`.
        bounds = _BOUNDS.fullmatch(encoding)
        if bounds is None:
            return Tensor(dtype, shape, encoding)
        limits = [limit.strip() for limit in bounds[1].split(",")]
        if len(limits) != len(shape):
            body.fail(f"{len(shape)} bounds")
        bounded = tuple(
            size if limit == "?" else f"<={limit}"
            for size, limit in zip(shape, limits, strict=True)
        )
        return Tensor(dtype, bounded)

    def _read_memref(self, body: Scanner) -> Tensor:
        shape, dtype = self._read_shape(body)
        # Layout and memory space are both optional, and only the space may be a number or a string.
        layout, _, space = self._read_rest(body).rpartition(", ")
        if not layout and not space.lstrip("-").isdigit() and not space.startswith('"'):
            layout, space = space, ""
        return Tensor(dtype, shape, f"memref {layout}".strip(), space)

    def _read_shape(self, body: Scanner) -> tuple[tuple[int | str, ...], str]:
        """Read shape and element type, up to a comma or the end."""
        shape: list[int | str] = []
        position = body.start
        while (found := _SIZES.match(body.text, position)) is not None:
            shape.append(int(found[1]) if found[1].isdecimal() else found[1])
            position = found.end()
        body.seek(position)
        inner = self.read(body)
        if not isinstance(inner, Tensor) or inner.shape:
            body.fail("an element type")
        return tuple(shape), inner.dtype

    def _read_rest(self, body: Scanner) -> str:
        if not body.next:
            return ""
        body.expect(",")
        if not body.next:
            body.fail("an encoding")
        rest = body.text[body.start :].strip()
        body.seek(len(body.text))
        return rest


def is_type(token: str) -> bool:
    """Whether a type may begin with a token."""
    return (len(token) > 1 and token[0] == "!") or _WORD.fullmatch(token) is not None


def convert_dtype(text: str) -> str:
    """Return an element type in HLO's spelling, if it has one: `s32` for `i32`."""
    if text in _ELSEWHERE:
        return _ELSEWHERE[text]
    integer = _INTEGER.fullmatch(text)
    if integer is not None:
        kind, width = integer.groups()
        return "pred" if text == "i1" else ("s" if kind == "i" else "u") + width
    # HLO spells floats in lower case: `f8e4m3fn` for `f8E4M3FN`.
    return text.lower() if _FLOAT.fullmatch(text) else text
