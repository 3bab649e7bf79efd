"""Facts: what an IR says in compiler-neutral terms. They are claimed, they gate, they are shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.graph import Opaque, Sharding, Tensor
from conformance.ir.normal.rewriting import tensors_of, type_of
from conformance.ir.normal.spaces import space_name
from conformance.ir.scattering import reduce_scatters
from conformance.ir.vocabulary import COLLECTIVES, CONTRACTIONS, REDUCER_OF, runs_on_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.ir.graph import Attribute, Computation, Instruction, Module, Type

STATED_BY: Final = "hlo"
"""The IR whose facts are those of a job."""

GATING: Final = (
    "collectives",
    "collective_ops",
    "host_compute",
    "memory_spaces",
    "custom_calls",
    "donation",
    "dtypes",
    "parameters",
    "results",
)
"""Facts whose change fails a run; the others are shown."""

_ALIAS = 4
"""Parts of an entry of `input_output_alias`: output, parameter, path into it, kind."""
_MANY = 16
_LONG = 160


def fact_table(module: Module) -> dict[str, Any]:
    """State the facts of a module.

    Args:
        module: In the form `structure`.

    Returns:
        Plain data, for JSON:
        `collectives`: count by opcode, a start and its done being one, and an all-reduce of which
        each device keeps its part a reduce-scatter;
        `collective_ops`: count by a line that says operation, reducer, type, dimension, groups
        and whether it stands in a loop;
        `host_compute`: whether anything is marked to be computed on the host;
        `memory_spaces`: count of results by memory space of the host;
        `custom_calls`: count by target;
        `donation`: which parameter an output may reuse;
        `dtypes`: the element types;
        `parameters`, `results`: type, memory space and sharding of each, as far as it is said;
        `converts`: count by `f32->bf16`;
        `contractions`: count by operation and type;
        `fusions`: count by kind;
        `loops`: count by `trip count 10`, or `trip count unknown`, with `nested` before it;
        `ops`: count by operation.
    """
    counts = _Counts()
    depths, scattered = _depths(module), reduce_scatters(module)
    for computation in module.reachable():
        for instruction in computation.instructions:
            counts.take(scattered.get(instruction, instruction), depths[id(computation)])
    return {
        "collectives": _sorted(counts.collectives),
        "collective_ops": _sorted(counts.collective_ops),
        "host_compute": counts.host_compute,
        "memory_spaces": _sorted(counts.spaces),
        "custom_calls": _sorted(counts.custom_calls),
        "donation": _donation(module),
        "dtypes": sorted(counts.dtypes),
        "parameters": [_parameter(one) for one in module.entry.parameters],
        "results": [
            _result(type_, _said_of(module.entry, number))
            for number, type_ in enumerate(_result_types(module.entry))
        ],
        "converts": _sorted(counts.converts),
        "contractions": _sorted(counts.contractions),
        "fusions": _sorted(counts.fusions),
        "loops": _sorted(counts.loops),
        "ops": _sorted(counts.ops),
    }


def gating(facts: dict[str, Any]) -> dict[str, Any]:
    """Return those of the facts whose change fails a run."""
    return {name: facts[name] for name in GATING if name in facts}


class _Counts:
    def __init__(self) -> None:
        self.collectives: Counter[str] = Counter()
        self.collective_ops: Counter[str] = Counter()
        self.custom_calls: Counter[str] = Counter()
        self.converts: Counter[str] = Counter()
        self.contractions: Counter[str] = Counter()
        self.fusions: Counter[str] = Counter()
        self.loops: Counter[str] = Counter()
        self.ops: Counter[str] = Counter()
        self.spaces: Counter[str] = Counter()
        self.dtypes: set[str] = set()
        self.host_compute = False
        self._seen_types: dict[int, tuple[Type, list[Tensor]]] = {}

    def take(self, instruction: Instruction, depth: int) -> None:
        op = instruction.op
        self.ops[op] += 1
        base = op.removesuffix("-start")
        for tensor in self._tensors(instruction.type):
            self.dtypes.add(tensor.dtype)
            space = space_name(tensor.space)
            if space:
                self.spaces[space] += 1
        collective = COLLECTIVES.get(base)
        if collective is not None:
            self.collectives[collective] += 1
            self.collective_ops[_collective(instruction, collective, depth)] += 1
        elif base in {"custom-call", "custom_call", "ffi_call"}:
            target = instruction.attributes.get("custom_call_target")
            self.custom_calls[str(target or instruction.attributes.get("target_name", ""))] += 1
        elif op in {"convert", "convert_element_type"}:
            self.converts[_conversion(instruction)] += 1
        elif op in CONTRACTIONS:
            self.contractions[f"{op} {_spelled(instruction.type)}"] += 1
        elif op == "fusion":
            kind = instruction.attributes.get("fusion_kind", instruction.attributes.get("kind"))
            self.fusions[str(kind)] += 1
        elif op in {"while", "scan"}:
            self.loops[_loop(instruction, depth)] += 1
        self.host_compute = self.host_compute or runs_on_host(instruction)

    def _tensors(self, type_: Type) -> list[Tensor]:
        found = self._seen_types.get(id(type_))
        if found is None:
            found = self._seen_types[id(type_)] = (type_, list(tensors_of(type_)))
        return found[1]


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _spelled(type_: Type) -> str:
    parts = [f"{t.dtype}[{','.join(map(str, t.shape))}]" for t in tensors_of(type_)]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _depths(module: Module) -> dict[int, int]:
    """Return how many loops each computation is in, the most for one used in several places."""
    depths = {id(module.entry): 0}
    for computation in reversed(module.reachable()):
        depth = depths[id(computation)]
        for instruction in computation.instructions:
            inner_depth = depth + (instruction.op in {"while", "scan"})
            for _, inner in instruction.bodies:
                depths[id(inner)] = max(depths.get(id(inner), 0), inner_depth)
    return depths


def _collective(instruction: Instruction, name: str, depth: int) -> str:
    attributes = instruction.attributes
    words = [name]
    reducer = REDUCER_OF.get(instruction.op) or _reducer(instruction)
    if reducer:
        words.append(reducer)
    words.append(_spelled(_awaited(instruction)))
    for label, names in _ABOUT:
        value = next((attributes[n] for n in names if n in attributes), None)
        if value is not None and value != ():
            words.append(f"{label} {_text(value)}")
    if depth:
        words.append("in a loop" if depth == 1 else f"in {depth} loops")
    return " ".join(words)


_ABOUT: Final = (
    (
        "dim",
        (
            *("dimensions", "all_gather_dim", "all_gather_dimension", "scatter_dimension"),
            *("scatter_dim", "split_dimension", "split_axis"),
        ),
    ),
    ("over", ("replica_groups", "axes", "axis_name", "axis_index_groups")),
    ("pairs", ("source_target_pairs", "perm")),
)


def _text(value: Attribute) -> str:
    text = str(value.text if isinstance(value, Opaque) else value)
    plain = text.replace("(", "[").replace(",)", "]").replace(")", "]").replace(" ", "")
    return plain if len(plain) <= _LONG else f"{plain[:_LONG]}..."


def _awaited(instruction: Instruction) -> Type:
    """Return the type of what a collective gives, of its done if this is only the start."""
    type_ = instruction.type
    if instruction.op.endswith("-start") and not isinstance(type_, Tensor) and len(type_) > 1:
        return type_[1]
    return type_


def _reducer(instruction: Instruction) -> str:
    inner = dict(instruction.bodies).get("to_apply")
    if inner is None or not inner.results:
        return ""
    return inner.results[0][0].op


def _conversion(instruction: Instruction) -> str:
    before = type_of((instruction.operands[0], instruction.paths[0]))
    after = instruction.type
    names = [one.dtype if isinstance(one, Tensor) else "tuple" for one in (before, after)]
    return "->".join(names)


def _loop(instruction: Instruction, depth: int) -> str:
    trips = instruction.attributes.get("trip_count", instruction.attributes.get("length"))
    text = f"trip count {trips if trips is not None else 'unknown'}"
    return f"nested {text}" if depth else text


def _donation(module: Module) -> list[str]:
    """Return which parameters may be overwritten by which output, one phrase each."""
    found = []
    alias = module.attributes.get("input_output_alias", ())
    for item in alias if isinstance(alias, tuple) else ():
        if not isinstance(item, tuple) or len(item) != _ALIAS:
            continue
        output, number, path, kind = item
        inner = f" {_text(path)}" if path else ""
        found.append(f"parameter {number}{inner} -> output {_text(output)} {kind}".strip())
    for one in module.entry.parameters:
        output = one.attributes.get("aliases_output")
        if output is not None:
            found.append(f"parameter {one.attributes['index']} -> output {output}")
        if one.attributes.get("donor") is not None:
            found.append(f"parameter {one.attributes['index']} may be reused")
    donors = module.attributes.get("buffer_donor", ())
    if isinstance(donors, tuple):
        found += [f"parameter {_text(item)} may be reused" for item in donors]
    return sorted(found)


def _parameter(one: Instruction) -> dict[str, Any]:
    return _result(one.type, one.attributes)


def _said_of(entry: Computation, number: int) -> dict[str, Attribute]:
    said = entry.attributes.get(f"result {number}", ())
    return dict(said) if isinstance(said, tuple) else {}  # type: ignore[arg-type]


def _result(type_: Type, said: Mapping[str, Attribute]) -> dict[str, Any]:
    spaces = sorted({space_name(t.space) for t in tensors_of(type_)} - {""})
    sharding, kind = said.get("sharding"), said.get("memory_kind")
    kind = kind or space_name(str(said.get("memory_space", "")))
    stated: dict[str, Any] = {"type": _spelled(type_)}
    if spaces or kind:
        stated["memory"] = "|".join(spaces) or kind
    if isinstance(sharding, Sharding):
        stated["sharding"] = sharding_text(sharding)
    return stated


def _result_types(entry: Computation) -> list[Type]:
    found: list[Type] = []
    for value in entry.results:
        type_ = type_of(value)
        found += [type_] if isinstance(type_, Tensor) else list(type_)
    return found


def sharding_text(sharding: Sharding) -> str:
    """Return a sharding in short, e.g. `tiled [4,1] over 0,1,2,3`.

    Args:
        sharding: Any sharding.
    """
    if sharding.kind == "tuple":
        return f"({', '.join(sharding_text(part) for part in sharding.parts)})"
    if sharding.kind != "tiled":
        device = f" {sharding.devices[0]}" if sharding.kind == "maximal" else ""
        return f"{sharding.kind}{device}"
    tiles = ",".join(map(str, sharding.tiles))
    last = f" {'+'.join(sharding.subgroups)} last" if sharding.subgroups else ""
    devices = ",".join(map(str, sharding.devices[:_MANY]))
    more = f",... {len(sharding.devices)} devices" if len(sharding.devices) > _MANY else ""
    return f"tiled [{tiles}]{last} over {devices}{more}"
