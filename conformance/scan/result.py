"""The result of a scan: hits with their places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.scan.hits import Hit
    from conformance.scan.notebooks import CellLine


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHit:
    """A hit with its place.

    Attributes:
        file: The file.
        line: Line of the file, from 1; in a notebook, line of its cell.
        column: Column, from 1.
        hit: The change.
        cell: The place in a notebook, None in a module.
    """

    file: Path
    line: int
    column: int
    hit: Hit
    cell: CellLine | None = None

    @property
    def place(self) -> str:
        """The file and the line, as Ruff writes them."""
        cell = f"cell {self.cell.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}"


@dataclass(slots=True)
class ScanResult:
    """The result of a scan.

    Attributes:
        old: The present release.
        new: The wanted release.
        files: Number of files.
        lines: Number of their lines.
        uses: Number of uses of public names of JAX.
        hits: The hits, by file and line.
        unreadable: Files that are no Python, with the reason.
    """

    old: str
    new: str
    files: int = 0
    lines: int = 0
    uses: int = 0
    hits: list[FileHit] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
