"""Locations: from the table of `#loc12 = loc(...)` to name stack, user file and line."""

from __future__ import annotations

import re
from typing import NamedTuple

from conformance.ir.graph import NOWHERE, Origin
from conformance.ir.mlir.scan import QUOTED, Scanner


class _Place(NamedTuple):
    """A location on the way to an origin."""

    name: str
    file: str
    line: int


_NOWHERE = _Place("", "", 0)
# The locations that jax writes, each matched at once; a module has one for every few instructions.
_USUAL = re.compile(
    r"""loc\((?: "([^"\\\n]*)"(?:\((\#loc\d*)\))?           # "name"(#loc1)
        |   callsite\((\#loc\d*)[ ]at[ ](\#loc\d*)\)         # callsite(#loc1 at #loc2)
        |   "([^"\\\n]*)":(\d+):\d+(?:[ ]to[ ]\d*:\d+)? )\)  # "file":1:2 to :3
    """,
    re.VERBOSE,
)
_REFERENCE = re.compile(rf"{QUOTED}|(#[\w.$-]+)")


class Locations:
    """Resolves locations at their first use; equal origins are one object.

    The name is the outermost one that is not the kind of a primitive (`while:`), the file is that
    of the innermost frame, which jax sets to the user's.

    Attributes:
        aliases: Text and position of the definition of each `#loc12`.
    """

    def __init__(self, text: str, aliases: dict[str, tuple[str, int]]) -> None:
        self.aliases = aliases
        self._text = text
        self._places: dict[str, _Place] = {}
        self._origins: dict[_Place, Origin] = {_NOWHERE: NOWHERE}

    def read(self, scan: Scanner) -> Origin:
        """Read `loc(...)`, and return its origin."""
        place = self._read_wrapped(scan)
        # Thousands of instructions share a place, and passes compare origins.
        origin = self._origins.get(place)
        if origin is None:
            origin = self._origins[place] = Origin(place.name.removesuffix(":"), *place[1:])
        return origin

    def _read_wrapped(self, scan: Scanner) -> _Place:
        scan.expect("loc")
        scan.expect("(")
        place = self._read_place(scan)
        scan.expect(")")
        return place

    def _read_place(self, scan: Scanner) -> _Place:
        match scan.next:
            case "unknown":
                return self._accept(scan, _NOWHERE)
            case "callsite":
                return self._read_call(scan)
            case "fused":
                return self._read_fused(scan)
            case token if token[:1] == '"':
                return self._read_named(scan)
            case token if token[:1] == "#":
                place = self._places.get(token)
                return self._read_alias(scan) if place is None else self._accept(scan, place)
            case _:
                return self._read_wrapped(scan)

    def _accept(self, scan: Scanner, place: _Place) -> _Place:
        scan.advance()
        return place

    def _read_alias(self, scan: Scanner) -> _Place:
        """Read `#loc12`, after the locations that it refers to.

        The stack is explicit: chains of calls are longer than Python recurses.
        """
        waiting = [scan.next]
        open_: set[str] = set()
        while waiting:
            name = waiting[-1]
            if name in self._places:
                waiting.pop()
                continue
            if name not in self.aliases:
                scan.fail(f"a location, {name} is not defined")
            text, position = self.aliases[name]
            needed = [n for n in _REFERENCE.findall(text) if n and n not in self._places]
            # Met again with open references: one of them leads back here.
            if needed:
                if name in open_:
                    scan.fail(f"a location, {name} leads to itself")
                open_.add(name)
                waiting += needed
            else:
                self._places[name] = self._read_definition(text, position)
        return self._places[scan.advance()]

    def _read_definition(self, text: str, position: int) -> _Place:
        """Return the place of the text of an alias whose references are known."""
        usual = _USUAL.fullmatch(text)
        if usual is not None:
            name, inside, callee, caller, file, number = usual.groups()
            if inside:
                return _join_name(name, self._places[inside])
            if callee:
                return _join_call(self._places[callee], self._places[caller])
            return _Place(name, "", 0) if name is not None else _Place("", file, int(number))
        # Only for the rest, because a scanner takes many times as long as the pattern.
        scan = Scanner(text, 1 + self._text.count("\n", 0, position))
        place = self._read_wrapped(scan)
        if scan.next:
            scan.fail("the end of the location")
        return place

    def _read_named(self, scan: Scanner) -> _Place:
        """Read `"file":1:2 to 3:4`, `"name"` or `"name"(location)`."""
        text = scan.read_string()
        if scan.accept(":"):
            return _Place("", text, self._read_range(scan))
        if scan.next != "(":
            return _Place(text, "", 0)
        return _join_name(text, self._read_inner(scan))

    def _read_range(self, scan: Scanner) -> int:
        line = scan.read_integer()
        scan.expect(":")
        scan.read_integer()
        if scan.accept("to"):
            if scan.next != ":":
                scan.read_integer()
            scan.expect(":")
            scan.read_integer()
        return line

    def _read_call(self, scan: Scanner) -> _Place:
        """Read `callsite(inner at outer)`: the inner file, without a name, which is a frame's."""
        scan.advance()
        scan.expect("(")
        scan.enter()
        inner = self._read_place(scan)
        scan.expect("at")
        outer = self._read_place(scan)
        scan.leave()
        scan.expect(")")
        return _join_call(inner, outer)

    def _read_fused(self, scan: Scanner) -> _Place:
        """Read `fused<attribute>[a, b]`: the first name and the first file."""
        scan.advance()
        if scan.next == "<":
            scan.read_brackets()
        scan.expect("[")
        scan.enter()
        places = [self._read_place(scan)]
        while scan.accept(","):
            places.append(self._read_place(scan))
        scan.leave()
        scan.expect("]")
        named = next((place.name for place in places if place.name), "")
        filed = next((place for place in places if place.file), _NOWHERE)
        return _Place(named, filed.file, filed.line)

    def _read_inner(self, scan: Scanner) -> _Place:
        scan.expect("(")
        scan.enter()
        place = self._read_place(scan)
        scan.leave()
        scan.expect(")")
        return place


def _join_name(name: str, inner: _Place) -> _Place:
    # A name with a colon is the kind of a primitive; jax nests it around the name stack.
    if name.endswith(":") and inner.name:
        return inner
    return _Place(name, inner.file, inner.line)


def _join_call(inner: _Place, outer: _Place) -> _Place:
    # The name of a frame is its function, which is no part of a name stack.
    found = inner if inner.file else outer
    return _Place("", found.file, found.line)
