"""A job that nearly took too long: told today, so that tomorrow's timeout is no surprise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import HEAD

if TYPE_CHECKING:
    from tests.faults.conftest import MakeProject

pytestmark = pytest.mark.cell
SLOW = f"""\
{HEAD}


@probe(timeout=4)
def slow(env):
    import time
    time.sleep(3.3)
    return Observed(np.int32(1), reference=np.int32(1))


@probe()
def quick(env):
    return Observed(np.int32(1), reference=np.int32(1))
"""


def test_it_is_noted_and_run_again_the_next_time(new_project: MakeProject) -> None:
    """The run does not fail, because its time is measured again each night."""
    project = new_project({"cases/fam/topic.py": SLOW})
    for _ in range(2):
        ending = project.run("run")
        assert ending.code == 0
        (line,) = (line for line in ending.out.splitlines() if line.startswith("note: "))
        assert line.startswith("note: fam/slow on ")
        assert line.endswith("s, near its timeout of 4 s")
    records = {record.case: record for record in project.newest.read_records()}
    assert len(records["fam/slow"].notes) == 1
    assert (records["fam/slow"].cached, records["fam/quick"].cached) == (False, True)
    assert records["fam/quick"].notes == ()
