"""Recorded outcomes of a plan, by the spans of its goldens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.plan import Plan
from conformance.engine.runs.golden_history import find_recorded_outcomes
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = """\
format = 2
case = "family/one"

[cpu.value]
"0.5.0..0.5.3" = "value.txt"

[cpu.error]
"0.6.0" = "error.txt"

[contents]
"error.txt" = "ad473cde2c4f11bd8e1a60c3ad6ec3a1"
"value.txt" = "e7162359b5d0e5a4fd3fd2b9c6c1b0de"
"""


def test_releases_within_a_span_are_recorded(tmp_path: Path) -> None:
    """Contents are not read. Releases newer than all spans, and other cases, are not recorded."""
    file = tmp_path / "family" / "golden" / "topic" / "one" / "spans.toml"
    file.parent.mkdir(parents=True)
    file.write_text(GOLDEN)
    releases = ("0.4.38", "0.5.1", "0.6.0", "0.8.3")
    jobs = [job(tmp_path, place=planned(release)) for release in releases]
    other = [job(tmp_path, "two"), job(tmp_path, place=planned("0.5.1", platform="cpu-mp2"))]
    plan = Plan(jobs=(*jobs, *other), exclusions=(), cells=())
    found = {j.planned.release: ending for j, ending in find_recorded_outcomes(plan)}
    assert {release: content.partition("-")[0] for release, content in found.items()} == {
        "0.5.1": "value",
        "0.6.0": "error",
    }
