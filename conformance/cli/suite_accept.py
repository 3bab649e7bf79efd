"""`conformance suite accept`: the known failures of a suite, from what its runs showed."""

from __future__ import annotations

import difflib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.cli.words import SUITES
from conformance.engine.loading import load
from conformance.engine.rundir import CorruptRunError, RunDirectory
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.golden.accept import refuse_in_ci
from conformance.locking import locked
from conformance.report.text import visible
from conformance.suites.catalogue.definition import named_suite
from conformance.suites.known.accepting import accepted
from conformance.suites.known.deviations import FILE, Deviations
from conformance.suites.known.deviations import load as load_known
from conformance.suites.known.deviations_text import dumps, ordered
from conformance.suites.known.evidence import shown_by
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.suites.known.deviations import Generated
    from conformance.suites.known.evidence import Shown


@click.command("accept", short_help="Write the known failures of a suite from its runs.")
@click.argument("name", type=SUITES)
@click.argument(
    "runs", nargs=-1, metavar="[RUN]...",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
def command(*, name: str, runs: tuple[Path, ...], dry_run: bool) -> int:
    """Write the known failures of the suite NAME from what its runs showed.

    RUN is the directory of a run of the whole suite; by default it is the newest that ended. What
    fails becomes a deviation of the releases that show it, and what passes ends one; a release
    stands for those up to the next one that was seen. What the runs do not contradict stays as it
    is written, and releases that are not in them keep what is known of them. Nothing is learned
    from flaky tests, from cells that were cut short, from nightlies and development builds.

    \b
    conformance suite accept array-api-tests --dry-run
    conformance suite accept array-api-tests
    conformance suite accept array-api-tests reports/runs/ID1 reports/runs/ID2

    Read what comes of it: a new reason is the first line of the error until you write the true
    one. Exit status: 0 all was taken in, 1 some was not, for the reasons that are told.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    suite = named_suite(name, context.project.suites)
    directories = _directories(runs, context.project.root, name)
    pinned = suite.definition.revision
    found = [shown_by(load(one), name, pinned) for one in directories]
    # What is only shown changes nothing, and waits for nobody.
    with nullcontext() if dry_run else locked({suite.folder}, print_note):
        known, after = _take_in(context, suite.folder, name, found, dry_run=dry_run)
    refused = [sentence for shown in found for sentence in shown.refused]
    for sentence in refused:
        click.echo(visible(f"not accepted: {sentence}"))
    for sentence in _summary(known, after):
        click.echo(sentence)
    return 1 if refused else 0


def _take_in(
    context: ProjectContext, folder: Path, name: str, found: Sequence[Shown], *, dry_run: bool
) -> tuple[Deviations, Deviations]:
    """Return the known failures before and after, and write or show the difference."""
    known = load_known(folder)
    generated = _agreed(known, found, name)
    evidence = [one for shown in found for one in shown.evidence]
    after = accepted(known, evidence, generated)
    file = folder / FILE
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    new = dumps(after)
    if dry_run:
        _print_difference(old, new, file)
    elif after != replace(known, entries=ordered(known.entries)):
        if not context.project.writable:
            raise UsageError(f"{file}: data of an installed package; accept in a checkout")
        refuse_in_ci()
        write_atomically(file, new.encode(), durable=True)
    return known, after


def _directories(runs: Sequence[Path], root: Path, name: str) -> list[RunDirectory]:
    """Return the runs that are named, else the newest of the suite."""
    if runs:
        return [RunDirectory(path) for path in runs]
    folder = root / "reports" / "runs"
    for path in sorted(folder.glob("*"), reverse=True):
        directory = RunDirectory(path)
        try:
            info = directory.read_run()
        except CorruptRunError:
            continue
        suite = info.suite
        whole = suite is not None and suite.name == name and suite.complete
        if whole and info.exit is not None:
            click.echo(f"from {path}")
            return [directory]
    raise NothingSelectedError(
        f"{folder} holds no run of the whole of {name} to its end, expected one; "
        f"`conformance suite run {name}` makes it"
    )


def _agreed(known: Deviations, found: Sequence[Shown], name: str) -> Generated:
    """Return what deviations are written from: runs of one kind, and of that of the file.

    Raises:
        UsageError: If they are not: with other examples, other failures come to light.
    """
    first = found[0].generated
    for shown in found:
        if _kind(shown.generated) != _kind(first):
            raise UsageError(
                f"the runs differ: {_kind(first)}, and {_kind(shown.generated)}; expected runs "
                "with the same examples"
            )
    before = known.generated
    if before.releases and _kind(before) != _kind(first):
        raise UsageError(
            f"the run is of {_kind(first)}, the deviations of {name} are of {_kind(before)}; "
            "expected the same: with other examples, other failures come to light"
        )
    return replace(first, revision=first.revision or before.revision)


def _kind(generated: Generated) -> str:
    number = "the suite's own" if generated.examples is None else generated.examples
    seed = "no seed" if generated.seed is None else f"seed {generated.seed}"
    return f"{number} examples, {seed}"


def _print_difference(old: str, new: str, file: Path) -> None:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(file), str(file), "", "")
    for line in lines:
        click.echo(visible(line.rstrip("\n")))


def _summary(before: Deviations, after: Deviations) -> Iterator[str]:
    """Yield what became of the known failures."""
    old, new = before.by_test(), after.by_test()
    added, ended = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    changed = sum(set(map(repr, old[t])) != set(map(repr, new[t])) for t in old.keys() & new.keys())
    yield (
        f"{plural(added, 'test')} added, {changed} changed, {ended} ended; "
        f"{len(new)} known to fail, {plural(len(after.entries), 'deviation')}"
    )
