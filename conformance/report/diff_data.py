"""The results of `conformance diff`: whether both sides are equal, and the JSON of each result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.engine.job_comparison import IrComparison
from conformance.engine.runs.transitions import TransitionKind
from conformance.ir.analysis import analyse
from conformance.ir.change import IrDiff
from conformance.ir.normal.text import is_canonical, read_head
from conformance.report.suites.diff import make_diff_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.engine.job_comparison import IrLevel, JobComparison
    from conformance.engine.runs.suite_changes import SuiteTestComparison
    from conformance.engine.runs.transitions import Transition
    from conformance.ir.text_diff import IrText


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalForms:
    """Texts that are printed in normal form instead of compared.

    Attributes:
        text: The normal forms, one after another.
        data: The normal forms with their facts, as JSON.
    """

    text: str
    data: Any

    @property
    def equal(self) -> bool:
        """Always true, because nothing is compared."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    """How two files differ.

    Attributes:
        names: Names of both files.
        diff: The difference.
        level: The equality that counts.
    """

    names: tuple[str, str]
    diff: IrDiff
    level: IrLevel

    @property
    def equal(self) -> bool:
        """Whether the texts are equal on the level."""
        return self.level.equal(self.diff)

    @property
    def data(self) -> dict[str, Any]:
        """The difference as JSON."""
        return _encode_ir(self.diff)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsDiff:
    """How jobs differ between two cells, two runs or two IRs.

    Attributes:
        names: Names of both sides.
        jobs: The compared pairs of jobs.
        level: The equality of IRs that counts.
        transitions: The change of each pair, in the order of `jobs`; empty where two IRs of one
            job are compared.
        only_changed: True to leave out IRs, and jobs without a change.
        alone: The jobs that only the first side has, and those that only the second has.
    """

    names: tuple[str, str]
    jobs: Sequence[JobComparison]
    level: IrLevel
    transitions: Sequence[Transition] = ()
    only_changed: bool = False
    alone: tuple[Sequence[str], Sequence[str]] = ((), ())

    @property
    def equal(self) -> bool:
        """Whether no job changed; where IRs count, whether they are equal on the level."""
        # Without IRs the transition decides, for which a value within its tolerance is the same.
        if self.only_changed:
            return all(change.kind is TransitionKind.SAME for change in self.transitions)
        return all(job.equal(self.level) for job in self.jobs)

    @property
    def data(self) -> list[dict[str, Any]]:
        """The IRs of all jobs as JSON; with `only_changed`, the jobs that changed."""
        return list(self._encode_changed_jobs() if self.only_changed else self._encode_irs())

    def _encode_changed_jobs(self) -> Iterator[dict[str, Any]]:
        for job, change in zip(self.jobs, self.transitions, strict=True):
            if change.kind is not TransitionKind.SAME:
                yield _encode_job(job, change.kind)

    def _encode_irs(self) -> Iterator[dict[str, Any]]:
        """Yield each IR of each job; a job without IRs yields one entry."""
        # Two IRs of one job are compared without a transition.
        kinds: list[TransitionKind | None] = [change.kind for change in self.transitions]
        kinds = kinds or [None] * len(self.jobs)
        for job, kind in zip(self.jobs, kinds, strict=True):
            # Readers find every job in the list, so a probe without IRs has an entry too.
            for one in job.irs or (IrComparison(ir="", problem="neither has an IR"),):
                diff = one.diff or IrDiff(kind=one.ir, equal=False, neutral_equal=False)
                ir = {"ir": one.ir, "problem": one.problem, **_encode_ir(diff)}
                yield {**_encode_job(job, kind), **ir}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDiff:
    """How tests of a suite differ between two cells or two runs.

    Attributes:
        names: Names of both sides.
        changes: The change of each test.
    """

    names: tuple[str, str]
    changes: Sequence[SuiteTestComparison]

    @property
    def equal(self) -> bool:
        """Whether no change counts."""
        return not any(one.change.counts for one in self.changes)

    @property
    def data(self) -> dict[str, Any]:
        """The changes as JSON."""
        return make_diff_json(self.changes, self.names)


def make_normal_form(text: IrText) -> dict[str, Any]:
    """Return the canonical form of a text, with its facts.

    Args:
        text: The text; it may be in that form, as goldens hold it, and has no facts then.

    Raises:
        IrSyntaxError: If it is not understood.
    """
    if is_canonical(text.text):
        return {"kind": text.kind, "neutral": read_head(text.text).fingerprint, "text": text.text}
    analysis = analyse(text.text, text.kind, with_text=True)
    return {
        "kind": text.kind,
        # The names that these forms have in every document of the project.
        "structure": analysis.exact,
        "neutral": analysis.canonical,
        "facts": analysis.facts,
        "not_understood": analysis.not_understood,
        "text": analysis.text,
    }


def _encode_ir(diff: IrDiff) -> dict[str, Any]:
    return {
        "equal": diff.equal,
        "neutral_equal": diff.neutral_equal,
        "changes": diff.changes,
        "facts": diff.facts,
        "matched": diff.matched,
        "changed": diff.changed,
        "unmatched": diff.unmatched,
        "not_understood": diff.not_understood,
    }


def _encode_job(job: JobComparison, kind: TransitionKind | None) -> dict[str, Any]:
    return {
        "case": job.case,
        "cells": job.cells,
        "outcomes": job.outcomes,
        "transition": kind,
        "said": job.difference,
    }
