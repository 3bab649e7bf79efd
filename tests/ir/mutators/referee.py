"""What a module means, as a hash of our own: the referee of the mutators.

A meaningful mutator counts only where this changes, one that makes noise only where it stays. It
folds fusions, calls and tuples, orders commutative operands, and looks at no names, layouts,
metadata, channel numbers or backend configuration.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from tests.ir.mutators.groups import groups_of, tiles
from tests.ir.mutators.text import ARRAY, CALL_LISTS, CALLS, COMMENT, parts_of, read

if TYPE_CHECKING:
    from tests.ir.mutators.text import Block, Line, Text

Value: TypeAlias = tuple["Value", ...] | int | str
"""A hash, or a tuple of them."""
COMMUTATIVE = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}
WITHOUT = (
    "metadata=", "backend_config=", "channel_id=", "frontend_attributes=", "kind=", "sharding=",
    "control-predecessors=", "replica_groups=", "output_to_operand_aliasing=",
)  # fmt: skip
DEFAULTS = {
    "indices_are_sorted=false", "unique_indices=false", "operand_precision={default,default}",
    "is_stable=false", "feature_group_count=1", "batch_group_count=1",
    "use_global_device_ids=false",
}  # fmt: skip
COSTS = {
    "outer_dimension_partitions", "estimated_cycles", "window_config", "scoped_memory_configs",
    "used_scoped_memory_configs", "operation_queue_id", "reification_cost", "retry_config",
    "force_earliest_schedule", "output_chunk_bound_config", "wait_on_operation_queues",
    "flag_configs", "aliasing_operands", "collective_algorithm_config",
    "block_level_fusion_config", "convolution_algorithm_config", "barrier_config", "dma_priority",
    "autotune_workspace_size",
}  # fmt: skip
"""Keys of backend configurations about cost, schedule and autotuning."""
COLLECTIVE = re.compile(r"all-|collective-|reduce-scatter|ragged-")


class Referee:
    """Hashes of one module's computations."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.blocks = text.by_name()
        self.known: dict[tuple[str, Value], Value] = {}

    def block(self, name: str, args: tuple[Value, ...] | None) -> Value:
        """Return what a computation makes of its arguments, or of any arguments."""
        key = (name, args if args is not None else -1)
        if key not in self.known:
            block = self.blocks[name]
            live = block.live()
            values: dict[str, Value] = {}
            for line in block.lines:
                if line.name in live:
                    values[line.name] = self.line(block, line, values, args)
            self.known[key] = values[block.root.name]
        return self.known[key]

    def line(
        self, block: Block, line: Line, values: dict[str, Value], args: tuple[Value, ...] | None
    ) -> Value:
        """Return the hash of an instruction's result."""
        if line.op == "parameter":
            number = int(line.operands[0])
            if args is not None:
                return args[number]
            sharding = line.get("sharding") or ""
            own = (str(tiles(sharding[1:]) or sharding), spaces(line.type)) if block.entry else ()
            return hash((number, plain(line.type), own))
        taken = tuple(values[name] for name in line.takes)
        folded = self.folded(line, taken)
        if folded is not None:
            return folded
        if line.op in COMMUTATIVE:
            taken = tuple(sorted(taken, key=hash))
        literal = literal_of(line) if line.op == "constant" else ""
        op = line.op.removesuffix("-start")
        type_ = () if COLLECTIVE.match(op) else plain(line.type)
        return hash((op, type_, taken, literal, self.attributes(line)))

    def folded(self, line: Line, taken: tuple[Value, ...]) -> Value | None:
        """Return what an instruction is without having a meaning of its own, if so."""
        if line.op == "tuple":
            return taken
        if line.op == "copy" or (line.op.endswith("-done") and COLLECTIVE.match(line.op)):
            return taken[0]
        if line.op == "get-tuple-element" and isinstance(taken[0], tuple):
            return taken[0][int(line.get("index") or 0)]
        if line.op in {"fusion", "call"} and "host" not in str(line.get("frontend_attributes")):
            return self.block(line.callees()[0], taken)
        return None

    def attributes(self, line: Line) -> tuple[object, ...]:
        """Return an instruction's attributes, without what does not matter, in a fixed order."""
        roles = sorted(
            (role, self.block(name, None))
            for role, name in zip(line.roles(), line.callees(), strict=True)
        )
        host = "_xla_compute_type" in str(line.get("frontend_attributes"))
        own = configuration(line) if line.op.startswith("custom-call") else ""
        kept = sorted(
            re.sub(r"\[(\d+:\d+):1\]", r"[\1]", attribute)
            for attribute in line.attributes
            if not attribute.startswith(WITHOUT)
            and attribute not in DEFAULTS
            and not CALLS.match(attribute)
            and not CALL_LISTS.match(attribute)
        )
        groups = line.get("replica_groups")
        return tuple(roles), host, own, tuple(kept), groups and tuple(sorted(groups_of(groups)))

    def signature(self) -> int:
        """Return the hash of the whole module."""
        count = self.text.header("num_partitions"), self.text.header("replica_count")
        head = (self.text.header("input_output_alias"), spaces(self.text.head[0]), count)
        counted = Counter(
            line.op.removesuffix("-start")
            for _, line in self.text.live()
            if COLLECTIVE.match(line.op) and not line.op.endswith("-done")
        )
        threads = sorted(
            row for block in self.text.blocks for row in block.footer if "thread" in row
        )
        kinds = tuple(sorted(counted.items()))
        return hash((self.block(self.text.entry.name, None), head, kinds, tuple(threads)))


def literal_of(line: Line) -> str:
    """Return a constant's value in one spelling."""
    value = re.sub(r"\s", "", line.operands[0])
    if line.dtype == "pred":
        return value.replace("true", "1").replace("false", "0")
    return value


def configuration(line: Line) -> str:
    """Return the configuration of a custom call, without what backends note for themselves."""
    value = line.get("backend_config") or ""
    if not value.startswith('{"'):
        return value
    config = {k: v for k, v in json.loads(value).items() if k not in COSTS}
    call = config.get("custom_call_config")
    if isinstance(call, dict) and "body" in call:
        call["body"] = re.sub(rb"/\w+/\w+\.py", b"", base64.b64decode(call["body"])).hex()
    return json.dumps(config, sort_keys=True)


def plain(type_: str) -> tuple[str, ...]:
    """Return a type without layout."""
    return tuple(ARRAY.sub(r"\1[\2]", part) for part in parts_of(type_))


def spaces(text: str) -> tuple[tuple[str, str], ...]:
    """Return the memory spaces named in a text, with where."""
    return tuple(re.findall(r"(\w+\[[^\]]*\])\{[^}]*(S\(\d+\))", COMMENT.sub("", text)))


def signature(text: str) -> int:
    """Return a hash of what a module's text means."""
    return Referee(read(text)).signature()
