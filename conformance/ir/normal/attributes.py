"""Passes over names and attributes: they drop spelling and choices of the compiler."""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final, cast

from conformance.ir.graph import Opaque, Sharding, Tensor
from conformance.ir.jaxpr.spelling import normalise_spelling

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Attribute, Module

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
"""Attributes about the text or its schedule, not about the computation."""

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
"""The canonical name of each attribute that has several."""

# Prefixes of frontend attributes: notes of Shardy's round trip, layouts, scheduling and names.
_FRONTEND_SPELLING: Final = (
    *("xla.sdy", "mhlo.", "jax.", "_scheduling", "_xla_op_name", "inlineable"),
    "is_spmd_generated",
)

# Keys of a backend_config that tune performance and do not change values.
_TUNING: Final = frozenset(
    {
        *("operation_queue_id", "wait_on_operation_queues", "force_earliest_schedule", "is_sync"),
        *("reification_cost", "device_type", "selected_algorithm", "algorithm", "workspace_size"),
        *("autotune_workspace_size", "collective_backend_config", "estimated_cycles"),
        *("flag_configs", "window_config", "scoped_memory_configs", "used_scoped_memory_configs"),
        *("is_pipelined", "retry_config", "aliasing_operands", "outer_dimension_partitions"),
        *("block_level_fusion_config",),
        *("iteration_bounds", "no_parallel_custom_call", "convolution_algorithm_config"),
        *("megacore_config", "barrier_config", "output_chunk_bound_config", "cost_estimate"),
    }
)

# Attributes of which two compilers of the same program choose different values.
_COMPILER_CHOICES: Final = frozenset(
    {
        *("channel", "channel_handle", "api_version", "trip_count", "fusion_kind", "kind"),
        *("is_host_transfer", "inline"),
        *("is_cross_program_prefetch", "cross_program_prefetch_index", "execution_thread"),
    }
)
_HEADER_MEANING: Final = frozenset({"input_output_alias", "buffer_donor"})

CALLBACKS: Final = frozenset(
    {"xla_python_cpu_callback", "xla_python_gpu_callback", "CustomSPMDPartitioning"}
)
"""Custom calls that identify their Python function by its address, which differs in each process.

It is the configuration, and the first operand of a callback. Callbacks have an index instead since
jax 0.6.0, `custom_partitioning` has an address on all releases.
"""
ADDRESS: Final = "address"

_PREFIXES: Final = ("stablehlo.", "mhlo.", "func.")


def rename_operations(module: Module) -> None:
    """Rename operations as in HLO: `stablehlo.all_reduce` becomes `all-reduce`.

    The primitives of a jaxpr get their newest names.

    Args:
        module: Rewritten in place.
    """
    if module.kind == "jaxpr":
        normalise_spelling(module)
    if module.kind == "stablehlo":
        for instruction in module.walk():
            op = instruction.op
            if op.startswith(_PREFIXES):
                instruction.op = op.partition(".")[2].replace("_", "-")


def drop_spelling(module: Module) -> None:
    """Drop attributes of the text, and give the others their canonical names and values.

    Args:
        module: Rewritten in place.
    """
    known: dict[tuple[int, bool], tuple[Attributes, Attributes]] = {}
    for computation in module.find_reachable():
        if computation.attributes:
            computation.attributes = _normalise_results(computation.attributes)
        for instruction in computation.instructions:
            # By length first: `branch 10` comes after `branch 9`.
            if len(instruction.bodies) > 1:
                instruction.bodies = tuple(
                    sorted(instruction.bodies, key=lambda called: (len(called[0]), called[0]))
                )
            attributes = instruction.attributes
            if not attributes:
                continue
            # Only a custom call keeps its configuration, so the result depends on this as well.
            calls_out = instruction.op.removesuffix("-start") == "custom-call"
            # The value keeps the dictionary alive, so that its id stays unique.
            key = (id(attributes), calls_out)
            found = known.get(key)
            if found is None:
                found = known[key] = (attributes, _normalise(attributes, calls_out=calls_out))
            instruction.attributes = found[1]
    module.attributes = _normalise_names(
        {
            name: value
            for name, value in module.attributes.items()
            # Shardings list devices by now, so meshes are not needed.
            if name not in HEADER_SPELLING and not name.startswith("sdy.mesh")
        }
    )


def drop_compiler_choices(module: Module) -> None:
    """Drop attributes that a compiler chooses freely.

    Args:
        module: Rewritten in place.
    """
    # Optimised HLO is partitioned already: the sharding of a parameter has no effect any more.
    notes = frozenset({"sharding"}) if module.kind == "hlo" else frozenset()
    for instruction in module.walk():
        attributes = instruction.attributes
        choice = _COMPILER_CHOICES | notes if instruction.op == "parameter" else _COMPILER_CHOICES
        if not choice.isdisjoint(attributes):
            instruction.attributes = {k: v for k, v in attributes.items() if k not in choice}
    header = module.attributes
    module.attributes = {k: v for k, v in header.items() if k in _HEADER_MEANING}


