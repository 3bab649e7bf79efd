"""What goldens have of a plan, by their spans alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.golden_history import find_recorded_outcomes
from conformance.engine.plan import Plan
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = """\
format = 1
case = "family/one"

[cpu.value]
"0.5.0..0.5.3" = "value-e7162359.safetensors"

[cpu.error]
"0.6.0" = "error-ad473cde.txt"
"""


def test_releases_within_a_span_are_recorded(tmp_path: Path) -> None:
    """Contents need not be there; what is newer than all spans, or of another case, is not."""
    file = tmp_path / "family" / "golden" / "topic" / "one.toml"
    file.parent.mkdir(parents=True)
    file.write_text(GOLDEN)
    releases = ("0.4.38", "0.5.1", "0.6.0", "0.8.3")
    jobs = [job(tmp_path, place=planned(release)) for release in releases]
    other = [job(tmp_path, "two"), job(tmp_path, place=planned("0.5.1", platform="cpu-mp2"))]
    plan = Plan(jobs=(*jobs, *other), exclusions=(), cells=())
    found = {j.planned.release: ending for j, ending in find_recorded_outcomes(plan)}
    assert found == {"0.5.1": "value-e7162359.safetensors", "0.6.0": "error-ad473cde.txt"}
