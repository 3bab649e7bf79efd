"""Criteria: the behavior that a candidate must show, e.g. a failure, a wrong value, a fact.

A value is wrong if the bad cell disagrees with a cell in which the case conforms: the reference of
the case is the value of the whole program, not of the rest of it. How they disagree must stay the
same as well, so that no other difference between the two cells replaces the first.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from conformance.judge.difference import Agreement
from conformance.judge.errors import normalise_cause
from conformance.judge.values import compare_reference
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

    from conformance.judge.difference import Comparison
    from conformance.judge.tolerance import Tolerance
    from conformance.model.value import Value
    from conformance.search.metrics import Metric
    from conformance.triage.shrink.results import CaseResult, ScriptResult

R_contra = TypeVar("R_contra", bound=TrialResult, contravariant=True)
LARGE_ERROR: Final = 1e-3
"""An error of this size is no rounding error; an error as large must not become smaller."""
COMPARED_CHARACTERS: Final = 600
"""Characters of a message that are compared: the rest is advice."""
# Words of prose only: dotted names, calls and subscripts quote the code, which is being cut.
_WORD: Final = re.compile(r"[A-Za-z]{3,}(?![\w.]*[\w(\[])")
_DTYPE: Final = re.compile(r"b?float\d+\w*|u?int\d+|complex\d+|bool|key")
_PRINTED: Final = re.compile(r"[A-Za-z_]\w*|[^\w\s]")


class Criterion(Protocol[R_contra]):
    """A condition on candidates."""

    @property
    def about(self) -> str:
        """The kept behavior, in a few words."""
        ...

    def may_hold(self, bad: R_contra) -> bool:
        """Return whether a candidate may meet the condition, by its result in the bad cell."""
        ...

    def holds(self, bad: R_contra, good: R_contra | None) -> bool:
        """Return whether a candidate meets the condition.

        Args:
            bad: The result in the bad cell.
            good: The result in the good cell, if there is one.
        """
        ...


@dataclass(frozen=True, slots=True)
class SameFailure:
    """The candidate fails as the original: same type and message, raised by the same function.

    Attributes:
        original: The result of the original.
        names: Names in its text, which a message may quote.
        has_good_cell: Whether candidates also run in a good cell: then their messages may have
            fewer words, since any other failure would show in the good cell, too.
    """

    original: TrialResult
    names: frozenset[str] = frozenset()
    has_good_cell: bool = True

    @property
    def about(self) -> str:
        """The failure."""
        return shorten(self.original.ending)

    def may_hold(self, bad: TrialResult) -> bool:
        """Return whether it fails for the same reason."""
        # The same message raised by another function is another failure.
        if (bad.outcome, bad.frame) != (self.original.outcome, self.original.frame):
            return False
        if not is_same_failure(bad.ending, self.original.ending):
            return False
        # Without a good cell nothing else shows that a failure is the same.
        return self.has_good_cell or self._words(bad) == self._words(self.original)

    def _words(self, result: TrialResult) -> set[str]:
        words = _WORD.findall(normalise_cause(result.ending)[:COMPARED_CHARACTERS])
        # A cut may change the dtypes that a message quotes.
        return {word for word in words if word not in self.names and not _DTYPE.fullmatch(word)}

    def holds(self, bad: TrialResult, good: TrialResult | None) -> bool:
        """Return whether it fails in the bad cell only."""
        return self.may_hold(bad) and (good is None or good.outcome is Outcome.OK)


@dataclass(frozen=True, slots=True)
class SameOutputDifference:
    """The output of the bad and the good cell differ: in numbers alone, or in the same words.

    Attributes:
        bad: The script in the bad cell.
        good: The script in the good cell.
    """

    bad: ScriptResult
    good: ScriptResult

    @property
    def about(self) -> str:
        """The first line that differs."""
        _, line, other = next(find_differing_lines(self.bad.output, self.good.output))
        return f"prints {shorten(line)!r} instead of {shorten(other)!r}"

    def may_hold(self, bad: ScriptResult) -> bool:
        """Return whether it runs."""
        return bad.outcome is Outcome.OK

    def holds(self, bad: ScriptResult, good: ScriptResult | None) -> bool:
        """Return whether its outputs differ as those of the script."""
        if good is None or not self.may_hold(bad) or not self.may_hold(good):
            return False
        if is_same_output(bad.output, good.output):
            return False
        # Numbers may become others; if the outputs differ in words, one of these words must still
        # differ.
        words = _differing_words(self.bad, self.good)
        return not words or bool(words & _differing_words(bad, good))


def _differing_words(bad: ScriptResult, good: ScriptResult) -> set[tuple[str, bool]]:
    """Return the words that are more frequent in either output, and whether in the bad one."""
    in_bad, in_good = (Counter(_PRINTED.findall(result.output)) for result in (bad, good))
    return {(word, True) for word in in_bad - in_good} | {
        (word, False) for word in in_good - in_bad
    }


@dataclass(frozen=True, slots=True)
class SameWrongValue:
    """The values of the bad and the good cell differ as those of the original.

    Attributes:
        bad: The case in the bad cell.
        good: The case in the good cell.
        tolerance: The tolerance of the case.
    """

    bad: CaseResult
    good: CaseResult
    tolerance: Tolerance

    @property
    def about(self) -> str:
        """How the values differ."""
        messages = self._compare(self.bad, self.good).messages
        return f"value: {shorten(messages[0])}" if messages else "value"

    def _compare(self, bad: CaseResult, good: CaseResult) -> Comparison:
        tolerance = self.tolerance
        return compare_reference(
            bad.required_value, good.required_value, tolerance.rtol, tolerance.atol
        )

    def may_hold(self, bad: CaseResult) -> bool:
        """Return whether there is a value."""
        return bad.outcome is Outcome.OK and bad.value is not None

    def holds(self, bad: CaseResult, good: CaseResult | None) -> bool:
        """Return whether the values differ as those of the case."""
        if good is None or not (self.may_hold(bad) and self.may_hold(good)):
            return False
        kind, size = _difference(self._compare(bad, good))
        known, known_size = _difference(self._compare(self.bad, self.good))
        # An aspect that did not differ before is another difference. An error may shrink only while
        # it stays too large for rounding.
        if not kind or not kind <= known or size < min(known_size, LARGE_ERROR):
            return False
        pairs = ((bad, self.bad), (good, self.good))
        # A cut easily gives NaN, or another text, in which two cells differ for another reason.
        return all(_is_similar(one.required_value, case.required_value) for one, case in pairs)


def _difference(compared: Comparison) -> tuple[set[str], float]:
    """Return the aspects in which values differ, and the size of the difference."""
    found = [d for d in compared.differences if d.agreement is Agreement.BEYOND]
    # The smaller one: small values have large relative errors, large values large absolute ones.
    sizes = [min(d.max_abs, d.max_rel) for d in found if d.size]
    # A difference of shape or dtype has no size.
    return {d.aspect for d in found}, max(sizes, default=np.inf)


def _is_similar(value: Value, case: Value) -> bool:
    """Return whether a value is finite if that of the case is, and contains only its strings."""
    return _is_finite(value) >= _is_finite(case) and set(_texts(value)) <= set(_texts(case))


def _is_finite(value: Value) -> bool:
    for leaf in value.leaves:
        try:
            array = to_array(leaf)
        # A text has no numbers.
        except CorruptValueError:
            continue
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            return False
    return True


def _texts(value: Value) -> Iterator[str]:
    """Yield the strings of a value, without numbers, e.g. those of devices."""
    for leaf in value.leaves:
        if leaf.kind == "python" and leaf.dtype == "str":
            # The names of devices have numbers, which change with their count.
            yield re.sub(r"\d+", "#", to_python(leaf))


@dataclass(frozen=True, slots=True)
class SameErrorAbsence:
    """The candidate runs in the bad cell, and raises the expected error in the good one."""

    good: TrialResult

    @property
    def about(self) -> str:
        """The error that is expected."""
        return f"runs, expected {shorten(self.good.ending)}"

    def may_hold(self, bad: TrialResult) -> bool:
        """Return whether it runs."""
        return bad.outcome is Outcome.OK

    def holds(self, bad: TrialResult, good: TrialResult | None) -> bool:
        """Return whether it runs in the bad cell only."""
        return self.may_hold(bad) and good is not None and SameFailure(self.good).may_hold(good)


@dataclass(frozen=True, slots=True)
class SameCost:
    """The candidate takes more in the bad cell than in the good one, as the case does.

    Attributes:
        metric: The measured quantity, such as seconds of a run.
        bad: The case in the bad cell.
        good: The case in the good cell.
    """

    metric: Metric
    bad: CaseResult
    good: CaseResult

    @property
    def about(self) -> str:
        """The ratio of the case."""
        return f"takes {self.ratio:.1f} times the {self.metric.name} of the other cell"

    @property
    def ratio(self) -> float:
        """The ratio of the case, 0 if one of both was not measured."""
        return self._compute_ratio(self.bad, self.good)

    def may_hold(self, bad: CaseResult) -> bool:
        """Return whether it was measured."""
        return bad.outcome is Outcome.OK and bool(self.metric.of(bad.stored_job))

    def holds(self, bad: CaseResult, good: CaseResult | None) -> bool:
        """Return whether its ratio is nearer to that of the case than to 1."""
        return good is not None and self._compute_ratio(bad, good) >= sqrt(self.ratio)

    def _compute_ratio(self, bad: CaseResult, good: CaseResult) -> float:
        if not self.may_hold(bad) or not self.may_hold(good):
            return 0.0
        values = (self.metric.of(one.stored_job) or 0.0 for one in (bad, good))
        high, low = values
        return high / low if low > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SameFact:
    """A fact of the IR is the same as for the case, in each cell.

    Attributes:
        name: The fact.
        bad: The case in the bad cell.
        good: The case in the good cell, if there is one.
    """

    name: str
    bad: CaseResult
    good: CaseResult | None

    @property
    def about(self) -> str:
        """The fact."""
        about = f"fact {self.name} is {get_fact(self.bad.stored_job, self.name)}"
        if self.good is None:
            return about
        return f"{about}, {get_fact(self.good.stored_job, self.name)} in the other cell"

    def may_hold(self, bad: CaseResult) -> bool:
        """Return whether the fact is the same in the bad cell."""
        return self._is_same(bad, self.bad)

    def holds(self, bad: CaseResult, good: CaseResult | None) -> bool:
        """Return whether the fact is the same in each cell."""
        if not self._is_same(bad, self.bad):
            return False
        return self.good is None or (good is not None and self._is_same(good, self.good))

    def _is_same(self, one: CaseResult, case: CaseResult) -> bool:
        first = self.name.partition(".")[0]
        # `get_fact` raises for a fact that an IR does not have; for a candidate that is an answer.
        if one.outcome is not Outcome.OK or first not in one.stored_job.record.facts:
            return False
        return bool(get_fact(one.stored_job, self.name) == get_fact(case.stored_job, self.name))
