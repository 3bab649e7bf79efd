"""Types: `f32[2,<=3]{1,0:T(8,128)S(1)}`, tuples of them, `token[]`, `opaque[]`."""

from __future__ import annotations

import re

from conformance.ir.graph import Tensor, Type
from conformance.ir.hlo.lexing import DEEPEST, Unexpected, match_all, strip_comments

_ARRAY = r"[a-z]\w*+\[[^\[\]]*+\](?:\{[^{}]*+\})?"
TENSOR = rf"(?:{_ARRAY}|b\({_ARRAY}\))"
_TENSOR = re.compile(r"(b\()?([a-z]\w*+)\[([^\[\]]*+)\](?:\{([^{}]*+)\})?(?(1)\))", re.ASCII)
_SIZE = re.compile(r"(?:<=)?\d{1,19}|(?:<=)?\?", re.ASCII)
_LAYOUT = re.compile(
    r"[\d,]*+(?::(?>(?:[A-Z#*]{1,2}(?>(?:\((?>(?:[^()]|\([^()]*\))*)\))+))*))?", re.ASCII
)
_SPACE = re.compile(r"(?<![A-Z])S\((\d+)\)", re.ASCII)


class HloTypes(dict[str, Type]):
    """Types by their text: each text is read once, and equal types are one object."""

    def __init__(self) -> None:
        super().__init__()
        self._one: dict[Type, Type] = {}

    def __missing__(self, text: str) -> Type:
        clean = strip_comments(text).strip()
        found, end = self.read(clean, 0)
        if end != len(clean):
            raise Unexpected(clean[end:], "the end of the type")
        self[text] = found
        return found

    def read(self, text: str, start: int) -> tuple[Type, int]:
        """Return the type that begins at `start`, and the position after it.

        Raises:
            Unexpected: If there is none.
        """
        open_: list[list[Type]] = []
        while True:
            match = _TENSOR.match(text, start)
            if match is not None:
                found: Type = self._read_tensor(*match.groups())
                start = match.end()
            elif text.startswith("(", start):
                open_.append([])
                if len(open_) > DEEPEST:
                    raise Unexpected("(", f"tuples nested at most {DEEPEST} deep")
                start += 1
                if not text.startswith(")", start):
                    continue
                found, start = self._intern(tuple(open_.pop())), start + 1
            else:
                raise Unexpected(text[start:], "a type")
            while open_:
                open_[-1].append(found)
                if text.startswith(",", start):
                    start += 2 if text.startswith(" ", start + 1) else 1
                    break
                if not text.startswith(")", start):
                    raise Unexpected(text[start:], "',' or ')'")
                found, start = self._intern(tuple(open_.pop())), start + 1
            else:
                return found, start

    def _read_tensor(self, buffer: str | None, dtype: str, sizes: str, layout: str | None) -> Type:
        shape: list[int | str] = []
        for size in sizes.split(",") if sizes else ():
            match_all(_SIZE, size, "a size")
            shape.append(int(size) if size.isdigit() else size)
        space = ""
        if layout:
            match_all(_LAYOUT, layout, "a layout")
            if match := _SPACE.search(layout):
                space = "" if match[1] == "0" else match[1]
                if _SPACE.search(layout, match.end()):
                    raise Unexpected(layout, "one memory space")
                layout = (layout[: match.start()] + layout[match.end() :]).removesuffix(":")
        name = f"b({dtype})" if buffer else dtype
        return self._intern(Tensor(name, tuple(shape), layout or "", space))

    def _intern(self, found: Type) -> Type:
        return self._one.setdefault(found, found)
