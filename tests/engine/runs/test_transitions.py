"""Changes between two jobs of one case, and along a track."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.transitions import (
    Transition,
    TransitionKind,
    make_timeline,
    make_transition,
)
from conformance.model.case import Policy
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run import RunCase
from tests.builders import f32
from tests.report.runs import ADD, CELLS, COPIED, MULTIPLY, Directory, sides

if TYPE_CHECKING:
    from pathlib import Path

OK: dict[str, Any] = {"value": f32(1, 2)}
UNKNOWN = {"conformance": Conformance.UNKNOWN}
DEVIATES = {"conformance": Conformance.DEVIATES}
RAISED: dict[str, Any] = {"error": ("ValueError", "bad shape (4,)")}


def between(
    folder: Path, before: dict[str, Any], after: dict[str, Any], case: RunCase | None = None
) -> Transition:
    """Return the transition from one job to another."""
    made = Directory(folder).job("f/a", CELLS[0], **before).job("f/a", CELLS[1], **after)
    one, other = sides(made)
    return make_transition(one, other, case or RunCase())


@pytest.mark.parametrize(
    ("before", "after", "kind", "changed"),
    [
        (OK, OK, TransitionKind.SAME, ()),
        (OK, RAISED, TransitionKind.REGRESSED, ("ending",)),
        (RAISED, OK, TransitionKind.FIXED, ("ending",)),
        (RAISED, RAISED, TransitionKind.SAME, ()),
        (RAISED, {"error": ("TypeError", "bad shape (4,)")}, TransitionKind.CHANGED, ("ending",)),
        (OK, {"value": f32(1, 3)}, TransitionKind.CHANGED, ("value",)),
        (OK, {"value": f32(1, 3), **DEVIATES}, TransitionKind.REGRESSED, ("value",)),
        ({**OK, **DEVIATES}, {"value": f32(1, 3)}, TransitionKind.FIXED, ("value",)),
        ({**OK, **UNKNOWN}, {**RAISED, **UNKNOWN}, TransitionKind.REGRESSED, ("ending",)),
        ({**OK, **UNKNOWN}, RAISED, TransitionKind.REGRESSED, ("ending",)),
        (OK, {**RAISED, "conformance": Conformance.CONFORMS}, TransitionKind.CHANGED, ("ending",)),
    ],
)
def test_the_kind_of_a_transition(
    tmp_path: Path,
    before: dict[str, Any],
    after: dict[str, Any],
    kind: TransitionKind,
    changed: tuple[str, ...],
) -> None:
    """By conformance if both jobs have it, else by whether the program ended well."""
    found = between(tmp_path, before, after)
    assert (found.kind, found.changed) == (kind, changed)


def test_an_address_in_a_message_is_no_change(tmp_path: Path) -> None:
    """Endings are compared by their signatures."""
    one, other = ({"error": ("ValueError", f"object at {at}")} for at in ("0x7f01aa", "0x7f02bb"))
    assert between(tmp_path, one, other).changed == ()


def test_drift_within_the_tolerance_is_compared_but_no_change(tmp_path: Path) -> None:
    """With an exact tolerance the same drift is a change."""
    drifted = {"value": f32(1, 2.0000002)}
    found = between(tmp_path / "a", OK, drifted)
    assert (found.kind, found.changed) == (TransitionKind.SAME, ())
    assert found.value is not None
    assert found.value.differences[0].max_ulp == 1
    exact = between(tmp_path / "b", OK, drifted, RunCase(rtol=0.0, atol=0.0))
    assert (exact.kind, exact.changed) == (TransitionKind.CHANGED, ("value",))


def hlo(text: str) -> dict[str, Any]:
    """Return a job that left an optimised HLO."""
    return {"value": f32(1), "texts": {"hlo": text}}


def test_canonical_changes_and_regrouped_irs(tmp_path: Path) -> None:
    """An additional copy regroups an IR; an IR that informs is no change that gates."""
    regrouped = between(tmp_path / "a", hlo(ADD), hlo(COPIED))
    assert (regrouped.changed, regrouped.regrouped) == ((), ("hlo",))
    other = between(tmp_path / "b", hlo(ADD), hlo(MULTIPLY))
    assert (other.kind, other.changed, other.regrouped) == (TransitionKind.SAME, ("hlo",), ())


def test_a_case_may_let_an_ir_gate(tmp_path: Path) -> None:
    """By its policy."""
    gating = RunCase(policy={"hlo": Policy.GATE})
    assert between(tmp_path, hlo(ADD), hlo(MULTIPLY), gating).kind is TransitionKind.CHANGED


def test_facts_that_gate_are_a_change(tmp_path: Path) -> None:
    """E.g. another dtype of a result, but not another number of fusions."""
    wider = ADD.replace("f32", "f64")
    found = between(tmp_path, hlo(ADD), hlo(wider))
    assert (found.kind, found.changed) == (TransitionKind.CHANGED, ("facts", "hlo"))


def test_a_sharding_that_only_one_side_states_is_no_change(tmp_path: Path) -> None:
    """As for the judge: releases state shardings in different places."""
    said = ADD.replace("parameter(0)", "parameter(0), sharding={replicated}")
    assert "facts" not in between(tmp_path, hlo(ADD), hlo(said)).changed


def test_a_stablehlo_equal_to_the_cells_own_is_not_repeated(tmp_path: Path) -> None:
    """Most programs are lowered alike for all platforms."""
    text = '"builtin.module"() ({\n}) : () -> ()\n'
    other = text.replace("()\n", "() loc(unknown)\n")
    one = {"value": f32(1), "texts": {"stablehlo": text, "stablehlo-tpu": text}}
    two = {"value": f32(1), "texts": {"stablehlo": other, "stablehlo-tpu": other}}
    assert between(tmp_path, one, two).regrouped == ()


def test_a_value_that_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    """A lost blob does not end the report."""
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).job("f/a", CELLS[1], f32(2))
    for file in made.run.blobs.folder.iterdir():
        file.unlink()
    one, other = sides(made)
    assert make_transition(one, other, RunCase()).changed == ()


def test_a_timeline_has_the_points_where_something_changes(tmp_path: Path) -> None:
    """Between neighbouring observed jobs; unobserved cells are skipped."""
    unseen: dict[str, Any] = {"outcome": Outcome.UNSUPPORTED, "verdict": Verdict.EXCLUDED}
    made = Directory(tmp_path).job("f/a", CELLS[0], f32(1)).job("f/a", CELLS[1], **unseen)
    first, unsupported, last = sides(made.job("f/a", CELLS[2], f32(2)))
    found = make_timeline([first, unsupported, None, last], RunCase())
    assert found.jobs == (first, unsupported, None, last)
    (point,) = found.points
    assert (point.before, point.after, point.changed) == (first, last, ("value",))


def test_a_timeline_of_equal_jobs_has_no_point(tmp_path: Path) -> None:
    """Nor one of a single job."""
    made = Directory(tmp_path)
    for cell in CELLS:
        made.job("f/a", cell, f32(1))
    jobs = sides(made)
    assert make_timeline(jobs, RunCase()).points == ()
    assert make_timeline(jobs[:1], RunCase()).points == ()


def test_a_variant_that_begins_to_disagree_is_a_change(tmp_path: Path) -> None:
    """Although the program's own value is the same."""
    case = RunCase(same_as=("eager",))
    skipped = {"texts": {"same_as": '{"eager":{"outcome":"unsupported"}}'}}
    raises = {"texts": {"same_as": '{"eager":{"outcome":"raised"}}'}}
    found = between(tmp_path, {**OK, **skipped}, {**OK, **raises, **DEVIATES}, case)
    assert (found.kind, found.changed) == (TransitionKind.REGRESSED, ("same_as",))
    same = between(tmp_path / "same", {**OK, **raises}, {**OK, **raises}, case)
    assert (same.kind, same.changed) == (TransitionKind.SAME, ())
