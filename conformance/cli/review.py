"""`conformance review`: decide on what a run showed, in a terminal or by flags."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance.app.acceptance import check_goldens_writable
from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable, write_file
from conformance.app.review_data import review_data, review_lines
from conformance.app.run_request import request_of
from conformance.cli.options import recorded_options
from conformance.cli.review_screen import in_terminal, review_in_terminal
from conformance.cli.words import CASES
from conformance.corpus.metadata import specifier
from conformance.corpus.select import matches
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.golden.accept import refuse_in_ci
from conformance.model.outcome import ExitCode
from conformance.report.text import listed, visible
from conformance.review.decisions import Choice
from conformance.review.exporting import body, exported
from conformance.review.patch import author, root_of
from conformance.review.proposing import Wish
from conformance.review.session import Session

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.review.decisions import Decision
    from conformance.review.groups import Member
    from conformance.review.writing import Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The decisions that flags ask for."""

    accept: tuple[str, ...]
    reject: tuple[str, ...]
    deviation: tuple[str, ...]
    everything: bool
    wish: Wish

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.accept or self.reject or self.deviation or self.everything)


@click.command("review")
@click.argument("select", nargs=-1, type=CASES)
@recorded_options
@click.option("--accept", multiple=True, metavar="ID", help="Make a group golden; repeatable.")
@click.option("--reject", multiple=True, metavar="ID", help="Leave a group as it is; repeatable.")
@click.option(
    "--deviation", multiple=True, metavar="ID",
    help="Declare what a group shows in its case files, or end what it shows no more; repeatable.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Accept every group that can be.")
@click.option("--reason", default="", metavar="TEXT", help="Why; of --reject and --deviation.")
@click.option("--issue", default="", metavar="OWNER/REPO#N", help="Upstream thread.")
@click.option(
    "--range", "releases", metavar="SPECIFIER",
    help="Releases of --deviation.  [default: the tightest range that covers them]",
)  # fmt: skip
@click.option("--platform", metavar="NAME", help="Platform of --deviation, empty for all.")
@click.option("--match", metavar="REGEX", help="Pattern of --deviation, empty for any.")
@click.option("--by", metavar="NAME", help="Who decides.  [default: as git has it]")
@click.option("--dry-run", is_flag=True, help="Say what would change; write and keep nothing.")
@click.option(
    "--export", "patch", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write the decisions as patches for `git am`, and nothing else.",
)  # fmt: skip
@click.option(
    "--body", "markdown", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
    help="Write the review as Markdown, for a pull request.",
)  # fmt: skip
@click.option("--json", "as_data", is_flag=True, help="Print JSON.")
def command(
    *,
    select: tuple[str, ...],
    run_dir: Path | None,
    cell: tuple[str, ...],
    accept: tuple[str, ...],
    reject: tuple[str, ...],
    deviation: tuple[str, ...],
    everything: bool,
    reason: str,
    issue: str,
    releases: str | None,
    platform: str | None,
    match: str | None,
    by: str | None,
    dry_run: bool,
    patch: Path | None,
    markdown: Path | None,
    as_data: bool,
) -> int:
    """Decide on what a run showed: make it golden, reject it, or declare it as a deviation.

    What changed in the same way is one group, however many cases and cells it is in. In a terminal
    groups are decided on by single keys; decisions are kept beside the run until they are written.
    Flags decide and write at once, or with --export make patches and leave all files as they are.
    What a nightly showed is never golden.

    \b
    conformance review                                   in a terminal: decide by keys
    conformance review shard_map_while --json            what is pending, for scripts
    conformance review --accept 3f2a91c04d5e
    conformance review --reject 3f2a --reason 'wrong since jax-ml/jax#1, see there'
    conformance review --deviation 3f2a --reason 'no rule for while' --issue jax-ml/jax#27664
    conformance review --all --export goldens.patch --body pull-request.md

    Exit status: 0 nothing is pending, 1 something is, 2 usage.
    """  # noqa: D301 - \b is click's own mark
    wish = Wish(reason=reason, issue=issue, releases=_range(releases), platform=platform,
                match=match)  # fmt: skip
    asked = _Asked(
        accept=accept, reject=reject, deviation=deviation, everything=everything, wish=wish
    )
    for option, file in (("--export", patch), ("--body", markdown)):
        if file is not None:
            check_writable(option, file)
    context = load_context()
    session = _session(context, run_dir, select, cell, by)
    scripted = asked.any or dry_run or patch is not None or markdown is not None or as_data
    if session.groups and not scripted and in_terminal():
        return review_in_terminal(session, lambda done: _check(context, done))
    for decision in _decisions(session, asked):
        session.take(decision)
    done = session.outcomes()
    if patch is not None or markdown is not None:
        _export(session, done, patch, markdown)
    writes = asked.any and patch is None and not dry_run
    if writes:
        done = session.write(os.environ, lambda found: _check(context, found), print_note)
    elif asked.any and not dry_run:
        session.keep()
    about = done if asked.any or patch is not None else None
    _say(session, about, written=writes, as_data=as_data)
    return _exit(session)


