"""Templates of statements: the operands and parameters of an equation, filled into a text.

`lax.cumsum({*}, {=axis}{=reverse?})` gives `lax.cumsum(x, axis=0, reverse=True)`.

Operands: `{0}` is the first, `{*}` all of them, `{1*}` those from the second on, `{()}` a tuple of
several, `{staged}` the same as values that are traced, `{key}` the first where it is one random
key. A parameter is written `{name}`, as a keyword `{=name}` or `{keyword=name}`, formatted
`{name:format}`. One with a `?` brings its comma, and is left out where it is false, or where it is
None or the default that follows the `?`. `{primitive}` is the name of the primitive, `{first}` an
index where a function returns a sequence of one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.literals import (
    render_axes,
    render_dtype,
    render_items,
    render_number,
    render_plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.triage.jaxpr_code.writer import Equation

_FIELD: Final = re.compile(r"\{(?:(\w*)(=))?([\w*()]+)(?:(\?)([^:}]*))?(?::(\w+))?\}")
FFTS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
GENERATORS: Final = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}
"""Random number generators by the tag of their keys."""
PRECISIONS: Final = frozenset({"DEFAULT", "HIGH", "HIGHEST"})


def fill(eqn: Equation, template: str) -> str:
    """Return a template with the operands and parameters of an equation filled in.

    Args:
        eqn: The equation.
        template: The template.

    Raises:
        UnsupportedJaxprError: If a parameter has an unsupported value.
    """

    def fill_field(match: re.Match[str]) -> str:
        keyword, is_keyword, name, optional, default, style = match.groups()
        if not is_keyword and name in _OPERANDS:
            return _OPERANDS[name](eqn)
        if name.isdecimal():
            return eqn.texts[int(name)]
        # Also of a field that is left out: a parameter that no field names is refused.
        value = eqn.take(name)
        if optional and (value in (None, json.loads(default)) if default else not value):
            return ""
        text = _FORMATS[style or ""](eqn, name, value)
        prefix = f"{keyword or name}=" if is_keyword else ""
        return f"{', ' if optional else ''}{prefix}{text}"

    return _FIELD.sub(fill_field, template)


def _render_key(eqn: Equation) -> str:
    if eqn.inputs[0].aval.shape:
        raise eqn.make_error("", "public functions take one key, not an array of them")
    return eqn.texts[0]


_OPERANDS: Final[dict[str, Callable[[Equation], str]]] = {
    "*": lambda eqn: ", ".join(eqn.texts),
    "1*": lambda eqn: ", ".join(eqn.texts[1:]),
    "()": lambda eqn: render_items(eqn.texts),
    "staged": lambda eqn: render_items([value.staged_text for value in eqn.inputs]),
    "key": _render_key,
    "primitive": lambda eqn: eqn.primitive,
    "first": lambda eqn: "[0]" if len(eqn.outputs) == 1 else "",
}


def _format_dtype(eqn: Equation, name: str, value: Any) -> str:
    match value:
        case {"dtype": str(kind)} if (text := render_dtype(kind)) is not None:
            return text
        case _:
            raise eqn.make_error(name, f"{render_plain(value)} has no public name")


def _format_fields(eqn: Equation, name: str, value: Any) -> str:
    """Return the fields of a named tuple as keywords."""
    match value:
        case [str(), *fields]:
            # Older releases refuse the keywords of batching dimensions, also if these are empty.
            pairs = [(key, of) for key, of in fields if of or not key.endswith("batching_dims")]
            return ", ".join(f"{key}={render_plain(of)}" for key, of in pairs)
        case _:
            raise eqn.make_error(name, f"expected a record, got {render_plain(value)}")


def _format_precision(eqn: Equation, name: str, value: Any) -> str:
    names = value if isinstance(value, list) else [value]
    if not PRECISIONS.issuperset(names):
        raise eqn.make_error(name)
    return render_items([f"lax.Precision.{level}" for level in names])


def _format_number(eqn: Equation, name: str, value: Any) -> str:
    """Return a number of the dtype of the first operand."""
    text = render_number(value, eqn.inputs[0].aval.dtype)
    if text is None:
        raise eqn.make_error(name)
    return text


def _format_generator(eqn: Equation, name: str, value: Any) -> str:
    # Releases record the implementation by its name, its tag, or the dtype of its keys.
    tag = str(value).removeprefix("key<").removesuffix(">")
    if tag not in {*GENERATORS, *GENERATORS.values()}:
        raise eqn.make_error(name)
    return render_plain(GENERATORS.get(tag, tag))


_FORMATS: Final[dict[str, Callable[[Equation, str, Any], str]]] = {
    "": lambda _eqn, _name, value: render_plain(value),
    "axes": lambda _eqn, _name, value: render_axes(value),
    "only": lambda _eqn, _name, value: render_plain(*value),
    "member": lambda _eqn, _name, value: str(value).rpartition(".")[2],
    "mode": lambda _eqn, _name, value: f"lax.GatherScatterMode.{str(value).rpartition('.')[2]}",
    # A number or a member of an enumeration, by release.
    "fft": lambda _eqn, _name, value: render_plain(
        FFTS[value] if isinstance(value, int) else str(value).rpartition(".")[2]
    ),
    "dtype": _format_dtype,
    "fields": _format_fields,
    "generator": _format_generator,
    "number": _format_number,
    "precision": _format_precision,
}
