"""Comparison of repeated computations: errors, facts of the optimised HLO, or results. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.ir_analysis import analyse_artifacts
from conformance.judge.difference import Agreement
from conformance.judge.ir import find_changed_facts
from conformance.judge.values import compare_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.judge.tolerance import Tolerance
    from conformance.triage.layers.recording import CallError, Replay, ReplayedCall

    Ends = tuple["tuple[Place, ReplayedCall]", "tuple[Place, ReplayedCall]"]

Place = tuple[int, int]
"""Numbers of the release that wrote a module, and of the one that compiled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayComparer:
    """Compares results of combinations of producer and compiler.

    Attributes:
        replays: Results by combination.
        tolerance: Tolerance of equal results.
        by_facts: Whether facts of the optimised HLO are compared, not results.
    """

    replays: Mapping[Place, Replay]
    tolerance: Tolerance
    by_facts: bool = False

    def is_alike(
        self,
        place: Place,
        result: ReplayedCall,
        other_place: Place,
        other: ReplayedCall,
        *,
        within: bool,
    ) -> bool:
        """Say whether two results agree.

        Args:
            place: Combination of the first result.
            result: The first result.
            other_place: Combination of the second result.
            other: The second result.
            within: Whether results may differ within the tolerance, not only in no bit.
        """
        if (result.error is None) != (other.error is None):
            return False
        if result.error is not None:
            return summarize_error(result.error) == summarize_error(other.error)
        if self.by_facts:
            one, two = (
                analyse_artifacts({"hlo": self.replays[at].read(found.hlo)})[1]
                for at, found in ((place, result), (other_place, other))
            )
            return not any(find_changed_facts(one, two))
        if result.outputs == other.outputs:
            return True
        return within and self._agree(place, result, other_place, other)

    def classify(self, place: Place, result: ReplayedCall, ends: Ends) -> str:
        """Say which of two results that differ a third one is like.

        Args:
            place: Combination of the third result.
            result: The third result.
            ends: Combination and result of the good and of the bad one.

        Returns:
            `good` or `bad` like that one only, otherwise `other`.
        """
        good, bad = ends
        # Ends that agree within the tolerance are separated by their bits.
        within = not self.is_alike(*good, *bad, within=True)
        like_good = self.is_alike(place, result, *good, within=within)
        like_bad = self.is_alike(place, result, *bad, within=within)
        if like_good == like_bad:
            return "other"
        return "good" if like_good else "bad"

    def _agree(
        self,
        place: Place,
        result: ReplayedCall,
        other_place: Place,
        other: ReplayedCall,
    ) -> bool:
        """Say whether all results agree within the tolerance, on each device."""
        kinds = [
            [(array.shape, array.dtype, len(array.shards)) for array in one.outputs]
            for one in (result, other)
        ]
        if kinds[0] != kinds[1]:
            return False
        for mine, its in zip(result.outputs, other.outputs, strict=True):
            left = self.replays[place].load_shards(mine)
            right = self.replays[other_place].load_shards(its)
            both = zip(left, right, strict=True)
            found = (compare_numbers("", one, two, self.tolerance) for one, two in both)
            if any(one is not None and one.agreement is Agreement.BEYOND for one in found):
                return False
        return True


def summarize_error(error: CallError | None) -> tuple[str, str]:
    """Return what makes two errors equal: the class, and the message without numbers and names.

    Args:
        error: An error, None for none.
    """
    if error is None:
        return "", ""
    # The class of runtime errors was renamed with 0.8.0.
    kind = error.type.replace("XlaRuntimeError", "JaxRuntimeError")
    first = error.message.strip().partition("\n")[0]
    return kind, re.sub(r"%?[\w.]*\d[\w.]*", "N", first)[:120]
