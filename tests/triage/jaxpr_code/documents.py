"""Jaxprs written on the spot, and the statements that are written of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.triage.jaxpr_code.code import render_jaxpr
from tests.ir.jaxpr.documents import document, jaxpr

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code.code import JaxprCode

F32, S32, WEAK, VARYING, PRED, F32S, S32S, PREDS, WIDE, F16, KEY, U32 = range(12)
AVALS = [
    ["float32", [4]],
    ["int32", []],
    ["float32", [], {"weak_type": True}],
    ["float32", [4], {"vma": ["x"]}],
    ["bool", []],
    ["float32", []],
    ["int32", [4]],
    ["bool", [4]],
    ["float32", [4, 2]],
    ["float16", [4]],
    ["key<fry>", []],
    ["uint32", []],
]
NEWEST = "0.12.0.1"


def code(
    *jaxprs: dict[str, Any],
    release: str = NEWEST,
    sources: list[Any] | None = None,
    **more: Any,
) -> JaxprCode:
    """Return the code of some jaxprs, the first one the entry."""
    text = document(*jaxprs, avals=AVALS, sources=sources or [["", 0, 7]])
    return render_jaxpr(text.encode(), release=release, **more)


def statements(
    *eqns: list[Any],
    inputs: tuple[int, ...] = (F32, F32),
    out: tuple[Any, ...] = (2,),
    inner: tuple[dict[str, Any], ...] = (),
    release: str = NEWEST,
) -> list[str]:
    """Return the statements of a function of `x`, `y` ... that has these equations."""
    entry = jaxpr(*eqns, inputs=inputs, out=out)
    text = code(entry, *inner, release=release).statements[-1]
    return [line.removeprefix("    ") for line in text.splitlines()[1:]]
