"""The operations of the three IRs by their kind: collectives, control flow, data movement.

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
"""Collectives by the name each IR has for them, each with HLO's."""

REDUCER_OF: Final = {"psum": "add", "pmax": "maximum", "pmin": "minimum"}
"""What a jaxpr's collective reduces with; HLO and StableHLO name a computation."""

BRANCHES: Final = frozenset({"conditional", "case", "if", "cond"})
CONTROL_FLOW: Final = frozenset({"while", "scan", *BRANCHES})

COMMUTATIVE: Final = frozenset(
    {
        *("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
        *("mul", "max", "min", "eq", "ne", "add_any"),
    }
)
"""Operations of two operands whose order means nothing; see also `is_commutative`."""
_SYMMETRIC: Final = frozenset({"EQ", "NE"})

MOVEMENT: Final = frozenset(
    {
        *("bitcast", "broadcast", "broadcast-in-dim", "concatenate", "copy", "dynamic-slice"),
        *("dynamic-update-slice", "gather", "get-tuple-element", "pad", "reshape", "reverse"),
        *("slice", "transpose", "tuple", "broadcast_in_dim", "dynamic_slice", "squeeze"),
        *("dynamic_update_slice", "rev", "expand_dims", "pvary"),
    }
)
"""Operations that put elements elsewhere and compute nothing."""

REDUCTIONS: Final = frozenset(
    {
        *("reduce", "reduce-window", "dot", "dot-general", "convolution", "scatter"),
        *("select-and-scatter", "dot_general", "reduce_sum", "cumsum", "conv_general_dilated"),
        *("reduce_window_sum", "scatter_add", "scatter-add"),
    }
)
"""Operations whose result depends on the order in which elements are taken together."""

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
"""Operations that are neither merged with an equal one nor dropped when nobody reads them."""
_HALVES: Final = ("-start", "-update", "-done")
"""How the operations end that only begin or end something; what is whole was made one before."""

_HOST_MARK: Final = ("_xla_compute_type", "host")
_HOST_SAID: Final = (
    _HOST_MARK,
    *((name, "host") for name in ("async_execution_thread", "execution_thread", "device_type")),
    *((name, "HostExecute") for name in ("custom_call_target", "call_target_name")),
)
"""Attributes, each with the value that places an instruction on the host."""


def is_commutative(instruction: Instruction) -> bool:
    """Say whether the order of an instruction's operands means nothing."""
    if instruction.op != "compare":
        return instruction.op in COMMUTATIVE
    attributes = instruction.attributes
    return attributes.get("direction", attributes.get("comparison_direction")) in _SYMMETRIC


class Purity:
    """Tells plain functions of their operands from what does more.

    Collectives, random numbers, calls out and whatever calls such are not pure: two of them are
    not one, and an unread one still happens. Computations are added bodies first.
    """

    def __init__(self) -> None:
        self._impure: set[int] = set()

    def add(self, computation: Computation) -> None:
        """Take note of a computation whose bodies were added before."""
        if not all(map(self.is_pure, computation.instructions)):
            self._impure.add(id(computation))

    def is_pure(self, instruction: Instruction) -> bool:
        """Say whether an instruction is pure."""
        op = instruction.op
        if op in COLLECTIVES or op in SIDE_EFFECTS or op.endswith(_HALVES):
            return False
        return all(id(inner) not in self._impure for _, inner in instruction.bodies)


def runs_on_host(instruction: Instruction) -> bool:
    """Say whether an instruction is marked to be computed on the host."""
    attributes = instruction.attributes
    if any(attributes.get(name) == value for name, value in _HOST_SAID):
        return True
    frontends = (attributes.get("frontend_attributes"), attributes.get("mhlo.frontend_attributes"))
    return any(isinstance(frontend, tuple) and _HOST_MARK in frontend for frontend in frontends)
