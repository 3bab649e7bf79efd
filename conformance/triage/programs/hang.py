"""Where a program hangs, by the traceback that Python wrote before its time was over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_PACKAGES: Final = re.compile(r"^.*/(?:site|dist)-packages/|^.*/lib/python3\.\d+/")
MARGIN: Final = 0.5
"""Seconds before the end of the timeout at which Python writes where it is."""


class _Frame(NamedTuple):
    file: str
    line: str
    function: str


def dump_after(timeout: float) -> float:
    """Return after how many seconds Python writes where it is."""
    return max(timeout - MARGIN, timeout / 2)


def hang_of(note: Path, roots: Iterable[Path]) -> str:
    """Return where a program hangs, e.g. `a.py:3 in f, within jax/_src/api.py:10 in wait`.

    Args:
        note: What `faulthandler` wrote, of each process one after the other.
        roots: Folders in which files are the user's own.

    Returns:
        Empty where nothing was written.
    """
    try:
        text = note.read_text("utf-8", "replace")
    except OSError:  # nothing of it was Python
        return ""
    folders = tuple(root.resolve() for root in roots)
    threads = [
        list(_frames(thread))
        for thread in re.split(r"^.*most recent call.*$", text, flags=re.MULTILINE)
    ]
    for frames in reversed(threads):  # the main thread is the last
        own = next((frame for frame in frames if _is_own(frame, folders)), None)
        if own is not None:
            inner = f", within {_told(frames[0])}" if own != frames[0] else ""
            return f"{Path(own.file).name}:{own.line} in {own.function}{inner}"
    last = next((frames[0] for frames in reversed(threads) if frames), None)
    return _told(last) if last else ""


def _is_own(frame: _Frame, folders: Iterable[Path]) -> bool:
    file = Path(frame.file).resolve()
    installed = _PACKAGES.match(frame.file) is not None
    return not installed and any(file.is_relative_to(folder) for folder in folders)


def _frames(thread: str) -> Iterable[_Frame]:
    for line in thread.splitlines():
        if found := _FRAME.match(line):
            yield _Frame(**found.groupdict())


def _told(frame: _Frame) -> str:
    return f"{_PACKAGES.sub('', frame.file)}:{frame.line} in {frame.function}"
