"""Criteria: what a candidate must still show, e.g. a failure, a wrong value or output, a fact.

A value is wrong where the cell and one in which the case conforms disagree: the case's own
reference is about the whole program, not about what is left of it. So that no other difference of
the two takes the place of the first, how they disagree must stay as well.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from conformance.judge.errors import normalise_cause
from conformance.judge.values import Agreement, compare_reference
from conformance.model.outcome import Outcome
from conformance.model.value import CorruptValueError, to_array, to_python
from conformance.search.equivalence import (
    find_differing_lines,
    is_same_failure,
    is_same_output,
    shorten,
)
from conformance.search.predicates import get_fact
from conformance.triage.shrink.results import TrialResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.judge.tolerance import Tolerance
    from conformance.judge.values import Comparison
    from conformance.model.value import Value
    from conformance.triage.shrink.results import CaseResult, ScriptResult

R_contra = TypeVar("R_contra", bound=TrialResult, contravariant=True)
NOTABLE: Final = 1e-3
"""An error of this size is no rounding; one that was as large must stay so."""
REASON: Final = 600
"""Characters of a message that say why."""
_WORD: Final = re.compile(r"[A-Za-z]{3,}(?![\w.]*[\w(\[])")
_DTYPE: Final = re.compile(r"b?float\d+\w*|u?int\d+|complex\d+|bool|key")
_PRINTED: Final = re.compile(r"[A-Za-z_]\w*|[^\w\s]")


class Criterion(Protocol[R_contra]):
    """A condition on candidates."""

    @property
    def about(self) -> str:
        """The failure or difference that is kept, in a few words."""
        ...

    def may_hold(self, bad: R_contra) -> bool:
        """Say whether the result in the cell leaves it open."""
        ...

    def holds(self, bad: R_contra, good: R_contra | None) -> bool:
        """Say whether a candidate meets the condition.

        Args:
            bad: The result in the cell.
            good: The result in the cell in which the original is right, if there is one.
        """
        ...


@dataclass(frozen=True, slots=True)
class SameFailure:
    """Fails as the original does: the same type and message, raised by the same function.

    Attributes:
        seen: The original.
        names: Names in its text, which a message may quote.
        guarded: Whether its message may lose words, as where there is a cell in which it is right.
    """

    seen: TrialResult
    names: frozenset[str] = frozenset()
    guarded: bool = True

    @property
    def about(self) -> str:
        """The failure."""
        return shorten(self.seen.ending)

    def may_hold(self, bad: TrialResult) -> bool:
        """Say whether it fails for the same reason."""
        if (bad.outcome, bad.frame) != (self.seen.outcome, self.seen.frame):
            return False
        if not is_same_failure(bad.ending, self.seen.ending):
            return False
        return self.guarded or self._words(bad) == self._words(self.seen)

    def _words(self, result: TrialResult) -> set[str]:
        words = _WORD.findall(normalise_cause(result.ending)[:REASON])
        return {one for one in words if one not in self.names and not _DTYPE.fullmatch(one)}

    def holds(self, bad: TrialResult, good: TrialResult | None) -> bool:
        """Say whether it fails, and only here."""
        return self.may_hold(bad) and (good is None or good.outcome is Outcome.OK)


@dataclass(frozen=True, slots=True)
class SameOutputDifference:
    """Prints something else than in the other cell: numbers alone, or the same words.

    Attributes:
        bad: The script in the cell.
        good: The script in the other one.
    """

    bad: ScriptResult
    good: ScriptResult

    @property
    def about(self) -> str:
        """The first line that differs."""
        _, line, other = next(find_differing_lines(self.bad.output, self.good.output))
        return f"prints {shorten(line)!r} for {shorten(other)!r}"

    def may_hold(self, bad: ScriptResult) -> bool:
        """Say whether it runs."""
        return bad.outcome is Outcome.OK

    def holds(self, bad: ScriptResult, good: ScriptResult | None) -> bool:
        """Say whether it differs as the script does."""
        if good is None or not self.may_hold(bad) or not self.may_hold(good):
            return False
        if is_same_output(bad.output, good.output):
            return False
        words = _words_between(self.bad, self.good)
        return not words or bool(words & _words_between(bad, good))


def _words_between(bad: ScriptResult, good: ScriptResult) -> set[tuple[str, bool]]:
    """Return the words that one output has less often than the other, with whose they are."""
    one, other = (Counter(_PRINTED.findall(result.output)) for result in (bad, good))
    return {(word, True) for word in one - other} | {(word, False) for word in other - one}


@dataclass(frozen=True, slots=True)
class SameWrongValue:
    """Gives another value than the cell in which the case conforms, in the way the case does.

    Attributes:
        bad: The case, where it deviates.
        good: The case, where it conforms.
        tolerance: The tolerance of the case.
    """

    bad: CaseResult
    good: CaseResult
    tolerance: Tolerance

    @property
    def about(self) -> str:
        """How the values differ."""
        messages = self._compared(self.bad, self.good).messages
        return f"value: {shorten(messages[0])}" if messages else "value"

    def _compared(self, bad: CaseResult, good: CaseResult) -> Comparison:
        assert bad.value is not None  # noqa: S101 - see holds
        assert good.value is not None  # noqa: S101
        return compare_reference(bad.value, good.value, self.tolerance.rtol, self.tolerance.atol)

    def may_hold(self, bad: CaseResult) -> bool:
        """Say whether there is a value."""
        return bad.outcome is Outcome.OK and bad.value is not None

    def holds(self, bad: CaseResult, good: CaseResult | None) -> bool:
        """Say whether the values differ as those of the case do."""
        if good is None or not (self.may_hold(bad) and self.may_hold(good)):
            return False
        kind, size = _difference(self._compared(bad, good))
        known, known_size = _difference(self._compared(self.bad, self.good))
        if not kind or not kind <= known or size < min(known_size, NOTABLE):
            return False
        pairs = ((bad, self.bad), (good, self.good))
        return all(_is_alike(one.value, case.value) for one, case in pairs)


def _difference(compared: Comparison) -> tuple[set[str], float]:
    """Return in what respects values differ, and how far."""
    found = [d for d in compared.differences if d.agreement is Agreement.BEYOND]
    sizes = [min(d.max_abs, d.max_rel) for d in found if d.size]
    return {d.aspect for d in found}, max(sizes, default=np.inf)


def _is_alike(value: Value | None, case: Value | None) -> bool:
    """Say whether a value is of the kind of the case's: finite as that is, with its texts."""
    assert value is not None  # noqa: S101 - see holds
    assert case is not None  # noqa: S101
    return _is_finite(value) >= _is_finite(case) and set(_texts(value)) <= set(_texts(case))


