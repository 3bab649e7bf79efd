"""Constants: one text for each value, a digest in place of a long one.

A digest is taken over the text without blanks: the numbers of a long array are compared as they
are printed, which releases do alike.
"""

from __future__ import annotations

import re
from hashlib import sha256
from math import isfinite, prod

from conformance.ir.graph import Attribute, Opaque, Tensor, Type
from conformance.ir.hlo.lexing import (
    Unexpected,
    match_all,
    split_parts,
    strip_brackets,
    strip_comments,
    unquote,
)

LONGEST = 1_000
"""With more elements than this, a constant is kept as a digest."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{16} of \d+ elements")
_FLOAT = re.compile(r"-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan(?:\(0x[0-9a-f]+\))?)", re.ASCII)
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_BITS = {"true": "true", "false": "false", "1": "true", "0": "false"}
_PART = r"[^\s(){},]+(?:\(0x[0-9a-f]+\))?"
_ELEMENT = re.compile(rf"\({_PART},{_PART}\)|{_PART}")
_LONG = re.compile(r"\{[{},()\w.+\-]*+", re.ASCII)
_GAP = re.compile(r"[^\s,{}(]\s+[^\s,{})]+")
_BLANK = str.maketrans("", "", " \t\r\n")


def read_literal(text: str, type_: Type) -> Attribute:
    """Return the value of a constant.

    Args:
        text: As in `constant(...)`.
        type_: Type of the constant.

    Returns:
        Its canonical text; `sha256:... of N elements` for a long one; `Opaque` for an elided one.

    Raises:
        Unexpected: If the text is no literal of that type.
    """
    text = strip_comments(text).strip()
    if text == "{...}":
        return Opaque(text)
    if not isinstance(type_, Tensor):
        values = list(split_parts(strip_brackets(text, "()")))
        if len(values) != len(type_):
            raise Unexpected(text, f"a tuple of {len(type_)}")
        return tuple([read_literal(value, part) for value, part in zip(values, type_, strict=True)])
    if not type_.shape:
        return text if _DIGEST.fullmatch(text) else _read_element(text, type_.dtype)
    return _read_array(text, type_)


def _read_array(text: str, type_: Tensor) -> str:
    if _DIGEST.fullmatch(text):
        return text
    if not text.startswith("{"):
        raise Unexpected(text, "a literal in braces")
    sizes = [size for size in type_.shape if isinstance(size, int)]
    dynamic = len(sizes) != len(type_.shape)
    if match := _GAP.search(text):
        raise Unexpected(match[0], "','")
    text = text.translate(_BLANK)
    if prod(sizes) > LONGEST or len(text) > 100 * LONGEST:
        return _digest_array(text, None if dynamic else prod(sizes), type_.dtype)
    elements = _ELEMENT.findall(text)
    known = {one: _read_element(one, type_.dtype) for one in set(elements)}
    if not dynamic and (len(elements) != prod(sizes) or text != _format_array(elements, sizes)):
        raise Unexpected(text, f"{prod(sizes)} elements in braces, for each dimension")
    return _ELEMENT.sub(lambda match: known[match[0]], text)


def _digest_array(text: str, count: int | None, dtype: str) -> str:
    """Return what stands for a long array, by a look at its commas only."""
    if _LONG.fullmatch(text) is None or text.count("{") != text.count("}"):
        raise Unexpected(text, "numbers in braces")
    found = text.count(",") + 1
    if dtype.startswith("c"):
        found = (found + 1) // 2
    if count is not None and found != count:
        raise Unexpected(f"{found} elements", f"{count} elements")
    return f"sha256:{sha256(text.encode()).hexdigest()[:16]} of {found} elements"


def _format_array(elements: list[str], sizes: list[int]) -> str:
    """Return an array's text as it should be, for as many sizes."""
    if 0 in sizes:
        sizes = sizes[: sizes.index(0)]
        elements = ["{}"] * min(prod(sizes), LONGEST)
    for size in reversed(sizes):
        elements = [
            f"{{{','.join(elements[n : n + size])}}}" for n in range(0, len(elements), size)
        ]
    return elements[0] if len(elements) == 1 else ""


def _read_element(text: str, dtype: str) -> str:
    """Return one number in its one spelling."""
    if text.startswith("("):
        real, _, imaginary = strip_brackets(text, "()").partition(",")
        return f"({_read_number(real.strip())},{_read_number(imaginary.strip())})"
    if dtype == "pred":
        if text not in _BITS:
            raise Unexpected(text, "true or false")
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
    return repr(value) if value is not None and isfinite(value) else text
