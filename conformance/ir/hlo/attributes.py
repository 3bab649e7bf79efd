"""The attributes after operands: `, dimensions={0}, to_apply=%add, metadata={...}`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from conformance.ir.graph import NOWHERE, Attribute, Opaque, Origin, Tensor, freeze
from conformance.ir.hlo.lexing import (
    INTEGER,
    NAME,
    QUOTED,
    HloTextError,
    find_closing,
    find_value_end,
    match_all,
    match_parts,
    parse_integer,
    parse_integers,
    split_parts,
    strip_brackets,
    strip_comments,
    unquote,
)
from conformance.ir.hlo.shardings import read_device_groups, read_sharding
from conformance.ir.hlo.values import read_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.hlo.origins import Origins
    from conformance.ir.hlo.values import HloTypes

_WORDS = re.compile(r"[\w\-]+")
# An attribute outside of these lists is counted as not understood, so that a new release shows up.
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
# Attributes that are compared by their text.
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
"""The role of computations by the attribute that names them; `{}` is their number in a list."""

GROUPS = "shard_groups"
"""Attribute of an instruction whose sharding has `shard_as` or `shard_like`."""

# Metadata ends at the first brace, except in rare texts that quote or nest one.
_METADATA = ", metadata={"
_METADATA_END = re.compile(rf"(?>(?:[^{{}}\"]++|{QUOTED})*)\}}", re.DOTALL)
_ATTRIBUTE = re.compile(r"\s*+,\s*+([A-Za-z][\w.\-]*+)\s?=\s?", re.ASCII)

# An integer is no such number: `1` and `1.0` are different attributes.
_NUMBER = re.compile(r"[+-]?(?:\d++\.\d*+(?:e[+-]?\d++)?|\d++e[+-]?\d++)", re.ASCII)
# Other spellings, such as `007` or numbers beyond 64 bits, stay texts and keep their difference.
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_WORD = re.compile(r"[^\s,(){}\[\]\"%=]++")
_SLICE = re.compile(rf"\[({INTEGER}):({INTEGER})(?::({INTEGER}))?\]", re.ASCII)
_WINDOW = re.compile(r"(\w+)=(-?\d[\dx_\-]*)", re.ASCII)
_ALIAS = re.compile(r"(\{[\d, ]*\}): ?\((\d{1,18}), ?(\{[\d, ]*\})(?:, ?([\w\-]+))?\)", re.ASCII)
_DONOR = re.compile(r"\((\d{1,18}), ?(\{[\d, ]*\})\)", re.ASCII)
_KEY = re.compile(r"([^\s=,{}\"]++)=", re.ASCII)
_NAME = re.compile(NAME)


class HloAttributes(NamedTuple):
    """The attributes after the operands, except `metadata`.

    Attributes:
        items: Attributes by name, without callees.
        bodies: Role and name of each callee.
        unknown: Names of unknown attributes.
    """

    items: dict[str, Attribute]
    bodies: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


class AttributeReader:
    """Reads attributes; each text is read once.

    Many instructions share the attributes before `metadata`, and many share an origin, but few
    share both: the two are cached separately.
    """

    def __init__(self, types: HloTypes, origins: Origins) -> None:
        self._known: dict[str, HloAttributes] = {"": HloAttributes({}, (), ())}
        self._origins = origins
        self._readers = _make_readers(types)

    def read(self, text: str) -> tuple[HloAttributes, Origin]:
        """Return attributes and origin of an instruction.

        Args:
            text: The text after the operands: empty, or `, name=value` several times.

        Raises:
            HloTextError: If the text is something else.
        """
        # `_known` holds only texts without metadata.
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
                    return self._join_around_metadata(head, tail[end:]), self._origins[tail[:end]]
                except HloTextError:
                    pass  # the mark is within quotes or brackets
        return self._read_whole(text)

    def _join_around_metadata(self, head: str, tail: str) -> HloAttributes:
        known = self._known.get(head) or self._read_whole(head)[0]
        if not tail:
            return known
        after = self._known.get(tail) or self._read_whole(tail)[0]
        if not known.items.keys().isdisjoint(after.items):
            raise HloTextError(tail, "each attribute once")
        items = known.items | after.items
        return HloAttributes(items, known.bodies + after.bodies, known.unknown + after.unknown)

    def _read_whole(self, text: str) -> tuple[HloAttributes, Origin]:
        items: dict[str, Attribute] = {}
        bodies: list[tuple[str, str]] = []
        unknown: list[str] = []
        origin = None
        seen: dict[str, str] = {}
        for name, value in _split_attributes(text):
            # 0.8.3 on CUDA prints frontend_attributes of a collective twice.
            if seen.setdefault(name, value) != value:
                raise HloTextError(f"{name}=", "each attribute once")
            if name == "metadata":
                origin = self._origins[value[1:]]
            elif name in COMPUTATIONS:
                role = COMPUTATIONS[name]
                called = _read_names(value)
                if value.startswith("{") and "{}" not in role:
                    role += " {}"
                bodies += [(role.format(n), callee) for n, callee in enumerate(called)]
            elif name == "sharding":
                # Apart, so that shardings with and without a shard group are equal.
                items[name], groups = read_sharding(value)
                if groups:
                    items[GROUPS] = groups
            elif name in self._readers:
                items[name] = self._readers[name](value)
            else:
                # Compared as text rather than dropped: it may have a meaning.
                items[name] = Opaque(value)
                unknown.append(name)
        found = HloAttributes(items, tuple(bodies), tuple(unknown))
        # A text with metadata rarely recurs.
        if origin is None:
            self._known[text] = found
        return found, origin or NOWHERE


def _split_attributes(text: str) -> list[tuple[str, str]]:
    """Return name and text of each attribute of `, a=1, b={2}`.

    Raises:
        HloTextError: If the text is something else.
    """
    found = []
    start = 0
    while start < len(text):
        match = _ATTRIBUTE.match(text, start)
        if match is None:
            if text[start:].isspace():
                break
            raise HloTextError(text[start:], "', name=value'")
        start = match.end()
        end = find_value_end(text, start)
        # The device list of a mesh follows after a comma, outside of any bracket.
        if text.startswith(("mesh", "@mesh"), start) and text.startswith(", device_ids=(", end):
            end = find_value_end(text, end + 1)
        value = text[start:end].strip()
        if not value:
            raise HloTextError(text[start:], "a value")
        found.append((match[1], value))
        start = end
    return found


def _make_readers(types: HloTypes) -> dict[str, Callable[[str], Attribute]]:
    """Return the reader of each known attribute, except bodies and shardings."""
    return {
        **dict.fromkeys(_PLAIN, _read_plain),
        **dict.fromkeys(QUOTED_NAMES, unquote),
        **dict.fromkeys(RAW_NAMES, str),
        "backend_config": _read_config,
        "buffer_donor": _read_donors,
        "control-predecessors": _read_names,
        "entry_computation_layout": lambda text: _read_entry_layout(text, types),
        "frontend_attributes": _read_pairs,
        "input_output_alias": _read_aliases,
        "literal": lambda text: _read_typed_literal(text, types),
        "operand_layout_constraints": lambda text: tuple(
            [types[p] for p in split_parts(strip_brackets(text))]
        ),
        "outfeed_shape": types.__getitem__,
        "output_to_operand_aliasing": _read_aliases,
        "padding": _read_per_dimension,
        "replica_groups": read_device_groups,
        GROUPS: lambda text: tuple([unquote(part) for part in split_parts(strip_brackets(text))]),
        "slice": _read_slices,
        "window": _read_window,
    }


def _read_typed_literal(text: str, types: HloTypes) -> Attribute:
    """Return type and value of `f32[] 0.1`, or several of `( s32[2] {1, 2}, pred[] true )`."""
    if text.startswith("(") and find_closing(text, 0) == len(text):
        return tuple([_read_typed_literal(part, types) for part in split_parts(text[1:-1])])
    type_, end = types.read(text, 0)
    return (type_, read_literal(text[end:], type_))


def _read_plain(text: str) -> Attribute:
    """Return a number, truth value or word; `{...}` is a tuple of such values."""
    if text.startswith("{"):
        return tuple(
            [_read_plain(part) for part in split_parts(strip_brackets(strip_comments(text)))]
        )
    if text in {"true", "false"}:
        return text == "true"
    if _CANONICAL_INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _WORD.fullmatch(text):
        return text
    raise HloTextError(text, "a number, a word or '{...}'")


def _read_window(text: str) -> Attribute:
    """Return a window's fields: `{size=3x2 pad=1_1x0_0}` is `(("size", (3, 2)), ...)`."""
    fields = (match_all(_WINDOW, field, "name=1x2x3") for field in strip_brackets(text).split())
    return tuple([(field[1], _read_per_dimension(field[2])) for field in fields])