def _is_finite(value: Value) -> bool:
    for leaf in value.leaves:
        try:
            array = to_array(leaf)
        except CorruptValueError:
            continue
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            return False
    return True


def _texts(value: Value) -> Iterator[str]:
    """Yield the texts of a value; how devices and the like are numbered does not count."""
    for leaf in value.leaves:
        if leaf.kind == "python" and leaf.dtype == "str":
            yield re.sub(r"\d+", "#", to_python(leaf))


@dataclass(frozen=True, slots=True)
class MissingError:
    """Runs, where the case is to raise; and raises in the cell in which the case conforms."""

    good: TrialResult

    @property
    def about(self) -> str:
        """The error that is expected."""
        return f"runs, expected {shorten(self.good.ending)}"

    def may_hold(self, bad: TrialResult) -> bool:
        """Say whether it runs."""
        return bad.outcome is Outcome.OK

    def holds(self, bad: TrialResult, good: TrialResult | None) -> bool:
        """Say whether it runs here alone."""
        return self.may_hold(bad) and good is not None and SameFailure(self.good).may_hold(good)


@dataclass(frozen=True, slots=True)
class SameFact:
    """States a fact as the case does, in each cell.

    Attributes:
        name: The fact.
        bad: The case.
        good: The case in another cell, if there is one.
    """

    name: str
    bad: CaseResult
    good: CaseResult | None

    @property
    def about(self) -> str:
        """The fact."""
        told = f"fact {self.name} is {get_fact(self.bad.stored, self.name)}"
        if self.good is None:
            return told
        return f"{told}, {get_fact(self.good.stored, self.name)} in the other cell"

    def may_hold(self, bad: CaseResult) -> bool:
        """Say whether the fact is as it is for the case."""
        return self._is_same(bad, self.bad)

    def holds(self, bad: CaseResult, good: CaseResult | None) -> bool:
        """Say whether the fact is as it is for the case, in each cell."""
        if not self._is_same(bad, self.bad):
            return False
        return self.good is None or (good is not None and self._is_same(good, self.good))

    def _is_same(self, one: CaseResult, case: CaseResult) -> bool:
        first = self.name.partition(".")[0]
        if one.outcome is not Outcome.OK or first not in one.stored.record.facts:
            return False
        return bool(get_fact(one.stored, self.name) == get_fact(case.stored, self.name))
