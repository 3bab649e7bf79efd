"""What stands before and after the module: aliases, resources; and whether it is one at all."""

from __future__ import annotations

import re
from typing import NamedTuple

from conformance.ir.mlir.scan import Scanner

_ALIAS = re.compile(r"^([#!][\w.$-]+) = ([^\n]*\S)", re.MULTILINE)
_BESIDE = re.compile(r"(?>(?:\s*+(?:[#!][\w.$-]+ = [^\n]*\S[^\n]*|//[^\n]*))*)\s*")
_MESH = re.compile(r'"sdy\.mesh"\(\)')
_RESOURCES = re.compile(r"\{-#.*?#-\}\s*\Z", re.DOTALL)
_GENERIC = "get_asm(print_generic_op_form=True, enable_debug_info=True, large_elements_limit=None)"


class Header(NamedTuple):
    """What is known of a text before it is read.

    Attributes:
        start: Where the module begins.
        locations: Text and position of what each `#loc12` stands for.
        attributes: What other `#name` stand for.
        types: What each `!name` stands for.
        meshes: Where meshes are defined, perhaps after their use.
    """

    start: int
    locations: dict[str, tuple[str, int]]
    attributes: dict[str, str]
    types: dict[str, str]
    meshes: list[int]

    @staticmethod
    def of(text: str) -> Header:
        """Look a text over.

        Raises:
            IrSyntaxError: If it is empty or in another language.
        """
        beside = _BESIDE.match(text)
        start = beside.end() if beside is not None else 0
        if not text.startswith('"builtin.module"', start):
            _refuse(text, start)
        locations: dict[str, tuple[str, int]] = {}
        attributes: dict[str, str] = {}
        types: dict[str, str] = {}
        for found in _ALIAS.finditer(text):
            name, meaning = found.groups()
            if meaning.startswith("loc("):
                locations[name] = (meaning, found.start(2))
            else:
                (attributes if name[0] == "#" else types)[name] = meaning
        meshes = [found.end() for found in _MESH.finditer(text)]
        return Header(start, locations, attributes, types, meshes)


def check_rest(scan: Scanner) -> None:
    """Check that nothing but aliases and resources follow the module.

    Raises:
        IrSyntaxError: If something does.
    """
    beside = _BESIDE.match(scan.text, scan.start)
    end = scan.start if beside is None else beside.end()
    if end < len(scan.text) and _RESOURCES.match(scan.text, end) is None:
        scan.seek(end)
        scan.fail("the end")


def _refuse(text: str, start: int) -> None:
    scan = Scanner(text)
    scan.seek(start)
    if not scan.next:
        scan.fail("a module; the text is empty")
    if scan.next == "module":
        scan.fail(f"'\"builtin.module\"': the generic form, as operation.{_GENERIC} prints it")
    if scan.next == "HloModule":
        scan.fail("StableHLO in MLIR's generic form; this is HLO")
    scan.fail(f"'\"builtin.module\"', as operation.{_GENERIC} prints it")
