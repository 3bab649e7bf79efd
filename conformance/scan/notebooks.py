"""Jupyter notebooks as Python source."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any, Final

SUFFIX: Final = ".ipynb"
_MAGIC: Final = re.compile(r"(\s*)(?:[%!?]|[\w.]+\?)|(\s*)[\w, ]+ = *[%!]")
"""A line in the syntax of IPython: `%load`, `!pip`, `files = !ls`, `?name`, `name?`."""
_OTHER_LANGUAGE: Final = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b)")
"""Begin of a cell whose rest is not Python, but e.g. a shell script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLine:
    """The place of a line of source in a notebook.

    Attributes:
        cell: Number of the cell, from 1.
        line: Line in the cell, from 1.
        file_line: Line of the file, from 1; 1 if it cannot be found.
    """

    cell: int
    line: int
    file_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookSource:
    """The code of a notebook.

    Attributes:
        source: The code cells as one module, with `pass` for each magic.
        places: Place of each line of the source.
    """

    source: str
    places: tuple[CellLine, ...]


def read_notebook(data: bytes) -> NotebookSource:
    """Return the code of a notebook of format 4.

    Args:
        data: Content of the file.

    Raises:
        ValueError: If it is no notebook of this format.
    """
    text = data.decode()
    cells = _list_cells(json.loads(text))
    lines: list[str] = []
    places: list[CellLine] = []
    position = 0
    for number, cell in enumerate(cells, 1):
        source = cell.get("source", "")
        written = source.splitlines(keepends=True) if isinstance(source, str) else [*source]
        code = _read_cell(written) if cell.get("cell_type") == "code" else []
        for line, text_of_line in enumerate(written, 1):
            start, end = _find_line(text, text_of_line, position)
            position = max(position, end)
            if code:
                file_line = text.count("\n", 0, start) + 1
                places.append(CellLine(cell=number, line=line, file_line=file_line))
        lines += code
    return NotebookSource(source="".join(f"{line}\n" for line in lines), places=tuple(places))


def _read_cell(written: list[str]) -> list[str]:
    """Return the lines of a cell as Python, none if it is in another language."""
    lines = [line.rstrip("\r\n") for line in written]
    if lines and _OTHER_LANGUAGE.match(lines[0]):
        return []
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        # Only then: a line of Python may begin with `%`, too, within parentheses.
        return [_replace_magic(line) for line in lines]
    return lines


def _list_cells(notebook: Any) -> list[dict[str, Any]]:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("has no list `cells`, expected a notebook of format 4")
    return cells


def _find_line(text: str, code: str, start: int) -> tuple[int, int]:
    """Return where a line of source begins and ends in the file, zeros if it is not found."""
    # Notebooks have one line of source per line of the file; both spellings of other scripts occur.
    for ascii_only in (False, True):
        written = json.dumps(code, ensure_ascii=ascii_only)
        found = text.find(written, start)
        if found >= 0:
            return found, found + len(written)
    return 0, 0


def _replace_magic(line: str) -> str:
    match = _MAGIC.match(line)
    return f"{match[1] or match[2] or ''}pass" if match else line
