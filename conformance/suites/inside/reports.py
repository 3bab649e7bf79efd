"""The outcome of a test, and its warnings, from the reports of pytest."""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from typing import Any

from conformance.worker.tracebacks import describe_chain, get_message

TAIL = 16 * 1024
"""Characters that are reported of a traceback, and of each stream that a failed test printed to."""
MAX_WARNINGS = 100
"""Different warnings that are reported of one test."""
MAX_MESSAGE = 2000
"""Characters that are reported of a warning."""
_EXAMPLE = re.compile(r"(?:Falsifying|Failing)(?: explicit)? (?:example|test case): ")
"""Beginning of the note in which Hypothesis reports a failing example."""


class TestOutcome:
    """The outcome of a test, put together from the reports of its phases.

    Args:
        test: Name of the test.
    """

    def __init__(self, test: str) -> None:
        self._start = time.perf_counter()
        self._facts: dict[str, Any] = {"test": test}
        self._outcome = ""

    def take(self, report: Any) -> None:
        """Take the report of a phase; the first failure overrides all others."""
        if report.failed and self._outcome != "failed":
            self._update(report, "failed", extract_output(report))
        elif report.skipped and self._outcome in {"", "passed"}:
            outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            reason = replace_surrogates(extract_reason(report))
            self._update(report, outcome, {"reason": reason})
        elif report.passed and not self._outcome:
            self._outcome = "passed"

    def _update(self, report: Any, outcome: str, more: dict[str, str]) -> None:
        self._outcome = outcome
        self._facts |= {"phase": report.when or "", **extract_error(report), **more}

    def describe(self, left: BaseException | None) -> dict[str, Any]:
        """Return the outcome as plain data.

        Args:
            left: The exception with which the test ended the whole session, if it did.
        """
        if left is not None:
            self._outcome = "left"
            message = f"{type(left).__name__}: {get_message(left)}"
            self._facts["message"] = replace_surrogates(message)
        seconds = time.perf_counter() - self._start
        return {**self._facts, "outcome": self._outcome, "seconds": seconds}


class WarningCounts:
    """Different warnings with their counts, in the order in which they were first given."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def count(self, warning: Any) -> None:
        """Count a warning, as Python's `warnings` records it."""
        message = replace_surrogates(get_message(warning.message))[:MAX_MESSAGE]
        where = replace_surrogates(f"{warning.filename}:{warning.lineno}")
        key = (warning.category.__name__, message, where)
        if key in self._counts or len(self._counts) < MAX_WARNINGS:
            self._counts[key] += 1

    def merge(self, other: WarningCounts) -> None:
        """Add the warnings of another collector, in front of its own."""
        self._counts = other._counts + self._counts

    def describe(self) -> list[dict[str, Any]]:
        """Return the warnings as plain data."""
        return [
            {"category": category, "message": message, "where": where, "count": count}
            for (category, message, where), count in self._counts.items()
        ]


def replace_surrogates(text: str) -> str:
    """Return a text that can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def describe_error(error: BaseException, file: str) -> dict[str, Any]:
    """Return an exception as plain data.

    Args:
        error: The exception.
        file: The test's own file; `where` is the last line of it that took part.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{file}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError) and error.filename == file:
        where = f"{file}:{error.lineno}"
    describe_error: dict[str, Any] = {
        "type": type(error).__name__,
        "message": replace_surrogates(get_message(error)),
        "where": replace_surrogates(where),
        "frames": describe_chain(error),
    }
    if examples := find_falsifying(error):
        describe_error["falsifying"] = replace_surrogates("\n\n".join(examples)[:TAIL])
    return describe_error


def find_falsifying(error: BaseException) -> list[str]:
    """Return the examples that Hypothesis noted on an exception, or on those that it groups."""
    notes = [str(note) for note in getattr(error, "__notes__", None) or ()]
    found = [note for note in notes if _EXAMPLE.match(note)]
    for inner in getattr(error, "exceptions", ()):
        found += find_falsifying(inner) if isinstance(inner, BaseException) else []
    return found


def extract_error(report: Any) -> dict[str, Any]:
    """Return the exception of a phase: the attached one, else the one in the text of the report."""
    attached: dict[str, Any] | None = getattr(report, "conformance_error", None)
    if attached is not None:
        return attached
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    match = re.match(r"(?:\w+\.)*([A-Za-z_]\w*): (?s:(.*))", text)
    type_, message = match.groups() if match else ("Failed", text)
    return {"type": type_, "message": replace_surrogates(message), "where": ""}


def extract_reason(report: Any) -> str:
    """Return why something is skipped or was expected to fail."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).removeprefix("reason: ")
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(text).removeprefix("Skipped: ")


def extract_output(report: Any) -> dict[str, str]:
    """Return the evidence of a failure: its traceback, and the output until then."""
    texts = {"text": report.longreprtext, "out": report.capstdout, "err": report.capstderr}
    return {name: replace_surrogates(text[-TAIL:]) for name, text in texts.items()}
