"""Transitions between two jobs of one case: neighbours on a track, or one cell in two runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.record_judge import load_observation
from conformance.engine.runs.stored_job import load_value, select_informative_irs
from conformance.engine.workers.transcript import is_variant_artifact
from conformance.judge.ir import find_changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_values
from conformance.judge.variants import compare_variants
from conformance.model.case import Policy
from conformance.model.outcome import Conformance, Outcome
from conformance.model.value import CorruptValueError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.judge.difference import Comparison
    from conformance.model.record import Record
    from conformance.model.run import RunCase

ENDING: Final = "ending"
VALUE: Final = "value"
FACTS: Final = "facts"
VARIANTS: Final = "same_as"


class TransitionKind(StrEnum):
    """The kind of a change, to users who upgrade."""

    REGRESSED = "regressed"
    """It worked, or was right, and no longer does or is."""
    FIXED = "fixed"
    """It did not work, or was wrong, and now does or is."""
    CHANGED = "changed"
    """Another ending, value or fact, neither for better nor for worse."""
    SAME = "same"
    """Nothing that gates; an IR may differ."""


COUNTED: Final = (TransitionKind.REGRESSED, TransitionKind.FIXED, TransitionKind.CHANGED)
"""Kinds of changes between releases that reports count; `same` is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """The change from an earlier job of a case to a later one.

    Attributes:
        before: The earlier job.
        after: The later job.
        kind: Kind of the change.
        changed: Names of what differs: `ending`, `value`, `facts`, IRs with different canonical
            forms, and `same_as` if other variants than before disagree with the program.
        regrouped: IRs with equal canonical forms and different exact forms.
        value: Comparison of the values, also within the tolerance; None unless both jobs have one
            and the bits differ.
    """

    before: StoredJob
    after: StoredJob
    kind: TransitionKind
    changed: tuple[str, ...] = ()
    regrouped: tuple[str, ...] = ()
    value: Comparison | None = None


def make_transition(before: StoredJob, after: StoredJob, case: RunCase) -> Transition:
    """Return the transition between two observed jobs of one case.

    Args:
        before: The earlier job.
        after: The later job.
        case: The case, for its tolerance and policies.
    """
    pair = _Pair(before, after, case)
    changed = tuple(pair.find_changed())
    return Transition(
        before=before,
        after=after,
        kind=_find_kind(before.record, after.record, gates=any(map(pair.gates, changed))),
        changed=changed,
        regrouped=tuple(pair.find_regrouped()),
        value=pair.value,
    )


