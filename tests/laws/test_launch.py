"""The law of a case in the request of its job."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import pytest

from conformance.engine.job import Job, make_job_key
from conformance.errors import UsageError
from conformance.laws import launch
from tests import builders
from tests.workbench import NEWEST, planned_cell


def test_the_key_of_a_job_depends_on_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the number of examples, the case and the release of Hypothesis, not on folders."""
    planned = planned_cell(NEWEST)
    job = Job(case=builders.case("family/law", given=("x",)), planned=planned)
    more = replace(job, case=replace(job.case, examples=30))
    keys = {make_job_key(job, ""), make_job_key(more, "")}
    monkeypatch.setattr(launch, "find_hypothesis", lambda: "0.1")
    keys.add(make_job_key(job, ""))
    assert len(keys) == 3
    assert "command" not in job.request()["law"]
    assert "law" not in replace(job, case=replace(job.case, given=())).request()


def test_parametrisations_draw_different_examples() -> None:
    """The seed is that of the case id."""
    one, other = (builders.case(f"family/law[{name}]", given=("x",)) for name in "ab")
    assert launch.make_law(one)["seed"] != launch.make_law(other)["seed"]


def test_without_hypothesis_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the plan, not of each job."""

    def find(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", find)
    launch.find_hypothesis.cache_clear()
    with pytest.raises(UsageError, match=r"Hypothesis is not installed in .*pip install"):
        launch.find_hypothesis()
