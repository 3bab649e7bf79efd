"""What reads what."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.ir.jaxpr.document import decode
from conformance.triage.jaxpr_code.uses import dead, makers_of, selectors, uses_of
from tests.ir.jaxpr.documents import document, eqn, jaxpr

from .documents import AVALS, F32, PRED, S32

TWO: dict[str, Any] = {"branches": [{"jaxpr": 1}, {"jaxpr": 1}]}
CAST = eqn("convert_element_type", [1], (S32,), new_dtype={"dtype": "int32"})


def read(*eqns: list[Any], **more: Any) -> Any:
    """Return the document of these equations over `x: f32[4]` and `y: bool`."""
    entry = jaxpr(*eqns, inputs=(F32, more.pop("second", PRED)), **more)
    return decode(document(entry, jaxpr(inputs=(F32,), out=(0,)), avals=AVALS))


def test_variables_are_numbered_through_all_results() -> None:
    """Those of equations come after the inputs."""
    (entry, _) = read(
        eqn("sin", [0]), eqn("split", [2], (F32, F32)), eqn("add", [3, 3]), out=(5,)
    ).jaxprs
    assert makers_of(entry) == {2: 0, 3: 1, 4: 1, 5: 2}
    assert uses_of(entry) == {0: 1, 2: 1, 3: 2, 5: 1}


def test_what_nothing_comes_of_is_dead() -> None:
    """But for what has an effect."""
    effects: dict[str, Any] = {"ctx effects": ["Print"]}
    effect = eqn("print", [3], (), **effects)
    eqns = (eqn("sin", [0]), eqn("cos", [0]), effect, eqn("neg", [2]), eqn("neg", [0]))
    assert dead(read(*eqns, out=(5,)).jaxprs[0]) == {0, 3}


@pytest.mark.parametrize(
    ("eqns", "second", "out", "found"),
    [
        ((CAST, eqn("cond", [2, 0], **TWO)), PRED, (3,), {0}),
        ((CAST, eqn("cond", [2, 0], **TWO)), PRED, (2, 3), set()),
        ((CAST, eqn("cond", [2, 0], **TWO)), S32, (3,), set()),
        (
            (eqn("clamp", [[S32, 0], 1, [S32, 1]], (S32,)), eqn("cond", [2, 0], **TWO)),
            S32,
            (3,),
            {0},
        ),
        (
            (eqn("clamp", [[S32, 0], 1, [S32, 5]], (S32,)), eqn("cond", [2, 0], **TWO)),
            S32,
            (3,),
            set(),
        ),
    ],
)
def test_what_only_selects(eqns: Any, second: int, out: Any, found: set[int]) -> None:
    """Only if it is what the function makes by itself, and nothing else reads it."""
    made = read(*eqns, second=second, out=out)
    assert selectors(made.jaxprs[0], made.avals) == found
