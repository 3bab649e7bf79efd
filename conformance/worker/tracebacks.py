"""Exceptions as plain data: the chain, its frames, and the library that each frame belongs to.

Needs the standard library only: the plugin of suites imports it where the kit is unavailable.
"""

from __future__ import annotations

import contextlib
import csv
import json
import linecache
import os
import sys
import sysconfig
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

# The limits keep a description small: recursion errors have thousands of frames.
EXCEPTIONS = 4
"""Exceptions of a chain that are described, beginning with the exception that was raised."""
FRAMES = 80
"""Frames of all of them together."""
OUTER = 10
"""Frames kept at the outer end of a stack that is too long; the rest is kept at the inner end."""
MEMBERS, NOTES = 2, 3
"""Exceptions described of a group, and notes of an exception."""
LONGEST, SHORT = 2_000, 300
"""Characters of a message, and of a path, a name or a line of source."""
HIDDEN = "__tracebackhide__"
"""Global of a module whose frames are not shown, as pytest names it."""
STDLIB = "python"
JAX = frozenset({"jax", "jaxlib"})
"""Packages under test, which count as libraries even in an environment that develops them."""
_HARNESS = "conformance"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SITES = ("site-packages", "dist-packages")
_FILTERED = "For simplicity, JAX has removed its internal frames"


class _Call(NamedTuple):
    """A line in execution with its owner: `library` is None for the harness."""

    code: CodeType
    line: int
    names: dict[str, Any]
    library: str | None
    file: str


