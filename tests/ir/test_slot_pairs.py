"""Pairs of slots of two loops or branches."""

from __future__ import annotations

import pytest

from conformance.ir.normal.loop_carries import find_slots
from conformance.ir.slot_pairs import pair_slots
from tests.ir.normal.test_color_refinement import RETURN, loop
from tests.ir.texts import settled, the

STEPS = ("negate(%a)", "sine(%b)", "tanh(%c)")


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ("xyx", STEPS),
        ("xxx", STEPS),
        ("yyy", STEPS),
        ("xxx", ("negate(%a)", "sine(%b)", "cosine(%c)")),
        ("xxx", ("subtract(%a, %b)", "sine(%b)", "tanh(%c)")),
    ],
    ids=["given else", "the same", "all given else", "one step else", "one reads more"],
)
def test_slots_are_paired_by_use_and_operand(given: str, steps: tuple[str, str, str]) -> None:
    """And by what they are given, as far as that tells them apart."""
    one, two = (
        settled(loop((0, 1, 2, 3), STEPS, RETURN)),
        settled(loop((3, 1, 0, 2), steps, RETURN, given=given)),
    )
    a, b = (find_slots(the(found, "while")) for found in (one, two))
    assert a is not None
    assert b is not None
    to_b = dict(zip(one.entry.parameters, two.entry.parameters, strict=True))
    pairs = pair_slots(to_b, a, b)
    made = [
        {dict(s.instruction.bodies)["body"].results[n][0].op for s, n in ((a, n), (b, m))}
        for n, m in pairs.items()
    ]
    assert sorted(map(sorted, made), key=len).count(["sine"]) == 1
    assert len(pairs) == 4
    assert all(len(ops) == 1 or ops in ({"tanh", "cosine"}, {"negate", "subtract"}) for ops in made)
