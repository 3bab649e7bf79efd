"""Events of the interpreter for a recorder of what a process reaches.

From Python 3.12 on, `sys.monitoring` reports each line and each call until it has been seen. Older
versions have `sys.settrace`, which reports lines alone, and which a debugger or coverage replaces.
`sitecustomize` loads this file by its path.
"""

from __future__ import annotations

import atexit
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from conformance.worker.reach_recorder import ReachRecorder

TOOLS = (4, 3, 2)
"""Ids of `sys.monitoring` without a purpose, then that of profilers."""
MOST_CALLEES = 8
"""Calls of one place after which it is no longer watched: it may call something else each time."""
MOST_IDLE = 10_000
"""Lines and calls without a new line after which a function is traced no further: tracing slows
Python down several times, and a loop of a program may be long."""


def install(recorder: ReachRecorder) -> None:
    """Report the events of this process from now on.

    Args:
        recorder: Gets the events.
    """
    monitoring = getattr(sys, "monitoring", None)
    recorder.start(calls=monitoring is not None)
    if monitoring is None:
        _Tracer(recorder).install()
    else:
        _Monitor(recorder, monitoring).install()


class _Monitor:
    """Events of `sys.monitoring`, each until it has been seen."""

    def __init__(self, recorder: ReachRecorder, monitoring: Any) -> None:
        self._recorder = recorder
        self._monitoring = monitoring
        self._tool = -1
        self._calls: dict[tuple[int, int], int] = {}
        self._code: CodeType | None = None
        self._positions: list[tuple[int | None, ...]] = []

    def install(self) -> None:
        """Register a tool of its own: coverage and debuggers keep theirs."""
        monitoring, guard = self._monitoring, self._recorder.guard
        for tool in TOOLS:
            if monitoring.get_tool(tool) is None:
                self._tool = tool
                break
        else:
            self._recorder.note_loss("other tools have all ids of sys.monitoring")
            return
        monitoring.use_tool_id(self._tool, "conformance")
        self._recorder.set_stop(self._stop)
        events = monitoring.events
        for event, function in (
            (events.PY_START, self._start), (events.LINE, self._line), (events.CALL, self._call),
        ):  # fmt: skip
            monitoring.register_callback(self._tool, event, guard(function))
        monitoring.set_events(self._tool, events.PY_START)

    def _stop(self) -> None:
        self._monitoring.set_events(self._tool, 0)
        self._monitoring.free_tool_id(self._tool)

    def _start(self, code: CodeType, _: int) -> object:
        kind = self._recorder.find_kind(code)
        if kind == "outside":
            events = self._monitoring.events
            self._monitoring.set_local_events(self._tool, code, events.LINE | events.CALL)
        # The frame of `guarded` is between.
        elif kind and self._recorder.enter_jax(code, sys._getframe(2)):
            return None
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> object:
        self._recorder.note_line(code, line)
        return self._monitoring.DISABLE

    def _call(self, code: CodeType, offset: int, callee: object, _: object) -> object:
        if code is not self._code:
            self._code, self._positions = code, list(code.co_positions())
        line, _, column, _ = self._positions[offset // 2]
        place = id(code), offset
        count = self._calls[place] = self._calls.get(place, 0) + 1
        if line is None:
            return self._monitoring.DISABLE
        if count == 1 and column is not None:
            self._recorder.note_call(code, line, column)
        found = self._recorder.note_callee(code, line, callee)
        return self._monitoring.DISABLE if found or count >= MOST_CALLEES else None


class _Tracer:
    """Lines by `sys.settrace`, for Python before 3.12."""

    def __init__(self, recorder: ReachRecorder) -> None:
        self._recorder = recorder
        self._trace = recorder.guard(self._enter)
        self._local = recorder.guard(self._note)
        self._traced: dict[int, _TracedCode] = {}

    def install(self) -> None:
        """Trace this thread and those that it starts."""
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        self._recorder.set_stop(self._stop)
        atexit.register(self._check)

    def _stop(self) -> None:
        threading.settrace(None)
        sys.settrace(None)

    def _check(self) -> None:
        if sys.gettrace() is not self._trace:
            self._recorder.note_loss("another trace function, of coverage or a debugger")

    def _enter(self, frame: FrameType, _: str, __: object) -> object:
        code = frame.f_code
        kind = self._recorder.find_kind(code)
        if kind == "outside":
            found = self._traced.get(id(code))
            if found is None:
                found = self._traced[id(code)] = _TracedCode(code)
            return self._local if self._is_traced(found) else None
        if kind:
            self._recorder.enter_jax(code, frame)
            outer = frame.f_back
            if outer is not None and self._recorder.find_kind(outer.f_code) == "outside":
                self._recorder.note_callee(outer.f_code, outer.f_lineno, code)
        return None

    def _note(self, frame: FrameType, event: str, _: object) -> object:
        traced = self._traced[id(frame.f_code)]
        if event == "line":
            if frame.f_lineno in traced.left:
                traced.left.discard(frame.f_lineno)
                traced.idle = 0
                self._recorder.note_line(traced.code, frame.f_lineno)
            frame.f_trace_lines = self._is_traced(traced)
        return self._local

    def _is_traced(self, traced: _TracedCode) -> bool:
        """Say whether a function may still show something, once more without a new line."""
        if traced.left and traced.idle == MOST_IDLE:
            self._recorder.note_unknown(traced.code, traced.left)
        traced.idle += 1
        return bool(traced.left) and traced.idle <= MOST_IDLE


class _TracedCode:
    """Code outside of jax, held so that no other has its id, and its lines that did not run yet."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.left = {line for _, _, line in code.co_lines() if line}
        self.idle = 0
