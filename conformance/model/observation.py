"""Observations: decoded results of jobs, the input of the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.outcome import Outcome, Stage
    from conformance.model.record import ErrorInfo, IrRecord
    from conformance.model.value import Value


RANKS_DIFFER = "RanksDiffer"
"""Type of the error of a job whose processes have different observations."""
_CASE_ERROR = "CaseError"
LAW_ERROR = "LawError"
"""Type of the error of a law whose check in the kit fails."""
EXAMPLE = "example"
"""Artifact with the simplest example of a law as Python code."""
FALSIFYING = "falsifying"
"""Artifact with the example for which a law, or a test with Hypothesis, fails."""
_EXAMPLE_LINE = "falsifying example: "


def split_example(message: str) -> tuple[str, str]:
    """Split the message of an error into the message that was raised and its falsifying example.

    Args:
        message: Message of a job. Of a law that does not hold, its last line has the example.

    Returns:
        The message, and `falsifying example: CODE`; empty for none.
    """
    rest, _, last = message.rpartition("\n")
    return (rest, last) if last.startswith(_EXAMPLE_LINE) else (message, "")


def is_case_error(error: ErrorInfo | None) -> bool:
    """Say whether the kit raised an error because the case itself is wrong.

    Args:
        error: Error of a job, None for none.
    """
    # By name: errors arrive from the processes of cells as text.
    return error is not None and error.type.rpartition(".")[2] == _CASE_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """A reference for conforming behaviour that is an error.

    Attributes:
        type: Exception type name, or several joined by `|`.
        match: Regular expression searched in the message.
    """

    type: str
    match: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """The result of one variant of a program.

    Attributes:
        outcome: Outcome: `unsupported` if the cell cannot run the variant, `not_run` if an earlier
            variant ended the process.
        error: Error, or the reason why it was not run.
        value: Value, if it ran.
    """

    outcome: Outcome
    error: ErrorInfo | None = None
    value: Value | None = None

    @property
    def was_run(self) -> bool:
        """Whether the variant was run."""
        return self.outcome.observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The decoded result of a job.

    Attributes:
        outcome: Outcome of the job.
        stage: Last stage reached.
        error: Error, None for none.
        value: Observed value, None if the job did not reach one.
        reference: Expected value or error by independent means, None for no reference.
        facts: Facts of the optimised HLO.
        ir: Fingerprints by IR.
        texts: Canonical forms of the IRs that the case has claims about.
        variants: Results of the variants of a program, by name of the variant.
    """

    outcome: Outcome
    stage: Stage
    error: ErrorInfo | None = None
    value: Value | None = None
    reference: Value | ExpectedError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    ir: Mapping[str, IrRecord] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, VariantResult] = field(default_factory=dict)
