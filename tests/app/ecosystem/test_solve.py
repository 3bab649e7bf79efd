"""Versions that work together; `tests/cli/test_ecosystem.py` runs the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.context import ProjectContext
from conformance.app.ecosystem.records import open_sets
from conformance.app.ecosystem.solve import Solver
from conformance.ecosystem.outcome import LibraryOutcome
from conformance.ecosystem.solution import LATEST, CandidateSet, SetRecord
from conformance.errors import InfrastructureError
from tests.projects import write_project

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATE = CandidateSet(jax="0.8.1", deps=LATEST, versions={"flax": "0.12.6"})


def test_a_set_that_cannot_be_tested_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not break, an older set is not the newest that works, and nothing is recorded."""
    record = SetRecord(
        jax=CANDIDATE.jax, deps=LATEST, versions=dict(CANDIDATE.versions), definitions={},
        outcome=LibraryOutcome.UNKNOWN, python="3.11", reason="no room on the disk",
        tested="2026-11-28",
    )  # fmt: skip
    monkeypatch.setattr(Solver, "_resolve_declared", lambda _: CANDIDATE)
    monkeypatch.setattr(Solver, "_test", lambda *_: record)
    write_project(tmp_path, {})
    context = ProjectContext(tmp_path)
    solver = Solver(
        context=context, libraries=(), releases=("0.8.1",), jax="0.8.1", say=lambda _: None
    )
    with pytest.raises(InfrastructureError, match=r"flax 0\.12\.6: cannot be tested.*no room"):
        solver.solve()
    assert open_sets(context).load() == {}
