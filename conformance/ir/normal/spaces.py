"""Memory spaces: the host's mean something, those of a device are its compiler's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.ir.graph import Tensor

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Module, Type

HOST: Final = {"5": "pinned_host", "6": "unpinned_host"}
"""Memory spaces of the host by the number XLA prints."""
UNPINNED: Final = "6"
TILED: Final = "T("
"""In the layout of what lies on a TPU, whose scalar memory has the number of `UNPINNED`."""


def drop_scalar_memory(module: Module) -> None:
    """Forget the scalar memory of a TPU: elsewhere its number is a memory of the host.

    Args:
        module: Rewritten in place; its types still have layouts, its header is whole.
    """
    known: dict[int, tuple[Type, Type]] = {}
    for instruction in module.walk():
        type_ = instruction.type
        found = known.get(id(type_))
        if found is None:
            found = known[id(type_)] = (type_, _on_device(type_))
        instruction.type = found[1]
    layout: Any = module.attributes.get("entry_computation_layout")
    if isinstance(layout, tuple):
        module.attributes = {**module.attributes, "entry_computation_layout": _on_device(layout)}


def _on_device(type_: Any) -> Any:
    if isinstance(type_, Tensor):
        scalar = type_.space == UNPINNED and TILED in type_.layout
        return type_._replace(space="") if scalar else type_
    return tuple(map(_on_device, type_)) if isinstance(type_, tuple) else type_


def note_spaces(module: Module) -> None:
    """Say of a module's parameters and results in which memory space the header puts them.

    Args:
        module: Rewritten in place; its types still have layouts, its header is whole.
    """
    layout = module.attributes.get("entry_computation_layout")
    if not isinstance(layout, tuple) or len(layout) != len(("parameters", "result")):
        return
    parameters: Any = layout[0]
    result: Any = layout[1]
    for parameter, tensor in zip(module.entry.parameters, parameters, strict=False):
        if isinstance(tensor, Tensor) and tensor.space:
            parameter.attributes = {**parameter.attributes, "memory_space": tensor.space}
    said = {
        f"result {number}": (("memory_space", tensor.space),)
        for number, tensor in enumerate([result] if isinstance(result, Tensor) else result)
        if isinstance(tensor, Tensor) and tensor.space
    }
    if said:
        module.entry.attributes = {**module.entry.attributes, **said}


def keep_host_spaces(module: Module) -> None:
    """Name the host's memory spaces and forget the others.

    Args:
        module: Rewritten in place.
    """
    known: dict[int, tuple[Type, Type]] = {}
    for instruction in module.walk():
        type_ = instruction.type
        found = known.get(id(type_))
        if found is None:
            found = known[id(type_)] = (type_, _named(type_))
        instruction.type = found[1]
    for parameter in module.entry.parameters:
        if "memory_space" in parameter.attributes:
            others = {k: v for k, v in parameter.attributes.items() if k != "memory_space"}
            space = space_name(str(parameter.attributes["memory_space"]))
            parameter.attributes = {**others, "memory_space": space} if space else others
    attributes = {
        name: _named_result(value) if name.startswith("result ") else value
        for name, value in module.entry.attributes.items()
    }
    module.entry.attributes = {name: value for name, value in attributes.items() if value != ()}


def _named_result(said: Attribute) -> Attribute:
    """Name the memory space among what is said of a result, if it is one of the host's."""
    if not isinstance(said, tuple):
        return said
    pairs: list[Any] = list(said)
    named = [(n, space_name(v) if n == "memory_space" else v) for n, v in pairs]
    return tuple(pair for pair in named if pair != ("memory_space", ""))


def _named(type_: Type) -> Type:
    if isinstance(type_, Tensor):
        return type_._replace(space=space_name(type_.space)) if type_.space else type_
    return tuple(_named(part) for part in type_)


def space_name(space: str) -> str:
    """Return the name of a memory space of the host, empty for one of a device.

    Args:
        space: As printed after `S`, or a name already.
    """
    return HOST.get(space, space if space in HOST.values() else "")
