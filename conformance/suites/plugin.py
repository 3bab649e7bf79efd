"""Run a pytest suite, or some tests of it, and tell of each as it goes: runs inside a cell.

    python plugin.py DESCRIPTOR ORDER

ORDER is a JSON file: `arguments` of pytest, and the `tests` to run, null for all. What happens is
told on DESCRIPTOR, one event a line, so that nothing that a test prints, and no way in which it
ends the process, can garble what was told before.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

TAIL = 16 * 1024
"""Characters kept of each of what a failed test printed, and of its traceback."""
LOST = 71
"""Exit status of a process whose events cannot be told any more: a test closed the descriptor."""


class Teller:
    """Tells events; a child that a test forked tells nothing.

    Args:
        descriptor: Where to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pid = os.getpid()
        os.set_inheritable(descriptor, False)

    def say(self, event: str, **facts: Any) -> None:
        """Tell an event.

        Args:
            event: Its kind.
            **facts: What there is to tell, as JSON has it.
        """
        if os.getpid() != self._pid:
            return
        line = json.dumps({"event": event, **facts}).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            os._exit(LOST)


class Ending:
    """How a test ended, put together from the reports of its phases.

    Args:
        test: Its name.
    """

    def __init__(self, test: str) -> None:
        self._start = time.perf_counter()
        self._facts: dict[str, Any] = {"test": test}
        self._outcome = ""

    def take(self, report: Any) -> None:
        """Take the report of a phase; one that failed counts more than all others."""
        expected = hasattr(report, "wasxfail")
        if report.failed and self._outcome != "failed":
            self._take(report, "failed", printed(report))
        elif report.skipped and self._outcome in {"", "passed"}:
            outcome = "xfailed" if expected else "skipped"
            self._take(report, outcome, {"reason": clean(reason_of(report))})
        elif report.passed and not self._outcome:
            self._outcome = "passed"

    def _take(self, report: Any, outcome: str, more: dict[str, str]) -> None:
        self._outcome = outcome
        self._facts |= {"phase": report.when or "", **error_of(report), **more}

    def facts(self, left: BaseException | None) -> dict[str, Any]:
        """Return what is told of it.

        Args:
            left: What ended the whole session in the midst of it, if anything did.
        """
        if left is not None:
            self._outcome = "left"
            self._facts["message"] = clean(f"{type(left).__name__}: {text_of(left)}")
        seconds = time.perf_counter() - self._start
        return {**self._facts, "outcome": self._outcome, "seconds": seconds}


