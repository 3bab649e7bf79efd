"""The operations of the three IRs by kind: collectives, control flow, data movement.

HLO and StableHLO share a spelling once `conformance.ir.normal.attributes` has been over them
(`stablehlo.all_reduce` is `all-reduce`); a jaxpr keeps its primitives' names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction

COLLECTIVES: Final = {
    "all-gather": "all-gather",
    "all-reduce": "all-reduce",
    "all-to-all": "all-to-all",
    "collective-broadcast": "collective-broadcast",
    "collective-permute": "collective-permute",
    "ragged-all-to-all": "ragged-all-to-all",
    "reduce-scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_gather_invariant": "all-gather",
    "all_gather_reduced": "all-gather",
    "all_to_all": "all-to-all",
    "pbroadcast": "collective-broadcast",
    "pmax": "all-reduce",
    "pmin": "all-reduce",
    "ppermute": "collective-permute",
    "psum": "all-reduce",
    "ragged_all_to_all": "ragged-all-to-all",
    "reduce_scatter": "reduce-scatter",
    "unreduced_psum": "all-reduce",
    "unreduced_reduce_scatter": "reduce-scatter",
}
"""The name in HLO of each collective, by its name in any IR."""

REDUCER_OF: Final = {"psum": "add", "pmax": "maximum", "pmin": "minimum"}
"""The reduction of a jaxpr's collective; HLO and StableHLO name a computation instead."""

BRANCHES: Final = frozenset({"conditional", "case", "if", "cond"})
CONTROL_FLOW: Final = frozenset({"while", "scan", *BRANCHES})

# Operations on floats, too: swapping two operands is exact, unlike regrouping three.
COMMUTATIVE: Final = frozenset(
    {
        *("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
        *("mul", "max", "min", "eq", "ne", "add_any"),
    }
)
"""Operations whose two operands may be swapped; see also `is_commutative`."""
# A `compare` is commutative only in these directions.
_SYMMETRIC: Final = frozenset({"EQ", "NE"})

# `pvary` moves nothing, but changes only the type that `shard_map` checks.
MOVEMENT: Final = frozenset(
    {
        *("bitcast", "broadcast", "broadcast-in-dim", "concatenate", "copy", "dynamic-slice"),
        *("dynamic-update-slice", "gather", "get-tuple-element", "pad", "reshape", "reverse"),
        *("slice", "transpose", "tuple", "broadcast_in_dim", "dynamic_slice", "squeeze"),
        *("dynamic_update_slice", "rev", "expand_dims", "pvary"),
    }
)
"""Operations that only move elements."""

REDUCTIONS: Final = frozenset(
    {
        *("reduce", "reduce-window", "dot", "dot-general", "convolution", "scatter"),
        *("select-and-scatter", "dot_general", "reduce_sum", "cumsum", "conv_general_dilated"),
        *("reduce_window_sum", "scatter_add", "scatter-add"),
    }
)
"""Operations whose floating-point result depends on the order of the reduction."""

CONTRACTIONS: Final = frozenset(
    {"dot", "dot-general", "convolution", "dot_general", "conv_general_dilated", "ragged-dot"}
)

CONSTANTS: Final = frozenset({"constant", "literal"})

SIDE_EFFECTS: Final = frozenset(
    {
        *("send", "send-done", "recv", "recv-done", "infeed", "outfeed", "add-dependency"),
        *("after-all", "domain", "io_callback", "debug_callback", "debug_print", "custom-call"),
        *("pure_callback", "python_callback", "get", "swap", "addupdate", "run_state", "set-xla"),
        *("rng", "rng-bit-generator", "rng-get-and-update-state", "create-token", "custom_call"),
        *("ffi_call", "random_seed", "async-start", "async-update", "async-done", "pallas_call"),
    }
)
"""Operations that are neither merged with an equal one nor dropped when their result is unused."""
# Suffixes of asynchronous halves; `fold_async` has joined every complete pair.
_HALVES: Final = ("-start", "-update", "-done")

# The mark of `compute_on("device_host")`; a TPU has other marks, below.
_HOST_MARK: Final = ("_xla_compute_type", "host")
# Attributes that place an instruction on the host, with their value there.
_HOST_MARKS: Final = (
    _HOST_MARK,
    *((name, "host") for name in ("async_execution_thread", "execution_thread", "device_type")),
    *((name, "HostExecute") for name in ("custom_call_target", "call_target_name")),
)


def is_commutative(instruction: Instruction) -> bool:
    """Whether the operands of an instruction may be swapped."""
    if instruction.op != "compare":
        return instruction.op in COMMUTATIVE
    # HLO spells the attribute `direction`, StableHLO `comparison_direction`.
    attributes = instruction.attributes
    return attributes.get("direction", attributes.get("comparison_direction")) in _SYMMETRIC


class Purity:
    """Which instructions are pure functions of their operands.

    Collectives, random numbers and custom calls are not, nor are computations that contain them:
    two equal ones are two effects, and an unused one still happens. Callees are added first.
    """

    def __init__(self) -> None:
        self._impure: set[int] = set()

    def add(self, computation: Computation) -> None:
        """Classify a computation whose callees were added before."""
        if not all(map(self.is_pure, computation.instructions)):
            self._impure.add(id(computation))

    def is_pure(self, instruction: Instruction) -> bool:
        """Whether an instruction is pure."""
        op = instruction.op
        # An unread collective still waits for the other devices.
        if op in COLLECTIVES or op in SIDE_EFFECTS or op.endswith(_HALVES):
            return False
        return all(id(inner) not in self._impure for _, inner in instruction.bodies)


def runs_on_host(instruction: Instruction) -> bool:
    """Whether an instruction is marked to be computed on the host."""
    attributes = instruction.attributes
    if any(attributes.get(name) == value for name, value in _HOST_MARKS):
        return True
    # Optimised HLO keeps it among frontend attributes, StableHLO among those of mhlo.
    frontends = (attributes.get("frontend_attributes"), attributes.get("mhlo.frontend_attributes"))
    return any(isinstance(frontend, tuple) and _HOST_MARK in frontend for frontend in frontends)
