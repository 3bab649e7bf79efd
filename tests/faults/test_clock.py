"""The machine's clock steps back: in the middle of a run, and between two nights."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.engine.runs.directory import RUN, RunDirectory
from conformance.engine.runs.project_runs import ProjectRuns
from tests.projects import HEAD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import MakeProject

CLOCK = """\
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The time of day, with an offset in seconds from a file; other clocks are as they are. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    const char *name = getenv("CLOCK_OFFSET");
    FILE *file = !failed && clock == CLOCK_REALTIME && name ? fopen(name, "r") : NULL;
    long offset = 0;
    if (file) {
        if (fscanf(file, "%ld", &offset) == 1) now->tv_sec += offset;
        fclose(file);
    }
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
"""
DAY = 86400
SLEEPS = f"""\
{HEAD}


@probe(timeout=20)
def begins(env):
    import pathlib
    pathlib.Path({{clock!r}}).write_text("{{back}}")
    return Observed(np.int32(1), reference=np.int32(1))


@probe(timeout=20, params={{{{"a": {{{{}}}}, "b": {{{{}}}}, "c": {{{{}}}}}}}})
def sleeps(env):
    import time
    time.sleep(0.3)
    return Observed(np.int32(1), reference=np.int32(1))
"""


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file by which the clock of commands is set; skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the clock cannot be set here")
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True)
    file = tmp_path / "clock"
    file.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_OFFSET", str(file))
    monkeypatch.setenv("CONFORMANCE_PASS_ENV", "CLOCK_OFFSET")
    return file


@pytest.mark.cell
def test_in_the_middle_of_a_run_and_between_two(new_project: MakeProject, clock: Path) -> None:
    """Nothing times out, nothing takes less than no time, and the last night is the newest."""
    cases = SLEEPS.format(clock=str(clock), back=-3 * DAY)
    project = new_project({"cases/fam/topic.py": cases})
    for _ in range(2):  # the second begins three days before the first
        process = project.start("run", "--fresh", "--jobs", "1")
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    first, second = map(RunDirectory, project.runs)
    assert {record.verdict for record in second.read_records()} == {"new"}
    for run in (first, second):
        taken = [took for record in run.read_records() for took in record.seconds.values()]
        assert min(taken) >= 0
        assert max(taken) < 20
        slept = [r.seconds["job"] for r in run.read_records() if "sleeps" in r.case]
        assert min(slept) >= 0.3
    begun = [datetime.fromisoformat(run.read_run().started) for run in (first, second)]
    assert begun[0] - begun[1] > timedelta(days=2)
    info = first.read_run()
    assert datetime.fromisoformat(info.finished) < begun[0]
    assert ProjectRuns(project.path).find_latest().path == second.path
    # In the history nights stand in the order in which they were added.
    for run in (first, second):
        process = project.start("history", "add", run.path)
        assert process.communicate(timeout=60)[1] == ""
    runs = project.run("history", "runs", "--json", "-").json
    assert [run["name"] for run in runs] == [first.id, second.id]
    ending = project.run("report", first.path, second.path, "--out", project.path / "site")
    assert ending.code == 0
    assert project.run("run", "--resume").code == 0
    assert len(project.runs) == 2


def test_names_go_on_where_the_clock_does_not(tmp_path: Path) -> None:
    """Also when the clock was years ahead once."""
    ahead = datetime.now(UTC) + timedelta(days=400)
    names = [f"{ahead:%Y%m%d-%H%M%S}-999abcd"]
    for _ in range(3):
        folder = tmp_path / "reports" / "runs" / names[-1]
        folder.mkdir(parents=True)
        (folder / RUN).write_bytes(msgspec.json.encode({}))
        assert ProjectRuns(tmp_path).find_latest().id == names[-1]
        names.append(ProjectRuns(tmp_path).allocate().id)
    assert names == sorted(set(names))


def test_names_of_others_are_no_times(tmp_path: Path) -> None:
    """A folder that a person named, or one whose name is no time, says nothing of the clock."""
    for name in ("night-1", "99999999-999999-9990000"):
        (tmp_path / "reports" / "runs" / name).mkdir(parents=True)
    assert ProjectRuns(tmp_path).allocate().id.startswith(f"{datetime.now(UTC):%Y%m%d}")
