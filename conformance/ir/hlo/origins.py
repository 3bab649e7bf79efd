"""Origins of instructions: `metadata={...}`, and the tables of stack frames in newer texts."""

from __future__ import annotations

import re

from conformance.ir.graph import NOWHERE, Origin
from conformance.ir.hlo.lexing import QUOTED, HloTextError, match_all, strip_brackets, unquote

# The fields in the order of XLA, without escapes: nearly all texts, for a fraction of the time that
# the general reader takes.
_SIMPLE = re.compile(
    r'(?:op_type="[^"\\]*+" ?)?(?:op_name="([^"\\]*+)" ?)?'
    r'(?:source_file="([^"\\]*+)" source_line=(\d{1,18}) ?)?'
    r"(?:source_end_line=\d++ ?)?(?:source_column=\d++ ?)?(?:source_end_column=\d++ ?)?"
    r'(?>(?:(?:deduplicated|scheduling)_name="[^"\\]*+" ?)*)(?:stack_frame_id=(\d{1,18}))?\}',
    re.ASCII,
)
_FIELD = re.compile(rf"\s*+(\w++)=(?:({QUOTED})|(-?[\w.+]++)|(\{{))", re.ASCII | re.DOTALL)
_TEXTS = frozenset({"op_name", "op_type", "source_file", "deduplicated_name", "scheduling_name"})
_ROW = re.compile(rf"(\d{{1,18}}) (?:({QUOTED})|\{{([\w= ]*)\}})", re.ASCII | re.DOTALL)
_NUMBER = re.compile(r"(\w++)=(\d{1,18})", re.ASCII)

TABLES = frozenset({"FileNames", "FunctionNames", "FileLocations", "StackFrames"})


class Origins(dict[str, Origin]):
    """Origins by the text of their metadata after the brace; equal origins are one object."""

    def __init__(self) -> None:
        super().__init__()
        self._unique: dict[Origin, Origin] = {NOWHERE: NOWHERE}
        self._strings: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
        self._numbers: dict[str, dict[int, dict[str, int]]] = {
            "FileLocations": {},
            "StackFrames": {},
        }
        self._names: dict[str, str] = {}

    def __missing__(self, text: str) -> Origin:
        match = _SIMPLE.fullmatch(text)
        if match is None:
            found = self._read_fields(text)
        else:
            name, file, line, frame = match.groups()
            found = self._make_origin(name or "", file or "", line or "0", frame)
        self[text] = found = self._unique.setdefault(found, found)
        return found

    def add_row(self, table: str, text: str) -> None:
        """Add a row of a table in the module's header.

        Raises:
            HloTextError: If it is malformed.
        """
        expected = f"a row of {table}"
        number, string, numbers = match_all(_ROW, text.strip(), expected).groups()
        if table in self._strings and string is not None:
            self._strings[table][int(number)] = unquote(string)
        elif table in self._numbers and numbers is not None:
            fields = {name: int(value) for name, value in _NUMBER.findall(numbers)}
            self._numbers[table][int(number)] = fields
        else:
            raise HloTextError(text.strip(), expected)

    def _read_fields(self, text: str) -> Origin:
        content = strip_brackets(f"{{{text}")
        fields: dict[str, str] = {}
        start = 0
        while start < len(content):
            match = _FIELD.match(content, start)
            if match is None:
                raise HloTextError(content[start:], "name=value")
            name, string, word, brace = match.groups()
            if (string is not None) != (name in _TEXTS):
                known = brace or (word is not None and name not in _TEXTS)
                if not known:
                    raise HloTextError(content[start:], "a field of metadata")
            start = match.end()
            if brace:
                # E.g. `profile_type={1}`, which is about the compiler.
                start = content.find("}", start) + 1
                if not start:
                    raise HloTextError(content[match.end() - 1 :], "'}'")
            fields[name] = unquote(string) if string is not None else word or ""
        line = fields.get("source_line", "0")
        if not line.isdecimal():
            raise HloTextError(line, "a line number")
        frame = fields.get("stack_frame_id")
        if frame is not None and not frame.isdecimal():
            raise HloTextError(frame, "the number of a frame")
        name, file = fields.get("op_name", ""), fields.get("source_file", "")
        # As in `_SIMPLE`: Python refuses to convert a number of thousands of digits.
        return self._make_origin(name, file, line[:18], frame and frame[:18])

    def _make_origin(self, name: str, file: str, line: str, frame: str | None) -> Origin:
        number = int(line)
        # Texts of 0.8.3 and later have tables in place of inline files. Frame 0 is no frame.
        if frame is not None and frame != "0" and not file:
            file, number = self._find_place(int(frame))
        # Equal strings become one object: a module repeats a few names thousands of times.
        keep = self._names.setdefault
        return Origin(keep(name, name), keep(file, file), number)

    def _find_place(self, frame: int) -> tuple[str, int]:
        try:
            location = self._numbers["StackFrames"][frame]["file_location_id"]
            fields = self._numbers["FileLocations"][location]
            return self._strings["FileNames"][fields["file_name_id"]], fields["line"]
        except KeyError:
            if not self._numbers["StackFrames"]:
                return "", 0  # a text without its tables, such as an excerpt
            raise HloTextError(f"stack_frame_id={frame}", "a frame of the tables") from None
