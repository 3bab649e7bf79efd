"""Layouts and memory spaces: those of a device are the compiler's choice.

The memory spaces of the host have a meaning, and so has a bitcast between two layouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.ir.graph import Tensor
from conformance.ir.normal.rewriting import convert_tensors, convert_types, get_type

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Instruction, Module

FROM_ORDER: Final = "from_order"
"""Attribute of a reshape that also moves elements: the order in which it reads dimensions."""
HOST: Final = {"5": "pinned_host", "6": "unpinned_host"}
"""Memory spaces of the host by the number XLA prints."""
UNPINNED: Final = "6"
TILED: Final = "T("
"""Mark of a TPU in a layout; the scalar memory of a TPU has the number of `UNPINNED`."""
_SPACE: Final = "memory_space"


def resolve_bitcasts(module: Module) -> None:
    """Replace bitcasts by reshape and transpose, according to the layouts of operand and result.

    Args:
        module: Rewritten in place; its types still have layouts.
    """
    if module.kind != "hlo":
        return
    for instruction in module.walk():
        if instruction.op == "bitcast":
            _resolve_bitcast(instruction)


def drop_layouts(module: Module) -> None:
    """Drop the layouts of all types; memory spaces stay.

    Args:
        module: Rewritten in place.
    """
    convert_types(module, lambda tensor: tensor._replace(layout="") if tensor.layout else tensor)


def drop_scalar_memory(module: Module) -> None:
    """Drop the scalar memory of a TPU: on other platforms its number is a memory of the host.

    Args:
        module: Rewritten in place; its types still have layouts, its header is whole.
    """
    # The header repeats the types of parameters and results, and is read after this pass.
    convert_types(module, _drop_scalar_space)
    layout = module.attributes.get("entry_computation_layout")
    if isinstance(layout, tuple):
        kept = convert_tensors(layout, _drop_scalar_space)
        module.attributes = {**module.attributes, "entry_computation_layout": kept}


def _drop_scalar_space(tensor: Tensor) -> Tensor:
    scalar = tensor.space == UNPINNED and TILED in tensor.layout
    return tensor._replace(space="") if scalar else tensor


def copy_header_spaces(module: Module) -> None:
    """Copy the memory spaces in the header to the parameters and results of a module.

    Args:
        module: Rewritten in place; its types still have layouts, its header is whole.
    """
    layout: Any = module.attributes.get("entry_computation_layout")
    if not isinstance(layout, tuple) or len(layout) != len(("parameters", "result")):
        return
    parameters, result = layout
    for parameter, tensor in zip(module.entry.parameters, parameters, strict=False):
        if isinstance(tensor, Tensor) and tensor.space:
            parameter.attributes = {**parameter.attributes, _SPACE: tensor.space}
    spaces = {
        f"result {number}": ((_SPACE, tensor.space),)
        for number, tensor in enumerate([result] if isinstance(result, Tensor) else result)
        if isinstance(tensor, Tensor) and tensor.space
    }
    if spaces:
        module.entry.attributes = {**module.entry.attributes, **spaces}


def keep_host_spaces(module: Module) -> None:
    """Name the memory spaces of the host and drop the others.

    Args:
        module: Rewritten in place.
    """
    convert_types(module, lambda t: t._replace(space=get_host_space(t.space)) if t.space else t)
    for parameter in module.entry.parameters:
        if _SPACE in parameter.attributes:
            others = {k: v for k, v in parameter.attributes.items() if k != _SPACE}
            space = get_host_space(str(parameter.attributes[_SPACE]))
            parameter.attributes = {**others, _SPACE: space} if space else others
    attributes = {
        name: _name_result_space(value) if name.startswith("result ") else value
        for name, value in module.entry.attributes.items()
    }
    module.entry.attributes = {name: value for name, value in attributes.items() if value != ()}


def _name_result_space(result: Attribute) -> Attribute:
    """Name the memory space in the attributes of a result, or drop it if it is a device's."""
    if not isinstance(result, tuple):
        return result
    pairs: list[Any] = list(result)
    named = [(n, get_host_space(v) if n == _SPACE else v) for n, v in pairs]
    return tuple(pair for pair in named if pair != (_SPACE, ""))


def get_host_space(space: str) -> str:
    """Return the name of a memory space of the host, empty for that of a device.

    Args:
        space: As printed after `S`, or a name already.
    """
    return HOST.get(space, space if space in HOST.values() else "")


def _resolve_bitcast(instruction: Instruction) -> None:
    before, after = get_type(instruction.inputs[0]), instruction.type
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return
    # The bits are read as another type; elements do not move.
    if before.dtype != after.dtype:
        instruction.op = "bitcast-convert"
        return
    old, new = _order_dimensions(before), _order_dimensions(after)
    # Dimensions of size 1 may be anywhere in a layout without an effect.
    seen = [[d for d in old if before.shape[d] != 1], [d for d in new if after.shape[d] != 1]]
    instruction.op = "reshape"
    if all(order == sorted(order) for order in seen):
        return
    # Equal sizes from slow to fast: the buffer is read with its dimensions under other numbers.
    if [before.shape[d] for d in old] == [after.shape[d] for d in new]:
        sources = [source for _, source in sorted(zip(new, old, strict=True))]
        instruction.op = "transpose"
        instruction.attributes = {**instruction.attributes, "dimensions": tuple(sources)}
        return
    # It moves and reshapes: no transpose expresses that, so both orders become attributes.
    orders = {FROM_ORDER: tuple(seen[0]), "to_order": tuple(seen[1])}
    instruction.attributes = {**instruction.attributes, **orders}


def _order_dimensions(tensor: Tensor) -> tuple[int, ...]:
    """Return the dimensions from the slowest to the fastest varying."""
    text = tensor.layout.partition(":")[0].strip()
    rank = len(tensor.shape)
    # Without a layout XLA means the default, row-major.
    if not text:
        return tuple(range(rank))
    order = tuple(int(part) for part in text.split(",") if part.strip().isdigit())
    # HLO lists the fastest varying dimension first.
    return order[::-1] if sorted(order) == list(range(rank)) else tuple(range(rank))
