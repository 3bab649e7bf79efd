"""The result of a scan: hits with their places, and the command that was run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.scan.fixes import CodeFix
    from conformance.scan.hits import Hit
    from conformance.scan.notebooks import CellLine
    from conformance.scan.reached import ReachedCode
    from conformance.scan.signatures import CallShape
    from conformance.scan.uses import ModuleUses


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHit:
    """A hit with its place.

    Attributes:
        file: The file.
        line: Line of the file, from 1; in a notebook, line of its cell.
        column: Column, from 1.
        hit: The change.
        cell: The place in a notebook, None in a module.
        reached: Whether the command of `--run` reached it, None if that is not known.
        library: The distribution and its version, empty for the code base itself.
    """

    file: Path
    line: int
    column: int
    hit: Hit
    cell: CellLine | None = None
    reached: bool | None = None
    library: str = ""

    @property
    def place(self) -> str:
        """The file and the line, as Ruff writes them."""
        cell = f"cell {self.cell.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}"


@dataclass(frozen=True, slots=True)
class ReachedUse:
    """A use that a command reached.

    Attributes:
        name: The public name; with a bar between several, of which it may be any.
        file: The file.
        line: Line, from 1.
        call: Its arguments, as far as the source shows them; None if it is not called there.
    """

    name: str
    file: Path
    line: int
    call: CallShape | None = None


@dataclass(slots=True, kw_only=True)
class ScanRun:
    """The command that was run, and what it reached.

    Attributes:
        command: The command.
        exit: Its exit status, None if it was ended.
        ended: Why it was ended or failed, empty if it succeeded.
        seconds: Duration.
        code: The code that ran.
        uses: Uses of public names that were reached.
        elsewhere: Changes for what was reached, but at no place in a file.
    """

    command: str
    exit: int | None
    ended: str
    seconds: float
    code: ReachedCode
    uses: list[ReachedUse] = field(default_factory=list)
    elsewhere: list[Hit] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFix:
    """The fixes of a file.

    Attributes:
        before: Its content.
        after: Its content after the fixes.
        fixed: The fixes, by line and column of the use.
    """

    before: bytes
    after: bytes
    fixed: Mapping[tuple[int, int], CodeFix]


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
        run: The command that was run, None without `--run`.
        library_hits: Hits outside of the code base that the command reached.
        modules: The modules of the files that are no notebooks.
        fixes: The fixes, by the file that they change.
    """

    old: str
    new: str
    files: int = 0
    lines: int = 0
    uses: int = 0
    hits: list[FileHit] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
    run: ScanRun | None = None
    library_hits: list[FileHit] = field(default_factory=list)
    modules: dict[Path, ModuleUses] = field(default_factory=dict)
    fixes: dict[Path, FileFix] = field(default_factory=dict)

    def find_fix(self, hit: FileHit) -> CodeFix | None:
        """Return the fix of the use that a hit is about, None if it has none.

        Args:
            hit: A hit of this result.
        """
        found = self.fixes.get(hit.file)
        return None if found is None else found.fixed.get((hit.line, hit.column))
