"""Results of loading exports of other releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.runs.golden_history import LoadResult, ReleasePair, find_compatibility
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import Candidate
from conformance.golden.store import GoldenStore
from tests.builders import ok, python, raised, value
from tests.engine.worlds import job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.observation import Observation

RELEASES = ("0.5.3", "0.6.0")


def record_golden(root: Path, name: str, *seen: Observation) -> Case:
    """Return a case with goldens of the releases."""
    case = job(root, name).case
    candidates = [
        Candidate(case=case, variant="cpu", release=release, observation=observation)
        for release, observation in zip(RELEASES, seen, strict=True)
    ]
    apply(plan_accept(GoldenStore(case.families), candidates, RELEASES), env={})
    return case


def make_observation(**by_writer: str) -> Observation:
    """Return an observation of what becomes of what writers made, `v0_5_3="right"`."""
    leaves = (
        python(text, f"out['{name.removeprefix('v').replace('_', '.')}']")
        for name, text in by_writer.items()
    )
    return ok(value(*leaves))


def test_results_by_parameter_writer_and_reader(tmp_path: Path) -> None:
    """Results of the first case are promised."""
    near = record_golden(
        tmp_path,
        "near",
        make_observation(v0_5_3="right"),
        make_observation(v0_5_3="wrong", v0_6_0="right"),
    )
    far = record_golden(tmp_path, "far", make_observation(v0_6_0="refused"), make_observation())
    assert find_compatibility([near, far], ("near", "far"), RELEASES) == {
        "": {
            ReleasePair("0.5.3", "0.5.3"): LoadResult("right", promised=True),
            ReleasePair("0.5.3", "0.6.0"): LoadResult("wrong", promised=True),
            ReleasePair("0.6.0", "0.6.0"): LoadResult("right", promised=True),
            ReleasePair("0.6.0", "0.5.3"): LoadResult("refused", promised=False),
        }
    }


def test_a_recorded_error_has_no_pairs(tmp_path: Path) -> None:
    """A case of another name has none either."""
    near = record_golden(tmp_path, "near", raised(), make_observation(v0_5_3="right"))
    other = record_golden(
        tmp_path, "other", make_observation(v0_5_3="right"), make_observation(v0_5_3="right")
    )
    found = find_compatibility([near, other], ("near",), RELEASES)
    assert found == {"": {ReleasePair("0.5.3", "0.6.0"): LoadResult("right", promised=True)}}
