"""The corpus that ships: every case can be read, traced to its source, and has its goldens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.select import select_cases
from conformance.golden.store import GoldenStore

if TYPE_CHECKING:
    from conformance.model.case import Case

CASES = Path(__file__).resolve().parents[1] / "cases"
ALL = select_cases((), CASES)
THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def test_five_families_of_at_least_thirty_five_cases() -> None:
    """The families of the main job are all there."""
    assert len({case.family for case in ALL}) >= 5
    assert len({(case.file, case.name) for case in ALL}) >= 35


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_a_case_tells_its_story(case: Case) -> None:
    """It has a docstring, an upstream thread, and a reason and a range for each deviation."""
    assert case.doc
    assert THREAD.fullmatch(case.source)
    for deviation in case.deviations:
        assert deviation.reason
        assert not deviation.issue or THREAD.fullmatch(deviation.issue)


def test_every_case_has_goldens_on_cpu() -> None:
    """Each is recorded from some release to the newest."""
    store = GoldenStore(CASES)
    assert [case.id for case in ALL if store.lookup(case, "cpu", "0.12.0.1") is None] == []


def test_no_golden_has_lost_its_case() -> None:
    """A golden that no case asks for any more is swept away with it."""
    documents = {file.resolve() for file in CASES.glob("*/golden/*/*.toml")}
    assert len(documents) == len(ALL)
