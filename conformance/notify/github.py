"""Issues on GitHub, or on a GitHub Enterprise server.

PyGithub is the client: it is typed, follows the links of pages and checks that they lead to the
same server, waits as long as a primary or secondary rate limit requires, and leaves a second
between writes, as GitHub recommends. With `requests` alone we would have to write and maintain all
of that; githubkit brings models of the whole API and twice as many packages. It is an extra,
`jax-conformance[github]`, because few users need it.
"""

from __future__ import annotations

import contextlib
import logging
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import requests
from github import Auth, Github, GithubException, RateLimitExceededException
from github.GithubRetry import GithubRetry

from conformance.cells.secret_masking import mask_text
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.notify.tracker import CloseReason, Issue, RefusedError
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from github.Issue import Issue as GithubIssue
    from github.Repository import Repository

BETWEEN_WRITES: Final = 1.0
"""Seconds between writes, as GitHub recommends."""
RETRIES: Final = 4
BACKOFF: Final = 1.0
LONGEST_WAIT: Final = 600
"""Seconds to wait for a rate limit at most."""
SECONDARY_WAIT: Final = 60.0
"""Seconds to wait for a secondary rate limit that does not say how long."""
TIMEOUT: Final = 30
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_COLOUR: Final = "b60205"
_DECLINED: Final = frozenset({"not_planned", "duplicate"})
_LIMITED: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
"""Answers of a rate limit: the request was not performed."""
_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_OURS: Final = range(400, 500)
"""Answers for a request that is wrong."""
_UNMADE: Final = frozenset(
    {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
)
"""Answers if the token may not create a label, or another process has created it meanwhile."""
_ACCESS: Final = (
    "expected owner/name of a repository, and in GITHUB_TOKEN or GH_TOKEN a token that may read "
    "and write its issues"
)
_ADVICE: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "GITHUB_TOKEN or GH_TOKEN must hold a token that is valid",
    HTTPStatus.GONE: "issues must be enabled in the settings of the repository",
}


class _Retry(GithubRetry):
    """Retries requests, except those that may have created an issue or comment already."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Say whether a request is retried after an answer."""
        # After a lost answer it is unknown whether the issue exists: a second POST would open it
        # twice. The next run finds it by its label.
        if method == "POST":
            return status_code in _LIMITED
        return super().is_retry(method, status_code, has_retry_after)


