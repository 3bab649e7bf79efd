"""StableHLO (and what stands beside it in a module) in MLIR's generic form, read into the graph.

Its regions see the values around them: an operand of an instruction in a body may be an
instruction of a computation that encloses it.
"""

from conformance.ir.mlir.parser import parse

__all__ = ["parse"]
