"""Documents of jaxprs for tests, and the samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.ir.jaxpr import parse

if TYPE_CHECKING:
    from conformance.ir.graph import Instruction, Module

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))
F32, S32, WEAK, VARYING = 0, 1, 2, 3
AVALS = [
    ["float32", [4]],
    ["int32", []],
    ["float32", [], {"weak_type": True}],
    ["float32", [4], {"vma": ["x"]}],
]


def jaxpr(
    *eqns: list[Any],
    inputs: tuple[int, ...] = (F32,),
    consts: tuple[Any, ...] = (),
    out: tuple[Any, ...] = (),
) -> dict[str, Any]:
    """Return one jaxpr of a document."""
    return {"consts": [*consts], "in": [*inputs], "eqns": [*eqns], "out": [*out]}


def eqn(
    primitive: str, inputs: list[Any], outputs: tuple[int, ...] = (F32,), **params: Any
) -> list[Any]:
    """Return one equation of a document."""
    return [primitive, inputs, [*outputs], params, 0]


def document(*jaxprs: dict[str, Any], **more: Any) -> str:
    """Return a document; its equations all come from line 7 of `case.py`."""
    base = {
        "form": 1,
        "name": "f",
        "files": ["case.py"],
        "sources": [["while/body", 0, 7]],
        "avals": AVALS,
        "jaxprs": [*jaxprs],
    }
    return json.dumps({**base, **more})


def module_of(*eqns: list[Any], **more: Any) -> Module:
    """Return the module of one jaxpr."""
    return parse(document(jaxpr(*eqns, **more)))


def instruction_of(
    primitive: str, /, outputs: tuple[int, ...] = (F32,), **params: Any
) -> Instruction:
    """Return one instruction, which takes the parameter once for each result."""
    module = module_of(eqn(primitive, [0] * len(outputs), outputs, **params))
    return module.entry.instructions[-1]
