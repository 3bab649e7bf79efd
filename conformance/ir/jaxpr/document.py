"""The JSON document of a jaxpr that `conformance.worker.jaxprs` writes, as checked types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from conformance.ir.graph import IrSyntaxError

Number = Annotated[int, Meta(ge=0)]


class TypedValue(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The value of a literal or a constant, with the number of its aval."""

    # A struct, because msgspec 0.22 crashes on the union `Number | tuple`.

    aval: Number
    value: Any


Atom = Number | TypedValue
"""A variable, or a literal."""


class AvalProperties(Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of an aval beyond dtype and shape."""

    # The worker writes a property only if it is not the default, so that documents stay small and
    # releases without the property give the same ones.

    weak_type: bool = False
    vma: list[str] = []
    unreduced: list[str] = []
    reduced: list[str] = []
    sharding: list[Any] = []
    space: str = ""


class Aval(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The type of a variable."""

    dtype: str
    shape: list[int | str]
    more: AvalProperties = AvalProperties()


# Arrays instead of objects: a document has thousands of equations, and each would repeat its keys.
class Eqn(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An equation; its results are the next variables."""

    primitive: str
    inputs: list[Atom]
    outputs: list[Number]
    params: dict[str, Any]
    source: Number


class Jaxpr(Struct, frozen=True, forbid_unknown_fields=True, rename={"inputs": "in"}):
    """A jaxpr; its variables are numbered: constants, inputs, results of equations."""

    consts: list[TypedValue]
    inputs: list[Number]
    eqns: list[Eqn]
    out: list[Atom]


class JaxprDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole program; the first jaxpr is the entry."""

    form: Literal[1]
    name: str
    files: list[str]
    sources: list[tuple[str, int, int]]
    avals: list[Aval]
    jaxprs: Annotated[list[Jaxpr], Meta(min_length=1)]


# Built once: msgspec compiles the types of a decoder.
_DECODER = msgspec.json.Decoder(JaxprDocument)


def decode(text: str) -> JaxprDocument:
    """Return the document of a text.

    Args:
        text: A JSON object.

    Returns:
        The document; its numbers are not checked.

    Raises:
        IrSyntaxError: If the text is malformed.
    """
    try:
        return _DECODER.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IrSyntaxError(f"jaxpr document: {error}") from None
