"""The letter, the rank and the meaning of each verdict."""

from __future__ import annotations

from typing import Final

from conformance.model.outcome import Verdict

LETTERS: Final = {
    Verdict.MATCH: ".",
    Verdict.KNOWN: "k",
    Verdict.DRIFTED: "~",
    Verdict.NEW: "n",
    Verdict.EXCLUDED: "-",
    Verdict.REGRESSED: "R",
    Verdict.FIXED: "F",
    Verdict.CHANGED: "C",
    Verdict.FLAKY: "?",
    Verdict.CRASHED: "X",
    Verdict.TIMED_OUT: "T",
    Verdict.STALE: "S",
    Verdict.INFRA: "I",
}
"""A letter for each verdict, readable without colours."""
WORST_FIRST: Final = (
    Verdict.CRASHED,
    Verdict.TIMED_OUT,
    Verdict.REGRESSED,
    Verdict.FLAKY,
    Verdict.CHANGED,
    Verdict.FIXED,
    Verdict.STALE,
    # A fault of the host says nothing about JAX: it hides none of the verdicts that need a
    # decision, but every verdict that needs none.
    Verdict.INFRA,
    Verdict.NEW,
    Verdict.KNOWN,
    Verdict.DRIFTED,
    Verdict.MATCH,
    Verdict.EXCLUDED,
)
"""Order of verdicts: several jobs that share a cell of a table have the first of theirs."""
MEANINGS: Final = {
    Verdict.MATCH: "as the golden has it",
    Verdict.KNOWN: "deviates as declared",
    Verdict.DRIFTED: "other bits than the golden, within the tolerance",
    Verdict.NEW: "no golden yet",
    Verdict.EXCLUDED: "not run on purpose, or not supported there",
    Verdict.REGRESSED: "deviates undeclared, or fails where the golden did not",
    Verdict.FIXED: "conforms under a declared deviation, or succeeds where the golden failed",
    Verdict.CHANGED: "differs from the golden, neither for better nor for worse",
    Verdict.FLAKY: "two attempts of the job disagree",
    Verdict.CRASHED: "ended by a signal or by its memory limit, undeclared",
    Verdict.TIMED_OUT: "no end within its timeout, undeclared",
    Verdict.STALE: "a declared deviation that the golden no longer shows",
    Verdict.INFRA: "ended for reasons of the host, which say nothing about JAX",
}
"""Meaning of each verdict, for the legend of the matrix."""
