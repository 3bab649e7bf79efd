"""What tests leave behind in the folders that they are read from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.suites.catalogue.named import NODE
from conformance.suites.files import files_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.suites.suite import Suite

    Listing = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Files that are not as they were, by path, sorted.

    Attributes:
        added: Those that are new.
        changed: Those that differ.
        removed: Those that are gone.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.added or self.changed or self.removed)


def listing(suite: Suite) -> Listing:
    """Return size and time of each file of a suite, by its path.

    Of a suite in the cache that is all there is; of a user's own, what is neither hidden nor made
    by tools.

    Args:
        suite: The suite.
    """
    files = _all(suite.folder) if suite.is_in_cache else _own(suite.paths)
    found = {}
    for file in files:
        try:
            state = os.stat(file, follow_symlinks=False)  # noqa: PTH116 - there are many
        except OSError:
            continue
        found[str(file)] = (state.st_size, state.st_mtime_ns)
    return found


def traces(before: Listing, after: Listing) -> Traces:
    """Return what is not as it was.

    Args:
        before: Files before a run.
        after: Files after it.
    """
    both = before.keys() & after.keys()
    return Traces(
        added=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(sorted(path for path in both if before[path] != after[path])),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def _all(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder that is none of git's own."""
    for name, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one != ".git"]
        yield from (Path(name, file) for file in files)


def _own(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the files below the folders that were asked for, and beside the files."""
    for path in dict.fromkeys(text.partition(NODE)[0] for text in paths):
        if Path(path).is_dir():
            yield from files_below(Path(path))
        else:
            yield from (one for one in Path(path).parent.iterdir() if one.is_file())
