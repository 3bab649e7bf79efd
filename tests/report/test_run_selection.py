"""Which of many runs are shown."""

from __future__ import annotations

import pytest

from conformance.engine.digests import Digest
from conformance.report.run_selection import select_runs


def run(name: str, matrix: str = "nightly", part: str = "") -> Digest:
    """Return a run that began on the day it is named after."""
    return Digest(run=name, started=f"2026-05-{name}T00:00:00+00:00", matrix=matrix, part=part)


@pytest.mark.parametrize(
    ("runs", "chosen"),
    [
        ([], []),
        ([run("01")], ["01"]),
        ([run("02"), run("01")], ["02"]),
        ([run("01", "releases"), run("02"), run("03")], ["01", "03"]),
        ([run("01"), run("02", part="shard_map_while")], ["01", "02"]),
        ([run("01"), run("02", part="f/a"), run("03")], ["03"]),
        ([run("01", ""), run("02", "")], ["02"]),
    ],
    ids=["none", "one", "two nights", "two matrices", "a part last", "a part between", "cells"],
)
def test_the_newest_and_the_newest_of_each_matrix(runs: list[Digest], chosen: list[str]) -> None:
    """What ran a part of a matrix stands for it in no report but its own."""
    assert [digest.run for digest in select_runs(runs)] == chosen
