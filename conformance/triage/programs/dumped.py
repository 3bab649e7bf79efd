"""What XLA dumps beside a program that is none of ours: the HLO of all that it compiled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ConformanceError
from conformance.ir.analysis import analyse
from conformance.ir.graph import IrSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

OPTIMISED: Final = "*after_optimizations.txt"
"""Names of files that hold optimised HLO."""


class NotUnderstoodError(ConformanceError):
    """HLO that was dumped, and cannot be read."""


def dump_flags(folder: Path) -> tuple[str, ...]:
    """Return the flags that make XLA write what it compiles.

    Args:
        folder: Where to.
    """
    return (f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text")


def facts_of_dump(folder: Path) -> dict[str, Any]:
    """Return the facts of all programs that were compiled, added up.

    Args:
        folder: Where XLA dumped them.

    Returns:
        Counts added, lists of names put together, and true where it is of any program; what
        describes one program, as its parameters, is left out. Nothing if nothing was compiled.

    Raises:
        NotUnderstoodError: If a text is not understood.
        OSError: If a file cannot be read.
    """
    tables = []
    for file in sorted(folder.glob(OPTIMISED)):
        try:
            tables.append(analyse(file.read_text("utf-8", "surrogatepass"), "hlo").facts)
        except IrSyntaxError as error:
            raise NotUnderstoodError(f"{file.name}: {error}") from None
    return added(tables)


def added(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the facts of several programs.

    Args:
        tables: Facts of each.
    """
    sums: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            match value:
                case bool():
                    sums[name] = sums.get(name, False) or value
                case int() | float():
                    sums[name] = sums.get(name, 0) + value
                case dict():
                    sums[name] = Counter(sums.get(name, {})) + Counter(value)
                case [str(), *_]:
                    sums[name] = sorted({*sums.get(name, ()), *value})
                case _:
                    pass  # describes one program, as its parameters do
    return {name: dict(sum_) if isinstance(sum_, Counter) else sum_ for name, sum_ in sums.items()}
