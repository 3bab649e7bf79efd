"""Properties of any program: the normal forms keep its meaning and drop everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.ir.difference import diff
from conformance.ir.normal.forms import to_canonical, to_exact
from conformance.ir.normal.text import dumps, loads
from tests.ir.modules import Block, mutants, programs, written
from tests.ir.texts import settled

if TYPE_CHECKING:
    from conformance.ir.change import IrDiff
    from conformance.ir.graph import Module

MOST = 3
"""How many entries one change may take to report."""
MIRROR = {"added": "removed", "removed": "added"}
seeds = st.integers(0, 2**32)
# Derandomised examples follow from the name of a test: a renamed test gets other examples.
slow = settings(
    derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)


def again(module: Module) -> tuple[str, str]:
    """Return the fingerprint and text of a module that is brought into its form once more."""
    to_exact(module)
    return to_canonical(module), dumps(module)


def describe(found: IrDiff, mirror: dict[str, str] | None = None) -> list[tuple[str, int, str]]:
    """Return the entries of a difference, seen from the other side if asked to."""
    kinds = mirror or {}
    return sorted((kinds.get(c.kind, c.kind), c.count, c.severity) for c in found.changes)


@slow
@given(programs(), seeds)
def test_normalisation_is_idempotent(program: Block, seed: int) -> None:
    """For the module, and for the module loaded from its text."""
    module = settled(written(program, seed))
    text = dumps(module)
    fingerprint = text.split(maxsplit=4)[3]
    assert again(module) == again(loads(text)) == (fingerprint, text)


@slow
@given(programs(), seeds)
def test_equal_programs_have_equal_canonical_texts(program: Block, seed: int) -> None:
    """Names, order, tuples, fusions, calls, copies, asynchronous pairs and slots vary."""
    plain, noisy = settled(written(program)), settled(written(program, seed))
    assert dumps(plain) == dumps(noisy)


@slow
@given(programs(tidy=True), seeds, st.data())
def test_a_change_of_meaning_is_seen(program: Block, seed: int, data: st.DataObject) -> None:
    """As a semantic change, in few entries, symmetrically."""
    made = mutants(program)
    assume(made)
    _, other = data.draw(st.sampled_from(made))
    one, two = written(program), written(other, seed)
    found = diff(one, two)
    assert not found.neutral_equal
    assert found.severity == "semantic"
    assert len(found.changes) <= MOST
    assert describe(found) == describe(diff(two, one), MIRROR)


@slow
@given(programs(), seeds, seeds)
def test_a_diff_is_empty_if_and_only_if_texts_are_equal(program: Block, one: int, two: int) -> None:
    """And never semantic between two spellings of a program."""
    text = written(program, one)
    same, other = diff(text, text), diff(text, written(program, two))
    assert same.equal
    assert not same.changes
    assert other.equal is (not other.changes)
    assert other.severity != "semantic"