def describe_chain(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception, its causes, contexts and group members as plain data.

    Frames of the harness are omitted, and frames of libraries outside the first frame of the user.

    Args:
        error: Exception to describe.

    Returns:
        A dictionary for each exception: `type`, `message`, `relation` (to the exception before it:
        `member`, `cause` or `context`, empty for the first), `notes`, and `frames`, the outermost
        first. A frame has `file` (absolute for the user's files, relative to its package for
        others), `line`, `function`, `source`, `library` (empty for the user's code) and `count`,
        the number of consecutive equal frames. A frame without a file represents `count` omitted
        frames.
    """
    described: list[dict[str, Any]] = []
    # A case may define an exception whose attributes raise; exceptions described so far are kept.
    with contextlib.suppress(Exception):
        described.extend(_describe_exceptions(error))
    return described


def _describe_exceptions(error: BaseException) -> Iterator[dict[str, Any]]:
    room = FRAMES
    for relation, exception in _walk_chain(error):
        frames = _describe_frames(exception, room)
        room -= len(frames)
        notes = [str(note) for note in getattr(exception, "__notes__", None) or ()]
        # jax adds a note on its traceback filtering to each exception: noise.
        yield {
            "type": _cut(type(exception).__name__, SHORT),
            "message": _cut(get_message(exception), LONGEST),
            "relation": relation,
            "notes": [_cut(note, SHORT) for note in notes if _FILTERED not in note][:NOTES],
            "frames": frames,
        }


def find_innermost(described: list[dict[str, Any]]) -> str:
    """Return the innermost line of the user's own code, as `file:line`; empty if there is none.

    Args:
        described: Exceptions as `describe_chain` returns them.
    """
    for exception in described:
        for frame in reversed(exception["frames"]):
            if frame["file"] and not frame["library"]:
                return f"{frame['file']}:{frame['line']}"
    return ""


def get_message(error: BaseException) -> str:
    """Return the message of an exception, or a note if its `__str__` raises."""
    try:
        return str(error)
    except Exception as second:  # a case may define an exception whose `__str__` raises
        return f"<its message raised {type(second).__name__}>"


def _cut(text: str, most: int) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _walk_chain(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    """Yield the exceptions of a chain, each with its relation to the exception before it."""
    # A chain may lead back to one of its exceptions.
    seen: set[int] = set()
    relation: str = ""
    exception: BaseException | None = error
    while exception is not None and id(exception) not in seen and len(seen) < EXCEPTIONS:
        seen.add(id(exception))
        yield relation, exception
        # Python 3.10 has no groups, but packages that bring them name their members so.
        members = getattr(exception, "exceptions", ())
        for member in members[:MEMBERS] if isinstance(members, tuple) else ():
            if isinstance(member, BaseException) and id(member) not in seen:
                seen.add(id(member))
                yield "member", member
        if exception.__cause__ is not None:
            relation, exception = "cause", exception.__cause__
        else:
            relation, exception = (
                "context",
                None if exception.__suppress_context__ else exception.__context__,
            )


def _describe_frames(error: BaseException, room: int) -> list[dict[str, Any]]:
    calls = [(call, count) for call, count in _fold_repetitions(error) if call.library is not None]
    # Libraries outside the user's first frame only lead there: runners, decorators, pytest.
    own = next((n for n, (call, _) in enumerate(calls) if not call.library), 0)
    calls = calls[own:]
    syntax = (
        [_describe_syntax_error(error)] if isinstance(error, SyntaxError) and error.filename else []
    )
    if len(calls) + len(syntax) <= room:
        return [*map(_describe_frame, calls), *syntax]
    # The outer and the inner end are more useful than the middle.
    outer = min(OUTER, max(0, room - 2))
    inner = max(0, room - outer - 1 - len(syntax))
    left = calls[outer : len(calls) - inner]
    gap = {"file": "", "line": 0, "function": "", "source": "", "library": ""}
    return [
        *map(_describe_frame, calls[:outer]),
        {**gap, "count": sum(count for _, count in left)},
        *map(_describe_frame, calls[len(calls) - inner :]),
        *syntax,
    ]


def _fold_repetitions(error: BaseException) -> Iterator[tuple[_Call, int]]:
    """Yield the calls of a stack; consecutive equal calls once, with their number."""
    before: tuple[CodeType, int] | None = None
    frame: FrameType | None = None
    count = 0
    trace = error.__traceback__
    while trace is not None:
        now = (trace.tb_frame.f_code, trace.tb_lineno)
        if before is not None and now != before:
            yield _make_call(frame, before), count
            count = 0
        before, frame, count = now, trace.tb_frame, count + 1
        trace = trace.tb_next
    if before is not None:
        yield _make_call(frame, before), count


def _make_call(frame: FrameType | None, at: tuple[CodeType, int]) -> _Call:
    code, line = at
    names = {} if frame is None else frame.f_globals
    module = str(names.get("__name__", ""))
    library, file = _find_owner(code.co_filename, module, bool(names.get(HIDDEN)))
    return _Call(code, line or 0, names, library, file)


def _describe_frame(found: tuple[_Call, int]) -> dict[str, Any]:
    call, count = found
    source = linecache.getline(call.code.co_filename, call.line, call.names).strip()
    return {
        "file": _cut(call.file, SHORT) or "?",
        "line": call.line,
        "function": _cut(getattr(call.code, "co_qualname", call.code.co_name), SHORT),
        "source": _cut(source, SHORT),
        "library": _cut(call.library or "", SHORT),
        "count": count,
    }


def _describe_syntax_error(error: SyntaxError) -> dict[str, Any]:
    """Return the line that cannot be parsed, which has no frame."""
    library, file = _find_owner(str(error.filename), "", hidden=False)
    return {
        "file": _cut(file, SHORT),
        "line": error.lineno or 0,
        "function": "<module>",
        "source": _cut((error.text or "").strip(), SHORT),
        "library": library or "",
        "count": 1,
    }


@lru_cache(maxsize=4096)
def _find_owner(file: str, module: str, hidden: bool) -> tuple[str | None, str]:
    """Return the library of a file, and the path that reports show.

    Args:
        file: File name of the code object.
        module: Name of the module in execution.
        hidden: Whether the module sets `__tracebackhide__`.

    Returns:
        The library, empty for the user's code and None for the harness, and the path.
    """
    top = module.partition(".")[0]
    if hidden or (top == _HARNESS and file.startswith(_PACKAGE + os.sep)):
        return None, file
    if file.startswith("<frozen "):
        return STDLIB, file
    if file.startswith("<"):  # generated code belongs to the module that it runs in
        home = getattr(sys.modules.get(module), "__file__", None)
        return (_find_owner(home, module, hidden)[0] if home else ""), file
    if top in JAX:
        # By module: a source tree of jax on PYTHONPATH is below no folder of packages.
        base = getattr(sys.modules.get(top), "__file__", None) or ""
        return top, _make_relative(file, os.path.dirname(os.path.dirname(base)))
    return _find_package(file)


def _find_package(file: str) -> tuple[str, str]:
    """Return the installed package of a file and the path within it, else the file itself."""
    if folder := _find_site(file):
        name = _make_relative(file, folder)
        package = name.partition("/")[0].removesuffix(".py")
        return ("" if package in _find_local_packages(folder) else package), name
    for folder in {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")}:
        if file.startswith(folder + os.sep):
            return STDLIB, _make_relative(file, folder)
    return "", file


def _make_relative(file: str, folder: str) -> str:
    return file[len(folder) + 1 :] if folder and file.startswith(folder + os.sep) else file


def _find_site(file: str) -> str:
    """Return the folder of installed packages that contains a file, empty for none."""
    for mark in _SITES:
        head, sign, _ = file.rpartition(f"{os.sep}{mark}{os.sep}")
        if sign:
            return f"{head}{os.sep}{mark}"
    # `pip install --target` makes a folder of any name; its packages have metadata.
    folders = (
        folder
        for folder in sys.path
        if folder and file.startswith(folder + os.sep) and _has_dists(folder)
    )
    return max(folders, key=len, default="")


@lru_cache(maxsize=64)
def _has_dists(folder: str) -> bool:
    return any(name.endswith(".dist-info") for name in _list_folder(folder))


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@lru_cache(maxsize=64)
def _find_local_packages(folder: str) -> frozenset[str]:
    """Return the names of packages that were installed from a local folder or wheel."""
    # Those are the user's own code, which reports show in full.
    found: set[str] = set()
    for name in _list_folder(folder):
        if not name.endswith(".dist-info"):
            continue
        try:
            with open(f"{folder}/{name}/direct_url.json", encoding="utf-8") as file:
                if not str(json.load(file).get("url", "")).startswith("file:"):
                    continue
            with open(f"{folder}/{name}/RECORD", encoding="utf-8", newline="") as file:
                tops = {row[0].partition("/")[0] for row in csv.reader(file) if row}
            tops.add(name.partition("-")[0])  # some build backends leave the list of files empty
        except (OSError, ValueError, AttributeError):  # most have no such file
            continue
        found.update(top.removesuffix(".py") for top in tops)
    return frozenset(found)
