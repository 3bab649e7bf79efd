"""The closed sets: stages, outcomes, conformance, verdicts, exit codes."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Stage(StrEnum):
    """The stages of a job, in order."""

    PROVISION = "provision"
    IMPORT = "import"
    BUILD = "build"
    TRACE = "trace"
    LOWER = "lower"
    COMPILE = "compile"
    EXECUTE = "execute"


class Outcome(StrEnum):
    """How a job ended."""

    OK = "ok"
    RAISED = "raised"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    UNSUPPORTED = "unsupported"
    INFRA = "infra"
    NOT_RUN = "not_run"

    @property
    def observed(self) -> bool:
        """Whether the outcome says something about JAX, and so may become golden."""
        return self not in {Outcome.UNSUPPORTED, Outcome.INFRA, Outcome.NOT_RUN}


class Conformance(StrEnum):
    """Whether an observation agrees with the case's own reference."""

    CONFORMS = "conforms"
    DEVIATES = "deviates"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """The judgement of one job."""

    MATCH = "match"
    """As the golden has it, and nothing undeclared deviates."""
    REGRESSED = "regressed"
    """Deviates from its reference, or fails where the golden did not, and no deviation says so."""
    FIXED = "fixed"
    """Conforms under a declared deviation, or succeeds where the golden failed."""
    CHANGED = "changed"
    """A gated artifact differs from the golden, neither for better nor for worse."""
    DRIFTED = "drifted"
    """Other bits than the golden, within the tolerance."""
    KNOWN = "known"
    """Deviates as declared."""
    NEW = "new"
    """No golden yet for this case on this platform."""
    FLAKY = "flaky"
    """Attempts of the same job disagree."""
    CRASHED = "crashed"
    """Ended by a signal or by its memory limit, undeclared."""
    TIMED_OUT = "timed_out"
    """Did not end within its timeout, undeclared."""
    STALE = "stale"
    """A declared deviation that the golden of this very release no longer shows."""
    EXCLUDED = "excluded"
    """Not run on purpose, or unsupported on this cell; the reason is given."""
    INFRA = "infra"
    """Provisioning, network or disk, or a golden that cannot be read; says nothing about JAX."""

    @property
    def gates(self) -> bool:
        """Whether this verdict alone makes the run fail (exit 1)."""
        return self in GATING


GATING = frozenset(
    {
        Verdict.REGRESSED,
        Verdict.FIXED,
        Verdict.CHANGED,
        Verdict.FLAKY,
        Verdict.CRASHED,
        Verdict.TIMED_OUT,
        Verdict.STALE,
    }
)


def is_telling(verdict: Verdict, outcome: Outcome) -> bool:
    """Say whether a job says anything about JAX."""
    return outcome.observed and verdict not in {Verdict.INFRA, Verdict.EXCLUDED}


def is_unexpected(verdict: Verdict, conformance: Conformance) -> bool:
    """Say whether a job makes its run fail: what has no golden yet does unless it conforms."""
    unvouched = verdict is Verdict.NEW and conformance is not Conformance.CONFORMS
    return verdict.gates or unvouched


class ExitCode(IntEnum):
    """Exit status of `conformance run` and of its siblings."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    NOTHING = 3
    INFRA = 4
    INTERNAL = 70
    INTERRUPTED = 130
