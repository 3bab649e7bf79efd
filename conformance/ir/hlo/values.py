"""Types and constants of HLO text.

A type is `f32[2,<=3]{1,0:T(8,128)S(1)}`, `token[]`, `opaque[]` or a tuple of types. Equal constants
have equal texts; a long constant becomes a digest of its text without blanks, because all releases
print the numbers of an array alike.
"""

from __future__ import annotations

import re
from hashlib import sha256
from math import isfinite, prod

from conformance.ir.graph import Attribute, Opaque, Tensor, Type
from conformance.ir.hlo.lexing import (
    DEEPEST,
    HloTextError,
    match_all,
    split_parts,
    strip_brackets,
    strip_comments,
    unquote,
)

_ARRAY = r"[a-z]\w*+\[[^\[\]]*+\](?:\{[^{}]*+\})?"
TENSOR = rf"(?:{_ARRAY}|b\({_ARRAY}\))"
_TENSOR = re.compile(r"(b\()?([a-z]\w*+)\[([^\[\]]*+)\](?:\{([^{}]*+)\})?(?(1)\))", re.ASCII)
_SIZE = re.compile(r"(?:<=)?\d{1,19}|(?:<=)?\?", re.ASCII)
_LAYOUT = re.compile(
    r"[\d,]*+(?::(?>(?:[A-Z#*]{1,2}(?>(?:\((?>(?:[^()]|\([^()]*\))*)\))+))*))?", re.ASCII
)
_SPACE = re.compile(r"(?<![A-Z])S\((\d+)\)", re.ASCII)

