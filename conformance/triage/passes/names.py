"""Names of passes, from the names of the files that XLA dumps. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

BOUNDS: Final = frozenset({"pipeline-start", "pipeline-end"})
"""Names of the time before the first pass of a pipeline and after its last."""
_DUMPED: Final = re.compile(
    r"module_(\d+)\..*\.(\d{4,})\.(.+?)\.after_(.+?)\.before_(.+?)\.(?:txt|hlo\.pb(?:\.gz)?)"
)


def pass_names(files: Iterable[str], *, unfinished: bool = False) -> list[str]:
    """Return the passes that changed a program, in the order in which each did so first.

    Args:
        files: Names of the files that XLA dumped: one after each pass that changed something,
            e.g. `module_0003.jit_f.0008.simplification.after_algsimp.before_sort.txt`.
        unfinished: Whether the passes failed on the way, so that one that follows may be at
            fault.

    Returns:
        Names of passes; a pipeline within a pipeline is none, but those in it are.
    """
    found = [match.groups() for name in files if (match := _DUMPED.fullmatch(name))]
    found.sort(key=lambda groups: (int(groups[0]), int(groups[1])))
    pipelines = {pipeline for _, _, pipeline, *_ in found}
    names: dict[str, None] = {}
    for *_, after, before in found:
        names |= dict.fromkeys([after, before] if unfinished else [after])
    return [name for name in names if name not in pipelines | BOUNDS]
