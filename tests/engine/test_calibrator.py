"""Repeated attempts of jobs, and the differences between them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.calibration import Calibrator, find_difference
from conformance.engine.record_judge import make_record
from conformance.model.case import Policy
from conformance.model.outcome import Outcome
from conformance.model.record import IrRecord

from .worlds import Script, bad, good, job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import Job


def run_calibrator(folder: Path, script: Script, attempts: int = 4) -> Calibrator:
    """Return what comes of three jobs."""
    jobs = [job(folder / "cases", name) for name in ("one", "two", "three")]
    made = Calibrator(jobs, script, BlobStore(folder / "blobs"))
    for _ in range(attempts):
        made.attempt()
    return made


def test_equal_attempts_are_stable(tmp_path: Path) -> None:
    """Also if they are wrong or raise: nothing is judged."""
    made = run_calibrator(tmp_path, Script({"one": [lambda one: good(one, 9, 9)], "two": [bad]}))
    assert made.unstable == ()
    assert len(made.compared_jobs) == 3


def test_attempts_unlike_the_first_are_counted(tmp_path: Path) -> None:
    """With an example of the first difference."""
    answers = [good, lambda one: good(one, 1, 3), good, bad]
    (found,) = run_calibrator(tmp_path, Script({"two": answers})).unstable
    assert (found.case, found.attempts, found.differing) == ("family/two", 4, 2)
    assert found.example.startswith("out 1 of 2 elements differ, worst at [1]: 2.0 against 3.0")
    assert "2 of 4 attempts were unlike the first" in found.sentence


def test_each_attempt_has_another_order(tmp_path: Path) -> None:
    """A job may depend on the jobs before it."""
    script = Script()
    run_calibrator(tmp_path, script, attempts=6)
    orders = {tuple(script.asked[at : at + 3]) for at in range(0, 18, 3)}
    assert len(orders) > 1
    assert all(set(order) == {"one", "two", "three"} for order in orders)


def test_unobserved_attempts_do_not_count(tmp_path: Path) -> None:
    """A job needs two observed attempts to be compared."""
    infra = partial(bad, outcome=Outcome.INFRA)
    script = Script({"one": [infra], "two": [infra, good]})
    made = run_calibrator(tmp_path, script)
    assert made.unstable == ()
    assert {case for case, _ in made.compared_jobs} == {"family/two", "family/three"}


def ir(canonical: str) -> dict[str, IrRecord]:
    """Return the HLO of a job."""
    return {"hlo": IrRecord(canonical=canonical)}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"hlo": Policy.INFORM}, ""),
        ({"hlo": Policy.WARN}, "hlo differs"),
        ({"facts": Policy.GATE, "hlo": Policy.WARN}, "fact host_compute: 2, first 1"),
    ],
)
def test_facts_and_irs_count_as_the_policy_says(
    tmp_path: Path, policy: dict[str, Policy], said: str
) -> None:
    """Artifacts that only inform make no job unstable."""
    one: Job = job(tmp_path, policy={"facts": Policy.INFORM, **policy})
    blobs = BlobStore(tmp_path / "blobs")
    record = make_record(good(one), blobs)
    first, other = (
        replace(record, facts={"host_compute": number}, ir=ir(str(number))) for number in (1, 2)
    )
    assert find_difference(one, first, other, blobs) == said
    assert find_difference(one, first, first, blobs) == ""
