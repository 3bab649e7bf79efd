"""The same jobs again and again: which are unlike themselves, and how."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.engine.blobs import BlobStore
from conformance.engine.calibration import Calibrator, find_difference
from conformance.engine.record_judge import make_record
from conformance.model.case import Policy
from conformance.model.outcome import Outcome
from conformance.model.record import IrRecord

from .worlds import Script, bad, good, job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import Job


def calibrated(folder: Path, script: Script, attempts: int = 4) -> Calibrator:
    """Return what comes of three jobs."""
    jobs = [job(folder / "cases", name) for name in ("one", "two", "three")]
    made = Calibrator(jobs, script, BlobStore(folder / "blobs"))
    for _ in range(attempts):
        made.attempt()
    return made


def test_a_job_that_does_the_same_each_time_is_stable(tmp_path: Path) -> None:
    """Also where it is wrong, or raises: nothing is judged."""
    made = calibrated(tmp_path, Script({"one": [lambda one: good(one, 9, 9)], "two": [bad]}))
    assert made.unstable == ()
    assert len(made.compared_jobs) == 3


def test_attempts_unlike_the_first_are_counted(tmp_path: Path) -> None:
    """With how the first of them was."""
    answers = [good, lambda one: good(one, 1, 3), good, bad]
    (found,) = calibrated(tmp_path, Script({"two": answers})).unstable
    assert (found.case, found.attempts, found.differing) == ("family/two", 4, 2)
    assert found.example.startswith("out 1 of 2 elements differ, worst at [1]: 2.0 against 3.0")
    assert "2 of 4 attempts were unlike the first" in found.sentence


def test_each_attempt_has_an_order_of_its_own(tmp_path: Path) -> None:
    """What a job does may depend on what ran before it."""
    script = Script()
    calibrated(tmp_path, script, attempts=6)
    orders = {tuple(script.asked[at : at + 3]) for at in range(0, 18, 3)}
    assert len(orders) > 1
    assert all(set(order) == {"one", "two", "three"} for order in orders)


def test_what_says_nothing_about_jax_is_no_attempt(tmp_path: Path) -> None:
    """A job that the host kept from running is not looked at, one that it did once is."""
    infra = partial(bad, outcome=Outcome.INFRA)
    script = Script({"one": [infra], "two": [infra, good]})
    made = calibrated(tmp_path, script)
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
    """What only informs makes no job unstable."""
    one: Job = job(tmp_path, policy={"facts": Policy.INFORM, **policy})
    blobs = BlobStore(tmp_path / "blobs")
    record = make_record(good(one), blobs)
    first, other = (
        replace(record, facts={"host_compute": number}, ir=ir(str(number))) for number in (1, 2)
    )
    assert find_difference(one, first, other, blobs) == said
    assert find_difference(one, first, first, blobs) == ""
