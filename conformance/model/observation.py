"""Observations: the decoded results of jobs, which the judge reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.outcome import Outcome, Stage
    from conformance.model.record import ErrorInfo, IrRecord
    from conformance.model.value import Value


RANKS_DIFFER = "RanksDiffer"
"""Type of the error of a job whose processes do not agree on what they observed."""
_CASE_ERROR = "CaseError"


def is_case_error(error: ErrorInfo | None) -> bool:
    """Say whether the kit raised an error because the case itself is wrong.

    Args:
        error: The error of a job, if it has one.
    """
    return error is not None and error.type.rpartition(".")[2] == _CASE_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """A reference that says: conforming behaviour is to raise.

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
        outcome: How that ended: `unsupported` where it cannot be run so there, `not_run` where an
            earlier way had ended the process.
        error: The error, or why it was not run.
        value: The value, where it ran.
    """

    outcome: Outcome
    error: ErrorInfo | None = None
    value: Value | None = None

    @property
    def checked(self) -> bool:
        """Whether it says anything of the program."""
        return self.outcome.observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The decoded result of one job.

    Attributes:
        outcome: How it ended.
        stage: Last stage reached.
        error: The error, when there was one.
        value: The value observed, when the job reached one.
        reference: What it should have been: a pytree by independent means, an error, or None.
        facts: What the optimised HLO says in compiler-neutral terms.
        ir: What is kept of each IR.
        texts: IRs in the form `neutral`, those that the case claims something of.
        ways: What came of it in other ways, by way.
    """

    outcome: Outcome
    stage: Stage
    error: ErrorInfo | None = None
    value: Value | None = None
    reference: Value | ExpectedError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    ir: Mapping[str, IrRecord] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    ways: Mapping[str, VariantResult] = field(default_factory=dict)
