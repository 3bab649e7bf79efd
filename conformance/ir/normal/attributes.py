"""Attributes: which are spelling, which are the compiler's affair, which mean something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Opaque, Sharding, Tensor
from conformance.ir.normal.devices import canonical_sharding, sorted_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Attribute, Computation, Instruction, Module

    Attributes = dict[str, Attribute]

SPELLING: Final = frozenset(
    {
        *("control-predecessors", "metadata", "operand_layout_constraints", "original_value"),
        *("output_streaming_delay", "schedule", "statistics", "result_layout", "xla_shape"),
        *("operand_layouts", "result_layouts", "mhlo.layout_mode", "jax.result_info"),
        *("sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs", "callee"),
        *("called_computations", "mhlo.original_value", "stablehlo.mesh", "origin"),
    }
)
"""Attributes that say how a text was written or scheduled, never what it computes."""

HEADER_SPELLING: Final = frozenset(
    {
        *("allow_spmd_sharding_propagation_to_output", "entry_computation_layout", "sym_name"),
        *("allow_spmd_sharding_propagation_to_parameters", "is_scheduled", "frontend_attributes"),
        *("jax.uses_shape_polymorphism", "mhlo.xla_entry_computation_parameter_layouts"),
        *("alias_passthrough_params", "is_dynamic"),
    }
)

RENAMED: Final = {
    "mhlo.sharding": "sharding",
    "sdy.sharding": "sharding",
    "mhlo.frontend_attributes": "frontend_attributes",
    "call_target_name": "custom_call_target",
    "has_side_effect": "custom_call_has_side_effect",
    "mhlo.backend_config": "backend_config",
    "mhlo.memory_kind": "memory_kind",
    "mhlo.num_partitions": "num_partitions",
    "mhlo.num_replicas": "replica_count",
    "tf.aliasing_output": "aliases_output",
    "jax.buffer_donor": "donor",
}
"""Attributes with several spellings, each with the one kept."""

_FRONTEND_SPELLING: Final = (
    *("xla.sdy", "mhlo.", "jax.", "_scheduling", "_xla_op_name", "inlineable"),
    "is_spmd_generated",
)

_TUNING: Final = frozenset(
    {
        *("operation_queue_id", "wait_on_operation_queues", "force_earliest_schedule", "is_sync"),
        *("reification_cost", "device_type", "selected_algorithm", "algorithm", "workspace_size"),
        *(
            "autotune_workspace_size",
            "collective_backend_config",
            "estimated_cycles",
            "is_pipelined",
        ),
        *("flag_configs", "window_config", "scoped_memory_configs", "used_scoped_memory_configs"),
        *(
            "retry_config",
            "aliasing_operands",
            "outer_dimension_partitions",
            "block_level_fusion_config",
        ),
        *("iteration_bounds", "no_parallel_custom_call", "convolution_algorithm_config"),
        *("megacore_config", "barrier_config", "output_chunk_bound_config", "cost_estimate"),
    }
)
"""Keys of a backend_config by which a compiler tunes, and which compute nothing."""


def drop_spelling(module: Module) -> None:
    """Keep what attributes mean: one name each, devices in one form, nothing about the text.

    Args:
        module: Rewritten in place.
    """
    known: dict[tuple[int, bool, bool], tuple[Attributes, Attributes]] = {}
    for computation in module.reachable():
        if computation.attributes:
            computation.attributes = _of_computation(computation.attributes)
        for instruction in computation.instructions:
            if len(instruction.bodies) > 1:
                instruction.bodies = tuple(sorted(instruction.bodies, key=_role))
            attributes = instruction.attributes
            if not attributes:
                continue
            key = (id(attributes), *_kind(instruction))
            found = known.get(key)
            if found is None:
                found = known[key] = (attributes, _meant(instruction))
            instruction.attributes = found[1]
    module.attributes = _kept(
        {
            name: value
            for name, value in module.attributes.items()
            # Shardings name no mesh any more.
            if name not in HEADER_SPELLING and not name.startswith("sdy.mesh")
        }
    )


def drop_compilers_choice(module: Module) -> None:
    """Drop attributes that another compiler, or another day, would choose otherwise.

    Args:
        module: Rewritten in place.
    """
    # Optimised HLO is partitioned already: a sharding there is a note, and a fact.
    said = frozenset({"sharding"}) if module.kind == "hlo" else frozenset()
    for instruction in module.walk():
        attributes = instruction.attributes
        choice = _CHOICE | said if instruction.op == "parameter" else _CHOICE
        if not choice.isdisjoint(attributes):
            instruction.attributes = {k: v for k, v in attributes.items() if k not in choice}
    header = module.attributes
    module.attributes = {k: v for k, v in header.items() if k in _HEADER_MEANING}


_CHOICE: Final = frozenset(
    {
        *("channel", "channel_handle", "api_version", "trip_count", "fusion_kind", "kind"),
        *("is_host_transfer", "inline"),
        *("is_cross_program_prefetch", "cross_program_prefetch_index", "execution_thread"),
    }
)
_HEADER_MEANING: Final = frozenset({"input_output_alias", "buffer_donor"})


def _role(called: tuple[str, Computation]) -> tuple[int, str]:
    return len(called[0]), called[0]


def _kind(instruction: Instruction) -> tuple[bool, bool]:
    return _calls_out(instruction), instruction.op == "while"


def _calls_out(instruction: Instruction) -> bool:
    return instruction.op.removesuffix("-start") == "custom-call"


def _meant(instruction: Instruction) -> Attributes:
    kept = _kept(instruction.attributes)
    config = kept.pop("backend_config", None)
    if config is None:
        return kept
    if str(_at(config, "device_type")).endswith("HOST"):
        kept["device_type"] = "host"
    if _calls_out(instruction):
        kept["backend_config"] = _untuned(config)
        return kept
    trips = _at(config, "known_trip_count", "n")
    if trips is not None:
        kept["trip_count"] = trips
    kind = _at(config, "fusion_backend_config", "kind") or _at(config, "fusion_config", "kind")
    if kind is not None:
        kept["fusion_kind"] = kind
    return kept


def _kept(attributes: Attributes) -> Attributes:
    kept: Attributes = {}
    for name, value in attributes.items():
        if name in SPELLING:
            continue
        own = RENAMED.get(name, name)
        rule = _RULES.get(own)
        if rule is not None:
            value = rule(value)  # noqa: PLW2901 - one value, on its way
            if value is None:
                continue
        if (value is False and own != "value") or _DEFAULTS.get(own, _UNSET) == value:
            continue
        if isinstance(value, Sharding):
            value = canonical_sharding(value)  # noqa: PLW2901
        kept["channel" if own == "channel_id" else own] = value
    return dict(sorted(kept.items()))


def _of_computation(attributes: Attributes) -> Attributes:
    """Keep what is said of a function's results, each in a dictionary of its own."""
    kept: Attributes = {}
    for name, value in attributes.items():
        if name.startswith("result ") and isinstance(value, tuple):
            value = tuple(_kept(dict(value)).items())  # type: ignore[arg-type] # noqa: PLW2901
            if not value:
                continue
        kept[name] = value
    return _kept(kept)


