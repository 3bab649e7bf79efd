"""The report on the campaigns of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.context import load_context
from conformance.app.fuzz.report import load_campaigns, write_fuzz_page
from conformance.errors import NothingSelectedError, UsageError
from tests.fuzz.test_script_file import make_finding
from tests.report.fuzz.test_markdown import make_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_page_has_the_campaigns_of_folders_and_of_folders_of_them(tmp_path: Path) -> None:
    """Each once."""
    make_log(tmp_path / "all" / "one", make_finding())
    make_log(tmp_path / "two")
    folders = [tmp_path / "all", tmp_path / "two", tmp_path / "two"]
    summary = load_campaigns(load_context(), folders)
    assert [row.name for row in summary.campaigns] == ["one", "two"]
    file = write_fuzz_page(load_context(), folders, tmp_path / "page.md")
    assert file.read_text().startswith("# Fuzzing\n")


def test_a_folder_without_a_campaign_is_one_clear_error(tmp_path: Path) -> None:
    """And so is a damaged log."""
    with pytest.raises(NothingSelectedError, match="has no campaign; conformance fuzz makes one"):
        load_campaigns(load_context(), [tmp_path])
    (make_log(tmp_path / "one").folder / "findings.jsonl").write_text("garbage\n")
    with pytest.raises(UsageError, match=r"findings.jsonl:1: expected a Finding"):
        load_campaigns(load_context(), [tmp_path])
