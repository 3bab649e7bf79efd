"""Accepting the failures of a suite: its runs become its list of known failures."""

from __future__ import annotations

import difflib
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.app.output_files import print_note
from conformance.engine.runs.directory import CorruptRunError, RunDirectory
from conformance.engine.runs.loader import load_run
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.golden.writing import refuse_in_ci
from conformance.locking import lock_folders
from conformance.report.text import sanitize
from conformance.suites.known.deviations import FILE, Deviations, render_deviations, sort_entries
from conformance.suites.known.deviations import load_deviations as load_known
from conformance.suites.known.evidence import extract_evidence
from conformance.suites.known.update import update_deviations
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.suites.catalogue.definition import NamedSuite
    from conformance.suites.known.deviations import DeviationOrigin
    from conformance.suites.known.evidence import RunEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteAcceptance:
    """The known failures of a suite before and after its runs were accepted.

    Attributes:
        before: The known failures as they were.
        after: The known failures with the runs.
        refused: Parts of the runs that were not accepted, a sentence each.
        difference: Unified diff of the file in a dry run, empty if the file was written.
    """

    before: Deviations
    after: Deviations
    refused: Sequence[str]
    difference: Sequence[str]

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of tests that were added, changed and ended, and of those known to fail."""
        old, new = self.before.group_by_test(), self.after.group_by_test()
        # Counted by test: one test may have several deviations, for ranges of releases.
        both = old.keys() & new.keys()
        return {
            "added": len(new.keys() - old.keys()),
            "changed": sum(set(map(repr, old[test])) != set(map(repr, new[test])) for test in both),
            "ended": len(old.keys() - new.keys()),
            "known": len(new),
            "deviations": len(self.after.entries),
        }

    @property
    def data(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {**self.counts, "refused": self.refused, "difference": self.difference}

    @property
    def lines(self) -> Iterator[str]:
        """The difference, the refusals and the counts."""
        yield from map(sanitize, self.difference)
        for sentence in self.refused:
            yield sanitize(f"not accepted: {sentence}")
        counts = self.counts
        yield (
            f"{plural(counts['added'], 'test')} added, {counts['changed']} changed, "
            f"{counts['ended']} ended; {counts['known']} known to fail, "
            f"{plural(counts['deviations'], 'deviation')}"
        )


def find_newest_suite_run(context: ProjectContext, name: str) -> RunDirectory:
    """Return the newest run of the whole of a suite that ended.

    Args:
        context: The project.
        name: The suite.

    Raises:
        NothingSelectedError: If there is none.
    """
    folder = context.project.root / "reports" / "runs"
    for path in sorted(folder.glob("*"), reverse=True):
        directory = RunDirectory(path)
        try:
            info = directory.read_run()
        except CorruptRunError:
            continue
        suite = info.suite
        # Tests that were not selected would look as if they had been removed.
        whole = suite is not None and suite.name == name and suite.complete
        # A run without an exit status was interrupted.
        if whole and info.exit is not None:
            return directory
    raise NothingSelectedError(
        f"{folder} holds no run of the whole of {name} to its end, expected one; "
        f"`conformance suite run {name}` makes it"
    )


def accept_suite_runs(
    context: ProjectContext, suite: NamedSuite, runs: Sequence[RunDirectory], *, dry_run: bool
) -> SuiteAcceptance:
    """Write the known failures of a suite from its runs.

    Args:
        context: The project.
        suite: The suite.
        runs: Runs of the whole suite.
        dry_run: Whether to write nothing.

    Raises:
        UsageError: If a run is of another suite, the runs do not go together, or the file may not
            be written.
    """
    name, pinned = suite.name, suite.definition.revision
    found = [extract_evidence(load_run(one), name, pinned) for one in runs]
    # A dry run writes nothing, so it takes no lock and waits for no other process.
    with nullcontext() if dry_run else lock_folders({suite.folder}, print_note):
        known = load_known(suite.folder)
        evidence = [one for run in found for one in run.evidence]
        after = update_deviations(known, evidence, _find_common_source(known, found, name))
        file = suite.folder / FILE
        difference: list[str] = []
        if dry_run:
            difference = _compare_text(file, render_deviations(after))
        # Compared in the order of the file, so that an unchanged list is not rewritten or refused
        # in CI.
        elif after != replace(known, entries=sort_entries(known.entries)):
            _write_known(context, file, after)
    # Flaky tests and incomplete cells are skipped, and reported after the rest is accepted.
    refused = [sentence for run in found for sentence in run.refused]
    return SuiteAcceptance(before=known, after=after, refused=refused, difference=difference)


def _write_known(context: ProjectContext, file: Path, known: Deviations) -> None:
    if not context.project.writable:
        raise UsageError(f"{file}: data of an installed package; accept in a checkout")
    refuse_in_ci()
    # Durable: reasons are written by people, and cannot be computed again.
    write_atomically(file, render_deviations(known).encode(), durable=True)


def _compare_text(file: Path, new: str) -> list[str]:
    """Return the unified diff of a file and its new text."""
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), str(file), "", "")
    return [line.rstrip("\n") for line in lines]


def _find_common_source(
    known: Deviations, found: Sequence[RunEvidence], name: str
) -> DeviationOrigin:
    """Return the settings that all runs and the known failures share.

    Raises:
        UsageError: If they differ: with other examples, other failures come to light.
    """
    first, before = found[0].generated, known.generated
    settings = _describe_settings(first)
    for run in found:
        if (other := _describe_settings(run.generated)) != settings:
            raise UsageError(
                f"the runs differ: {settings}, and {other}; expected runs with the same examples"
            )
    # A new list of known failures has no settings yet.
    if before.releases and (recorded := _describe_settings(before)) != settings:
        raise UsageError(
            f"the run is of {settings}, the deviations of {name} are of {recorded}; "
            "expected the same: with other examples, other failures come to light"
        )
    # A run of a checkout of the user has no revision; that of the list then stays.
    return msgspec.structs.replace(first, revision=first.revision or before.revision)


def _describe_settings(generated: DeviationOrigin) -> str:
    number = "the suite's own" if generated.examples is None else generated.examples
    seed = "no seed" if generated.seed is None else f"seed {generated.seed}"
    return f"{number} examples, {seed}"
