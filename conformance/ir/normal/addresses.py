"""Addresses of Python functions, by which old releases of jax call back: another in each process.

Up to 0.5.3 a callback is a custom call whose first operand and configuration are where its function
lies in memory; later ones are told by an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.ir.graph import Module

CALLBACKS: Final = frozenset({"xla_python_cpu_callback", "xla_python_gpu_callback"})
"""Targets of custom calls that are told by an address which function to call."""
ADDRESS: Final = "address"


def drop_addresses(module: Module) -> None:
    """Make the addresses of Python functions one and the same.

    Args:
        module: With attributes by their names in HLO; rewritten in place.
    """
    for instruction in module.walk():
        attributes = instruction.attributes
        if attributes.get("custom_call_target") not in CALLBACKS:
            continue
        address = attributes.get("backend_config")
        instruction.attributes = {**attributes, "backend_config": ADDRESS}
        for operand in instruction.operands:
            if operand.attributes.get("value") == address:
                operand.attributes = {**operand.attributes, "value": ADDRESS}
