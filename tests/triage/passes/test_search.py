"""The search for passes, on simulated pipelines."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.passes.search import Answer, search

if TYPE_CHECKING:
    from collections.abc import Callable

    Passes = tuple[str, ...]


class Pipeline:
    """A pipeline that flips when the culprits are disabled, and fails without what it needs.

    Attributes:
        asked: What was asked, in order.
    """

    def __init__(self, culprits: set[str], needed: set[str] | None = None) -> None:
        self._culprits = culprits
        self._needed = needed or set()
        self.asked: list[Passes] = []

    def __call__(self, disabled: Passes) -> Answer:
        """Say what the program does with passes disabled."""
        self.asked.append(disabled)
        if self._needed & set(disabled):
            return Answer.UNKNOWN
        return Answer.FLIPS if self._culprits <= set(disabled) else Answer.STAYS


def names(count: int) -> list[str]:
    """Return names of passes in an order that is not the alphabet's."""
    return [f"pass-{count - n}" for n in range(count)]


@pytest.mark.parametrize("culprit", [0, 1, 7, 249, 250, 498, 499])
def test_one_pass_of_500_takes_12_probes(culprit: int) -> None:
    """With the two that show that the search can begin: none disabled, all disabled."""
    passes = names(500)
    pipeline = Pipeline({passes[culprit]})
    assert search(passes, pipeline).culprits == (passes[culprit],)
    assert len(pipeline.asked) + 1 <= 12


def test_every_single_culprit_of_500_takes_12_probes() -> None:
    """Wherever it is."""
    passes = names(500)
    for culprit in passes:
        pipeline = Pipeline({culprit})
        assert search(passes, pipeline).culprits == (culprit,)
        assert len(pipeline.asked) + 1 <= 12


def test_two_passes_that_are_enough_only_together_are_both_found() -> None:
    """In the order of the pipeline."""
    passes = names(100)
    pipeline = Pipeline({passes[80], passes[3]})
    assert search(passes, pipeline).culprits == (passes[3], passes[80])
    assert len(pipeline.asked) <= 20


def test_passes_that_are_needed_are_left_out_and_told() -> None:
    """The culprit is found past them."""
    passes = names(40)
    needed = {passes[2], passes[20], passes[21]}
    found = search(passes, Pipeline({passes[30]}, needed))
    assert found.culprits == (passes[30],)
    assert set(found.needed) <= needed


def test_a_pass_that_fails_with_others_is_tried_alone() -> None:
    """Two that cannot be disabled together are no reason not to find one of them."""
    passes = names(10)

    def ask(disabled: Passes) -> Answer:
        if disabled == (passes[4],):
            return Answer.FLIPS
        return Answer.UNKNOWN if passes[4] in disabled else Answer.STAYS

    assert search(passes, ask).culprits == (passes[4],)


def test_passes_that_undo_one_another_are_found_in_parts() -> None:
    """All disabled together may hide what one does."""
    passes = names(33)

    def ask(disabled: Passes) -> Answer:
        hidden = passes[5] in disabled and passes[25] not in disabled
        return Answer.FLIPS if hidden else Answer.STAYS

    assert search(passes, ask).culprits == (passes[5],)


def test_a_pass_that_acts_only_without_another_is_found_with_it() -> None:
    """What the one does not do any more, the other does: both must be disabled."""
    passes = names(30)
    pipeline = Pipeline({passes[9], "late"})
    found = search(passes, pipeline, lambda disabled: ["late"] if passes[9] in disabled else [])
    assert found.culprits == (passes[9], "late")
    assert found.passes == (*passes, "late")
    assert len(pipeline.asked) <= 16


def test_no_pass_at_all() -> None:
    """All of them disabled changed nothing, nor does any alone."""
    passes = names(20)
    pipeline = Pipeline({"elsewhere"}, {passes[7]})
    found = search(passes, pipeline)
    assert found.culprits == ()
    assert found.needed == (passes[7],)
    assert set(found.disabled) == set(passes) - {passes[7]}
    asked = set(pipeline.asked)
    assert all((name,) in asked for name in passes)


def test_a_pipeline_without_passes() -> None:
    """Nothing is asked."""
    pipeline = Pipeline({"elsewhere"})
    assert search([], pipeline).culprits == ()
    assert pipeline.asked == []


SMALL = [f"p{n}" for n in range(6)]
SUBSETS = [subset for size in range(7) for subset in combinations(SMALL, size)]
answers = st.lists(st.sampled_from(Answer), min_size=len(SUBSETS), max_size=len(SUBSETS))


@given(answers)
def test_what_is_found_is_enough_and_nothing_of_it_can_be_left_out(told: list[Answer]) -> None:
    """On any pipeline, however its passes work on one another; and no set is asked twice."""
    table = dict(zip(SUBSETS, told, strict=True)) | {(): Answer.STAYS}
    asked: list[Passes] = []
    found = search(SMALL, recording(table.__getitem__, asked))
    assert len(asked) == len(set(asked))
    if found.culprits:
        assert table[found.culprits] is Answer.FLIPS
        for name in found.culprits:
            rest = tuple(other for other in found.culprits if other != name)
            assert table[rest] is not Answer.FLIPS
    else:
        assert all(table[(name,)] is not Answer.FLIPS for name in SMALL)


def recording(ask: Callable[[Passes], Answer], asked: list[Passes]) -> Callable[[Passes], Answer]:
    """Return what asks and remembers what was asked."""

    def told(disabled: Passes) -> Answer:
        asked.append(disabled)
        return ask(disabled)

    return told


@given(st.sets(st.sampled_from(names(60)), min_size=1, max_size=4))
def test_any_set_of_culprits_is_found_whole(culprits: set[str]) -> None:
    """Where disabling more never undoes it, which is the usual."""
    assert set(search(names(60), Pipeline(culprits)).culprits) == culprits
