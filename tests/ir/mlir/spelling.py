"""How types and attributes are written, so that the reader finds the same values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from conformance.ir.graph import Opaque, Sharding, Tensor
from conformance.ir.mlir import literals
from conformance.ir.mlir.dialects import SHARDING, TEXT
from conformance.ir.mlir.tensors import SCALAR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.ir.graph import Attribute, Type

_ELEMENTS = {
    "pred": "i1",
    "c64": "complex<f32>",
    "c128": "complex<f64>",
    "token": "!stablehlo.token",
}
_INTEGER = re.compile(r"([su])(\d+)")
_SMALL_FLOAT = re.compile(r"f\d+e\d+m\w+")
_WORD = re.compile(r"[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(r"[\w$.-]+")
_SPECIAL = re.compile(r'[^ -~]|["\\]')


def escape(text: str) -> str:
    """Return a text in quotation marks, as MLIR would spell it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    raw = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return '"' + _SPECIAL.sub(lambda found: f"\\{ord(found[0]):02X}", raw) + '"'


def of_type(one: Type) -> str:
    """Return the spelling of a type."""
    if not isinstance(one, Tensor):
        return f"tuple<{', '.join(map(of_type, one))}>"
    element = _element(one.dtype)
    if one.layout == SCALAR or (one.dtype == "token" and not one.shape):
        return element
    limits = [
        size[2:] if isinstance(size, str) and size.startswith("<=") else "?" for size in one.shape
    ]
    sizes = [
        str(size) if limit == "?" else "?" for size, limit in zip(one.shape, limits, strict=True)
    ]
    kind, encoding = "tensor", one.layout
    if encoding.startswith("memref"):
        kind, encoding = "memref", encoding.removeprefix("memref").strip()
    if set(limits) > {"?"} or (limits and "?" not in limits):
        encoding = f"#stablehlo.bounds<{', '.join(limits)}>"
    details = [text for text in (encoding, one.space) if text]
    return f"{kind}<{', '.join(['x'.join([*sizes, element]), *details])}>"


def of_types(types: Iterable[Type]) -> str:
    """Return the spelling of several types, in parentheses."""
    return f"({', '.join(map(of_type, types))})"


def dictionary(attributes: Iterable[tuple[str, str]]) -> str:
    """Return `{a = 1, b = 2}` of names and spelled values; nothing if there are none."""
    fields = [
        f"{name if _WORD.fullmatch(name) else escape(name)} = {value}" for name, value in attributes
    ]
    return f"{{{', '.join(fields)}}}" if fields else ""


def value(one: Attribute) -> str:
    """Return the spelling of an attribute."""
    match one:
        case bool() | None:
            text = str(one is not False).lower()
        case int():
            text = f"{one} : i64"
        case float():
            decimal = repr(one)
            text = f"{decimal if '.' in decimal else decimal.replace('e', '.0e')} : f64"
        case str():
            text = escape(one)
        case Sharding():
            text = spelled_sharding(one)
        case Opaque():
            text = one.text
        case Tensor():
            text = of_type(one)
        case _:
            text = f"[{', '.join(map(value, one))}]"
    return text


def constant(one: Attribute, of: Type) -> str:
    """Return the spelling of a constant's value."""
    if not isinstance(one, str) or not isinstance(of, Tensor):
        return value(one)
    try:
        found = dense(one, of)
    except literals.LiteralError:
        found = None
    return spelled_text(one) if found is None else f"dense<{found}> : {of_type(of)}"


def symbol(name: str) -> str:
    """Return the spelling of a symbol: `@main`, or in quotation marks."""
    return "@" + (name if _SYMBOL.fullmatch(name) else escape(name))


def mesh(fields: Attribute) -> str:
    """Return the spelling of a mesh, `#sdy.mesh<["x"=4]>`, from its axes and devices."""
    of = dict(cast("tuple[tuple[str, tuple[tuple[str, int], ...]], ...]", fields))
    axes = ", ".join([f"{escape(name)}={size}" for name, size in of["axes"]])
    devices = cast("tuple[int, ...]", of["device_ids"])
    plain = devices == tuple(range(len(devices))) and bool(of["axes"] or not devices)
    ids = "" if plain else f", device_ids=[{', '.join(map(str, devices))}]"
    return f"#sdy.mesh<[{axes}]{ids}>"


def _element(dtype: str) -> str:
    if dtype in _ELEMENTS:
        return _ELEMENTS[dtype]
    integer = _INTEGER.fullmatch(dtype)
    if integer is not None:
        return ("i" if integer[1] == "s" else "ui") + integer[2]
    return "f" + dtype[1:].upper() if _SMALL_FLOAT.fullmatch(dtype) else dtype


def spelled_text(value: str) -> str:
    """Return the spelling of a text that stands for a constant."""
    return f"{TEXT}<{escape(value)}>"


def spelled_sharding(value: Sharding) -> str:
    """Return the spelling of a sharding."""
    return SHARDING + _body(value)


def _body(value: Sharding) -> str:
    fields = [escape(value.kind), *map(_numbers, (value.tiles, value.devices))]
    fields.append(f"[{', '.join(map(escape, value.subgroups))}]")
    return f"<{', '.join([*fields, *map(_body, value.parts)])}>"


def _numbers(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


def dense(text: str, tensor: Tensor) -> str | None:
    """Return how MLIR spells the text of a constant between its angle brackets.

    Raises:
        LiteralError: If it is a hash, or no constant of that type.
    """
    values = literals.read_elements(text, tensor)
    if values is None or not values.size:
        return None if values is None else ""
    if values.dtype.kind == "c":
        parts = _element_texts(values.view(values.real.dtype))
        spelled = [f"({re_},{im})" for re_, im in zip(parts[::2], parts[1::2], strict=True)]
    else:
        spelled = _element_texts(values)
    if len(spelled) == 1:
        return spelled[0]
    for size in reversed([size for size in tensor.shape if isinstance(size, int)]):
        rows = range(0, len(spelled), size)
        spelled = [f"[{', '.join(spelled[row : row + size])}]" for row in rows]
    return spelled[0]


def _element_texts(values: literals.Elements) -> list[str]:
    """Return the text of each element, a float that is no number as its bits."""
    texts = literals.render_each(values)
    if values.dtype.kind in "biu":
        return texts
    size = values.dtype.itemsize
    raw: list[int] = values.view(f"uint{8 * size}").tolist()
    return [
        f"0x{bits:0{2 * size}X}"
        if text[-1].isalpha() or text[-1] == ")"
        else text.replace("e", ".0e")
        if "." not in text
        else text
        for text, bits in zip(texts, raw, strict=True)
    ]
