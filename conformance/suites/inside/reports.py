"""The outcome of a test, and its warnings, from the reports of pytest."""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from typing import Any

from conformance.worker.tracebacks import describe_chain, get_message

TAIL = 16 * 1024
"""Maximum length of a reported traceback, and of each stream of a failed test, in characters."""
MAX_WARNINGS = 100
"""Maximum number of different warnings that are reported for a test."""
MAX_MESSAGE = 2000
"""Maximum length of a reported warning, in characters."""
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
        # A test may fail in its call and then in its teardown: the first failure is the cause.
        if report.failed and self._outcome != "failed":
            self._update(report, "failed", extract_output(report))
        # pytest reports an expected failure as skipped, with the attribute `wasxfail`.
        elif report.skipped and self._outcome in {"", "passed"}:
            outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            reason = replace_surrogates(extract_reason(report))
            self._update(report, outcome, {"reason": reason})
        elif report.passed and not self._outcome:
            self._outcome = "passed"

    def _update(self, report: Any, outcome: str, more: dict[str, str]) -> None:
        self._outcome = outcome
        self._facts |= {"phase": report.when or "", **extract_error(report), **more}

    def describe(self, exit_error: BaseException | None) -> dict[str, Any]:
        """Return the outcome as plain data.

        Args:
            exit_error: Exception with which the test ended the whole session; None if it did not.
        """
        if exit_error is not None:
            self._outcome = "left"
            message = f"{type(exit_error).__name__}: {get_message(exit_error)}"
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
        # A message that contains a number or an address is new each time.
        if key in self._counts or len(self._counts) < MAX_WARNINGS:
            self._counts[key] += 1

    def merge(self, other: WarningCounts) -> None:
        """Add other warnings before those that were counted so far."""
        # The sum of Counters keeps the order of the first, then that of the second.
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
        error: Exception with its traceback.
        file: File of the test; `where` is its last line in the traceback.
    """
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{file}:{own[-1].lineno}" if own else ""
    # Code that does not compile has no frame: the error itself has the line.
    if isinstance(error, SyntaxError) and error.filename == file:
        where = f"{file}:{error.lineno}"
    described: dict[str, Any] = {
        "type": type(error).__name__,
        "message": replace_surrogates(get_message(error)),
        "where": replace_surrogates(where),
        "frames": describe_chain(error),
    }
    if examples := find_falsifying(error):
        described["falsifying"] = replace_surrogates("\n\n".join(examples)[:TAIL])
    return described


def find_falsifying(error: BaseException) -> list[str]:
    """Return the examples that Hypothesis noted on an exception, or on those that it groups."""
    notes = [str(note) for note in getattr(error, "__notes__", None) or ()]
    found = [note for note in notes if _EXAMPLE.match(note)]
    # Hypothesis raises an ExceptionGroup for a test that fails in several ways.
    for inner in getattr(error, "exceptions", ()):
        found += find_falsifying(inner) if isinstance(inner, BaseException) else []
    return found


def extract_error(report: Any) -> dict[str, Any]:
    """Return the exception of a phase, as attached to its report, otherwise as in its text."""
    attached: dict[str, Any] | None = getattr(report, "conformance_error", None)
    if attached is not None:
        return attached
    # Plugins make reports without an exception, of which only the text is known.
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    match = re.match(r"(?:\w+\.)*([A-Za-z_]\w*): (?s:(.*))", text)
    type_, message = match.groups() if match else ("Failed", text)
    return {"type": type_, "message": replace_surrogates(message), "where": ""}


def extract_reason(report: Any) -> str:
    """Return why something is skipped or was expected to fail."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).removeprefix("reason: ")
    # A skip: file, line and reason.
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(text).removeprefix("Skipped: ")


def extract_output(report: Any) -> dict[str, str]:
    """Return the evidence of a failure: its traceback, and the output until then."""
    texts = {"text": report.longreprtext, "out": report.capstdout, "err": report.capstderr}
    return {name: replace_surrogates(text[-TAIL:]) for name, text in texts.items()}
