"""Jaxprs: the worker's JSON to the graph and back, and their spelling made one over releases."""

from conformance.ir.jaxpr.reading import parse
from conformance.ir.jaxpr.spelling import normalise_spelling
from conformance.ir.jaxpr.writing import dump, print_module

__all__ = ["dump", "normalise_spelling", "parse", "print_module"]