def _range(text: str | None) -> str | None:
    """Return a range without the name of jax.

    Raises:
        UsageError: If it is none.
    """
    if text is None:
        return None
    try:
        return str(SpecifierSet(specifier(text)))
    except InvalidSpecifier:
        raise UsageError(
            f"--range {text}: expected a specifier of jax releases, e.g. '>=0.5.1,<0.6'"
        ) from None


def _session(
    context: ProjectContext,
    run_dir: Path | None,
    select: tuple[str, ...],
    cells: tuple[str, ...],
    by: str | None,
) -> Session:
    """Return the review of a run, or of some of its cases and cells."""
    directory = RunDirectory(run_dir) if run_dir else latest_run(context.project.root)
    request = request_of(directory)

    def wanted(member: Member) -> bool:
        named = not select or any(matches(member.job.case, text) for text in select)
        return named and (not cells or member.record.cell in cells)

    session = Session(
        directory,
        lambda: context.cases(request.select),
        context.releases,
        wanted=wanted,
        by=by or author(context.project.root),
        inform=print_note,
    )
    if (select or cells) and not any(map(wanted, session.files.everything)):
        raise NothingSelectedError(
            f"{directory.path} holds no record of {', '.join((*select, *cells))}, expected one"
        )
    return session


def _decisions(session: Session, asked: _Asked) -> list[Decision]:
    """Return the decisions that flags ask for; none is taken if one cannot be.

    Raises:
        UsageError: If one cannot be, or is asked for twice.
    """
    named = {
        Choice.ACCEPT: [session.group(text) for text in asked.accept],
        Choice.REJECT: [session.group(text) for text in asked.reject],
        Choice.DEVIATION: [session.group(text) for text in asked.deviation],
    }
    given = [group.id for found in named.values() for group in found]
    if twice := next((one for one in given if given.count(one) > 1), None):
        raise UsageError(f"group {twice} is named twice, expected one decision on it")
    if asked.everything:
        named[Choice.ACCEPT] += [
            group
            for group in session.pending
            if group.id not in given and not session.refusal(group, Choice.ACCEPT)
        ]
    return [
        session.made(group, choice, asked.wish)
        for choice, found in named.items()
        for group in found
    ]


def _check(context: ProjectContext, done: Outcomes) -> None:
    """Make sure that what would be written may be."""
    refuse_in_ci()
    folders = [folder for plan in done.plans for folder in plan.documents]
    check_goldens_writable(context, [*done.sources, *folders])


def _export(session: Session, done: Outcomes, patch: Path | None, markdown: Path | None) -> None:
    """Write what the decisions come to as patches, and the review as Markdown."""
    files = [*done.sources, *(file for plan in done.plans for file in plan.documents)]
    if patch is not None:
        if not files:
            raise UsageError("--export: no decision changes a golden or a case file; decide first")
        # Before a golden folder is there, only what holds the cases is in the repository.
        cases = next(m.job.case.file for m in session.files.everything)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        write_file("--export", patch, exported(root_of(cases.parent), done, when))
    if markdown is not None:
        text = body(session.directory.id, session.taken, done, session.files)
        write_file("--body", markdown, text.encode("utf-8", "replace"))


def _say(session: Session, done: Outcomes | None, *, written: bool, as_data: bool) -> None:
    if as_data:
        told = review_data(session, done, written=written)
        click.echo(readable_json({**told, "exit": int(_exit(session))}))
        return
    for line in review_lines(session, done, written=written):
        click.echo(visible(line))
    if session.changed:
        names = listed([case.id for case in session.changed])
        click.echo(visible(
            f"not judged: {names} changed since the run; conformance run makes another"
        ), err=True)  # fmt: skip


def _exit(session: Session) -> ExitCode:
    left = session.pending or session.changed
    return ExitCode.UNEXPECTED if left else ExitCode.OK
