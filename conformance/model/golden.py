"""The golden of a case, platform and release, which the judge compares an observation with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedError:
    """An outcome other than `ok` in a golden.

    Attributes:
        outcome: Outcome of the job.
        stage: Last stage of the job; it is not compared, because jax moves checks between stages.
        type: Exception type name, or the signal; empty without an error object.
        message: Message in normal form.
    """

    outcome: Outcome
    stage: str
    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenIr:
    """The golden of an IR; empty if it was not recorded, or with another version of the forms.

    Attributes:
        canonical: Fingerprint of the canonical form.
        exact: Fingerprint of the exact form, empty if it has another version.
        text: The canonical form as text.
    """

    canonical: str = ""
    exact: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenEntry:
    """The golden that applies to a case, platform and release.

    At most one of `value` and `error` is set. Neither is set for an outcome `ok` without a value
    (compile-only).

    Attributes:
        span: Span of releases, `0.6.0..0.8.3` or a single release.
        exact: Whether the release is within the span; False if the nearest older span applies.
        tainted: Whether its format or its normal form has another version, so that it cannot be
            compared; the other fields are then empty.
        value: Recorded value of a job with the outcome `ok`.
        error: Recorded error of a job with another outcome.
        facts: Recorded facts that gate.
        ir: Recorded forms by IR.
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
        """Outcome of the recorded job."""
        # Without an error the job ended well: a compile-only job has no value either.
        return Outcome.OK if self.error is None else self.error.outcome