LONGEST = 1_000
"""Largest number of elements that are written out; a longer constant becomes a digest."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{16} of \d+ elements")
_FLOAT = re.compile(r"-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan(?:\(0x[0-9a-f]+\))?)", re.ASCII)
_INTEGER = re.compile(r"-?\d+", re.ASCII)
# Arrays of truth values are printed as digits, scalars as words.
_BITS = {"true": "true", "false": "false", "1": "true", "0": "false"}
_PART = r"[^\s(){},]+(?:\(0x[0-9a-f]+\))?"
_ELEMENT = re.compile(rf"\({_PART},{_PART}\)|{_PART}")
_LONG = re.compile(r"\{[{},()\w.+\-]*+", re.ASCII)
_GAP = re.compile(r"[^\s,{}(]\s+[^\s,{})]+")
_BLANK = str.maketrans("", "", " \t\r\n")


class HloTypes(dict[str, Type]):
    """Types by their text, each read once; equal types are one object."""

    def __init__(self) -> None:
        super().__init__()
        self._unique: dict[Type, Type] = {}

    def __missing__(self, text: str) -> Type:
        clean = strip_comments(text).strip()
        found, end = self.read(clean, 0)
        if end != len(clean):
            raise HloTextError(clean[end:], "the end of the type")
        self[text] = found
        return found

    def read(self, text: str, start: int) -> tuple[Type, int]:
        """Return the type that begins at `start`, and the position after it.

        Raises:
            HloTextError: If no type begins there.
        """
        # A stack instead of recursion: the depth of a tuple is checked, not that of Python.
        open_: list[list[Type]] = []
        while True:
            match = _TENSOR.match(text, start)
            if match is not None:
                found: Type = self._read_tensor(*match.groups())
                start = match.end()
            elif text.startswith("(", start):
                open_.append([])
                if len(open_) > DEEPEST:
                    raise HloTextError("(", f"tuples nested at most {DEEPEST} deep")
                start += 1
                if not text.startswith(")", start):
                    continue
                found, start = self._intern(tuple(open_.pop())), start + 1
            else:
                raise HloTextError(text[start:], "a type")
            while open_:
                open_[-1].append(found)
                if text.startswith(",", start):
                    start += 2 if text.startswith(" ", start + 1) else 1
                    break
                if not text.startswith(")", start):
                    raise HloTextError(text[start:], "',' or ')'")
                found, start = self._intern(tuple(open_.pop())), start + 1
            else:
                return found, start

    def _read_tensor(self, buffer: str | None, dtype: str, sizes: str, layout: str | None) -> Type:
        shape: list[int | str] = []
        for size in sizes.split(",") if sizes else ():
            match_all(_SIZE, size, "a size")
            shape.append(int(size) if size.isdigit() else size)
        space = ""
        if layout:
            match_all(_LAYOUT, layout, "a layout")
            if match := _SPACE.search(layout):
                # `S(0)` is the default space, equal to none.
                space = "" if match[1] == "0" else match[1]
                if _SPACE.search(layout, match.end()):
                    raise HloTextError(layout, "one memory space")
                layout = (layout[: match.start()] + layout[match.end() :]).removesuffix(":")
        name = f"b({dtype})" if buffer else dtype
        return self._intern(Tensor(name, tuple(shape), layout or "", space))

    def _intern(self, found: Type) -> Type:
        return self._unique.setdefault(found, found)


def read_literal(text: str, type_: Type) -> Attribute:
    """Return the value of a constant.

    Args:
        text: As in `constant(...)`.
        type_: Type of the constant.

    Returns:
        Its canonical text; `sha256:... of N elements` for a long one; `Opaque` for an elided one.

    Raises:
        HloTextError: If the text is no literal of that type.
    """
    text = strip_comments(text).strip()
    # `as_text()` elides large constants; such a value equals any other that is elided.
    if text == "{...}":
        return Opaque(text)
    if not isinstance(type_, Tensor):
        values = list(split_parts(strip_brackets(text, "()")))
        if len(values) != len(type_):
            raise HloTextError(text, f"a tuple of {len(type_)}")
        return tuple([read_literal(value, part) for value, part in zip(values, type_, strict=True)])
    if not type_.shape:
        return text if _DIGEST.fullmatch(text) else _read_element(text, type_.dtype)
    return _read_array(text, type_)


def _read_array(text: str, type_: Tensor) -> str:
    if _DIGEST.fullmatch(text):
        return text
    if not text.startswith("{"):
        raise HloTextError(text, "a literal in braces")
    sizes = [size for size in type_.shape if isinstance(size, int)]
    dynamic = len(sizes) != len(type_.shape)
    # Before blanks are removed: `{1 2}` would become a single number.
    if match := _GAP.search(text):
        raise HloTextError(match[0], "','")
    text = text.translate(_BLANK)
    # The length of the text bounds the work where the shape is dynamic.
    if prod(sizes) > LONGEST or len(text) > 100 * LONGEST:
        return _digest_array(text, None if dynamic else prod(sizes), type_.dtype)
    elements = _ELEMENT.findall(text)
    # A constant has few distinct elements, such as zeros and ones.
    known = {element: _read_element(element, type_.dtype) for element in set(elements)}
    if not dynamic and (len(elements) != prod(sizes) or text != _format_array(elements, sizes)):
        raise HloTextError(text, f"{prod(sizes)} elements in braces, for each dimension")
    return _ELEMENT.sub(lambda match: known[match[0]], text)


def _digest_array(text: str, count: int | None, dtype: str) -> str:
    """Return the digest of a long array, checked by its commas only."""
    if _LONG.fullmatch(text) is None or text.count("{") != text.count("}"):
        raise HloTextError(text, "numbers in braces")
    found = text.count(",") + 1
    # The parts of a complex number are separated by a comma, too.
    if dtype.startswith("c"):
        found = (found + 1) // 2
    if count is not None and found != count:
        raise HloTextError(f"{found} elements", f"{count} elements")
    return f"sha256:{sha256(text.encode()).hexdigest()[:16]} of {found} elements"


def _format_array(elements: list[str], sizes: list[int]) -> str:
    """Return the text of an array with these sizes."""
    # Dimensions after a size of zero leave no trace in the text.
    if 0 in sizes:
        sizes = sizes[: sizes.index(0)]
        elements = ["{}"] * min(prod(sizes), LONGEST)
    for size in reversed(sizes):
        elements = [
            f"{{{','.join(elements[n : n + size])}}}" for n in range(0, len(elements), size)
        ]
    return elements[0] if len(elements) == 1 else ""


def _read_element(text: str, dtype: str) -> str:
    """Return the canonical text of an element."""
    if text.startswith("("):
        real, _, imaginary = strip_brackets(text, "()").partition(",")
        return f"({_read_number(real.strip())},{_read_number(imaginary.strip())})"
    if dtype == "pred":
        if text not in _BITS:
            raise HloTextError(text, "true or false")
        return _BITS[text]
    if dtype[0] in "su" and _INTEGER.fullmatch(text):
        return text
    if not text.startswith('"'):
        return _read_number(text)
    unquote(text)
    return text


def _read_number(text: str) -> str:
    match_all(_FLOAT, text, "a number")
    value = float(text) if "nan" not in text else None
    # `repr` gives 1e3 and 1000. the same text; a NaN keeps its payload.
    return repr(value) if value is not None and isfinite(value) else text
