"""The order of what a kernel does to memory, as operands.

In the graph the order of instructions is nothing: only operands say what comes first. A kernel
loads, stores, copies and waits, one after the other; so each of these takes the one before it as a
further operand, and the last is a result. Which operations do none of this is listed; any other
is taken to do some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from conformance.ir.graph import Computation, Instruction

_PURE_DIALECTS: Final = frozenset({"arith", "math", "index", "complex", "affine", "vector"})
_ON_MEMORY: Final = frozenset(
    {
        *("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"),
        *("affine.dma_start", "affine.dma_wait", "vector.load", "vector.store"),
        *("vector.maskedload", "vector.maskedstore", "vector.gather", "vector.scatter"),
        *("vector.transfer_read", "vector.transfer_write", "vector.expandload"),
        *("vector.compressstore", "vector.print"),
    }
)
_TPU: Final = (
    *("all_reduce", "assume_layout", "assume_multiple", "bitcast", "bitcast_vreg"),
    *("broadcast_in_sublanes", "concatenate", "create_mask", "create_subelement_mask"),
    *("dynamic_gather", "dynamic_rotate", "erase_memref_layout", "extf", "fptosi", "gather"),
    *("iota", "mask_cast", "matmul", "memref_bitcast", "memref_reshape", "memref_slice"),
    *("memref_squeeze", "reciprocal", "reinterpret_cast", "relayout", "repeat", "reshape"),
    *("roll_vectors", "rotate", "sitofp", "sublane_shuffle", "transpose", "truncf"),
    *("unroll_vectors", "weird", "reduce_index", "scan", "sort", "stochastic_convert"),
)
_TRITON: Final = (
    *("addptr", "advance", "bitcast", "broadcast", "cat", "clampf", "dot", "expand_dims"),
    *("fp_to_fp", "get_num_programs", "get_program_id", "int_to_ptr", "join", "make_range"),
    *("make_tensor_ptr", "mulhiui", "precise_divf", "precise_sqrt", "ptr_to_int", "reshape"),
    *("splat", "split", "trans", "unsplat"),
)
_GPU: Final = ("block_dim", "block_id", "grid_dim", "lane_id", "subgroup_id", "thread_id")
_LLVM: Final = (
    *("extractvalue", "getelementptr", "insertvalue", "mlir.addressof", "mlir.constant"),
    *("mlir.poison", "mlir.undef", "mlir.zero", "ptrtoint", "inttoptr"),
)
_PURE: Final = frozenset(
    {
        *(f"gpu.{op}" for op in _GPU),
        *(f"llvm.{op}" for op in _LLVM),
        *(f"tpu.{op}" for op in _TPU),
        *(f"tt.{op}" for op in _TRITON),
        *("memref.cast", "memref.dim", "memref.subview", "memref.reinterpret_cast"),
        *("memref.memory_space_cast", "ub.poison", "builtin.unrealized_conversion_cast"),
    }
)
_AS_THEIR_REGIONS: Final = frozenset(
    {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region"}
    | {"tt.reduce", "tt.scan", "tt.map_elementwise", "tpu.region", "vector.mask"}
)
"""Operations that do no more than what is done in their regions."""


class Effects:
    """Puts what a kernel does into its order; regions come before what is around them."""

    def __init__(self) -> None:
        self._acting: set[int] = set()

    def chain(self, computation: Computation) -> None:
        """Make what follows depend on what comes before.

        Args:
            computation: Rewritten in place; functions in it are values, and happen when called.
        """
        last: Instruction | None = None
        for instruction in computation.instructions:
            if self._acts(instruction):
                if last is not None:
                    instruction.operands += (last,)
                    instruction.paths += ((),)
                last = instruction
        if last is not None:
            computation.results.append((last, ()))
            self._acting.add(id(computation))

    def _acts(self, instruction: Instruction) -> bool:
        op = instruction.op
        if op == "parameter" or "symbol" in instruction.attributes:
            return False
        if any(id(inner) in self._acting for _, inner in instruction.bodies):
            return True
        dialect = op.partition(".")[0]
        if op in _PURE or op in _AS_THEIR_REGIONS:
            return False
        return dialect not in _PURE_DIALECTS or op in _ON_MEMORY
