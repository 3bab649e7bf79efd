"""The report on libraries: recorded outcomes, root causes, the committed page, issues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.app.context import ProjectContext
from conformance.app.ecosystem.records import open_results
from conformance.app.ecosystem.run import load_ecosystem
from conformance.app.scan.changes import make_finder
from conformance.corpus.project import PACKAGE
from conformance.ecosystem.causes import find_ecosystem_causes
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.report.ecosystem.issue import render_library_issue
from conformance.report.ecosystem.markdown import render_ecosystem_markdown
from conformance.report.ecosystem.summary import EcosystemSummary
from conformance.report.site.badges import render_library_badges
from conformance.scan.uses import NameUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.ecosystem.causes import Explain
    from conformance.scan.hits import Hit, HitFinder

PAGE: Final = "ecosystem.md"
"""Page of all libraries, in the folder `reports`."""


def load_summary(context: ProjectContext, names: Sequence[str] = ()) -> EcosystemSummary:
    """Return the recorded outcomes of libraries, without those of other definitions.

    Args:
        context: The project.
        names: Names of libraries, none for all.

    Raises:
        UsageError: If a definition or a record is wrong, or no library has a name.
    """
    libraries = {library.name: library for library in load_ecosystem(context, names)}
    records = [
        record
        for _, record in sorted(open_results(context).load().items())
        if record.library in libraries and record.definition == libraries[record.library].hash
    ]
    causes = find_ecosystem_causes(records, make_explainer())
    return EcosystemSummary(libraries=libraries, records=records, causes=causes)


def make_explainer() -> Explain:
    """Return a function that finds what changed for a name of JAX up to a release."""
    # The corpus that comes with the package: a project has cases of its own.
    context = ProjectContext(PACKAGE)
    releases = context.releases.versions
    finders: dict[str, HitFinder] = {}

    def explain(name: str, release: str) -> Hit | None:
        if release not in releases[1:]:  # a nightly has no goldens
            release = releases[-1]
        if release not in finders:
            finders[release] = make_finder(context, releases[0], release)
        use = NameUse(names=frozenset({name}), line=0, column=0, imported=True)
        return next(iter(finders[release].find(use)), None)

    return explain


def write_page(context: ProjectContext, summary: EcosystemSummary) -> Path:
    """Write the committed page of libraries, and return its path.

    Args:
        context: The project.
        summary: The outcomes.

    Raises:
        UsageError: If the project is an installed package.
        InfrastructureError: If the disk refuses.
    """
    if not context.project.writable:
        raise UsageError("--page: an installed package has no reports, expected a checkout")
    path = context.project.root / "reports" / PAGE
    write_atomically(path, render_ecosystem_markdown(summary).encode())
    return path


def write_badges(summary: EcosystemSummary, folder: Path) -> int:
    """Write a badge for each library into a folder, and return how many.

    Args:
        summary: The outcomes.
        folder: Folder of the badges, created if missing.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    badges = [*render_library_badges(summary)]
    for path, content in badges:
        write_atomically(folder / path.rpartition("/")[2], content)
    return len(badges)


def make_issue(context: ProjectContext, name: str) -> str:
    """Return the text of an issue about the failures of a library.

    Args:
        context: The project.
        name: Name of the library.

    Raises:
        UsageError: If no library has the name.
        NothingSelectedError: If it has no failures.
    """
    summary = load_summary(context, [name])
    if not any(record.outcome.is_failure for record in summary.records):
        raise NothingSelectedError(
            f"--issue {name}: no recorded failure, test it with: conformance ecosystem {name}"
        )
    (library,) = summary.libraries.values()
    return render_library_issue(summary, library)