class Plugin:
    """Tells what pytest does, and keeps it from running what is not wanted.

    Args:
        teller: Tells it.
        wanted: Names of the tests to run, None for all.
    """

    def __init__(self, teller: Teller, wanted: list[str] | None) -> None:
        self._teller = teller
        self._wanted = None if wanted is None else set(wanted)
        self._names: dict[pytest.Item, str] = {}
        self._ending: Ending | None = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        """Tell of what cannot be collected, or is skipped as a whole."""
        result = yield
        report = result.get_result()
        if report.passed:
            return
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        error = None if excinfo is None else excinfo.value
        # An error of an import is the cause of one that says that there was one.
        error = getattr(error, "__cause__", None) or error
        file = str(getattr(collector, "path", ""))
        self._teller.say(
            "broken" if report.failed else "skipped",
            node=clean(report.nodeid),
            reason=clean(reason_of(report)),
            text=clean(report.longreprtext[-TAIL:]),
            **({} if error is None else described(error, file)),
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Name the tests, and leave out those that are not wanted."""
        seen: dict[str, int] = {}
        for item in items:
            name = clean(item.nodeid)
            seen[name] = number = seen.get(name, 0) + 1
            self._names[item] = name if number == 1 else f"{name}#{number}"
        if self._wanted is not None:
            left_out = [item for item in items if self._names[item] not in self._wanted]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if self._names[item] in self._wanted]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell what was collected, and where."""
        config = session.config
        tests = [
            (self._names.get(item, clean(item.nodeid)), *place_of(item)) for item in session.items
        ]
        self._teller.say(
            "collected",
            root=str(config.rootpath),
            ini="" if config.inipath is None else str(config.inipath),
            tests=tests,
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Tell when a test begins, and how it ended."""
        name = self._names.get(item, clean(item.nodeid))
        self._teller.say("begin", test=name)
        self._ending = Ending(name)
        result = yield
        left = None if result.excinfo is None else result.excinfo[1]
        self._teller.say("end", **self._ending.facts(left))
        self._ending = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """Note the exception of a phase with its report."""
        result = yield
        if call.excinfo is not None:
            file = str(getattr(item, "path", ""))
            result.get_result().conformance_error = described(call.excinfo.value, file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report of a phase, or of a part of it."""
        if self._ending is not None:
            self._ending.take(report)


def place_of(item: pytest.Item) -> tuple[str, int]:
    """Return the file of a test and the line it begins in, 0 where that is not known."""
    file, line, _ = item.location
    path = str(getattr(item, "path", ""))
    return path, line + 1 if line is not None and path.endswith(os.path.basename(file)) else 0  # noqa: PTH119 - pytest's own spelling


def clean(text: str) -> str:
    """Return a text that can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def text_of(error: BaseException) -> str:
    """Return the message of an exception, whatever making it raises."""
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001 - whatever its message raises
        return f"(no message: {type(worse).__name__} while it was made)"


def described(error: BaseException, file: str) -> dict[str, str]:
    """Return an exception as plain data.

    Args:
        error: The exception.
        file: The test's own file; `where` is the last line of it that took part.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{file}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError) and error.filename == file:
        where = f"{file}:{error.lineno}"
    return {
        "type": type(error).__name__,
        "message": clean(text_of(error)),
        "where": clean(where),
    }


def error_of(report: Any) -> dict[str, str]:
    """Return the exception of a phase; where none was noted, what the report says of it."""
    noted: dict[str, str] | None = getattr(report, "conformance_error", None)
    if noted is not None:
        return noted
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash is not None else report.longreprtext
    match = re.match(r"(?:\w+\.)*([A-Za-z_]\w*): (?s:(.*))", said)
    type_, message = match.groups() if match else ("Failed", said)
    return {"type": type_, "message": clean(message), "where": ""}


def reason_of(report: Any) -> str:
    """Return why something is skipped or was expected to fail."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).removeprefix("reason: ")
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(text).removeprefix("Skipped: ")


def printed(report: Any) -> dict[str, str]:
    """Return the evidence of a failure: its traceback, and what was printed until then."""
    texts = {"text": report.longreprtext, "out": report.capstdout, "err": report.capstderr}
    return {name: clean(text[-TAIL:]) for name, text in texts.items()}


def versions() -> dict[str, str]:
    """Return the version of every package that can be imported here, by normalised name."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"] or "").lower()
        found.setdefault(name, one.version)
    return found


def main(descriptor: int, order: dict[str, Any]) -> None:
    """Run what is asked for, to its end.

    Args:
        descriptor: Where events are told.
        order: What to run.
    """
    teller = Teller(descriptor)
    python = ".".join(map(str, sys.version_info[:3]))
    teller.say("hello", pid=os.getpid(), python=python, versions=versions())
    arguments = list(order["arguments"])
    loaded = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and "no:xdist" not in arguments
    if loaded and importlib.util.find_spec("xdist"):
        arguments.append("-n0")  # the tests of one session are told of by one process
    status = pytest.main(arguments, plugins=[Plugin(teller, order["tests"])])
    for stream in (sys.stdout, sys.stderr):  # what is over is ended at once
        with contextlib.suppress(Exception):  # whatever a test has put in their place
            stream.flush()
    teller.say("over", status=int(status))


if __name__ == "__main__":
    del sys.path[0]  # this folder, which is none of the suite's
    with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123 - start-up time
        main(int(sys.argv[1]), json.load(file))
