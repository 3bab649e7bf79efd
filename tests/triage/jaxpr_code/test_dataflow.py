"""Variables that are read, and the operand that selects a branch."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.ir.jaxpr.document import decode
from conformance.triage.jaxpr_code.dataflow import Dataflow
from tests.ir.jaxpr.documents import document, eqn, jaxpr

from .documents import AVALS, F32, PRED, S32

TWO: dict[str, Any] = {"branches": [{"jaxpr": 1}, {"jaxpr": 1}]}
CAST = eqn("convert_element_type", [1], (S32,), new_dtype={"dtype": "int32"})


def needed(*eqns: list[Any], **more: Any) -> tuple[Dataflow, set[int]]:
    """Return the dataflow of equations over `x: f32[4]` and `y: bool`, and which are needed."""
    entry = jaxpr(*eqns, inputs=(F32, more.pop("second", PRED)), **more)
    read = decode(document(entry, jaxpr(inputs=(F32,), out=(0,)), avals=AVALS))
    flow, pairs = Dataflow(read.jaxprs[0], read.avals), enumerate(read.jaxprs[0].eqns)
    return flow, {number for number, one in pairs if flow.is_needed(one, flow.results[number])}


def test_variables_are_numbered_in_order() -> None:
    """Results of equations follow the inputs."""
    eqns = (eqn("sin", [0]), eqn("split", [2], (F32, F32)), eqn("add", [3, 3]))
    flow, _ = needed(*eqns, out=(5,))
    assert [[*results] for results in flow.results] == [[2], [3, 4], [5]]
    assert flow.read == {0, 2, 3, 5}


def test_equation_is_needed_if_read_or_with_an_effect() -> None:
    """All others are dead."""
    effects: dict[str, Any] = {"ctx effects": ["Print"]}
    effect = eqn("print", [3], (), **effects)
    eqns = (eqn("sin", [0]), eqn("cos", [0]), effect, eqn("neg", [2]), eqn("neg", [0]))
    assert needed(*eqns, out=(5,))[1] == {1, 2, 4}


CLAMP = [S32, 0], 1, [S32, 1]


@pytest.mark.parametrize(
    ("eqns", "second", "out", "found", "selected"),
    [
        ((CAST, eqn("cond", [2, 0], **TWO)), PRED, (3,), {1}, (1, True)),
        ((CAST, eqn("cond", [2, 0], **TWO)), PRED, (2, 3), {0, 1}, (1, True)),
        ((CAST, eqn("cond", [2, 0], **TWO)), S32, (3,), {0, 1}, (2, False)),
        (
            (eqn("clamp", [*CLAMP], (S32,)), eqn("cond", [2, 0], **TWO)),
            S32,
            (3,),
            {1},
            (1, False),
        ),
        (
            (eqn("clamp", [*CLAMP[:2], [S32, 5]], (S32,)), eqn("cond", [2, 0], **TWO)),
            S32,
            (3,),
            {0, 1},
            (2, False),
        ),
    ],
)
def test_equations_that_only_select_a_branch_are_dead(
    eqns: Any, second: int, out: Any, found: set[int], selected: tuple[int, bool]
) -> None:
    """They are left out where jax makes them by itself, and nothing else reads them."""
    flow, needs = needed(*eqns, second=second, out=out)
    choice = decode(document(jaxpr(eqns[-1], inputs=(F32, F32, F32)), avals=AVALS)).jaxprs[0]
    assert (needs, tuple(flow.find_selector(choice.eqns[0]))[:2]) == (found, selected)
