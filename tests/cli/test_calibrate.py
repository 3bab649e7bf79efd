"""`conformance calibrate` finds unstable jobs, and runs take them as known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.calibration import locate_calibration
from tests.projects import CELL, HEAD, ONE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


CASES = f"""\
{HEAD}


{ONE}


@probe()
def counter(env):
    from pathlib import Path
    count = Path(__file__).with_name("count")
    count.write_text(f"{{count.read_text() if count.exists() else ''}}x")
    return Observed(np.int32(len(count.read_text()) % 2), reference=np.int32(1))
"""


pytestmark = [pytest.mark.cell, pytest.mark.project({"cases/fam/topic.py": CASES})]


@pytest.fixture
def project(project: Project, shared_cache: Path) -> Project:
    """A project with a stable case, and one that is right every other time."""
    locate_calibration(shared_cache).unlink(missing_ok=True)
    return project


@pytest.mark.long
def test_calibrated_flaky_case_is_known_in_runs(project: Project) -> None:
    """The case is flaky before calibration and known afterwards, with both rates."""
    (project.path / "cases" / "fam" / "count").write_text("x")  # so that the first one is wrong
    code, records = project.results("--fresh")
    assert (code, records["counter"].verdict) == (1, "flaky")
    assert records["counter"].reasons[-1] == "of 5 attempts: 3 regressed, 2 new"
    ending = project.run("calibrate", "--attempts", "5", "--json", "-")
    assert ending.code == 0, ending.err
    (learned,) = ending.json["unstable"]
    assert (learned["case"], learned["cell"], learned["differing"]) == ("fam/counter", CELL, 2)
    assert "1 of 2 jobs are not stable" in ending.err
    code, records = project.results("--fresh")
    assert (code, records["counter"].verdict) == (0, "known")
    assert records["counter"].reasons[0].startswith("not stable on this host: 2 of 5 attempts")


def test_calibrate_show_lists_unstable_jobs_without_running(project: Project) -> None:
    """Nothing is listed before the first calibration."""
    ending = project.run("calibrate", "--show")
    assert ending.code == 0
    assert ending.out == "nothing is known that is not stable on this host\n"
    project.run("calibrate", "fam/counter", "--attempts", "2")
    ending = project.run("calibrate", "--show")
    assert ending.out.startswith(f"fam/counter on {CELL}: 1 of 2 attempts on ")


def test_broken_calibration_file_stops_run_and_calibrate(
    project: Project, shared_cache: Path
) -> None:
    """The message names the file and the command that renews it."""
    file = locate_calibration(shared_cache)
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    for command in ("run", "calibrate"):
        ending = project.run(command)
        assert ending.code == 2
        assert f"{file}: " in ending.error
        assert "conformance calibrate" in ending.error
    file.unlink()


def test_calibrate_without_matching_case_exits_3(project: Project) -> None:
    """As `run` does."""
    assert project.run("calibrate", "no/such").code == 3
