"""HLO text: `parse` reads a module of any release and platform."""

from conformance.ir.hlo.parser import parse

__all__ = ["parse"]
