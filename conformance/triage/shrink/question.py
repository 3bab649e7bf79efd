"""What must stay while a case is cut: its failure, its wrong value, a fact.

A value is wrong where the cell at hand and one in which the case conforms disagree: the case's own
reference is about the whole program, not about what is left of it. So that no other difference of
the two takes the place of the first, how they disagree must stay as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from conformance.judge.comparison import Agreement
from conformance.judge.errors import cause_of
from conformance.judge.values import compare_reference
from conformance.model.codec import CorruptValueError, to_array, to_python
from conformance.model.outcome import Outcome
from conformance.search.facts import fact_of
from conformance.search.failures import quoted, same_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.judge.comparison import Comparison
    from conformance.judge.tolerance import Tolerance
    from conformance.model.value import Value
    from conformance.triage.shrink.shown import Shown

NOTABLE: Final = 1e-3
"""An error of this size is no rounding; one that was as large must stay so."""
SAID: Final = 600
"""Characters of a message that say why."""
_WORD: Final = re.compile(r"[A-Za-z]{3,}(?![\w.]*[\w(\[])")
_DTYPE: Final = re.compile(r"b?float\d+\w*|u?int\d+|complex\d+|bool|key")


class Question(Protocol):
    """What a candidate must show."""

    @property
    def about(self) -> str:
        """What is kept, in a few words."""
        ...

    def may_hold(self, bad: Shown) -> bool:
        """Say whether what the cell shows leaves it open."""
        ...

    def holds(self, bad: Shown, good: Shown | None) -> bool:
        """Say whether a candidate still shows it.

        Args:
            bad: What the cell shows.
            good: What the cell shows in which the case conforms, if there is one.
        """
        ...


@dataclass(frozen=True, slots=True)
class SameFailure:
    """Fails as the case does: the same type, the same message, raised by the same function.

    Attributes:
        seen: The case.
        names: Names in its text, which a message may quote.
        guarded: Whether there is a cell in which it does not fail.
    """

    seen: Shown
    names: frozenset[str]
    guarded: bool

    @property
    def about(self) -> str:
        """The failure."""
        return quoted(self.seen.ending)

    def may_hold(self, bad: Shown) -> bool:
        """Say whether it fails for the same reason."""
        if (bad.outcome, bad.frame) != (self.seen.outcome, self.seen.frame):
            return False
        if not same_failure(bad.ending, self.seen.ending):
            return False
        return self.guarded or self._words(bad) == self._words(self.seen)

    def _words(self, shown: Shown) -> set[str]:
        words = _WORD.findall(cause_of(shown.ending)[:SAID])
        return {one for one in words if one not in self.names and not _DTYPE.fullmatch(one)}

    def holds(self, bad: Shown, good: Shown | None) -> bool:
        """Say whether it fails, and only here."""
        return self.may_hold(bad) and (good is None or good.outcome is Outcome.OK)


@dataclass(frozen=True, slots=True)
class SameMistake:
    """Gives another value than the cell in which the case conforms, in the way the case does.

    Attributes:
        bad: The case, where it deviates.
        good: The case, where it conforms.
        tolerance: What the case states.
    """

    bad: Shown
    good: Shown
    tolerance: Tolerance

    @property
    def about(self) -> str:
        """How the values differ."""
        told = self._compared(self.bad, self.good)
        return f"value: {quoted(told.messages[0])}" if told.messages else "value"

    def _compared(self, bad: Shown, good: Shown) -> Comparison:
        assert bad.value is not None  # noqa: S101 - see holds
        assert good.value is not None  # noqa: S101
        stated = self.tolerance
        return compare_reference(bad.value, good.value, stated.rtol, stated.atol)

    def may_hold(self, bad: Shown) -> bool:
        """Say whether there is a value."""
        return bad.outcome is Outcome.OK and bad.value is not None

    def holds(self, bad: Shown, good: Shown | None) -> bool:
        """Say whether the values differ as those of the case do."""
        if good is None or not (self.may_hold(bad) and self.may_hold(good)):
            return False
        kind, size = _difference(self._compared(bad, good))
        known, known_size = _difference(self._compared(self.bad, self.good))
        if not kind or not kind <= known or size < min(known_size, NOTABLE):
            return False
        pairs = ((bad, self.bad), (good, self.good))
        return all(_alike(one.value, case.value) for one, case in pairs)


def _difference(compared: Comparison) -> tuple[set[str], float]:
    """Return in what respects values differ, and how far."""
    found = [d for d in compared.differences if d.agreement is Agreement.BEYOND]
    sizes = [min(d.max_abs, d.max_rel) for d in found if d.size]
    return {d.aspect for d in found}, max(sizes, default=np.inf)


def _alike(value: Value | None, case: Value | None) -> bool:
    """Say whether a value is of the kind of the case's: finite as that is, with its texts."""
    assert value is not None  # noqa: S101 - see holds
    assert case is not None  # noqa: S101
    return _finite(value) >= _finite(case) and set(_texts(value)) <= set(_texts(case))


def _finite(value: Value) -> bool:
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
class RunsAnyway:
    """Runs, where the case is to raise; and raises in the cell in which the case conforms."""

    good: Shown

    @property
    def about(self) -> str:
        """What it should do."""
        return f"runs, expected {quoted(self.good.ending)}"

    def may_hold(self, bad: Shown) -> bool:
        """Say whether it runs."""
        return bad.outcome is Outcome.OK

    def holds(self, bad: Shown, good: Shown | None) -> bool:
        """Say whether it runs here alone."""
        if good is None or not self.may_hold(bad):
            return False
        same = (good.outcome, good.frame) == (self.good.outcome, self.good.frame)
        return same and same_failure(good.ending, self.good.ending)


@dataclass(frozen=True, slots=True)
class SameFact:
    """States a fact as the case does, in each cell.

    Attributes:
        name: The fact.
        bad: The case.
        good: The case in another cell, if there is one.
    """

    name: str
    bad: Shown
    good: Shown | None

    @property
    def about(self) -> str:
        """The fact."""
        told = f"fact {self.name} is {fact_of(self.bad.side, self.name)}"
        if self.good is None:
            return told
        return f"{told}, {fact_of(self.good.side, self.name)} in the other cell"

    def may_hold(self, bad: Shown) -> bool:
        """Say whether the fact is as it is for the case."""
        return self._same(bad, self.bad)

    def holds(self, bad: Shown, good: Shown | None) -> bool:
        """Say whether the fact is as it is for the case, in each cell."""
        if not self._same(bad, self.bad):
            return False
        return self.good is None or (good is not None and self._same(good, self.good))

    def _same(self, one: Shown, case: Shown) -> bool:
        first = self.name.partition(".")[0]
        if one.outcome is not Outcome.OK or first not in one.side.record.facts:
            return False
        return bool(fact_of(one.side, self.name) == fact_of(case.side, self.name))