def drop_addresses(module: Module) -> None:
    """Replace the addresses of Python functions by a constant.

    Args:
        module: Rewritten in place, its attributes by their canonical names.
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


def _normalise(attributes: Attributes, *, calls_out: bool) -> Attributes:
    kept = _normalise_names(attributes)
    config = kept.pop("backend_config", None)
    if config is None:
        return kept
    # How a TPU marks work that is offloaded to the host.
    if str(_get_nested(config, "device_type")).endswith("HOST"):
        kept["device_type"] = "host"
    if calls_out:
        kept["backend_config"] = _drop_tuning(config)
        return kept
    # The rest tunes: `outer_dimension_partitions` on CPU depends on the number of cores.
    trips = _get_nested(config, "known_trip_count", "n")
    if trips is not None:
        kept["trip_count"] = trips
    # CUDA names the kind of a fusion `fusion_backend_config`, CPU from 0.10.2 on `fusion_config`.
    kind = _get_nested(config, "fusion_backend_config", "kind") or _get_nested(
        config, "fusion_config", "kind"
    )
    if kind is not None:
        kept["fusion_kind"] = kind
    return kept


def _normalise_names(attributes: Attributes) -> Attributes:
    kept: Attributes = {}
    for name, value in attributes.items():
        if name in SPELLING:
            continue
        own = RENAMED.get(name, name)
        rule = _RULES.get(own)
        meaning = value if rule is None else rule(value)
        if rule is not None and meaning is None:
            continue
        # A printer leaves false attributes out, but false is also the value of a constant.
        if (meaning is False and own != "value") or _DEFAULTS.get(own, _UNSET) == meaning:
            continue
        if isinstance(meaning, Sharding):
            meaning = canonicalise_sharding(meaning)
        kept["channel" if own == "channel_id" else own] = meaning
    return dict(sorted(kept.items()))


def _normalise_results(attributes: Attributes) -> Attributes:
    """Normalise the attributes of a function, and those of each of its results."""
    kept: Attributes = {}
    for name, value in attributes.items():
        if name.startswith("result ") and isinstance(value, tuple):
            pairs = cast("tuple[tuple[str, Attribute], ...]", value)
            if own := tuple(_normalise_names(dict(pairs)).items()):
                kept[name] = own
        else:
            kept[name] = value
    return _normalise_names(kept)


_UNSET: Final = Opaque("")
# Attributes that some releases leave out at this value, as all do at `false`.
_DEFAULTS: Final[Attributes] = {"feature_group_count": 1, "batch_group_count": 1}


def _drop_default_precision(value: Attribute) -> Attribute:
    plain = isinstance(value, tuple) and all(str(item).lower() == "default" for item in value)
    return None if plain else value


def _drop_frontend_spelling(value: Attribute) -> Attribute:
    if not isinstance(value, tuple):
        return value
    kept = tuple(
        item
        for item in value
        if not (isinstance(item, tuple) and str(item[0]).startswith(_FRONTEND_SPELLING))
    )
    return kept or None


def sort_groups(groups: Attribute) -> Attribute:
    """Return replica groups in order.

    Members keep their order: an all-gather concatenates in it.

    Args:
        groups: Groups of device ids.
    """
    if not isinstance(groups, tuple):
        return groups
    return tuple(sorted(cast("tuple[tuple[int, ...], ...]", groups)))


_RULES: Final[dict[str, Callable[[Attribute], Attribute]]] = {
    # A number counts the channels of a module; only whether there is one has a meaning.
    "channel_id": lambda _: True,
    "channel_handle": lambda _: True,
    "replica_groups": sort_groups,
    "operand_precision": _drop_default_precision,
    "precision_config": _drop_default_precision,
    "frontend_attributes": _drop_frontend_spelling,
}


def _drop_tuning(config: Attribute) -> Attribute:
    """Return a backend_config without its tuning keys; pairs of name and value stay sorted."""
    if not isinstance(config, tuple) or isinstance(config, Sharding | Opaque | Tensor):
        return config
    return tuple(
        _drop_tuning(item)
        for item in config
        if not (isinstance(item, tuple) and item and item[0] in _TUNING)
    )


def _get_nested(config: Attribute, *names: str) -> Attribute:
    for name in names:
        if not isinstance(config, tuple):
            return None
        config = next((i[1] for i in config if isinstance(i, tuple) and i[:1] == (name,)), None)
    return config


def canonicalise_sharding(sharding: Sharding) -> Sharding:
    """Return the canonical form among the shardings that place the same tiles.

    Args:
        sharding: Any sharding.

    Returns:
        A sharding without subgroups of size 1, devices within a replicated subgroup in order; one
        that cuts no dimension is `replicated`, `manual` or `unreduced`.
    """
    if sharding.kind == "tuple":
        return sharding._replace(parts=tuple(map(canonicalise_sharding, sharding.parts)))
    if sharding.kind != "tiled":
        return sharding
    rank = len(sharding.tiles) - len(sharding.subgroups)
    data, groups = sharding.tiles[:rank], sharding.tiles[rank:]
    kept = [(size, kind) for size, kind in zip(groups, sharding.subgroups, strict=True) if size > 1]
    meanings = {kind for _, kind in kept}
    if all(size == 1 for size in data) and len(meanings) <= 1:
        return Sharding(kind=next(iter(meanings), "replicated"))
    sizes, kinds = tuple(size for size, _ in kept), tuple(kind for _, kind in kept)
    # The devices within other subgroups have an order that matters.
    if meanings != {"replicated"}:
        return sharding._replace(tiles=(*data, *sizes), subgroups=kinds)
    copies, devices = prod(sizes), sharding.devices
    runs = [sorted(devices[n : n + copies]) for n in range(0, len(devices), copies)]
    return Sharding("tiled", (*data, copies), tuple(chain(*runs)), ("replicated",))
