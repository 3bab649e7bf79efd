"""The layer that makes a difference, from four combinations of producer and compiler. Pure.

The producer is the release that traces and lowers a program to StableHLO; the compiler is the XLA
of a release. Two of the combinations are the releases themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from conformance.ir.difference import diff
from conformance.ir.graph import IrSyntaxError
from conformance.triage.layers.answer import BAD, GOOD, Combination, Layer, LayerAnswer
from conformance.triage.layers.comparison import ReplayComparer, summarize_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.judge.tolerance import Tolerance
    from conformance.triage.layers.recording import (
        CallError,
        RecordedCall,
        Recording,
        Replay,
        ReplayedCall,
    )

PAIRS: Final = ((GOOD, GOOD), (GOOD, BAD), (BAD, GOOD), (BAD, BAD))
"""Producer and compiler of each combination."""
INCOMPATIBLE: Final = re.compile(
    r"No registered implementation for .*custom call|Failed to deserialize StableHLO"
    r"|can't be translated to XLA HLO|has no Shardy|cannot read portable|Unknown custom call"
    r"|implementation for custom call|not registered"
)
"""Errors of a compiler that cannot read what another release writes: they say nothing about it."""


UNSPECIFIC: Final = frozenset({"AssertionError", "failure", "XlaRuntimeError", "JaxRuntimeError"})
"""Types of errors that say nothing about their layer; the second is pytest's of an assertion."""


