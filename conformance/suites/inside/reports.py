"""How a test ended, from the reports of pytest."""

from __future__ import annotations

import re
import time
import traceback
from typing import Any

from conformance.worker.tracebacks import describe_chain, get_message

TAIL = 16 * 1024
"""Characters kept of each of what a failed test printed, and of its traceback."""
_EXAMPLE = re.compile(r"(?:Falsifying|Failing)(?: explicit)? (?:example|test case): ")
"""How Hypothesis begins to tell of what a test fails with."""


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
            self._facts["message"] = clean(f"{type(left).__name__}: {get_message(left)}")
        seconds = time.perf_counter() - self._start
        return {**self._facts, "outcome": self._outcome, "seconds": seconds}


def clean(text: str) -> str:
    """Return a text that can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def described(error: BaseException, file: str) -> dict[str, Any]:
    """Return an exception as plain data.

    Args:
        error: The exception.
        file: The test's own file; `where` is the last line of it that took part.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{file}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError) and error.filename == file:
        where = f"{file}:{error.lineno}"
    told: dict[str, Any] = {
        "type": type(error).__name__,
        "message": clean(get_message(error)),
        "where": clean(where),
        "frames": describe_chain(error),
    }
    examples = falsifying(error)
    return {**told, "falsifying": clean("\n\n".join(examples)[:TAIL])} if examples else told


def falsifying(error: BaseException) -> list[str]:
    """Return the examples that Hypothesis noted on an exception, or on those that it groups."""
    notes = [str(note) for note in getattr(error, "__notes__", None) or ()]
    found = [note for note in notes if _EXAMPLE.match(note)]
    for inner in getattr(error, "exceptions", ()):
        found += falsifying(inner) if isinstance(inner, BaseException) else []
    return found


def error_of(report: Any) -> dict[str, Any]:
    """Return the exception of a phase; where none was noted, what the report says of it."""
    noted: dict[str, Any] | None = getattr(report, "conformance_error", None)
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
