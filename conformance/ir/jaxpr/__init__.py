"""Jaxprs: the worker's JSON to the graph, and their spelling made one over releases."""

from conformance.ir.jaxpr.parser import parse
from conformance.ir.jaxpr.spelling import normalise_spelling

__all__ = ["normalise_spelling", "parse"]
