"""Kernels that modules embed as MLIR bytecode: Mosaic's and Triton's, read without MLIR."""

from conformance.ir.kernels.custom_calls import read_kernels

__all__ = ["read_kernels"]
