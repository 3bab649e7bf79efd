"""The folder of each finding: a script, a proposed case, and the text of an upstream issue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.app.new_case import NewOptions, port_script
from conformance.errors import ConformanceError
from conformance.files import write_atomically
from conformance.fuzz.comparison import Kind
from conformance.fuzz.script_file import render_script
from conformance.report.fuzz.issue import render_fuzz_issue
from conformance.scratch import temporary_folder
from conformance.triage.shrink.case_text import format_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.fuzz.finding import Finding

FOLDER: Final = "findings"
"""Folder of the findings, in the folder of their campaign."""
SCRIPT, CASE, ISSUE = "program.py", "case.py", "issue.md"
FAMILY: Final = "fuzzing"
"""Family of the proposed cases."""
TIMEOUT: Final = 60.0
"""Seconds of one trial of a proposed case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFolders:
    """The folders of the findings of a campaign.

    Attributes:
        context: The project.
        campaign: Folder of the campaign.
        releases: Releases of the campaign that a case can be tried on, the oldest first.
        versions: Versions of the packages of its newest cell.
        cases: Folder that gets the cases of new findings, too, in the family `fuzzing`; None for
            none.
        jobs: Trials of a case at the same time.
        report: Called with a line where no case can be proposed.
    """

    context: ProjectContext
    campaign: Path
    releases: Sequence[str]
    versions: Mapping[str, str]
    cases: Path | None = None
    jobs: int
    report: Callable[[str], None]

    def get_folder(self, finding: Finding) -> Path:
        """Return the folder of a finding."""
        return self.campaign / FOLDER / finding.id

    def write(self, finding: Finding) -> None:
        """Write the files of a finding; a case is proposed once, and only for a new finding.

        Args:
            finding: The finding, dated.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        folder = self.get_folder(finding)
        script = format_text(render_script(finding))
        write_atomically(folder / SCRIPT, script.encode())
        issue = render_fuzz_issue(finding, script, self.versions)
        write_atomically(folder / ISSUE, issue.encode())
        # A program that hangs on every release has no end that a case could expect.
        if finding.known or finding.kind == Kind.HANG or (folder / CASE).exists():
            return
        try:
            case = self._propose_case(finding, folder / SCRIPT)
        except ConformanceError as error:
            # The other files describe the finding without it.
            self.report(f"{finding.id}: no case proposed: {error}")
            return
        write_atomically(folder / CASE, case.encode())
        if self.cases is not None:
            write_atomically(self.cases / FAMILY / f"{make_name(finding)}.py", case.encode())

    def _propose_case(self, finding: Finding, script: Path) -> str:
        """Return the file of a case, as `conformance new` makes it of the script."""
        with temporary_folder("fuzz") as cases:
            options = NewOptions(
                family=FAMILY, topic="case", name=make_name(finding), source="",
                cell=(self.releases[0], self.releases[-1]), good=self.releases[-1], devices=None,
                timeout=TIMEOUT, cases=cases, dry_run=True, jobs=self.jobs,
            )  # fmt: skip
            return port_script(self.context, str(script), options, lambda _: None).file


def make_name(finding: Finding) -> str:
    """Return the name of the case of a finding: its first operation and its id."""
    operation = finding.operations[0].rpartition(".")[2] if finding.operations else "program"
    word = re.sub(r"\W+", "_", operation).strip("_").lower()
    return f"{word}_{finding.id}"
