"""The record of one finished job: one line of `results.jsonl`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from conformance.model.outcome import Conformance, Outcome, Stage, Verdict, is_unexpected

SOURCES: Final = ("layout", "cost", "memory")
"""Artifacts that state facts in addition to the optimised HLO: the compiled object's layout, and
XLA's analyses. Records whose HLO and sources are the same state the same facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """An exception or an abnormal end, as the worker saw it.

    Attributes:
        type: Exception type name (`TypeError`), or the signal (`SIGSEGV`) of a crash.
        message: Whole message, untouched.
        signature: Type and normalised message: no addresses, paths, line numbers.
        where: Last frame of the case's own file, `file:line`, empty when unknown.
    """

    type: str
    message: str
    signature: str = ""
    where: str = ""


class IrStatus(StrEnum):
    """One IR of a job against the golden of it."""

    UNKNOWN = "unknown"
    """Nothing is recorded to compare with, or by another version of the normal form."""
    SAME = "same"
    """The same structure."""
    REGROUPED = "regrouped"
    """The same work; fused, called or laid out otherwise."""
    CHANGED = "changed"
    """Other work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IrRecord:
    """The record of one IR of a job.

    Attributes:
        structure: Fingerprint of the form `structure`; empty when the text was not understood.
        neutral: Fingerprint of the form `neutral`.
        version: Version of the normal forms.
        not_understood: What was compared as text only, with how often it occurs; the whole text
            under the message of the syntax error when nothing of it was understood.
        status: Against the golden.
        changes: How it differs from the golden, one line for each pattern, the gravest first.
        begins: Where it begins to: what was changed, without all that merely follows from it.
    """

    structure: str = ""
    neutral: str = ""
    version: int = 0
    not_understood: dict[str, int] = field(default_factory=dict)
    status: IrStatus = IrStatus.UNKNOWN
    changes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of a job and its judgement: the contract of `results.jsonl`.

    Attributes:
        case: Case id.
        cell: Cell id.
        case_hash: Hash of the case's content.
        cell_hash: Hash of the cell's lock, interpreter, config and flags.
        outcome: How the job ended.
        stage: Last stage reached.
        error: The error, when there was one.
        artifacts: Blob hash by artifact: `value`, `reference`, `jaxpr`, `stablehlo`, `hlo`,
            `stablehlo-tpu`, `stablehlo-cuda`, `stablehlo-rocm` (lowered for platforms that are
            not the cell's), `cost`, `memory`, `layout` (shardings, donation), `stdout`, `stderr`,
            `traceback` (as Python prints it) and `frames` (its frames as JSON);
            `no_hlo` and the like say why a release could not tell one; `same_as` says how the
            program ended in other ways, `same_as-jit` and the like what it gave there.
        facts: What the optimised HLO says in compiler-neutral terms.
        ir: What is kept of `jaxpr`, `hlo` and each `stablehlo`, by artifact.
        conformance: Observation against the reference.
        verdict: Observation against golden, deviations and reference.
        reasons: Why the verdict is what it is, one sentence each.
        seconds: Wall-clock seconds by stage; `cross_lower` for all other platforms together.
        attempts: How many times the job ran.
        max_rss_bytes: Peak resident memory of the job's process.
        cached: Whether the observation came from the cache.
        notes: What is to be known of how it ran, whatever its verdict: that it was near its
            timeout, that it was killed from outside and run again.
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
        """Signature of its error, empty without one."""
        return "" if self.error is None else self.error.signature

    @property
    def unexpected(self) -> bool:
        """Whether it makes its run fail."""
        return is_unexpected(self.verdict, self.conformance)

    @property
    def golden_at_fault(self) -> bool:
        """Whether it is `infra` through its golden alone: the job itself was observed."""
        return self.verdict is Verdict.INFRA and self.outcome.observed


class FactInterner:
    """One object for all facts that are equal; a run holds thousands of records."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, ...], dict[str, Any]] = {}

    def of(self, record: Record) -> dict[str, Any]:
        """Return a record's facts, the same object for all records that state the same.

        Args:
            record: The record.
        """
        hlo = record.ir.get("hlo")
        if hlo is None or not hlo.structure:
            return record.facts
        key = (hlo.structure, *map(record.artifacts.get, SOURCES))
        return self._known.setdefault(key, record.facts)
