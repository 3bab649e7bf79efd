"""Tracebacks as every report shows them: the user's frames in full, those of libraries folded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from conformance.corpus.project import relative_to_project
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.model.traceback import FRAMES, RaisedException, TracebackFrame, decode_traceback
from conformance.report.grouping import group_by
from conformance.report.text import flatten, join_names, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.model.record import Record

MOST_PARTS, FIRST, LAST = 14, 5, 8
"""Parts of a stack that are shown; of a longer stack, its outermost and its innermost parts."""
MOST_MESSAGE, MOST_TEXT = 300, 200
"""Characters of a message, and of a path, a name or a line of source."""
PLAIN_LINES: Final = 24
"""Last lines shown of a traceback that was recorded as text only."""
RELATIONS: Final = {"cause": "caused by ", "context": "while handling ", "member": "one of them: "}
"""Words that introduce an exception, by its relation to the exception before it."""
STDLIB: Final = "python"
"""The `library` of a frame in the standard library."""
NAMED: Final = 3
"""Libraries that are named of a fold."""
END: Final = 3
"""Parts shown of the path of a file that is not in the project."""
TEXT: Final = "traceback"
"""Artifact with the traceback as text."""
HEAD: Final = "Traceback (most recent call last):\n"
_SHIM: Final = re.compile(
    r'^  File "[^"\n]*/conformance/(?:kit|worker|suites/inside)/[^"\n]*", line \d+, in .*\n'
    r"(?:    .*\n)*",
    re.MULTILINE,
)
"""A frame of the harness in a traceback as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePlace:
    """A frame that is shown.

    Attributes:
        at: File and line, `file:line`.
        function: The function.
        source: Source of the line, empty if it is unknown.
        own: True if the file is the user's own code.
        count: Number of consecutive calls, more than 1 for a recursion.
    """

    at: str
    function: str
    source: str
    own: bool
    count: int

    @property
    def line(self) -> str:
        """The frame without its source, in one line."""
        again = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.at} in {self.function}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Neighbouring frames that are counted only.

    Attributes:
        label: Their number and their libraries.
        places: The frames that were recorded.
    """

    label: str
    places: tuple[FramePlace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """An exception and its stack, as reports show them.

    Attributes:
        title: Type and message, with the relation to the exception before it in the chain.
        parts: Its frames, the outermost first.
        notes: Its notes.
        first: True for the exception that ended the job.
        text: End of the traceback as text, where an older release did not record its frames.
    """

    title: str = ""
    parts: tuple[FramePlace | Fold, ...] = ()
    notes: tuple[str, ...] = ()
    first: bool = True
    text: str = ""


def collect_stacks(side: StoredJob, roots: Iterable[str] = ()) -> tuple[Stack, ...]:
    """Return the exceptions that ended a job, the last raised first; empty without a traceback.

    Args:
        side: The job.
        roots: Folders of the project; paths are shown relative to them.
    """
    data = _read_artifact(side, FRAMES)
    try:
        found = () if data is None else decode_traceback(data)
    except ValueError:  # a case's own artifact of that name, or damaged
        found = ()
    if not found:
        text = _read_plain(side)
        return (Stack(text=text),) if text else ()
    where = (side.record.case, *roots)
    stacks = tuple(_make_stack(raised, where) for raised in found)
    # Without a frame or a note, as a CaseError, it would repeat the reason that is shown above it.
    return stacks if any(stack.parts or stack.notes for stack in stacks) else ()


def render_traceback(side: StoredJob, roots: Iterable[str] = ()) -> list[str]:
    """Return the traceback of a job as sanitized lines of text; empty without a traceback.

    Args:
        side: The job.
        roots: Folders of the project; paths are shown relative to them.
    """
    stacks = collect_stacks(side, roots)
    head = [HEAD.strip().lower()] if stacks else []
    return [*head, *(line for stack in stacks for line in _render_stack(stack))]


def render_cause_tracebacks(
    render: Callable[[Record], list[str]], records: Sequence[Record], *, every: bool
) -> Iterator[str]:
    """Yield the tracebacks of jobs with one root cause, in lines; equal ones once.

    Args:
        render: Returns the traceback of a job.
        records: The jobs.
        every: True for the tracebacks of all jobs instead of that of the first.
    """
    shown = records if every else records[:1]
    for lines, members in group_by(shown, key=lambda record: tuple(render(record))).items():
        if lines and len(shown) > 1:
            yield sanitize(join_names([f"{member.case} on {member.cell}" for member in members]))
        yield from lines


def _render_stack(stack: Stack) -> Iterator[str]:
    """Yield the lines of an exception; the title of the first follows its frames, as in Python."""
    yield from (f"  {line}" for line in stack.text.splitlines())
    if not stack.first:
        yield stack.title
    for part in stack.parts:
        if isinstance(part, Fold):
            yield f"  ... {part.label} ..."
            continue
        yield f"  {part.line}"
        if part.source:
            yield f"      {part.source}"
    if stack.first and stack.title:
        yield stack.title
    yield from (f"  {note}" for note in stack.notes)


def _read_plain(side: StoredJob) -> str:
    data = _read_artifact(side, TEXT)
    if data is None:
        return ""
    text = _SHIM.sub("", data.decode("utf-8", "replace")).removeprefix(HEAD).rstrip()
    lines = sanitize(text, len(text)).splitlines()
    cut = len(lines) - PLAIN_LINES
    return "\n".join([f"... {cut} more lines ..."] * (cut > 0) + lines[max(0, cut) :])


def _read_artifact(side: StoredJob, name: str) -> bytes | None:
    """Return an artifact of a job; of several processes, that of the lowest rank that has it."""
    digests = side.record.artifacts
    of_ranks = sorted(key for key in digests if key.startswith(f"{name}.rank"))
    for key in (name, *of_ranks):
        if key in digests:
            try:
                return side.blobs.get(digests[key])
            except CorruptBlobError:  # a traceback is evidence only, and fails no report
                return None
    return None


def _make_stack(raised: RaisedException, where: Sequence[str]) -> Stack:
    lines = raised.message.strip().splitlines() or [""]
    message = flatten(lines[0], MOST_MESSAGE) + (" ..." if lines[1:] else "")
    named = flatten(raised.type, MOST_TEXT)
    return Stack(
        title=f"{RELATIONS.get(raised.relation, '')}{named}{': ' if message else ''}{message}",
        parts=tuple(_split_frames(raised.frames, where)),
        notes=tuple(flatten(note, MOST_MESSAGE) for note in raised.notes),
        first=not raised.relation,
    )


def _split_frames(
    frames: Sequence[TracebackFrame], where: Sequence[str]
) -> Iterator[FramePlace | Fold]:
    """Yield the parts of a stack: own frames, folds of library frames, the frame that raised."""
    runs = [(own, list(run)) for own, run in groupby(frames, key=_is_own)]
    parts: list[tuple[TracebackFrame, ...]] = []
    for number, (own, run) in enumerate(runs):
        if own:
            parts += [(frame,) for frame in run]
        elif number == len(runs) - 1 and run[-1].file:
            parts += [tuple(run[:-1]), (run[-1],)] if run[:-1] else [(run[-1],)]
        else:
            parts.append(tuple(run))
    # Own frames are folded too if there are very many, as in a recursion through several
    # functions, which `count` does not shorten.
    if len(parts) > MOST_PARTS:
        between = tuple(frame for part in parts[FIRST:-LAST] for frame in part)
        parts = [*parts[:FIRST], between, *parts[-LAST:]]
    for number, part in enumerate(parts, 1):
        raises = number == len(parts) and part[-1].file
        single = len(part) == 1 and (raises or _is_own(part[0]))
        yield _make_place(part[0], where) if single else _make_fold(part, where)


def _is_own(frame: TracebackFrame) -> bool:
    return bool(frame.file) and not frame.library


def _make_place(frame: TracebackFrame, where: Sequence[str]) -> FramePlace:
    return FramePlace(
        at=flatten(f"{_shorten_file(frame.file, where)}:{frame.line}", MOST_TEXT),
        function=flatten(frame.function, MOST_TEXT) or "?",
        source=flatten(frame.source, MOST_TEXT),
        own=_is_own(frame),
        count=frame.count,
    )


def _shorten_file(file: str, where: Sequence[str]) -> str:
    """Return a path relative to its project; of a file outside a project, the end of its path."""
    text = relative_to_project(file, *where)
    parts = PurePath(text).parts
    return f".../{'/'.join(parts[-END:])}" if text.startswith("/") and len(parts) > END else text


def _make_fold(frames: Sequence[TracebackFrame], where: Sequence[str]) -> Fold:
    number = sum(frame.count for frame in frames)
    names = list(dict.fromkeys(frame.library for frame in frames if frame.library))
    shown = ["the standard library" if name == STDLIB else name for name in names]
    if len(shown) > NAMED:
        shown = [*shown[:NAMED], f"{len(shown) - NAMED} more"]
    libraries = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    # A fold of a long stack may have own frames, and is of no library then.
    inside = f" in {libraries}" if libraries and not any(map(_is_own, frames)) else ""
    return Fold(
        label=flatten(f"{number} frame{'' if number == 1 else 's'}{inside}", MOST_TEXT),
        places=tuple(_make_place(frame, where) for frame in frames if frame.file),
    )
