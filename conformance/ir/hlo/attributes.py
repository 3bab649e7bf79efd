"""What follows an instruction's operands: `, dimensions={0}, to_apply=%add, metadata={...}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from conformance.ir.graph import NOWHERE, Attribute, Opaque, Origin
from conformance.ir.hlo import devices, shardings, values
from conformance.ir.hlo.lexing import (
    QUOTED,
    Unexpected,
    closing,
    inside,
    parts,
    unquoted,
    value_end,
)
from conformance.ir.hlo.literals import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.hlo.origins import Origins
    from conformance.ir.hlo.shapes import Types

_WORDS = re.compile(r"[\w\-]+")
_PLAIN = _WORDS.findall("""
    algorithm alias_passthrough_params allow_spmd_sharding_propagation_to_output
    allow_spmd_sharding_propagation_to_parameters api_version async_group_id batch_group_count
    broadcast_sizes channel_id collapsed_slice_dims constrain_layout cross_program_prefetch_index
    custom_call_has_side_effect custom_call_schedule delta dim_labels dimension dimensions direction
    distribution dynamic_slice_sizes epsilon exponent_bits feature_group_count feature_index
    fft_length fft_type has_dynamic_root index index_vector_dim indices_are_sorted
    input_batching_dims inserted_window_dims iota_dimension is_associative is_composite
    is_host_transfer is_reverse is_scheduled is_stable k kind largest left_side lhs_batch_dims
    lhs_contracting_dims lhs_ragged_dims lower mantissa_bits mode num_carries num_partitions
    offset_dims operand_batching_dims operand_precision padding_type parameter_replication
    permutation replica_count rhs_batch_dims rhs_contracting_dims rhs_group_dims
    scatter_dims_to_operand_dims scatter_indices_batching_dims schedule slice_sizes
    source_target_pairs sparsity split_dimension start_index_map start_indices_batching_dims
    transpose_a type unique_indices unit_diagonal update_window_dims use_global_device_ids
""")
QUOTED_NAMES = _WORDS.findall("""
    async_execution_thread custom_call_target execution_thread infeed_config outfeed_config
""")
RAW_NAMES = _WORDS.findall("""
    debug_attributes domain origin origin_recovery_table original_value result_accuracy statistics
