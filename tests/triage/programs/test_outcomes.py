"""How a program ended, by what it left behind."""

from __future__ import annotations

import pytest

from conformance.model.outcome import Outcome
from conformance.triage.programs.outcomes import (
    classify_outcome,
    find_usage,
)
from conformance.triage.programs.process import CompletedProgram

TRACEBACK = """\
W1125 13:00:00.1 1 a.cc:1] noise
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    f()
jax.errors.ConcretizationTypeError: Abstract tracer value
  The problem arose here.
See https://example.org
"""


def ended(
    exit_: int | None = 1, stderr: str = "", cut: str = "", signal: int | None = None
) -> CompletedProgram:
    """Return the ending of a process."""
    return CompletedProgram(
        exit=exit_, signal=signal, cut=cut, stdout=b"", stderr=stderr.encode(), seconds=1.0,
        max_rss_bytes=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("process", "outcome", "type_", "message"),
    [
        (ended(1, TRACEBACK), Outcome.RAISED, "ConcretizationTypeError", "Abstract tracer value\n"),
        (ended(1, f"{TRACEBACK}\nDuring it:\n\n{TRACEBACK}ends: so"), Outcome.RAISED,
         "ConcretizationTypeError", "Abstract"),
        (ended(1, "Traceback (most recent call last):\n  a\nKeyError"), Outcome.RAISED,
         "KeyError", ""),
        (ended(3), Outcome.RAISED, "exit", "status 3"),
        (ended(3, "no such axis\nW1125 13:00:00.1 noise\n\n"), Outcome.RAISED, "exit",
         "status 3: no such axis"),
        (ended(None, signal=6), Outcome.CRASHED, "SIGABRT", "the process was ended by SIGABRT"),
        (ended(None, cut="timeout"), Outcome.TIMED_OUT, "timeout", "no end within the timeout"),
    ],
)  # fmt: skip
def test_each_ending_is_classified(
    process: CompletedProgram, outcome: Outcome, type_: str, message: str
) -> None:
    """A command by its traceback, otherwise by its exit status and last line."""
    found, error = classify_outcome(process, None, 5.0, set())
    assert error is not None
    assert (found, error.type) == (outcome, type_)
    assert error.message.startswith(message)


def test_the_usage_of_a_refused_command_line_is_found() -> None:
    """In one line."""
    said = "usage: a.py [-h]\n            --steps N\na.py: error: required: --steps\n"
    assert find_usage(ended(2, said)) == "usage: a.py [-h] --steps N"
    assert find_usage(ended(1, said)) == ""
    assert find_usage(ended(2, "no file")) == ""
