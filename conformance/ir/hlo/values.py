"""Values of attributes: how each kind is read and how it is spelled."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from conformance.ir.graph import Attribute, Tensor
from conformance.ir.hlo.lexing import (
    INTEGER,
    NAME,
    Unexpected,
    inside,
    integer,
    integers,
    parts,
    unquoted,
    without_comments,
)

if TYPE_CHECKING:
    from conformance.ir.hlo import shapes

_NUMBER = re.compile(r"[+-]?(?:\d++\.\d*+(?:e[+-]?\d++)?|\d++e[+-]?\d++)", re.ASCII)
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_WORD = re.compile(r"[^\s,(){}\[\]\"%=]++")
_SLICE = re.compile(rf"\[({INTEGER}):({INTEGER})(?::({INTEGER}))?\]", re.ASCII)
_WINDOW = re.compile(r"(\w+)=(-?\d[\dx_\-]*)", re.ASCII)
_ALIAS = re.compile(r"(\{[\d, ]*\}): ?\((\d{1,18}), ?(\{[\d, ]*\})(?:, ?([\w\-]+))?\)", re.ASCII)
_DONOR = re.compile(r"\((\d{1,18}), ?(\{[\d, ]*\})\)", re.ASCII)
_KEY = re.compile(r"([^\s=,{}\"]++)=", re.ASCII)


def plain(text: str) -> Attribute:
    """Return a number, truth value or word; `{...}` is a tuple of such values."""
    if text.startswith("{"):
        return tuple([plain(part) for part in parts(inside(without_comments(text)))])
    if text in {"true", "false"}:
        return text == "true"
    if _CANONICAL_INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _WORD.fullmatch(text):
        return text
    raise Unexpected(text, "a number, a word or '{...}'")


def window(text: str) -> Attribute:
    """Return a window's fields: `{size=3x2 pad=1_1x0_0}` is `(("size", (3, 2)), ...)`."""
    fields = []
    for field in inside(text).split():
        match = _WINDOW.fullmatch(field)
        if match is None:
            raise Unexpected(field, "name=1x2x3")
        fields.append((match[1], per_dimension(match[2])))
    return tuple(fields)


def per_dimension(text: str) -> tuple[Attribute, ...]:
    """Return one number, or several joined by `_`, for each dimension of `1_1x0_0`."""
    each = [tuple([integer(n) for n in dimension.split("_")]) for dimension in text.split("x")]
    return tuple([one[0] if len(one) == 1 else one for one in each])


def slices(text: str) -> Attribute:
    """Return start, limit and stride of each dimension of `{[0:4:2], [1:3]}`."""
    found = []
    for part in parts(inside(text)):
        match = _SLICE.fullmatch(part)
        if match is None:
            raise Unexpected(part, "'[start:limit]' or '[start:limit:stride]'")
        found.append((int(match[1]), int(match[2]), int(match[3] or 1)))
    return tuple(found)


def aliases(text: str) -> Attribute:
    """Return (output path, number, path within it, kind) of `{ {0}: (1, {}, may-alias) }`."""
    found = []
    for part in parts(inside(text)):
        match = _ALIAS.fullmatch(part)
        if match is None:
            raise Unexpected(part, "'{output}: (number, {path}, kind)'")
        out, number, path, kind = match.groups()
        found.append((integers(out[1:-1]), int(number), integers(path[1:-1]), kind or ""))
    return tuple(found)


def donors(text: str) -> Attribute:
    """Return (parameter, path within it) of `{ (0, {}), (1, {2}) }`."""
    found = []
    for part in parts(inside(text)):
        match = _DONOR.fullmatch(part)
        if match is None:
            raise Unexpected(part, "'(number, {path})'")
        found.append((int(match[1]), integers(match[2][1:-1])))
    return tuple(found)


def names(text: str) -> tuple[str, ...]:
    """Return names: one, or several in braces."""
    listed = parts(inside(text)) if text.startswith("{") else [text]
    found = tuple([name.removeprefix("%") for name in listed])
    for name in found:
        if re.fullmatch(NAME, name) is None:
            raise Unexpected(name, "a name")
    return found


def pairs(text: str) -> Attribute:
    """Return the (key, value) pairs of `{a="b",c={d}}`, sorted by key."""
    found: dict[str, str] = {}
    for part in parts(inside(text)):
        match = _KEY.match(part)
        if match is None:
            raise Unexpected(part, "key=value")
        value = part[match.end() :]
        found[match[1]] = unquoted(value) if value.startswith('"') else value
    return tuple(sorted(found.items()))


def config(text: str) -> Attribute:
    """Return a backend's configuration: pairs sorted by key if it is JSON, else its text."""
    content = unquoted(text) if text.startswith('"') else text
    if not content.startswith("{"):
        return content
    try:
        return _frozen(json.loads(content, parse_constant=str))
    except ValueError:
        return content
    except RecursionError:
        raise Unexpected(content, "JSON that is not nested as deep") from None


def _frozen(value: Any) -> Attribute:
    if isinstance(value, dict):
        return tuple([(key, _frozen(value[key])) for key in sorted(value)])
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def program(text: str, types: shapes.Types) -> Attribute:
    """Return types of parameters and result of `{(f32[2], s32[])->f32[2]}`."""
    text = inside(without_comments(text))
    parameters, end = types.read(text, 0)
    if isinstance(parameters, Tensor) or not text.startswith("->", end):
        raise Unexpected(text[end:], "'->'")
    return parameters, types[text[end + 2 :]]
