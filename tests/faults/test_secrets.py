"""Secrets of the caller: in no record, artifact, golden, page, log or message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs.directory import RunDirectory
from conformance.engine.workers.messages import NOTE
from tests.faults.canary import CANARY, FILES, PLACES, Campaign

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import MakeProject

pytestmark = pytest.mark.cell


@pytest.mark.long
def test_no_secret_is_written_or_printed(
    new_project: MakeProject, cache: Path, tmp_path: Path
) -> None:
    """Jobs, a script and a test print their environment and all that `/proc` shows them."""
    project = new_project(FILES)
    folder = tmp_path / "folder"
    folder.mkdir()
    campaign = Campaign(project=project.path, folder=folder, cache=cache)
    campaign.go()
    assert list(campaign.leaks()) == []
    assert len(PLACES) == 20
    run = RunDirectory(folder / "one")
    records = {record.case: record for record in run.read_records()}
    # The secrets that the user passes on were there to be found, in each kind of artifact.
    assert NOTE in records["fam/prints"].notes
    error = records["fam/prints"].error
    assert error is not None
    assert "'PASSED_TOKEN': '***'" in error.message
    for name in ("stdout", "stderr"):
        assert b"PASSED_TOKEN" in run.blobs.get(records["fam/prints"].artifacts[name])
    value = run.blobs.get(records["fam/gives"].artifacts["value"])
    assert b"*" * len(f"{CANARY}-15") in value
    assert (folder / "out" / "site" / "index.html").exists()
    goldens = list(project.path.glob("cases/fam/golden/**/*.toml"))
    assert len(goldens) > 0, campaign.printed