class _Pair:
    """Compares two jobs artifact by artifact."""

    def __init__(self, before: StoredJob, after: StoredJob, case: RunCase) -> None:
        self._before, self._after, self._case = before, after, case
        self._a, self._b = before.record, after.record

    def gates(self, artifact: str) -> bool:
        """Return whether a change fails a run: ending, value, variants always, others by policy."""
        if artifact in {ENDING, VALUE, VARIANTS}:
            return True
        return self._case.policy_of(artifact) is Policy.GATE

    def find_changed(self) -> Iterator[str]:
        """Yield the names of what differs, see `Transition.changed`.

        A value differs beyond the tolerance of the case, an IR in its canonical form.
        """
        if self._is_equal():
            return
        if _get_ending(self._a) != _get_ending(self._b):
            yield ENDING
        if self.value is not None and not self.value.agrees:
            yield VALUE
        if any(find_changed_facts(self._b.facts, self._a.facts)):
            yield FACTS
        yield from (ir for ir in self._list_common_irs() if self._differs(ir, "canonical"))
        if _find_disagreeing_variants(self._before, self._case) != _find_disagreeing_variants(
            self._after, self._case
        ):
            yield VARIANTS

    def find_regrouped(self) -> Iterator[str]:
        """Yield the IRs with equal canonical forms and different exact forms."""
        if self._a.ir == self._b.ir:
            return
        for ir in self._list_common_irs():
            if self._differs(ir, "exact") and not self._differs(ir, "canonical"):
                yield ir

    @cached_property
    def value(self) -> Comparison | None:
        """Comparison of the values.

        None if they have equal bits, if neither job was ok, or if a value is missing or unreadable.
        """
        before, after = (record.artifacts.get(VALUE) for record in (self._a, self._b))
        if before is None or after is None or Outcome.OK not in {self._a.outcome, self._b.outcome}:
            return None
        if before == after:  # equal hashes: most neighbours are not read
            return None
        try:
            values = load_value(self._after), load_value(self._before)
        except (CorruptBlobError, CorruptValueError):
            return None
        return compare_values(*values, Tolerance.of(self._case), word="before")

    def _is_equal(self) -> bool:
        """Return whether nothing differs: a fast check that is true for most neighbours."""
        before, after = self._a, self._b
        return (
            before.artifacts.get(VALUE) == after.artifacts.get(VALUE)
            and before.ir == after.ir
            and _select_variant_artifacts(before) == _select_variant_artifacts(after)
            and _get_ending(before) == _get_ending(after)
            and before.facts == after.facts
        )

    def _list_common_irs(self) -> Iterator[str]:
        """Yield the IRs that both jobs have; none that equals the cell's own StableHLO in both."""
        for ir in select_informative_irs(self._a, self._b):
            if ir in self._a.ir and ir in self._b.ir:
                yield ir

    def _differs(self, ir: str, form: str) -> bool:
        """Return whether an IR differs in a form; IRs that were not understood do not."""
        before, after = self._a.ir[ir], self._b.ir[ir]
        known = before.exact and after.exact and before.version == after.version
        return bool(known) and getattr(before, form) != getattr(after, form)


def _select_variant_artifacts(record: Record) -> dict[str, str]:
    """Return the artifacts about variants, by name."""
    return {name: blob for name, blob in record.artifacts.items() if is_variant_artifact(name)}


def _find_disagreeing_variants(side: StoredJob, case: RunCase) -> frozenset[str]:
    """Return the variants that disagree with the program; none if an artifact is corrupt."""
    if not _select_variant_artifacts(side.record):
        return frozenset()
    try:
        return frozenset(compare_variants(case, load_observation(side.record, side.blobs)))
    except (CorruptBlobError, CorruptValueError):
        return frozenset()


def _get_ending(record: Record) -> tuple[str, str]:
    # By signature: the message of an error contains paths and line numbers of a release.
    return record.outcome, record.signature


def _find_kind(before: Record, after: Record, *, gates: bool) -> TransitionKind:
    """Return the kind of a change: by conformance if both are known, else by the endings."""
    # A reference decides which side is right; without one, an error is worse than a value.
    known = before.conformance, after.conformance
    if Conformance.UNKNOWN not in known and known[0] is not known[1]:
        return (
            TransitionKind.FIXED if known[1] is Conformance.CONFORMS else TransitionKind.REGRESSED
        )
    ok = before.outcome is Outcome.OK, after.outcome is Outcome.OK
    if Conformance.UNKNOWN in known and ok[0] is not ok[1]:
        return TransitionKind.FIXED if ok[1] else TransitionKind.REGRESSED
    return TransitionKind.CHANGED if gates else TransitionKind.SAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The history of one case on one track.

    Attributes:
        jobs: A job for each cell of the track, None for a cell without one.
        points: Transitions between neighbouring observed jobs, without those in which nothing
            differs.
    """

    jobs: tuple[StoredJob | None, ...]
    points: tuple[Transition, ...]


def make_timeline(jobs: Sequence[StoredJob | None], case: RunCase) -> Timeline:
    """Return a case's history on a track.

    Args:
        jobs: A job for each cell, from the oldest release to the newest.
        case: Case, for its tolerance and policies.
    """
    # A cell that could not run the case is skipped: its neighbours are compared with each other.
    observed = [job for job in jobs if job is not None and job.record.outcome.observed]
    steps = (make_transition(a, b, case) for a, b in pairwise(observed))
    points = tuple(step for step in steps if step.changed or step.kind is not TransitionKind.SAME)
    return Timeline(jobs=tuple(jobs), points=points)
