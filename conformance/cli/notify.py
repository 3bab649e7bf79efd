"""`conformance notify`: one issue per root cause, opened, updated and closed."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable, write_file
from conformance.cli.history import opened_store, store_option
from conformance.cli.options import json_option
from conformance.engine.digests import digest_of
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.errors import ConformanceError, UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.notify.actions import Kind
from conformance.notify.deciding import Policy, When, decide, wanted
from conformance.notify.doing import Done, do
from conformance.notify.night import read_night
from conformance.report.text import one_line
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.notify.actions import Action
    from conformance.notify.tracker import Tracker
    from conformance.store.store import Store

CLIENT: Final = "conformance.notify.github"
"""Imported when it is asked for: its library is an extra."""
TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_SITE: Final = re.compile(r"https?://[^\s()<>\[\]]+")
_LABEL: Final = re.compile(r"[^\s,][^,]{0,48}")
_LONGEST: Final = 100


@click.command("notify")
@click.argument(
    "run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--github", "repository", metavar="OWNER/REPO", help="Where the issues are.")
@click.option("--yes", is_flag=True, help="Do it; otherwise it is only said what would be done.")
@click.option(
    "--when", type=click.Choice([str(one) for one in When]), default=str(When.CONFIRMED),
    show_default=True, help="What opens an issue: what is confirmed, or also what is new.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(0), default=10, show_default=True, metavar="N",
    help="Issues to open at most; the others are named.",
)  # fmt: skip
@click.option("--label", default="conformance", show_default=True, help="Label of the issues.")
@click.option("--url", default="", metavar="URL", help="Where the site is, to link to.")
@click.option(
    "--api", metavar="URL", envvar="GITHUB_API_URL", default="https://api.github.com",
    show_default=True, help="Address of the API, of GitHub Enterprise say; or GITHUB_API_URL.",
)  # fmt: skip
@store_option
@json_option("what is done")
def command(
    *,
    run: Path | None,
    repository: str | None,
    yes: bool,
    when: str,
    limit: int,
    label: str,
    url: str,
    api: str,
    store: str | None,
    json_file: Path | None,
) -> int:
    """Open, update and close an issue for each root cause of a run.

    RUN is the directory of a run that is in the store; the newest by default. Without --yes
    nothing is done, and no token is needed for a public repository; with it GITHUB_TOKEN or
    GH_TOKEN must be one that may write issues. Without --github it is told from the store alone.

    What is flaky, or a fault of the host, opens no issue. Only the part of a text between our
    marks is ever written again. An issue that was closed as not planned stays closed; one closed
    as completed is opened again if a later run shows it. It is closed when all of its jobs have
    run and are fine.

    \b
    conformance history add && conformance notify --github owner/repo          what would be done
    conformance notify --github owner/repo --yes --url https://owner.example/site
    """  # noqa: D301 - \b is click's own mark
    policy = _policy(repository, when, limit, url)
    if json_file is not None:
        check_writable("--json", json_file)
    tracker = _tracker(repository, yes=yes, api=api, label=label) if repository else None
    if yes and tracker is None:
        raise UsageError("--yes: expected --github OWNER/REPO with it")
    directory = RunDirectory(run) if run else latest_run(load_context().project.root)
    opened = opened_store(store)
    problem = None
    # What is decided holds until it is done: another process would open the same issues.
    with opened.alone(print_note) if yes else nullcontext():
        actions = _decided(directory, opened, tracker, policy)
        done = [Done(action=action, issue=action.issue) for action in actions]
        if yes and tracker is not None:
            done, problem = _do(actions, tracker, opened, policy)
    to_stderr = json_file is not None and str(json_file) == "-"
    for line in _lines(done, policy, yes=yes):
        click.echo(line, err=to_stderr)
    if json_file is not None:
        write_file("--json", json_file, readable_json(_data(directory, done, policy, yes=yes)))
    for one in done:
        if one.problem:
            click.echo(f"conformance: {one.problem}", err=True)
    if problem is not None:
        raise problem
    return ExitCode.USAGE if any(one.problem for one in done) else ExitCode.OK


def _policy(repository: str | None, when: str, limit: int, url: str) -> Policy:
    if repository is not None and not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"--github {repository}: expected OWNER/REPO")
    if url and not _SITE.fullmatch(url):
        raise UsageError(f"--url {url}: expected http://... or https://...")
    return Policy(repository=repository or "", when=When(when), limit=limit, url=url)


def _tracker(repository: str, *, yes: bool, api: str, label: str) -> Tracker:
    """Return what reads and writes the issues."""
    if find_spec("github") is None:
        raise UsageError("--github: needs PyGithub; pip install 'jax-conformance[github]'")
    if not _LABEL.fullmatch(label):
        raise UsageError(f"--label {label}: expected at most 50 characters without a comma")
    given = (os.environ.get(name, "").strip() for name in TOKENS)
    token = next(filter(None, given), "")
    if yes and not token:
        raise UsageError(f"--yes: expected a token in {' or '.join(TOKENS)}")
    module = importlib.import_module(CLIENT)

    def say(text: str) -> None:
        click.echo(f"conformance: {text}", err=True)

    made: Tracker = module.GithubTracker(repository, token, api, label, say)
    return made


def _decided(
    directory: RunDirectory, store: Store, tracker: Tracker | None, policy: Policy
) -> list[Action]:
    digest = digest_of(directory)
    if not digest.finished:
        raise UsageError(
            f"{directory.path}: the run did not end, expected one that did; "
            f"conformance run --resume --run-dir {directory.path}"
        )
    regressions, _ = store.regressions()
    night = read_night(directory, digest, store, regressions)
    issues = [] if tracker is None else tracker.issues(wanted(regressions, policy))
    return decide(night, regressions, issues, policy)


def _do(
    actions: Sequence[Action], tracker: Tracker, store: Store, policy: Policy
) -> tuple[list[Done], ConformanceError | None]:
    """Do what was decided, and return what was done, and what stood in the way of the rest."""

    def link(regressions: Sequence[str], number: int) -> None:
        store.link_all(regressions, policy.reference(number))

    done: list[Done] = []
    try:
        for one in do(actions, tracker, link):
            done.append(one)  # noqa: PERF402 - what is done before an error counts
    except ConformanceError as error:
        return done, error
    return done, None


def _lines(done: Sequence[Done], policy: Policy, *, yes: bool) -> list[str]:
    """Return what is printed: a line for each action, and how to do it if it is not done."""
    lines = [_line(one) for one in done if one.action.kind is not Kind.NOTHING and not one.problem]
    quiet = sum(one.action.kind is Kind.NOTHING for one in done)
    held = sum(one.action.kind is Kind.HOLD for one in done)
    acting = any(one.action.acts for one in done)
    if quiet:
        lines.append(f"{plural(quiet, 'root cause')}: nothing to do")
    if held:
        lines.append(f"{plural(held, 'root cause')} held back by --limit {policy.limit}")
    if not done:
        lines.append("nothing to tell")
    if acting and not yes:
        lines.append("nothing was done; --yes does it")
    return lines


def _line(done: Done) -> str:
    action = done.action
    number = f" #{done.issue}" if done.issue is not None else ""
    title = f" {one_line(action.title, _LONGEST)}" if action.title else ""
    return f"{action.kind}{number}{title} ({action.cause}: {action.why})"


def _data(
    directory: RunDirectory, done: Sequence[Done], policy: Policy, *, yes: bool
) -> dict[str, Any]:
    return {
        "run": directory.id,
        "repository": policy.repository,
        "done": yes,
        "actions": [
            {**asdict(one.action), "issue": one.issue, "problem": one.problem} for one in done
        ],
    }