class GithubTracker:
    """The issues of a repository that have our label.

    Args:
        repository: `owner/name`.
        token: Token; empty for public access.
        api: Address of the API.
        label: The label.
        inform: Receives a line about a problem that does not end the command.

    Raises:
        UsageError: If the address would send the token in the clear.
    """

    def __init__(
        self, repository: str, token: str, api: str, label: str, inform: Callable[[str], None]
    ) -> None:
        # urllib3 warns of each retry; a request that finally fails is reported as an error.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        parts = urlsplit(api)
        encrypted = parts.scheme == "https" or parts.hostname in _LOCAL
        if not (parts.hostname and parts.scheme in {"http", "https"} and encrypted):
            raise UsageError(f"--api {mask_text(api)}: expected https://HOST/PATH")
        self._name, self._token, self._label, self._inform = repository, token, label, inform
        self._host = parts.hostname
        retry = _Retry(
            secondary_rate_wait=SECONDARY_WAIT,
            max_rate_limit_wait=LONGEST_WAIT,
            retry_after_max=LONGEST_WAIT,
            total=RETRIES,
            backoff_factor=BACKOFF,
            # POST is not allowed below: after a lost answer urllib3 consults this set, and not
            # `is_retry`.
            status_forcelist=[429, *range(500, 600)],
            allowed_methods=frozenset({"GET", "PATCH"}),
        )
        self._client = Github(
            auth=Auth.Token(token) if token else None,
            base_url=api.rstrip("/"),
            timeout=TIMEOUT,
            per_page=100,
            retry=retry,
            # PyGithub waits between all requests by default, which GitHub asks of writes only.
            seconds_between_requests=0,
            seconds_between_writes=BETWEEN_WRITES,
        )
        self._known: dict[int, GithubIssue] = {}
        self._labelled = False

    @cached_property
    def _repository(self) -> Repository:
        return self._client.get_repo(self._name)

    def issues(self, numbers: Collection[int]) -> list[Issue]:
        """Return the issues with our label, and those of some numbers that exist.

        People who may set labels are trusted: the text of an issue names its root cause.
        """
        with self._translate_errors("read its issues"):
            listed = self._repository.get_issues(
                state="all", labels=[self._label], sort="created", direction="asc"
            )
            # GitHub lists pull requests as issues.
            self._known = {found.number: found for found in listed if not _is_pull_request(found)}
            # People may have removed our label, or linked an issue that never had it.
            for number in sorted(set(numbers) - set(self._known)):
                with (
                    contextlib.suppress(_GoneError),
                    self._translate_errors(f"read #{number}", number),
                ):
                    self._known[number] = self._repository.get_issue(number)
            return [_convert_issue(found) for found in self._known.values()]

    def open(self, title: str, body: str) -> int:
        """Open an issue with our label."""
        with self._translate_errors("open an issue"):
            self._ensure_label()
            made = self._repository.create_issue(title=title, body=body, labels=[self._label])
            self._known[made.number] = made
            return made.number

    def edit(self, number: int, body: str) -> None:
        """Replace the text of an issue."""
        with self._translate_errors(f"edit #{number}", number):
            self._known[number].edit(body=body)

    def close(self, number: int, body: str) -> None:
        """Close an issue as completed, with a text."""
        with self._translate_errors(f"close #{number}", number):
            self._known[number].edit(body=body, state="closed", state_reason="completed")

    def reopen(self, number: int, body: str) -> None:
        """Open a closed issue again, with a text."""
        with self._translate_errors(f"reopen #{number}", number):
            self._known[number].edit(body=body, state="open", state_reason="reopened")

    def comment(self, number: int, text: str) -> None:
        """Add a comment to an issue."""
        with self._translate_errors(f"comment on #{number}", number):
            self._known[number].create_comment(text)

    def _ensure_label(self) -> None:
        """Create our label if it is missing; an issue without it is found by its link only."""
        if self._labelled:
            return
        # Set before the attempt: a token that may not create labels fails once, not per issue.
        self._labelled = True
        try:
            self._repository.get_label(self._label)
        except GithubException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            self._make_label()

    def _make_label(self) -> None:
        try:
            self._repository.create_label(
                self._label, _COLOUR, "opened and closed by conformance notify"
            )
        except GithubException as error:
            if error.status not in _UNMADE:
                raise
            self._inform(
                f"github: label {self._label} is missing and cannot be created "
                f"({error.status}); create it by hand, issues are found by it"
            )

    @contextlib.contextmanager
    def _translate_errors(self, action: str, number: int | None = None) -> Iterator[None]:
        """Translate errors of the client into errors of one line, without the token.

        Args:
            action: The action, for the message.
            number: Its issue, if it exists already; other issues may still be changed.
        """
        try:
            yield
        except GithubException as error:
            raise self._make_error(action, error, number) from None
        except requests.RequestException as error:
            raise InfrastructureError(
                f"github: {self._host} cannot be reached to {action}: {self._mask(error)}; "
                "check the network and run it again: what was done is linked in the store"
            ) from None
        except (AssertionError, AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            # PyGithub does not check that the answer is GitHub's.
            raise UsageError(
                f"github: {self._host} does not answer as GitHub does, asked to {action}; "
                "--api must be the address of its API, e.g. https://HOST/api/v3"
            ) from None

    def _make_error(
        self, action: str, error: GithubException, number: int | None
    ) -> ConformanceError:
        """Return the error for an answer: a refusal of one issue, or the end of the command."""
        status, message = error.status, self._mask(_extract_message(error))
        head = f"github: {self._name}: cannot {action} ({status}): {message}"
        if isinstance(error, RateLimitExceededException) or status == HTTPStatus.TOO_MANY_REQUESTS:
            return InfrastructureError(
                f"github: {self._name}: cannot {action} ({status}): the rate limit would last "
                f"longer than {LONGEST_WAIT} seconds; run it again later: what was done is linked"
            )
        if status not in _OURS:
            return InfrastructureError(f"{head}; run it again later: what was done is linked")
        if number is not None and status in _ABSENT:
            return _GoneError(f"{head}; was it deleted or moved?")
        if status == HTTPStatus.UNPROCESSABLE_ENTITY or "locked" in message.casefold():
            return RefusedError(head)
        return UsageError(f"{head}; {_ADVICE.get(status, _ACCESS)}")

    def _mask(self, message: object) -> str:
        # Messages may echo the request, and a proxy's may hold its address with a password.
        text = mask_text(str(message))
        text = text.replace(self._token, "***") if self._token else text
        return flatten(text, 300)


class _GoneError(RefusedError):
    """An issue that was deleted, or moved."""


def _extract_message(error: GithubException) -> str:
    data: Any = error.data
    message = data.get("message") if isinstance(data, dict) else None
    return str(message or error.message or "no reason given")


def _convert_issue(found: GithubIssue) -> Issue:
    closed = None
    if found.state == "closed":
        closed = CloseReason.DECLINED if found.state_reason in _DECLINED else CloseReason.COMPLETED
    return Issue(
        number=found.number, body=found.body or "", closed=closed, closed_at=found.closed_at
    )


def _is_pull_request(found: GithubIssue) -> bool:
    # PyGithub completes a listed issue by another request when its attribute `pull_request` is
    # read and missing, which is a request for each issue.
    return urlsplit(found.html_url).path.split("/")[-2] == "pull"
