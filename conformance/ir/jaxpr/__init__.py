"""Jaxprs: the parser of the worker's JSON, and the normalisation of spellings over releases."""

from conformance.ir.jaxpr.parser import parse
from conformance.ir.jaxpr.spelling import normalise_spelling

__all__ = ["normalise_spelling", "parse"]
