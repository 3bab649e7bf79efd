"""StableHLO and its companion dialects in MLIR's generic form, read into the graph.

Regions see the values around them: an operand of an instruction may belong to an enclosing
computation. `conformance.ir.normal.loop_carries.close_regions` changes that.
"""

from conformance.ir.mlir.parser import parse

__all__ = ["parse"]