@dataclass(slots=True, kw_only=True)
class LayerJudge:
    """Decides on the layer between two releases.

    Attributes:
        recordings: Recordings of the good and of the bad release.
        ends: The error with which the target ended in each, None if it succeeded.
        replays: Results by producer and compiler.
        tolerance: Tolerance of the target.
        by_facts: Whether facts of the optimised HLO differ, not results.
    """

    recordings: tuple[Recording, Recording]
    ends: tuple[CallError | None, CallError | None]
    replays: Mapping[tuple[int, int], Replay]
    tolerance: Tolerance
    by_facts: bool = False
    _differing: int = 0
    _comparer: ReplayComparer = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the comparison of results."""
        self._comparer = ReplayComparer(
            replays=self.replays, tolerance=self.tolerance, by_facts=self.by_facts
        )

    def judge(self) -> LayerAnswer:
        """Return the layer that makes the difference."""
        failed = [self._find_failed(number) for number in (GOOD, BAD)]
        if any(failed) and not (all(failed) and self._is_same_error(*failed)):
            return self._judge_failure(failed)
        found = [self._judge_pair(*pair) for pair in self._list_differing()]
        self._differing = len(found)
        if found:
            return self._combine(found)
        if not _is_same_end(*self.ends):
            return self._judge_other_failure()
        return self._judge_rest()

    def _judge_other_failure(self) -> LayerAnswer:
        """Return the layer of an error that no computation raises, as far as they tell it.

        It is one of jax before the lowering, one of jaxlib, or an assertion of the target.
        """
        side = BAD if self.ends[BAD] is not None else GOOD
        error = self.ends[side]
        assert error is not None  # noqa: S101 - the ends differ
        failed, other = (
            Counter(call.key for call in self.recordings[number].calls)
            for number in (side, 1 - side)
        )
        if error.type not in UNSPECIFIC:
            layer = Layer.TRACING
        # The computations after the error are missing; others are a difference of their own.
        else:
            layer = Layer.OUTSIDE if failed <= other else Layer.NOT_SEPARABLE
        reason = f"{error.type} before or outside of any computation"
        return replace(self._answer(layer, reason), is_failure=True)

    def _find_failed(self, number: int) -> RecordedCall | None:
        calls = self.recordings[number].calls
        # The last one: a program may catch errors before it fails.
        failed = [call for call in calls if call.error is not None]
        return failed[-1] if failed and self.ends[number] is not None else None

    def _is_same_error(self, one: RecordedCall | None, other: RecordedCall | None) -> bool:
        return (
            one is not None
            and other is not None
            and summarize_error(one.error) == summarize_error(other.error)
        )

    def _judge_failure(self, failed: Sequence[RecordedCall | None]) -> LayerAnswer:
        """Return the layer of an error that the compiler or the runtime raises."""
        side = BAD if failed[BAD] is not None else GOOD
        call = failed[side]
        assert call is not None  # noqa: S101 - one of them failed
        partner = self._find_partner(call, 1 - side)
        if call.reasons:
            return self._answer(Layer.NOT_SEPARABLE, call.reasons[0], call)
        own = self._get(side, 1 - side, call)
        if own is None or _is_incompatible(own.error):
            return self._answer(Layer.NOT_SEPARABLE, self._explain(side, 1 - side, call), call)
        if partner is None:
            layer = Layer.TRACING if own.error is not None else Layer.INTERACTION
            reason = (
                "the compiler of the other release refuses the module, too"
                if own.error is not None
                else "the other release has no such computation, and its compiler accepts it"
            )
            return self._answer(layer, reason, call)
        pair = (partner, call) if side == BAD else (call, partner)
        return self._judge_pair(*pair)

    def _find_partner(self, call: RecordedCall, number: int) -> RecordedCall | None:
        """Return the call of the other release that corresponds to a failed one."""
        others = [other for other in self.recordings[number].calls if not other.reasons]
        same = [other for other in others if other.name.strip("_") == call.name.strip("_")]
        own = [one for one in self.recordings[1 - number].calls if one.name == call.name]
        place = own.index(call)
        return same[min(place, len(same) - 1)] if same else None

    def _list_differing(self) -> Iterator[tuple[RecordedCall, RecordedCall]]:
        """Yield pairs of calls with equal names and arguments whose results differ."""
        found = list(self._match())
        pairs = [pair for pair in found if self._differ(*pair, beyond=True)]
        # A difference in the last bits matters only if there is no larger one.
        yield from pairs or (pair for pair in found if self._differ(*pair, beyond=False))

    def _match(self) -> Iterator[tuple[RecordedCall, RecordedCall]]:
        good, bad = (
            [call for call in recording.calls if not call.reasons and call.error is None]
            for recording in self.recordings
        )
        matcher = SequenceMatcher(
            None, [call.key for call in good], [call.key for call in bad], autojunk=False
        )
        for first, second, size in matcher.get_matching_blocks():
            yield from zip(good[first : first + size], bad[second : second + size], strict=True)

    def _differ(self, good: RecordedCall, bad: RecordedCall, *, beyond: bool) -> bool:
        one, other = self._get(GOOD, GOOD, good), self._get(BAD, BAD, bad)
        if one is None or other is None:
            return False
        return not self._comparer.is_alike((GOOD, GOOD), one, (BAD, BAD), other, within=beyond)

    def _judge_pair(self, good: RecordedCall, bad: RecordedCall) -> LayerAnswer:
        calls = {GOOD: good, BAD: bad}
        table = tuple(self._make_combinations(calls))
        kinds = {(one.producer, one.compiler): one.kind for one in table}
        crossed = kinds[GOOD, BAD], kinds[BAD, GOOD]
        if "unknown" in crossed:
            place = (GOOD, BAD) if crossed[0] == "unknown" else (BAD, GOOD)
            reason = self._explain(*place, calls[place[0]])
            return self._answer(Layer.NOT_SEPARABLE, reason, bad, table)
        # Like neither release is not good, too: uninitialised memory is never the same.
        is_good = crossed[0] == "good", crossed[1] == "good"
        if is_good == (False, True):
            return self._answer(
                Layer.COMPILER, "it is bad exactly where the compiler is the bad one", bad, table
            )
        if is_good == (True, False):
            return self._answer(*self._judge_front_end(good, bad), bad, table)
        return self._answer(
            Layer.INTERACTION, "neither the producer nor the compiler alone decides", bad, table
        )

    def _judge_front_end(self, good: RecordedCall, bad: RecordedCall) -> tuple[Layer, str]:
        texts = [
            recording.read(call.jaxpr).decode() if call.jaxpr else ""
            for recording, call in zip(self.recordings, (good, bad), strict=True)
        ]
        reason = "it is bad exactly where the producer is the bad one"
        try:
            equal = all(texts) and diff(texts[0], texts[1], kind="jaxpr").neutral_equal
        except IrSyntaxError:
            equal = False
        if equal:
            return Layer.LOWERING, f"{reason}, and the jaxprs are equal"
        return Layer.TRACING, f"{reason}, and the jaxprs differ" if all(texts) else reason

    def _make_combinations(self, calls: Mapping[int, RecordedCall]) -> Iterator[Combination]:
        results = {(p, c): self._get(p, c, calls[p]) for p, c in PAIRS}
        good, bad = results[GOOD, GOOD], results[BAD, BAD]
        for (producer, compiler), result in results.items():
            kind = "unknown"
            if result is not None and good is not None and bad is not None:
                kind = self._classify((producer, compiler), result, good, bad)
            summary = _summarize(result, kind)
            yield Combination(producer, compiler, summary, kind)

    def _classify(
        self, place: tuple[int, int], result: ReplayedCall, good: ReplayedCall, bad: ReplayedCall
    ) -> str:
        own = {(GOOD, GOOD): "good", (BAD, BAD): "bad"}.get(place)
        if own is not None:
            return own
        if _is_incompatible(result.error) and not (
            _is_incompatible(good.error) or _is_incompatible(bad.error)
        ):
            return "unknown"
        ends = ((GOOD, GOOD), good), ((BAD, BAD), bad)
        return self._comparer.classify(place, result, ends)

    def _judge_rest(self) -> LayerAnswer:
        """Return the layer of a difference that no pair of equal calls shows."""
        reasons = [r for recording in self.recordings for call in recording.calls
                   for r in (*call.reasons, *filter(None, [call.truncated]))]  # fmt: skip
        if reasons:
            return self._answer(Layer.NOT_SEPARABLE, reasons[0])
        keys = [Counter(call.key for call in recording.calls) for recording in self.recordings]
        if keys[GOOD] == keys[BAD]:
            return self._answer(Layer.OUTSIDE, "every computation gives the same result")
        for producer in (GOOD, BAD):
            for call in self.recordings[producer].calls:
                own = self._get(producer, producer, call)
                other = self._get(producer, 1 - producer, call)
                if own is None or other is None or _is_incompatible(other.error):
                    return self._answer(
                        Layer.NOT_SEPARABLE, self._explain(producer, 1 - producer, call), call
                    )
                places = (producer, producer), (producer, 1 - producer)
                if not self._comparer.is_alike(places[0], own, places[1], other, within=True):
                    return self._answer(
                        Layer.INTERACTION,
                        "the releases run different computations, and their compilers differ",
                        call,
                    )
        return self._answer(
            Layer.TRACING,
            "the releases run different computations, which both compilers treat alike",
        )

    def _combine(self, found: Sequence[LayerAnswer]) -> LayerAnswer:
        """Return one answer for several computations that differ."""
        counts = Counter(answer.layer for answer in found)
        clear = [layer for layer in counts if layer is not Layer.NOT_SEPARABLE]
        if {layer.is_front_end for layer in clear} == {True} or len(clear) == 1:
            first = next(answer for answer in found if answer.layer in clear)
        elif not clear:
            first = found[0]
        else:
            named = ", ".join(f"{layer} ({count})" for layer, count in counts.items())
            return self._answer(Layer.INTERACTION, f"several computations differ: {named}")
        return replace(first, differing=self._differing)

    def _get(self, producer: int, compiler: int, call: RecordedCall) -> ReplayedCall | None:
        return self.replays[producer, compiler].results.get(call.number)

    def _explain(self, producer: int, compiler: int, call: RecordedCall) -> str:
        """Return why a combination is unknown."""
        if call.reasons:
            return call.reasons[0]
        result = self._get(producer, compiler, call)
        if result is not None and result.error is not None:
            return result.error.message.strip().partition("\n")[0][:200]
        return next(iter(call.problems.values()), "the module could not be repeated")

    def _answer(
        self,
        layer: Layer,
        reason: str,
        call: RecordedCall | None = None,
        table: tuple[Combination, ...] = (),
    ) -> LayerAnswer:
        return LayerAnswer(
            layer=layer, reason=reason, call=call.name if call is not None else "", table=table,
            number=call.number if call is not None and table else 0,
            calls=(len(self.recordings[GOOD].calls), len(self.recordings[BAD].calls)),
            differing=self._differing,
        )  # fmt: skip


def _is_incompatible(error: CallError | None) -> bool:
    return error is not None and INCOMPATIBLE.search(error.message) is not None


def _is_same_end(one: CallError | None, other: CallError | None) -> bool:
    if one is None or other is None:
        return one is other
    return summarize_error(one) == summarize_error(other)


def _summarize(result: ReplayedCall | None, kind: str) -> str:
    if result is None:
        return "cannot be repeated"
    if result.error is not None:
        first = result.error.message.strip().partition("\n")[0][:100]
        return f"{result.error.type}: {first}"
    return {"good": "like good", "bad": "like bad"}.get(kind, "like neither")
