"""The record of a finished job, a line of `results.jsonl`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from conformance.model.outcome import Conformance, Outcome, Stage, Verdict, is_unexpected

SOURCES: Final = ("layout", "cost", "memory")
"""Artifacts that state facts in addition to the optimised HLO: the compiled object's layout, and
XLA's analyses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """An exception or an abnormal end of a job.

    Attributes:
        type: Exception type name (`TypeError`), or the signal (`SIGSEGV`) of a crash.
        message: Complete message.
        signature: Type and message without addresses, paths and line numbers.
        where: Last frame in the case file, `file:line`, empty if unknown.
    """

    type: str
    message: str
    signature: str = ""
    where: str = ""


class IrStatus(StrEnum):
    """The comparison of an IR with its golden."""

    UNKNOWN = "unknown"
    """There is no golden, or it has another version of the normal form."""
    SAME = "same"
    """Equal exact forms."""
    REGROUPED = "regrouped"
    """Equal canonical forms: other fusions, calls or layouts."""
    CHANGED = "changed"
    """Different canonical forms."""


# Runs, caches and stores of earlier releases name the forms `structure` and `neutral`.
class IrRecord(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"exact": "structure", "canonical": "neutral"},
):
    """The record of an IR of a job.

    Attributes:
        exact: Fingerprint of the exact form; empty if the text was not understood.
        canonical: Fingerprint of the canonical form; empty if the text was not understood.
        version: Version of the normal forms.
        not_understood: Constructs that were compared as text only, with their counts; the message
            of the syntax error if the text could not be parsed.
        status: Comparison with the golden.
        changes: Differences from the golden, a line for each pattern, the most severe first.
        begins: First differences, without those that follow from them.
    """

    exact: str = ""
    canonical: str = ""
    version: int = 0
    not_understood: dict[str, int] = msgspec.field(default_factory=dict)
    status: IrStatus = IrStatus.UNKNOWN
    changes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()


# A field after `stage` has a default, so that records of earlier releases can still be read.
@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result and the verdict of a job: the contract of `results.jsonl`.

    Attributes:
        case: Case id.
        cell: Cell id.
        case_hash: Hash of the case's content.
        cell_hash: Hash of the cell's lock, interpreter, config and flags.
        outcome: Outcome of the job.
        stage: Last stage reached.
        error: Error, None for none.
        artifacts: Blob hash by artifact: `value`, `reference`, `jaxpr`, `stablehlo`, `hlo`,
            `stablehlo-tpu`, `stablehlo-cuda`, `stablehlo-rocm` (lowered for other platforms),
            `cost`, `memory`, `layout` (shardings, donation), `stdout`, `stderr`,
            `traceback` (as Python prints it) and `frames` (its frames as JSON);
            `no_hlo` and the like have the reason why a release lacks an artifact; `same_as` has the
            outcomes of variants, `same_as-jit` and the like their values.
        facts: Facts of the optimised HLO.
        ir: Fingerprints of `jaxpr`, `hlo` and each `stablehlo`, by artifact.
        conformance: Comparison of the observation with the reference.
        verdict: Verdict by golden, deviations and reference.
        reasons: Reasons for the verdict, a sentence each.
        seconds: Wall-clock seconds by stage; `cross_lower` for all other platforms together.
        attempts: Number of times that the job ran.
        max_rss_bytes: Peak resident memory of the job's process.
        cached: Whether the observation came from the cache.
        notes: Notes about the execution, with any verdict: that it was near its timeout, or was
            killed from outside and run again.
    """

    case: str
    cell: str
    case_hash: str
    cell_hash: str
    outcome: Outcome
    stage: Stage
    error: ErrorInfo | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    ir: dict[str, IrRecord] = field(default_factory=dict)
    conformance: Conformance = Conformance.UNKNOWN
    verdict: Verdict = Verdict.NEW
    reasons: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    attempts: int = 1
    max_rss_bytes: int = 0
    cached: bool = False
    notes: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """Signature of the error, empty for no error."""
        return "" if self.error is None else self.error.signature

    @property
    def unexpected(self) -> bool:
        """Whether it makes its run fail."""
        return is_unexpected(self.verdict, self.conformance)

    @property
    def golden_at_fault(self) -> bool:
        """Whether its verdict is `infra` only because of its golden."""
        # An observed job is `infra` only if its golden was unreadable.
        return self.verdict is Verdict.INFRA and self.outcome.observed


class FactInterner:
    """Shares equal facts between records, of which a run has thousands, to save memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, Any]] = {}

    def intern(self, record: Record) -> dict[str, Any]:
        """Return the facts of a record, the same object for all records with equal facts.

        Args:
            record: Record of a job.
        """
        # By content: HLO of one exact form may have other counts of operations, and the facts of a
        # record must not depend on which job ended first.
        return self._known.setdefault(
            msgspec.json.encode(record.facts, order="sorted"), record.facts
        )
