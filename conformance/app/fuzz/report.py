"""The report on campaigns of fuzzing: a Markdown page, and the summary for a page of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.corpus.behaviour_changes import load_families
from conformance.errors import NothingSelectedError
from conformance.files import write_atomically
from conformance.fuzz.campaign_log import SETTINGS, CampaignLog
from conformance.report.fuzz.markdown import render_fuzz_markdown
from conformance.report.fuzz.summary import summarize_campaigns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.model.case import Case
    from conformance.report.fuzz.summary import FuzzSummary

PAGE: Final = "fuzz.md"
"""Page of all campaigns, in the folder `reports`."""


class KnownBehaviour(NamedTuple):
    """The behaviour that a finding may show again.

    Attributes:
        changes: Changes of the history.
        cases: Cases with their deviations.
    """

    changes: Sequence[BehaviourChange]
    cases: Sequence[Case]


def load_known_behaviour(context: ProjectContext) -> KnownBehaviour:
    """Return the changes and the cases of a project, which may have none.

    Args:
        context: The project.
    """
    families = load_families(context.project.cases)
    changes = [change for family in families.values() for change in family.change]
    try:
        return KnownBehaviour(changes, context.select_cases(()))
    except NothingSelectedError:
        return KnownBehaviour(changes, ())


def load_campaigns(context: ProjectContext, folders: Sequence[Path]) -> FuzzSummary:
    """Return the summary of campaigns, with what the history knows of their findings.

    Args:
        context: The project.
        folders: Folders of campaigns, and folders that contain such.

    Raises:
        NothingSelectedError: If a folder has no campaign.
        UsageError: If a log is malformed.
    """
    found: dict[Path, None] = {}
    for folder in folders:
        campaigns = [folder] if (folder / SETTINGS).exists() else find_campaigns(folder)
        if not campaigns:
            raise NothingSelectedError(f"{folder}: has no campaign; conformance fuzz makes one")
        found |= dict.fromkeys(campaigns)
    return summarize_campaigns(map(CampaignLog.load, found), *load_known_behaviour(context))


def find_campaigns(folder: Path) -> list[Path]:
    """Return the folders of campaigns in a folder, none if it does not exist."""
    return sorted(file.parent for file in folder.glob(f"*/{SETTINGS}"))


def write_fuzz_page(context: ProjectContext, folders: Sequence[Path], file: Path | None) -> Path:
    """Write the Markdown page of campaigns, and return its file.

    Args:
        context: The project.
        folders: See `load_campaigns`; empty for those of the project.
        file: The file, None for `reports/fuzz.md`.

    Raises:
        NothingSelectedError: If a folder has no campaign.
        InfrastructureError: If the disk refuses.
    """
    summary = load_campaigns(context, folders or [context.campaigns])
    file = file or context.campaigns.parent / PAGE
    write_atomically(file, render_fuzz_markdown(summary).encode())
    return file