_UNSET: Final = Opaque("")
_DEFAULTS: Final[Attributes] = {"feature_group_count": 1, "batch_group_count": 1}
"""What some releases say and others leave out; so is every `false`."""


def _precision(value: Attribute) -> Attribute:
    plain = isinstance(value, tuple) and all(str(one).lower() == "default" for one in value)
    return None if plain else value


def _present(_: Attribute) -> Attribute:
    return True


def _frontend(value: Attribute) -> Attribute:
    if not isinstance(value, tuple):
        return value
    kept = tuple(
        item
        for item in value
        if not (isinstance(item, tuple) and str(item[0]).startswith(_FRONTEND_SPELLING))
    )
    return kept or None


_RULES: Final[dict[str, Callable[[Attribute], Attribute]]] = {
    "channel_id": _present,
    "channel_handle": _present,
    "replica_groups": sorted_groups,
    "operand_precision": _precision,
    "precision_config": _precision,
    "frontend_attributes": _frontend,
}


def _untuned(config: Attribute) -> Attribute:
    """Return a backend_config without what only tunes; pairs of name and value stay sorted."""
    if not isinstance(config, tuple) or isinstance(config, Sharding | Opaque | Tensor):
        return config
    return tuple(_untuned(item) for item in config if not _tunes(item))


def _tunes(item: Attribute) -> bool:
    return isinstance(item, tuple) and len(item) > 0 and item[0] in _TUNING


def _at(config: Attribute, *names: str) -> Attribute:
    for name in names:
        if not isinstance(config, tuple):
            return None
        config = next((i[1] for i in config if isinstance(i, tuple) and i[:1] == (name,)), None)
    return config
