"""The golden of one case, platform and release: the judge's other input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedError:
    """An ending other than `ok`, as a golden keeps it.

    Attributes:
        outcome: How the job ended.
        stage: Stage it had reached when recorded; not compared, jax moves checks between stages.
        type: Exception type name, or the signal; empty when there was no error object.
        message: The message in normal form.
    """

    outcome: Outcome
    stage: str
    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenIr:
    """The golden of one IR; empty without one, or if another normal form recorded it.

    Attributes:
        neutral: Fingerprint of the form `neutral`.
        structure: Fingerprint of the form `structure`.
        text: The form `neutral` as text.
    """

    neutral: str = ""
    structure: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenEntry:
    """The golden that applies to one case, platform and release.

    Of `value` and `error` at most one says how the job ended; neither, that it ended well
    without a value (compile-only).

    Attributes:
        span: The span of releases it stands for, `0.6.0..0.8.3` or a lone release.
        exact: Whether the release lies within the span; False when it is the nearest older one.
        tainted: Whether it was written by another version of the format or of the normal form,
            and so says nothing; the other fields are then empty.
        value: The value recorded, for jobs that ended well.
        error: The ending recorded, for jobs that did not.
        facts: The facts that gate, of jobs that ended well.
        ir: What is recorded of each IR.
    """

    span: str
    exact: bool = True
    tainted: bool = False
    value: Value | None = None
    error: RecordedError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    ir: Mapping[str, GoldenIr] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """How the recorded job ended."""
        return Outcome.OK if self.error is None else self.error.outcome
