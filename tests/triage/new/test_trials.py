"""Comparison of a case with its script, and unusable scripts."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.triage.new.trials import is_same_behavior, refuse_unusable_script

DEVIATES = Conformance.DEVIATES
RAISED, CRASHED, REFUSED = Outcome.RAISED, Outcome.CRASHED, Outcome.UNSUPPORTED


def ended(
    outcome: Outcome = Outcome.OK,
    type_: str = "",
    message: str = "it is wrong",
    conformance: Conformance = Conformance.UNKNOWN,
) -> Record:
    """Return the record of a job."""
    error = None
    if outcome is not Outcome.OK:
        name = type_ or str(outcome)
        error = ErrorInfo(type=name, message=message, signature=f"{name}: {message}")
    return Record(
        case="family/one", cell="cell", case_hash="", cell_hash="", outcome=outcome,
        stage=Stage.EXECUTE, error=error, conformance=conformance,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "plain", "expected"),
    [
        (ended(), ended(), True),
        (ended(conformance=DEVIATES), ended(), False),
        (ended(RAISED, "TypeError"), ended(), False),
        (ended(RAISED, "TypeError"), ended(RAISED, "TypeError", "otherwise text"), True),
        (ended(RAISED, "TypeError"), ended(RAISED, "ValueError"), False),
        (ended(), ended(RAISED, "TypeError"), False),
        (ended(conformance=DEVIATES), ended(RAISED, "AssertionError"), True),
        (ended(), ended(RAISED, "AssertionError"), False),
        (ended(RAISED, "AssertionError"), ended(RAISED, "AssertionError"), True),
        (ended(conformance=DEVIATES), ended(RAISED, "exit", "status 1"), True),
        (ended(RAISED, "TypeError"), ended(RAISED, "exit", "status 1"), False),
        (ended(CRASHED, "SIGABRT"), ended(CRASHED, "SIGABRT"), True),
        (ended(REFUSED), ended(CRASHED, "SIGABRT"), True),
        (ended(REFUSED), ended(), False),
        (ended(Outcome.INFRA), ended(), True),
    ],
)
def test_case_and_script_are_compared_by_outcome(
    seen: Record, plain: Record, expected: bool
) -> None:
    """A value that deviates is an assertion that fails."""
    assert is_same_behavior(seen, plain) is expected


def test_case_raises_the_exception_that_its_script_catches() -> None:
    """A crash cannot be caught."""
    assert is_same_behavior(ended(RAISED, "TypeError"), ended(), catches_error=True)
    assert not is_same_behavior(ended(CRASHED, "SIGABRT"), ended(), catches_error=True)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            ended(
                Outcome.UNSUPPORTED,
                "missing package",
                "the script imports 'einops', and the cell has no package of that name",
            ),
            "package einops",
        ),
        (ended(RAISED, "FileNotFoundError", "No such file: 'a.npy'"), "reads a file: No such"),
        (ended(RAISED, "NameError", "name 'x' is not defined"), "is incomplete: NameError"),
        (ended(Outcome.TIMED_OUT, "timeout", "no end within 5 s"), "raise it with --timeout"),
        (ended(Outcome.INFRA), "failed to start on every release tried"),
    ],
)
def test_unusable_scripts_are_refused(one: Record, text: str) -> None:
    """A script that runs on some release is not."""
    with pytest.raises(UsageError, match=r"^report\.py: ") as caught:
        refuse_unusable_script({0: one, 1: one}, "report.py")
    assert text in str(caught.value)
    refuse_unusable_script({0: one, 1: ended()}, "report.py")


def test_removed_module_of_jax_is_no_missing_package() -> None:
    """Its absence is the subject of the case."""
    refuse_unusable_script(
        {0: ended(RAISED, "ModuleNotFoundError", "No module named 'jax.experimental.x'")}, "r"
    )