def _read_per_dimension(text: str) -> tuple[Attribute, ...]:
    """Return a number, or several joined by `_`, for each dimension of `1_1x0_0`."""
    each = [
        tuple([parse_integer(n) for n in dimension.split("_")]) for dimension in text.split("x")
    ]
    # A stride is a single number for each dimension, a padding a pair.
    return tuple([sizes[0] if len(sizes) == 1 else sizes for sizes in each])


def _read_slices(text: str) -> Attribute:
    """Return start, limit and stride of each dimension of `{[0:4:2], [1:3]}`."""
    each = match_parts(_SLICE, text, "'[start:limit]' or '[start:limit:stride]'")
    return tuple([(int(match[1]), int(match[2]), int(match[3] or 1)) for match in each])


def _read_aliases(text: str) -> Attribute:
    """Return (output path, number, path within it, kind) of `{ {0}: (1, {}, may-alias) }`."""
    each = match_parts(_ALIAS, text, "'{output}: (number, {path}, kind)'")
    return tuple(
        [
            (parse_integers(m[1][1:-1]), int(m[2]), parse_integers(m[3][1:-1]), m[4] or "")
            for m in each
        ]
    )


def _read_donors(text: str) -> Attribute:
    """Return (parameter, path within it) of `{ (0, {}), (1, {2}) }`."""
    each = match_parts(_DONOR, text, "'(number, {path})'")
    return tuple([(int(match[1]), parse_integers(match[2][1:-1])) for match in each])


