"""The layer of a change of time: what each release's Python code does with the other jaxlib."""

from __future__ import annotations

import pytest

from conformance.app.bench.layer import UNKNOWN, name_cost_layer
from conformance.search.predicates import PointKind
from conformance.triage.layers.answer import Layer

GOOD, BAD, OTHER = PointKind.GOOD, PointKind.BAD, PointKind.OTHER


@pytest.mark.parametrize(
    ("newer", "older", "phase", "layer"),
    [
        (BAD, GOOD, "lower", Layer.PYTHON),
        (BAD, OTHER, "lower", Layer.PYTHON),
        (GOOD, BAD, "run", Layer.JAXLIB),
        (GOOD, OTHER, "compile", Layer.COMPILER),
        (BAD, BAD, "run", Layer.INTERACTION),
        (GOOD, GOOD, "run", Layer.INTERACTION),
    ],
)
def test_the_part_that_brings_the_change_along_is_the_layer(
    newer: PointKind, older: PointKind, phase: str, layer: Layer
) -> None:
    """One mixture is enough if the other cannot run."""
    found = name_cost_layer(newer, older, ("0.6.0", "0.6.1"), phase)
    assert found.layer is layer
    assert f"the Python code of 0.6.1 with the jaxlib of 0.6.0 is {newer}" in found.reason


def test_two_mixtures_that_fail_say_nothing() -> None:
    """The layer is not guessed."""
    found = name_cost_layer(OTHER, OTHER, ("0.6.0", "0.6.1"), "run")
    assert (found.layer, found.reason) == (Layer.NOT_SEPARABLE, UNKNOWN)
