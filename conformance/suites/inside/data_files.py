"""A record of the data files that a process reads, because results of its tests depend on them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conformance.suites.inside.reports import replace_surrogates

_WRITING = os.O_WRONLY | os.O_RDWR
_CODE = frozenset({".py", ".pyi", ".pyc", ".so"})
"""Suffixes of modules: the code of the whole project counts in any case."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class DataFileLog:
    """Records the data files that this process reads, or its parent before the fork."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()

    def watch(self) -> None:
        """Begin to record; Python has no way to remove an audit hook."""
        sys.addaudithook(self._record)

    # The hook runs for every file that is opened: `pathlib` would be several times as slow.
    def _record(self, event: str, arguments: tuple[object, ...]) -> None:
        if event != "open":
            return
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)):
            return  # a descriptor
        name = os.path.abspath(os.fsdecode(path))
        if os.path.splitext(name)[1] in _CODE:
            return
        writes = bool(flags & _WRITING) if isinstance(flags, int) else "w" in str(mode)
        (self._written if writes else self._read).add(name)

    def list_below(self, root: Path) -> list[str]:
        """Return the absolute paths of the recorded files that belong to a project.

        Files that this process wrote, installed files and hidden files do not belong to it.

        Args:
            root: Folder of the project.
        """
        start = f"{root}{os.sep}"
        return sorted(
            replace_surrogates(name)
            for name in self._read - self._written
            if name.startswith(start) and not any(map(_is_foreign, Path(name[len(start) :]).parts))
        )


def _is_foreign(part: str) -> bool:
    return part.startswith(".") or part in _INSTALLED
