"""Comparison of the ending of a reproduction with that of its case."""

from __future__ import annotations

import pytest

from conformance.model.observation import Observation
from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.triage.programs.process import CompletedProgram
from conformance.triage.repro.header import JudgedObservation
from conformance.triage.repro.verification import compare_ending

FRAMES = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    f()\n'
NOTE = (
    "--------------------\nFor simplicity, JAX has removed its internal frames from the traceback "
)
NOTE += "of the following exception. Set JAX_TRACEBACK_FILTERING=off to include these.\n"
SHAPES = "shapes (3,) and (4,) differ\nin lhs"


def observe(
    outcome: Outcome, conformance: Conformance, error: str = "", message: str = ""
) -> JudgedObservation:
    """Return the judged observation of a case."""
    info = ErrorInfo(type=error, message=message, signature="", where="") if error else None
    observation = Observation(outcome=outcome, stage=Stage.EXECUTE, error=info)
    return JudgedObservation(
        observation=observation, conformance=conformance, reasons=("out[0] is 1",)
    )


def ended(
    code: int | None, stderr: str = "", *, signal: int | None = None, cut: str = ""
) -> CompletedProgram:
    """Return how a file ended."""
    return CompletedProgram(
        exit=code, signal=signal, cut=cut, stdout=b"", stderr=stderr.encode(), seconds=1.0,
        max_rss_bytes=0,
    )  # fmt: skip


RIGHT = observe(Outcome.OK, Conformance.CONFORMS)
WRONG = observe(Outcome.OK, Conformance.DEVIATES)
RAISED = observe(Outcome.RAISED, Conformance.DEVIATES, "ValueError", SHAPES)
REFUSED = observe(Outcome.RAISED, Conformance.CONFORMS, "TypeError", "no")
NOT_JUDGED = observe(Outcome.RAISED, Conformance.UNKNOWN, "jaxlib._jax.XlaRuntimeError", "no")
CRASHED = observe(Outcome.CRASHED, Conformance.DEVIATES, "SIGSEGV", "ended by SIGSEGV")
HUNG = observe(Outcome.TIMED_OUT, Conformance.DEVIATES, "timeout", "no end")


@pytest.mark.parametrize(
    ("claim", "end"),
    [
        (RIGHT, ended(0)),
        (REFUSED, ended(0)),
        (WRONG, ended(1, f"{FRAMES}AssertionError: \nNot equal to tolerance\n")),
        (WRONG, ended(1, f"{FRAMES}AssertionError\n")),
        (RAISED, ended(1, f"{FRAMES}{NOTE}ValueError: {SHAPES}\n")),
        (NOT_JUDGED, ended(1, f"{FRAMES}jax.errors.XlaRuntimeError: no\n")),
        (CRASHED, ended(None, signal=11)),
        (CRASHED, ended(139)),
        (HUNG, ended(1, "Timeout (0:00:02)!\nThread 0x1 (most recent call first):\n")),
    ],
)
def test_equal_ending_is_accepted(claim: JudgedObservation, end: CompletedProgram) -> None:
    """The same exception, an assertion, a signal, or a timeout."""
    assert compare_ending(end, claim) == ""


@pytest.mark.parametrize(
    ("claim", "end", "text"),
    [
        (RIGHT, ended(1, f"{FRAMES}E: x\n"), "it ends with E: x, expected exit status 0"),
        (RIGHT, ended(None, cut="timeout"), "it ends with no end within the time, expected exit"),
        (WRONG, ended(0), "it ends with exit status 0, expected AssertionError, for out[0] is 1"),
        (
            WRONG,
            ended(1, f"{FRAMES}ModuleNotFoundError: No module named 'mine'\n"),
            "No module named",
        ),
        (
            RAISED,
            ended(1, f"{FRAMES}ValueError: other\n"),
            "ValueError: other, expected ValueError",
        ),
        (RAISED, ended(None, signal=6), "it ends with signal 6, expected ValueError: shapes"),
        (CRASHED, ended(0), "it ends with exit status 0, expected SIGSEGV"),
    ],
)
def test_other_ending_is_described(
    claim: JudgedObservation, end: CompletedProgram, text: str
) -> None:
    """With the expected ending."""
    assert text in compare_ending(end, claim)


def test_silent_file_must_exit_with_0() -> None:
    """It asserts nothing that the case deviates from."""
    assert compare_ending(ended(0), WRONG, silent=True) == ""
