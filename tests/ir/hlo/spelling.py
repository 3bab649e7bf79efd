"""How types, shardings, origins and attributes of HLO are written for `parse` to read."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.graph import Attribute, Opaque, Sharding, Tensor
from conformance.ir.hlo.attributes import GROUPS, QUOTED_NAMES, RAW_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.ir.graph import Origin, Type
    from conformance.ir.hlo.shardings import Groups

_ODD = re.compile(r'[\\"\x00-\x1f\x7f]')


def quoted(text: str) -> str:
    """Return a text in quotes, so that `unquote` gives it back."""
    return f'"{_ODD.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}" if char in '\\"' else f"\\{ord(char):03o}"


def spelled_origin(origin: Origin) -> str:
    """Return the metadata of an origin, empty if it says nothing."""
    fields = [f"op_name={quoted(origin.name)}"] if origin.name else []
    if origin.file or origin.line:
        fields += [f"source_file={quoted(origin.file)}", f"source_line={origin.line}"]
    return f"{{{' '.join(fields)}}}" if fields else ""


def spelled_type(type_: Type) -> str:
    """Return the text of a type."""
    if not isinstance(type_, Tensor):
        return f"({', '.join([spelled_type(part) for part in type_])})"
    layout = type_.layout
    if type_.space:
        layout += f"{'' if ':' in layout else ':'}S({type_.space})"
    shape = f"[{','.join(map(str, type_.shape))}]{f'{{{layout}}}' if layout else ''}"
    if type_.dtype.startswith("b("):
        return f"b({type_.dtype[2:-1]}{shape})"
    return type_.dtype + shape


def spelled_sharding(one: Sharding) -> str:
    """Return the text of a sharding."""
    if one.kind == "tuple":
        return f"{{{', '.join([spelled_sharding(part) for part in one.parts])}}}"
    if one.kind == "maximal":
        return f"{{maximal device={one.devices[0]}}}"
    if one.kind != "tiled":
        return f"{{{one.kind}}}"
    tiles, devices = ",".join(map(str, one.tiles)), ",".join(map(str, one.devices))
    if one.devices == tuple(range(len(one.devices))):
        devices = f"<=[{len(one.devices)}]"
    last = f" last_tile_dims={{{', '.join(one.subgroups)}}}" if one.subgroups else ""
    return f"{{devices=[{tiles}]{devices}{last}}}"


def spelled_literal(value: Attribute) -> str:
    """Return the text of a constant's value."""
    if isinstance(value, Opaque):
        return value.text
    return f"({', '.join(map(spelled_literal, value))})" if isinstance(value, tuple) else str(value)


def spelled_plain(value: Attribute) -> str:
    """Return the text of a plain value."""
    if isinstance(value, tuple):
        return f"{{{','.join(map(spelled_plain, value))}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def spelled_window(value: Any) -> str:
    """Return the text of a window."""
    return f"{{{' '.join([f'{name}={spelled_per_dimension(v)}' for name, v in value])}}}"


def spelled_per_dimension(value: Any) -> str:
    """Return `1_1x0_0`."""
    return "x".join(["_".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in value])


def spelled_slices(value: Any) -> str:
    """Return the text of slices."""
    each = [f"[{':'.join(map(str, one))}]" for one in value]
    return f"{{{', '.join(each)}}}"


def spelled_aliases(value: Any) -> str:
    """Return the text of aliases."""
    each = [
        f"{_path(out)}: ({number}, {_path(path)}{f', {kind}' if kind else ''})"
        for out, number, path, kind in value
    ]
    return f"{{ {', '.join(each)} }}"


def spelled_donors(value: Any) -> str:
    """Return the text of donors."""
    return f"{{ {', '.join([f'({number}, {_path(path)})' for number, path in value])} }}"


def _path(path: Any) -> str:
    return f"{{{','.join(map(str, path))}}}"


def spelled_names(value: Any) -> str:
    """Return the text of a list of names."""
    return f"{{{', '.join([f'%{name}' for name in value])}}}"


def spelled_pairs(value: Any) -> str:
    """Return the text of (key, value) pairs."""
    return f"{{{','.join([f'{key}={quoted(text)}' for key, text in value])}}}"


def spelled_config(value: Any) -> str:
    """Return the text of a backend's configuration."""
    return quoted(value) if isinstance(value, str) else json.dumps(_thawed(value))


def _thawed(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    keys = [one[0] for one in value if isinstance(one, tuple) and len(one) == 2]
    if len(keys) < len(value) or not all(isinstance(key, str) for key in keys):
        return [_thawed(one) for one in value]
    if any(a >= b for a, b in pairwise(keys)):
        return [_thawed(one) for one in value]
    return {key: _thawed(one) for key, one in value}


def spelled_groups(value: Groups) -> str:
    """Return the text of device groups."""
    return spelled_plain(value)


def spelled_types(value: Any) -> str:
    """Return the text of types in braces, or of one type."""
    return f"{{{spelled_type(value)[1:-1]}}}"


def spelled_program(value: Any) -> str:
    """Return the text of a program's type."""
    return f"{{{spelled_type(value[0])}->{spelled_type(value[1])}}}"


def _spelled_typed_literal(value: Any) -> str:
    if value and isinstance(value[0], Tensor):
        return f"{spelled_type(value[0])} {spelled_literal(value[1])}"
    return f"({', '.join(map(_spelled_typed_literal, value))})"


def _spelled_groups_of_shards(value: Any) -> str:
    return f"{{{', '.join(map(quoted, value))}}}"


SPELLERS: Final[Mapping[str, Callable[[Any], str]]] = {
    **dict.fromkeys(QUOTED_NAMES, quoted),
    **dict.fromkeys(RAW_NAMES, str),
    "backend_config": spelled_config,
    "buffer_donor": spelled_donors,
    "control-predecessors": spelled_names,
    "entry_computation_layout": spelled_program,
    "frontend_attributes": spelled_pairs,
    "input_output_alias": spelled_aliases,
    "literal": _spelled_typed_literal,
    "operand_layout_constraints": spelled_types,
    "outfeed_shape": spelled_type,
    "output_to_operand_aliasing": spelled_aliases,
    "padding": spelled_per_dimension,
    "replica_groups": spelled_groups,
    GROUPS: _spelled_groups_of_shards,
    "slice": spelled_slices,
    "window": spelled_window,
}
"""How the attributes are written that are not plain, by name."""
