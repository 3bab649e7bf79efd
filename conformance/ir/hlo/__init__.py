"""HLO text: `parse` reads a module of any release and platform, `print_module` spells a graph."""

from conformance.ir.hlo.parser import parse
from conformance.ir.hlo.printer import print_module

__all__ = ["parse", "print_module"]
