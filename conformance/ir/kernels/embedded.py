"""Kernels within custom calls: their operations in place of their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.kernels.configuration import configuration
from conformance.ir.kernels.cursor import NotReadError
from conformance.ir.kernels.operations import read_kernel
from conformance.ir.kernels.values import digest

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Instruction, Module

    Attributes = dict[str, Attribute]

ROLE: Final = "kernel"
"""Role of a kernel in the custom call that runs it."""
_CALLS: Final = frozenset({"custom-call", "stablehlo.custom_call", "mhlo.custom_call"})
_CONFIG: Final = "backend_config"
_FRONTEND: Final = "frontend_attributes"
_NOTHING: Final = ("kernel_metadata", "{}")
"""A note of the frontend that some releases make though they have none."""


def read_kernels(module: Module) -> None:
    """Put the kernels that custom calls embed as bytecode into their bodies.

    What depends on where a kernel was written, on the host or on the version of what stored it is
    gone then. A kernel that is not understood becomes an attribute, the digest of its bytes.

    Args:
        module: Rewritten in place; attributes have their usual names already.
    """
    known: dict[bytes, Computation | None] = {}
    for computation in module.reachable():
        for instruction in computation.instructions:
            if instruction.op in _CALLS and _CONFIG in instruction.attributes:
                _read(instruction, module, known)


def _read(call: Instruction, module: Module, known: dict[bytes, Computation | None]) -> None:
    found = configuration(call.attributes[_CONFIG])
    if found is None:
        return
    attributes = {**call.attributes, _CONFIG: found.rest}
    for number, (key, data) in enumerate(found.kernels):
        role = ROLE if number == 0 else f"{ROLE} {number}"
        if data not in known:
            known[data] = _kernel(data, module)
        body = known[data]
        if body is None:
            module.not_understood[
                f"{ROLE} of {call.attributes.get('custom_call_target', key)}"
            ] += 1
            attributes[role] = digest(data)
        else:
            call.bodies += ((role, body),)
    notes = attributes.get(_FRONTEND)
    if isinstance(notes, tuple):
        attributes[_FRONTEND] = kept = tuple([note for note in notes if note != _NOTHING])
        if not kept:
            del attributes[_FRONTEND]
    call.attributes = attributes


def _kernel(data: bytes, module: Module) -> Computation | None:
    try:
        kernel = read_kernel(data)
    except NotReadError:
        return None
    module.not_understood.update(kernel.not_understood)
    return kernel.body