def _read_names(text: str) -> tuple[str, ...]:
    """Return a name, or the names in braces."""
    listed = [*split_parts(strip_brackets(text))] if text.startswith("{") else [text]
    return tuple([match_all(_NAME, name.removeprefix("%"), "a name")[0] for name in listed])


def _read_pairs(text: str) -> Attribute:
    """Return the (key, value) pairs of `{a="b",c={d}}`, sorted by key."""
    found: dict[str, str] = {}
    for part in split_parts(strip_brackets(text)):
        match = _KEY.match(part)
        if match is None:
            raise HloTextError(part, "key=value")
        value = part[match.end() :]
        found[match[1]] = unquote(value) if value.startswith('"') else value
    # XLA keeps them in a map, which has no order.
    return tuple(sorted(found.items()))


def _read_config(text: str) -> Attribute:
    """Return a backend's configuration: pairs sorted by key if it is JSON, else its text."""
    # XLA prints JSON bare, and quotes the configurations of custom calls that are other text.
    content = unquote(text) if text.startswith('"') else text
    if not content.startswith("{"):
        return content
    try:
        # Texts for NaN and infinity: NaN would differ from itself.
        return freeze(json.loads(content, parse_constant=str))
    except ValueError:
        # The configuration of a custom call may be any text, such as an MLIR dictionary.
        return content
    except RecursionError:
        raise HloTextError(content, "JSON that is not nested as deep") from None


def _read_entry_layout(text: str, types: HloTypes) -> Attribute:
    """Return types of parameters and result of `{(f32[2], s32[])->f32[2]}`."""
    text = strip_brackets(strip_comments(text))
    parameters, end = types.read(text, 0)
    if isinstance(parameters, Tensor) or not text.startswith("->", end):
        raise HloTextError(text[end:], "'->'")
    return parameters, types[text[end + 2 :]]
