"""Facts: the content of an IR in compiler-neutral terms, for claims, gates and reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.graph import Opaque, Sharding, Tensor
from conformance.ir.normal.layouts import get_host_space
from conformance.ir.normal.rewriting import get_type, iterate_tensors
from conformance.ir.vocabulary import COLLECTIVES, CONTRACTIONS, REDUCER_OF, runs_on_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.ir.graph import Attribute, Computation, Instruction, Module, Type

# Counts for reports; they vary with the compiler, so they do not gate.
_REPORTED: Final = ("converts", "contractions", "fusions", "loops", "ops")

# Operations between the all-reduce and the slice in the custom fusion of a TPU.
_MOVES: Final = frozenset({"bitcast", "reshape", "transpose", "copy", "convert"})
# Number of parts of an `input_output_alias`: output, parameter, path into it, kind.
_ALIAS = 4
# Facts are lines of goldens and reports: a pod has thousands of devices.
_MOST_DEVICES = 16
_LONGEST = 160


def collect_facts(module: Module) -> dict[str, Any]:
    """Collect the facts of a module.

    Args:
        module: A module in the exact form.

    Returns:
        Plain data, for JSON:
        `collectives`: count by opcode, where a start and its done count once, and an all-reduce of
        which each device keeps a slice counts as a reduce-scatter;
        `collective_ops`: count by a line with operation, reducer, type, dimension, groups and the
        number of loops around it;
        `host_compute`: whether any instruction is marked to be computed on the host;
        `memory_spaces`: count of results by memory space of the host;
        `custom_calls`: count by target;
        `donation`: the parameters that outputs may reuse;
        `dtypes`: the element types;
        `parameters`, `results`: type, memory space and sharding of each, as far as stated;
        `converts`: count by `f32->bf16`;
        `contractions`: count by operation and type;
        `fusions`: count by kind;
        `loops`: count by `trip count 10`, or `trip count unknown`, with `nested` before it;
        `ops`: count by operation.
    """
    counts = _Counts()
    depths, scattered = _count_enclosing_loops(module), _find_reduce_scatters(module)
    for computation in module.find_reachable():
        for instruction in computation.instructions:
            counts.count(scattered.get(instruction, instruction), depths[id(computation)])
    entry, of = module.entry, counts.of
    types = [get_type(value) for value in entry.results]
    results = [part for t in types for part in ([t] if isinstance(t, Tensor) else t)]
    stated = [dict(_get_items(entry.attributes.get(f"result {n}"))) for n in range(len(results))]
    return {
        "collectives": _sort_counts(of["collectives"]),
        "collective_ops": _sort_counts(of["collective_ops"]),
        "host_compute": counts.host_compute,
        "memory_spaces": _sort_counts(of["memory_spaces"]),
        "custom_calls": _sort_counts(of["custom_calls"]),
        "donation": _describe_donation(module),
        "dtypes": sorted(of["dtypes"]),
        "parameters": [_describe_value(p.type, p.attributes) for p in entry.parameters],
        "results": list(map(_describe_value, results, stated)),
        **{name: _sort_counts(of[name]) for name in _REPORTED},
    }


class _Counts:
    """Counts of properties of instructions.

    Attributes:
        of: Counts by the name of the fact.
        host_compute: Whether an instruction runs on the host.
    """

    def __init__(self) -> None:
        self.of: dict[str, Counter[str]] = defaultdict(Counter)
        self.host_compute = False
        self._ops = self.of["ops"]
        self._tensors: dict[int, tuple[Type, list[Tensor]]] = {}

    def count(self, instruction: Instruction, depth: int) -> None:
        op, type_, attributes = instruction.op, instruction.type, instruction.attributes
        self._ops[op] += 1
        # Types are shared objects; the value keeps the type alive, so that its id stays unique.
        known = self._tensors.get(id(type_))
        if known is None:
            known = self._tensors[id(type_)] = (type_, list(iterate_tensors(type_)))
            self.of["dtypes"].update(tensor.dtype for tensor in known[1])
        for tensor in known[1]:
            if tensor.space and (space := get_host_space(tensor.space)):
                self.of["memory_spaces"][space] += 1
        # Only the start counts: the facts come before starts and dones are folded.
        base = op.removesuffix("-start")
        collective = COLLECTIVES.get(base)
        if collective is not None:
            self.of["collectives"][collective] += 1
            self.of["collective_ops"][_describe_collective(instruction, collective, depth)] += 1
        elif base in {"custom-call", "custom_call", "ffi_call"}:
            # `ffi_call` of a jaxpr names its target in another parameter.
            target = attributes.get("custom_call_target") or attributes.get("target_name", "")
            self.of["custom_calls"][str(target)] += 1
        elif op in {"convert", "convert_element_type"}:
            ends = get_type(instruction.inputs[0]), type_
            names = [end.dtype if isinstance(end, Tensor) else "tuple" for end in ends]
            self.of["converts"]["->".join(names)] += 1
        elif op in CONTRACTIONS:
            self.of["contractions"][f"{op} {_render_type(type_)}"] += 1
        elif op == "fusion":
            self.of["fusions"][str(attributes.get("fusion_kind", attributes.get("kind")))] += 1
        elif op in {"while", "scan"}:
            # HLO states a trip count if XLA could prove it; a scan of a jaxpr always has a length.
            trips = attributes.get("trip_count", attributes.get("length"))
            text = f"trip count {trips if trips is not None else 'unknown'}"
            self.of["loops"][f"nested {text}" if depth else text] += 1
        self.host_compute = self.host_compute or runs_on_host(instruction)


def _sort_counts(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _render_type(type_: Type) -> str:
    parts = [f"{t.dtype}[{','.join(map(str, t.shape))}]" for t in iterate_tensors(type_)]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _count_enclosing_loops(module: Module) -> dict[int, int]:
    """Return the number of loops around each computation, the largest of all its uses."""
    depths = {id(module.entry): 0}
    # Callers first: the depth of a computation is final before it is passed on to its callees.
    for computation in reversed(module.find_reachable()):
        depth = depths[id(computation)]
        for instruction in computation.instructions:
            inner_depth = depth + (instruction.op in {"while", "scan"})
            for _, inner in instruction.bodies:
                depths[id(inner)] = max(depths.get(id(inner), 0), inner_depth)
    return depths


def _find_reduce_scatters(module: Module) -> dict[Instruction, Instruction]:
    """Return the reduce-scatter in place of each all-reduce that is one.

    A TPU reduces and scatters by a custom fusion whose text is an all-reduce and a slice, yet no
    device receives more than its slice.
    """
    found = {}
    for instruction in module.walk():
        if instruction.op == "fusion" and instruction.attributes.get("kind") == "kCustom":
            inner = dict(instruction.bodies).get("calls")
            reduced = None if inner is None else _find_sliced_all_reduce(inner)
            if reduced is not None:
                found[reduced] = _make_reduce_scatter(reduced, instruction)
    return found


def _find_sliced_all_reduce(computation: Computation) -> Instruction | None:
    """Return the all-reduce of which a computation returns a slice."""
    instruction, sliced = computation.results[0][0], False
    while instruction.op == "dynamic-slice" or instruction.op in _MOVES:
        sliced = sliced or instruction.op == "dynamic-slice"
        instruction = instruction.operands[0]
    return instruction if sliced and instruction.op == "all-reduce" else None


def _make_reduce_scatter(reduced: Instruction, fusion: Instruction) -> Instruction:
    attributes = dict(reduced.attributes)
    # Only equal ranks show which dimension is cut; a reshape within the fusion hides it.
    whole, own = (getattr(node.type, "shape", ()) for node in (reduced, fusion))
    if len(whole) == len(own):
        attributes["dimensions"] = tuple(n for n, size in enumerate(own) if size != whole[n])
    return replace(reduced, op="reduce-scatter", type=fusion.type, attributes=attributes)


def _describe_collective(instruction: Instruction, name: str, depth: int) -> str:
    attributes = instruction.attributes
    words = [name]
    inner = dict(instruction.bodies).get("to_apply")
    reducer = inner.results[0][0].op if inner is not None and inner.results else ""
    if reducer := REDUCER_OF.get(instruction.op) or reducer:
        words.append(reducer)
    words.append(_render_type(_get_result_type(instruction)))
    for label, names in _DETAILS:
        value = next((attributes[n] for n in names if n in attributes), None)
        if value is not None and value != ():
            words.append(f"{label} {_shorten(value)}")
    if depth:
        words.append("in a loop" if depth == 1 else f"in {depth} loops")
    return " ".join(words)


_DIMENSION: Final = (
    *("dimensions", "all_gather_dim", "all_gather_dimension", "scatter_dimension"),
    *("scatter_dim", "split_dimension", "split_axis"),
)
_DETAILS: Final = (
    ("dim", _DIMENSION),
    ("over", ("replica_groups", "axes", "axis_name", "axis_index_groups")),
    ("pairs", ("source_target_pairs", "perm")),
)


def _shorten(value: Attribute) -> str:
    text = str(value.text if isinstance(value, Opaque) else value)
    plain = text.replace("(", "[").replace(",)", "]").replace(")", "]").replace(" ", "")
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}..."


def _get_result_type(instruction: Instruction) -> Type:
    """Return the type of the result of a collective, also of an asynchronous start."""
    type_ = instruction.type
    if instruction.op.endswith("-start") and not isinstance(type_, Tensor) and len(type_) > 1:
        return type_[1]  # a start returns its operands, then its results
    return type_


def _describe_donation(module: Module) -> list[str]:
    """Return a phrase for each parameter that an output may overwrite."""
    found = []
    for item in _get_items(module.attributes.get("input_output_alias")):
        if not isinstance(item, tuple) or len(item) != _ALIAS:
            continue
        output, number, path, kind = item
        inner = f" {_shorten(path)}" if path else ""
        found.append(f"parameter {number}{inner} -> output {_shorten(output)} {kind}".strip())
    # StableHLO marks the arguments, HLO lists pairs in the header.
    for parameter in module.entry.parameters:
        output = parameter.attributes.get("aliases_output")
        if output is not None:
            found.append(f"parameter {parameter.attributes['index']} -> output {output}")
        if parameter.attributes.get("donor") is not None:
            found.append(f"parameter {parameter.attributes['index']} may be reused")
    donors = _get_items(module.attributes.get("buffer_donor"))
    found += [f"parameter {_shorten(item)} may be reused" for item in donors]
    return sorted(found)


def _get_items(attribute: Attribute) -> tuple[Any, ...]:
    """Return the items of an attribute, none if it is missing or no list."""
    return attribute if isinstance(attribute, tuple) else ()


def _describe_value(type_: Type, attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    spaces = sorted({get_host_space(t.space) for t in iterate_tensors(type_)} - {""})
    sharding, kind = attributes.get("sharding"), attributes.get("memory_kind")
    kind = kind or get_host_space(str(attributes.get("memory_space", "")))
    stated: dict[str, Any] = {"type": _render_type(type_)}
    if spaces or kind:
        stated["memory"] = "|".join(spaces) or kind
    if isinstance(sharding, Sharding):
        stated["sharding"] = render_sharding(sharding)
    return stated


def render_sharding(sharding: Sharding) -> str:
    """Return a sharding as short text, e.g. `tiled [4,1] over 0,1,2,3`."""
    if sharding.kind == "tuple":
        return f"({', '.join(render_sharding(part) for part in sharding.parts)})"
    if sharding.kind != "tiled":
        device = f" {sharding.devices[0]}" if sharding.kind == "maximal" else ""
        return f"{sharding.kind}{device}"
    tiles = ",".join(map(str, sharding.tiles))
    last = f" {'+'.join(sharding.subgroups)} last" if sharding.subgroups else ""
    devices = ",".join(map(str, sharding.devices[:_MOST_DEVICES]))
    more = f",... {len(sharding.devices)} devices" if len(sharding.devices) > _MOST_DEVICES else ""
    return f"tiled [{tiles}]{last} over {devices}{more}"