""")

COMPUTATIONS = {
    "body": "body",
    "branch_computations": "branch {}",
    "called_computations": "called {}",
    "calls": "calls",
    "comparator": "to_apply",
    "condition": "condition",
    "false_computation": "false",
    "scatter": "scatter",
    "select": "select",
    "to_apply": "to_apply",
    "true_computation": "true",
}
"""Attributes that name computations, and the role these get; `{}` is their number in a list."""

GROUPS = "shard_groups"
"""Attribute of an instruction whose sharding says `shard_as` or `shard_like`."""

_METADATA = ", metadata={"
_METADATA_END = re.compile(rf"(?>(?:[^{{}}\"]++|{QUOTED})*)\}}", re.DOTALL)
_NAME = re.compile(r"\s*+,\s*+([A-Za-z][\w.\-]*+)\s?=\s?", re.ASCII)


class Attributes(NamedTuple):
    """What the text after the operands says, but for `metadata`.

    Attributes:
        items: Attributes by name.
        bodies: Role and name of each computation called.
        unknown: Names of attributes that are not known.
    """

    items: dict[str, Attribute]
    bodies: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


class Reader:
    """Reads attributes; each text is read once.

    What stands before `metadata` is the same for many instructions, and so are origins: the two
    are remembered apart.
    """

    def __init__(self, types: Types, origins: Origins) -> None:
        self._known: dict[str, Attributes] = {"": Attributes({}, (), ())}
        self._origins = origins
        self._readers = readers(types)

    def read(self, text: str) -> tuple[Attributes, Origin]:
        """Return attributes and origin of an instruction.

        Args:
            text: What follows the operands: nothing, or `, name=value` several times.

        Raises:
            Unexpected: If the text is something else.
        """
        found = self._known.get(text)
        if found is not None:
            return found, NOWHERE
        head, mark, tail = text.partition(_METADATA)
        if mark:
            end = tail.find("}") + 1
            if end != len(tail) and (match := _METADATA_END.match(tail)):
                end = match.end()
            if end:
                try:
                    return self._around(head, tail[end:]), self._origins[tail[:end]]
                except Unexpected:
                    pass  # those are no halves: the mark is within quotes or brackets
        return self._whole(text)

    def _around(self, head: str, tail: str) -> Attributes:
        known = self._known.get(head) or self._whole(head)[0]
        if not tail:
            return known
        after = self._known.get(tail) or self._whole(tail)[0]
        if not known.items.keys().isdisjoint(after.items):
            raise Unexpected(tail, "each attribute once")
        return Attributes(
            known.items | after.items,
            known.bodies + after.bodies,
            known.unknown + after.unknown,
        )

    def _whole(self, text: str) -> tuple[Attributes, Origin]:
        items: dict[str, Attribute] = {}
        bodies: list[tuple[str, str]] = []
        unknown: list[str] = []
        origin = None
        seen: dict[str, str] = {}
        for name, value in split(text):
            # one release prints frontend_attributes twice
            if seen.setdefault(name, value) != value:
                raise Unexpected(f"{name}=", "each attribute once")
            if name == "metadata":
                origin = self._origins[value[1:]]
            elif name in COMPUTATIONS:
                role = COMPUTATIONS[name]
                called = values.names(value)
                if value.startswith("{") and "{}" not in role:
                    role += " {}"
                bodies += [(role.format(n), one) for n, one in enumerate(called)]
            elif name == "sharding":
                items[name], groups = shardings.sharding(value)
                if groups:
                    items[GROUPS] = groups
            elif name in self._readers:
                items[name] = self._readers[name](value)
            else:
                items[name] = Opaque(value)
                unknown.append(name)
        found = Attributes(items, tuple(bodies), tuple(unknown))
        if origin is None:
            self._known[text] = found
        return found, origin or NOWHERE


def split(text: str) -> list[tuple[str, str]]:
    """Return name and text of each attribute of `, a=1, b={2}`.

    Raises:
        Unexpected: If the text is something else.
    """
    found = []
    start = 0
    while start < len(text):
        match = _NAME.match(text, start)
        if match is None:
            if text[start:].isspace():
                break
            raise Unexpected(text[start:], "', name=value'")
        start = match.end()
        end = value_end(text, start)
        if text.startswith(("mesh", "@mesh"), start) and text.startswith(", device_ids=(", end):
            end = value_end(text, end + 1)
        value = text[start:end].strip()
        if not value:
            raise Unexpected(text[start:], "a value")
        found.append((match[1], value))
        start = end
    return found


def _one_type(text: str, types: Types) -> Attribute:
    return types[text]


def _types_in_braces(text: str, types: Types) -> Attribute:
    return tuple([types[part] for part in parts(inside(text))])


def _typed_literal(text: str, types: Types) -> Attribute:
    """Return type and value of `f32[] 0.1`, or several of `( s32[2] {1, 2}, pred[] true )`."""
    if text.startswith("(") and closing(text, 0) == len(text):
        return tuple([_typed_literal(part, types) for part in parts(text[1:-1])])
    type_, end = types.read(text, 0)
    return (type_, literal(text[end:], type_))


def _balanced(text: str) -> str:
    return text


def _groups_of_shards(text: str) -> Attribute:
    return tuple([unquoted(part) for part in parts(inside(text))])


def readers(types: Types) -> dict[str, Callable[[str], Attribute]]:
    """Return how each known attribute is read, but for bodies and shardings."""
    found: dict[str, Callable[[str], Attribute]] = dict.fromkeys(_PLAIN, values.plain)
    found |= dict.fromkeys(QUOTED_NAMES, unquoted)
    found |= dict.fromkeys(RAW_NAMES, _balanced)
    found |= {
        "backend_config": values.config,
        "buffer_donor": values.donors,
        "control-predecessors": values.names,
        "entry_computation_layout": lambda text: values.program(text, types),
        "frontend_attributes": values.pairs,
        "input_output_alias": values.aliases,
        "literal": lambda text: _typed_literal(text, types),
        "operand_layout_constraints": lambda text: _types_in_braces(text, types),
        "outfeed_shape": lambda text: _one_type(text, types),
        "output_to_operand_aliasing": values.aliases,
        "padding": values.per_dimension,
        "replica_groups": devices.groups,
        GROUPS: _groups_of_shards,
        "slice": values.slices,
        "window": values.window,
    }
    return found
