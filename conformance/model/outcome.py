"""Enumerations: stages, outcomes, conformance, verdicts, exit codes."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Stage(StrEnum):
    """The stages of a job, in order."""

    # Ranks are compared by their position in this order, see `engine.rank_transcripts`.
    PROVISION = "provision"
    IMPORT = "import"
    BUILD = "build"
    TRACE = "trace"
    LOWER = "lower"
    COMPILE = "compile"
    EXECUTE = "execute"


class Outcome(StrEnum):
    """The outcome of a job."""

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
        """Whether the outcome is an observation of JAX, and so may become a golden."""
        # A crash and a timeout count: they are how a release behaves, and may be declared.
        return self not in {Outcome.UNSUPPORTED, Outcome.INFRA, Outcome.NOT_RUN}


class Conformance(StrEnum):
    """Whether an observation agrees with the case's own reference."""

    CONFORMS = "conforms"
    DEVIATES = "deviates"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """The judgement of one job."""

    MATCH = "match"
    """Equal to the golden, and every deviation is declared."""
    REGRESSED = "regressed"
    """An undeclared deviation from the reference, or a failure where the golden has none."""
    FIXED = "fixed"
    """Conforms despite a declared deviation, or succeeds where the golden has a failure."""
    CHANGED = "changed"
    """A gated artifact differs from the golden, but is neither regressed nor fixed."""
    DRIFTED = "drifted"
    """Other bits than the golden, within the tolerance."""
    KNOWN = "known"
    """Deviates as declared."""
    NEW = "new"
    """The case has no golden on this platform yet."""
    FLAKY = "flaky"
    """Attempts of the same job disagree."""
    CRASHED = "crashed"
    """An undeclared end by a signal or by the memory limit."""
    TIMED_OUT = "timed_out"
    """An undeclared timeout."""
    STALE = "stale"
    """A declared deviation that the golden of the same release no longer shows."""
    EXCLUDED = "excluded"
    """Excluded from the plan, or unsupported by the cell, with the reason."""
    INFRA = "infra"
    """A failure of provisioning, network or disk, or an unreadable golden; no verdict about JAX."""

    @property
    def gates(self) -> bool:
        """Whether this verdict alone makes the run fail (exit 1)."""
        return self in GATING


# `drifted` is within the tolerance. `infra` and `excluded` have separate exit statuses, and a `new`
# job fails a run only if its reference does not confirm it.
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


def is_conclusive(verdict: Verdict, outcome: Outcome) -> bool:
    """Say whether a job was observed and judged."""
    # Both: an observed job is `infra` if its golden is unreadable.
    return outcome.observed and verdict not in {Verdict.INFRA, Verdict.EXCLUDED}


def is_unexpected(verdict: Verdict, conformance: Conformance) -> bool:
    """Say whether a job makes its run fail."""
    # Without a golden only the reference can show that the behaviour is right.
    is_unverified = verdict is Verdict.NEW and conformance is not Conformance.CONFORMS
    return verdict.gates or is_unverified


class ExitCode(IntEnum):
    """Exit status of the command line."""

    # Scripts of users depend on the numbers. 70 is EX_SOFTWARE of sysexits.h, 130 is 128 + SIGINT.
    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    NOTHING = 3
    INFRA = 4
    INTERNAL = 70
    INTERRUPTED = 130
