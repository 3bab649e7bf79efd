"""The answer of a pass bisection in words and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.answers import SearchStep
from conformance.search.predicates import BAD, GOOD, PointKind, PointState
from conformance.triage.passes.pass_bisection import REFUSED, PassAnswer
from conformance.triage.passes.predicates import GoalPredicate
from conformance.triage.passes.render import (
    format_step,
    make_answer_json,
    render_answer,
    render_paste,
)
from conformance.triage.passes.settings import CONFIG, FLAG, Setting

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = PointState(PointKind.UNKNOWN)


@pytest.fixture
def bad(tmp_path: Path) -> StoredJob:
    """A program whose compilation fails."""
    error = ErrorInfo(type="XlaError", message="no", signature="XlaError: no")
    record = Record(
        case="family/case", cell="jax0.6.0-py311-cpu8", case_hash="h", cell_hash="c",
        outcome=Outcome.RAISED, stage=Stage.COMPILE, error=error,
    )  # fmt: skip
    return StoredJob(record, BlobStore(tmp_path))


def step(
    side: StoredJob,
    *,
    state: PointState = GOOD,
    again: bool = False,
    message: str = "no",
    **more: Any,
) -> SearchStep[Setting]:
    """Return a trial of half a second."""
    error = ErrorInfo(type="XlaError", message=message, signature="XlaError: no")
    return SearchStep(
        point=Setting(**more), samples=(replace(side.record, error=error),), state=state,
        summary="XlaError: no", seconds=0.5, again=again,
    )  # fmt: skip


def answer(side: StoredJob, *steps: SearchStep[Setting], **more: Any) -> PassAnswer:
    """Return the answer of some steps."""
    predicate = GoalPredicate("ending", "ends with XlaError: no", side, lambda _: False)
    return PassAnswer(predicate=predicate, bad=side, steps=steps, **more)


def test_a_set_of_passes_can_be_pasted(bad: StoredJob) -> None:
    """As an option if the release takes lists, and as a flag."""
    found = answer(
        bad, step(bad, disabled=("a", "c")), passes=("a", "b", "c"), culprits=("a", "c"),
        together=("a", "b", "c"),
    )  # fmt: skip
    assert list(render_paste(found, "0.5.3")) == ["XLA_FLAGS=--xla_disable_hlo_passes=a,c"]
    assert list(render_paste(found, "0.6.0")) == [
        'jax.jit(f, compiler_options={"xla_disable_hlo_passes": "a,c"})',
        "XLA_FLAGS=--xla_disable_hlo_passes=a,c",
    ]
    lines = list(render_answer(found))
    assert lines[0] == "the program ends with XlaError: no"
    assert "it does not with 2 passes disabled, all of them: a, c" in lines[1]
    assert "(of 3 passes that change it, 1 trial)" in lines[1]
    assert "confirmed: all of it did the same once more, in a new process" in lines


def test_a_flaky_answer_is_not_confirmed(bad: StoredJob) -> None:
    """The lines say how it differed."""
    once, again = step(bad, disabled=("a",)), step(bad, state=BAD, disabled=("a",), again=True)
    flaky = {once.point: Counter([GOOD, BAD, BAD])}
    found = answer(bad, once, again, passes=("a",), culprits=("a",), flaky=flaky)
    lines = list(render_answer(found))
    assert not found.is_confirmed
    line = "the program, without a, does not show the same twice: flips 1 of 3, stays 2 of 3"
    assert f"flaky: {line}" in lines
    data = make_answer_json(found, target="family/case", cell="bad", good_cell="")
    assert data["flaky"] == [line]
    assert not [line for line in lines if line.startswith("confirmed")]


def test_many_passes_that_cannot_be_disabled_are_counted(bad: StoredJob) -> None:
    """A few of them are named."""
    names = tuple(f"pass-{number}" for number in range(12))
    found = answer(bad, passes=names, refused=names)
    assert any(line.startswith("12 passes cannot be disabled") for line in render_answer(found))
    assert any(line.endswith("pass-7 and 4 more") for line in render_answer(found))


def test_flags_and_options_can_be_pasted(bad: StoredJob) -> None:
    """Words are quoted; settings without effect are only counted."""
    refused = f"{REFUSED}: xla_old"
    found = answer(
        bad,
        step(bad, kind=FLAG, name="xla_x", value=False),
        step(bad, kind=FLAG, name="xla_y", value=True, state=BAD),
        step(bad, kind=FLAG, name="xla_old", value=True, state=UNKNOWN, message=refused),
        step(bad, kind=CONFIG, name="jax_z", value="highest"),
    )
    assert list(render_paste(found, "0.6.0")) == [
        'jax.jit(f, compiler_options={"xla_x": False})',
        'jax.config.update("jax_z", "highest")',
    ]
    lines = list(render_answer(found))
    assert "it does not with the XLA flag xla_x=False" in lines
    assert 'it does not with the option of jax jax_z="highest"' in lines
    assert any(
        line.startswith("tried alone: 2 XLA flags and 1 option of jax, without 1 flag that")
        for line in lines
    )
    assert found.unknown_flags == ["xla_old"]


def test_a_step_is_rendered_in_a_line(bad: StoredJob) -> None:
    """Its setting, and the failure of the program."""
    many = step(bad, state=UNKNOWN, disabled=("a", "b", "c"))
    assert format_step(many) == "unknown   0.50 s  without 3 passes: a ... c: XlaError: no"
    assert format_step(step(bad, again=True)) == "flips     0.50 s  unchanged (again): XlaError: no"


def test_the_json_has_every_trial(bad: StoredJob) -> None:
    """With its outcome."""
    found = answer(
        bad, step(bad, disabled=("b",)), passes=("a", "b"), culprits=("b",), refused=("a",)
    )
    data = make_answer_json(found, target="family/case", cell="bad", good_cell="good")
    assert {name: data[name] for name in ("target", "cell", "good_cell", "passes", "culprits")} == {
        "target": "family/case",
        "cell": "bad",
        "good_cell": "good",
        "passes": ["a", "b"],
        "culprits": ["b"],
    }
    assert data["needed"] == ["a"]
    assert data["confirmed"]
    assert data["steps"] == [
        {
            "what": "pass",
            "disabled": ["b"],
            "set": {},
            "outcome": "raised",
            "ending": "XlaError: no",
            "verdict": "flips",
            "seconds": 0.5,
            "again": False,
        }
    ]
