"""What is told of an inquiry about passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.blobs import BlobStore
from conformance.engine.job_comparison import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.triage.passes.inquiry import Answers, Step
from conformance.triage.passes.question import Succeeds
from conformance.triage.passes.search import Answer, Found
from conformance.triage.passes.telling import answer_json, answer_lines, lines_to_paste, step_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bad(tmp_path: Path) -> StoredJob:
    """A program whose compilation fails."""
    error = ErrorInfo(type="XlaError", message="no", signature="XlaError: no")
    record = Record(
        case="family/case", cell="jax0.6.0-py311-cpu8", case_hash="h", cell_hash="c",
        outcome=Outcome.RAISED, stage=Stage.COMPILE, error=error,
    )  # fmt: skip
    return StoredJob(record, BlobStore(tmp_path))


def step(side: StoredJob, what: str = "pass", answer: Answer = Answer.FLIPS, **more: Any) -> Step:
    """Return a trial of half a second."""
    return Step(what=what, side=side, answer=answer, seconds=0.5, **more)


def answers(side: StoredJob, **more: Any) -> Answers:
    """Return what came of an inquiry."""
    return Answers(predicate=Succeeds("XlaError: no"), bad=side, **more)


def test_a_set_of_passes_is_to_be_pasted(bad: StoredJob) -> None:
    """As an option where a release takes lists, and as a flag on all."""
    found = Found(passes=("a", "b", "c"), culprits=("a", "c"), disabled=("a", "b", "c"))
    said = answers(bad, found=found, steps=[step(bad, disabled=("a", "c"))])
    assert list(lines_to_paste(said, "0.5.3")) == ["XLA_FLAGS=--xla_disable_hlo_passes=a,c"]
    assert list(lines_to_paste(said, "0.6.0")) == [
        'jax.jit(f, compiler_options={"xla_disable_hlo_passes": "a,c"})',
        "XLA_FLAGS=--xla_disable_hlo_passes=a,c",
    ]
    lines = list(answer_lines(said))
    assert lines[0] == "the program ends with XlaError: no"
    assert "it does not with 2 passes disabled, all of them: a, c" in lines[1]
    assert "(of 3 passes that change it, 1 probe)" in lines[1]
    assert "confirmed: all of it did the same once more, in a new process" in lines


def test_what_is_flaky_is_not_confirmed(bad: StoredJob) -> None:
    """And says how it differed."""
    found = Found(passes=("a",), culprits=("a",))
    said = answers(bad, found=found, flaky=["without a: flips at first, stays then (ok)"])
    lines = list(answer_lines(said))
    assert not said.confirmed
    assert "flaky: without a: flips at first, stays then (ok)" in lines
    assert not [line for line in lines if line.startswith("confirmed")]


def test_many_passes_that_cannot_be_disabled_are_counted(bad: StoredJob) -> None:
    """A few of them are named."""
    names = tuple(f"pass-{number}" for number in range(12))
    said = answers(bad, found=Found(passes=names, needed=names))
    assert any(line.startswith("12 passes cannot be disabled") for line in answer_lines(said))
    assert any(line.endswith("pass-7 and 4 more") for line in answer_lines(said))


def test_flags_and_options_are_to_be_pasted(bad: StoredJob) -> None:
    """Words are quoted; what made no difference is only counted."""
    flags = [step(bad, "flag", name="xla_x", value=False)]
    flags.append(step(bad, "flag", Answer.STAYS, name="xla_y", value=True))
    config = [step(bad, "config", name="jax_z", value="highest")]
    said = answers(bad, flags=flags, config=config, unknown_flags=["xla_old"])
    assert list(lines_to_paste(said, "0.6.0")) == [
        'jax.jit(f, compiler_options={"xla_x": False})',
        'jax.config.update("jax_z", "highest")',
    ]
    lines = list(answer_lines(said))
    assert "it does not with the XLA flag xla_x=False" in lines
    assert 'it does not with the option of jax jax_z="highest"' in lines
    assert any(
        line.startswith("tried alone: 2 XLA flags and 1 option of jax, without 1 flag that")
        for line in lines
    )


def test_a_trial_is_told_in_a_line(bad: StoredJob) -> None:
    """What was tried, and how it failed."""
    many = step(bad, answer=Answer.UNKNOWN, disabled=("a", "b", "c"))
    assert step_line(many) == "unknown   0.50 s  without 3 passes: a ... c: XlaError: no"
    assert step_line(step(bad, again=True)) == "flips     0.50 s  as it is (again): XlaError: no"


def test_data(bad: StoredJob) -> None:
    """Every trial with its outcome."""
    found = Found(passes=("a", "b"), culprits=("b",), needed=("a",))
    said = answers(bad, found=found, steps=[step(bad, disabled=("b",))])
    data = answer_json(said, target="family/case", cell="bad", good_cell="good")
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
