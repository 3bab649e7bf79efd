"""Notification: the issues of a run's root causes, opened, updated and closed."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from conformance.app.history import open_store
from conformance.app.output_files import print_note
from conformance.engine.runs.digests import make_digest
from conformance.errors import ConformanceError, UsageError
from conformance.notify.actions import ActionKind, ActionResult, execute
from conformance.notify.decisions import NotifyPolicy, NotifyWhen, decide, find_linked_issues
from conformance.notify.night import read_night
from conformance.report.text import flatten
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.runs.directory import RunDirectory
    from conformance.notify.actions import Action
    from conformance.notify.tracker import Tracker
    from conformance.store.store import Store

CLIENT: Final = "conformance.notify.github"
"""Imported late, because its library is an optional extra."""
TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
"""Variables with the token, as in GitHub Actions and in the `gh` command; the first one counts."""
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_SITE: Final = re.compile(r"https?://[^\s()<>\[\]]+")
_LABEL: Final = re.compile(r"[^\s,][^,]{0,48}")
_LONGEST: Final = 100
"""Characters of an issue's title in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOptions:
    """The options of `conformance notify`.

    Attributes:
        run: Directory or id of the run, None for the newest.
        repository: Repository of the issues, None if only the store is read.
        yes: Whether to act instead of showing the actions.
        when: Regressions that open an issue, a `NotifyWhen`.
        limit: Issues to open at most.
        label: Label of the issues.
        url: Address of the site, empty if there is none.
        api: Address of GitHub's API.
        store: Path or URL of the store, None for that of the project.
    """

    run: str | None
    repository: str | None
    yes: bool
    when: str
    limit: int
    label: str
    url: str
    api: str
    store: str | None

    def __post_init__(self) -> None:
        if self.repository is not None and not _REPOSITORY.fullmatch(self.repository):
            raise UsageError(f"--github {self.repository}: expected OWNER/REPO")
        if self.url and not _SITE.fullmatch(self.url):
            raise UsageError(f"--url {self.url}: expected http://... or https://...")

    @property
    def policy(self) -> NotifyPolicy:
        """The repository, the time at which to act, the limit of issues, and the link."""
        return NotifyPolicy(
            repository=self.repository or "",
            when=NotifyWhen(self.when),
            limit=self.limit,
            url=self.url,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """The actions for a run.

    Attributes:
        run: Id of the run.
        options: The options.
        done: The actions: performed with `--yes`, else as they were decided.
        stopped: The error that kept the remaining actions from being performed, if any.
    """

    run: str
    options: NotifyOptions
    done: Sequence[ActionResult]
    stopped: ConformanceError | None = None


def notify(context: ProjectContext, options: NotifyOptions) -> Notification:
    """Decide what to do about the issues of a run, and do it with `--yes`.

    Args:
        context: The project.
        options: The options.

    Raises:
        UsageError: If the options do not go together, or the run did not end.
        ConformanceError: If the store, the run or the issues cannot be read.
    """
    # First, because options of the repository are checked before the run and the store are read.
    tracker = _open_tracker(options, options.repository) if options.repository else None
    if options.yes and tracker is None:
        raise UsageError("--yes: expected --github OWNER/REPO with it")
    directory = context.runs.open(options.run)
    store = open_store(context, options.store)
    # Actions are decided and performed under one lock: otherwise two processes open the same
    # issues. Without --yes nothing is performed, and no lock is needed.
    with store.lock_actions(print_note) if options.yes else nullcontext():
        actions = _decide_actions(directory, store, tracker, options.policy)
        if options.yes and tracker is not None:
            done, stopped = _perform_actions(actions, tracker, store, options.policy)
        else:
            done, stopped = (
                [ActionResult(action=action, issue=action.issue) for action in actions],
                None,
            )
    return Notification(run=directory.id, options=options, done=done, stopped=stopped)


def render_notification(notification: Notification) -> Iterator[str]:
    """Yield a line for each accepted action, counts of the others, and how to perform the actions.

    Args:
        notification: The actions.
    """
    done, options = notification.done, notification.options
    for one in done:
        if one.action.kind is not ActionKind.NOTHING and not one.problem:
            yield _describe_action(one)
    # Counted, not listed: there is nothing to do about them.
    quiet = sum(one.action.kind is ActionKind.NOTHING for one in done)
    held = sum(one.action.kind is ActionKind.HOLD for one in done)
    if quiet:
        yield f"{plural(quiet, 'root cause')}: nothing to do"
    if held:
        yield f"{plural(held, 'root cause')} held back by --limit {options.limit}"
    if not done:
        yield "nothing to report"
    if any(one.action.acts for one in done) and not options.yes:
        yield "nothing was done; --yes does it"


def make_notification_json(notification: Notification) -> dict[str, Any]:
    """Return the actions as JSON has them.

    Args:
        notification: The actions.
    """
    return {
        "run": notification.run,
        "repository": notification.options.policy.repository,
        "done": notification.options.yes,
        "actions": [
            {**asdict(one.action), "issue": one.issue, "problem": one.problem}
            for one in notification.done
        ],
    }


def _open_tracker(options: NotifyOptions, repository: str) -> Tracker:
    """Return the client that reads and writes the issues of a repository."""
    # Looked up, not imported: its absence is an error of usage, not of the import.
    if find_spec("github") is None:
        raise UsageError("--github: needs PyGithub; pip install 'jax-conformance[github]'")
    if not _LABEL.fullmatch(options.label):
        raise UsageError(f"--label {options.label}: expected at most 50 characters without a comma")
    tokens = (os.environ.get(name, "").strip() for name in TOKENS)
    token = next(filter(None, tokens), "")
    # Reading issues of a public repository needs no token.
    if options.yes and not token:
        raise UsageError(f"--yes: expected a token in {' or '.join(TOKENS)}")
    module = importlib.import_module(CLIENT)
    made: Tracker = module.GithubTracker(repository, token, options.api, options.label, print_note)
    return made


def _decide_actions(
    directory: RunDirectory, store: Store, tracker: Tracker | None, policy: NotifyPolicy
) -> list[Action]:
    digest = make_digest(directory)
    # An unfinished run lacks jobs, and would close the issues of those that did not run yet.
    if not digest.finished:
        raise UsageError(
            f"{directory.path}: the run did not end, expected one that did; "
            f"conformance run --resume --run {directory.path}"
        )
    regressions, _ = store.load_regressions()
    night = read_night(directory, digest, store, regressions)
    issues = [] if tracker is None else tracker.issues(find_linked_issues(regressions, policy))
    return decide(night, regressions, issues, policy)


def _perform_actions(
    actions: Sequence[Action], tracker: Tracker, store: Store, policy: NotifyPolicy
) -> tuple[list[ActionResult], ConformanceError | None]:
    """Return the actions that were performed, and the error that ended them early, if any."""

    def link(regressions: Sequence[str], number: int) -> None:
        # Linked as soon as the issue is open: if the next action fails, a rerun opens no second
        # one.
        store.link_all(regressions, policy.reference(number))

    done: list[ActionResult] = []
    try:
        for one in execute(actions, tracker, link):
            done.append(one)  # noqa: PERF402 - what is done before an error counts
    # Returned, not raised: the actions before it are done, and must be reported.
    except ConformanceError as error:
        return done, error
    return done, None


def _describe_action(done: ActionResult) -> str:
    action = done.action
    number = f" #{done.issue}" if done.issue is not None else ""
    title = f" {flatten(action.title, _LONGEST)}" if action.title else ""
    return f"{action.kind}{number}{title} ({action.cause}: {action.why})"
