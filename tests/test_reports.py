"""The committed summaries say what goldens and data have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.projects import ROOT, Project

if TYPE_CHECKING:
    import pytest


def test_the_summary_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """After a change of goldens or deviations, regenerate it: `conformance report --goldens`."""
    ending = Project(ROOT, capsys).run("report", "--goldens", "--check")
    assert (ending.code, ending.err) == (0, "")


def test_the_conformance_history_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever changes its data, groups or goldens: `conformance suite history array-api-tests`."""
    ending = Project(ROOT, capsys).run("suite", "history", "array-api-tests", "--check")
    assert (ending.code, ending.err) == (0, "")
