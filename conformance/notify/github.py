"""Issues on GitHub, or on a GitHub Enterprise server.

PyGithub is the client: it is typed, follows the links of pages and checks that they lead to the
same server, waits as long as a primary or secondary rate limit asks for, and leaves a second
between writes, as GitHub wants it. With `requests` alone all of that would be ours to write and
to keep; githubkit brings models of the whole API and twice as many packages. It is an extra,
`jax-conformance[github]`, for few ever need it.
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
from conformance.notify.tracker import Closed, Issue, RefusedError
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from github.Issue import Issue as GithubIssue
    from github.Repository import Repository

BETWEEN_WRITES: Final = 1.0
"""Seconds, as GitHub wants it."""
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
"""How a rate limit is told: what was asked for was not done."""
_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_OURS: Final = range(400, 500)
"""Answers that say what is asked for is wrong."""
_UNMADE: Final = frozenset(
    {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
)
"""How it is told that somebody may not make a label, or that it was made meanwhile."""
_ACCESS: Final = (
    "expected owner/name of a repository, and in GITHUB_TOKEN or GH_TOKEN a token that may read "
    "and write its issues"
)
_ADVICE: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "GITHUB_TOKEN or GH_TOKEN must hold a token that is valid",
    HTTPStatus.GONE: "issues must be enabled in the settings of the repository",
}


class _Retry(GithubRetry):
    """Tries again, but never what may have been done: an issue or comment would be there twice."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Say whether an answer is one to try again after."""
        if method == "POST":
            return status_code in _LIMITED
        return super().is_retry(method, status_code, has_retry_after)


class GithubTracker:
    """The issues of a repository that have our label.

    Args:
        repository: `owner/name`.
        token: Token; empty to read as anybody may.
        api: Address of the API.
        label: The label.
        say: Told in a sentence what is not as it should be.

    Raises:
        UsageError: If the address would send the token in the clear.
    """

    def __init__(
        self, repository: str, token: str, api: str, label: str, say: Callable[[str], None]
    ) -> None:
        # What is tried again is no matter of the user's; what is given up is told as an error.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        parts = urlsplit(api)
        encrypted = parts.scheme == "https" or parts.hostname in _LOCAL
        if not (parts.hostname and parts.scheme in {"http", "https"} and encrypted):
            raise UsageError(f"--api {mask_text(api)}: expected https://HOST/PATH")
        self._name, self._token, self._label, self._say = repository, token, label, say
        self._host = parts.hostname
        retry = _Retry(
            secondary_rate_wait=SECONDARY_WAIT,
            max_rate_limit_wait=LONGEST_WAIT,
            retry_after_max=LONGEST_WAIT,
            total=RETRIES,
            backoff_factor=BACKOFF,
            status_forcelist=[429, *range(500, 600)],
            allowed_methods=frozenset({"GET", "PATCH"}),
        )
        self._client = Github(
            auth=Auth.Token(token) if token else None,
            base_url=api.rstrip("/"),
            timeout=TIMEOUT,
            per_page=100,
            retry=retry,
            seconds_between_requests=0,
            seconds_between_writes=BETWEEN_WRITES,
        )
        self._known: dict[int, GithubIssue] = {}
        self._labelled = False

    @cached_property
    def _repository(self) -> Repository:
        return self._client.get_repo(self._name)

    def issues(self, numbers: Collection[int]) -> list[Issue]:
        """Return the issues with our label, and those of some numbers as far as they are there.

        Whoever may set labels is trusted: the text of such an issue says which cause it is of.
        """
        with self._translate_errors("read its issues"):
            listed = self._repository.get_issues(
                state="all", labels=[self._label], sort="created", direction="asc"
            )
            self._known = {one.number: one for one in listed if not _is_pull_request(one)}
            for number in sorted(set(numbers) - set(self._known)):
                with (
                    contextlib.suppress(_GoneError),
                    self._translate_errors(f"read #{number}", number),
                ):
                    self._known[number] = self._repository.get_issue(number)
            return [_issue(one) for one in self._known.values()]

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
        """Make our label if it is not there; without it an issue is found by its link alone."""
        if self._labelled:
            return
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
            self._say(
                f"github: label {self._label} is not there and cannot be made "
                f"({error.status}); make it by hand, issues are found by it"
            )

    @contextlib.contextmanager
    def _translate_errors(self, what: str, number: int | None = None) -> Iterator[None]:
        """Raise what goes wrong as one sentence of ours, never with the token.

        Args:
            what: What was to be done.
            number: The issue it was about, if it is there already; others may still be changed.
        """
        try:
            yield
        except GithubException as error:
            raise self._error(what, error, number) from None
        except requests.RequestException as error:
            raise InfrastructureError(
                f"github: {self._host} cannot be reached to {what}: {self._hidden(error)}; "
                "check the network and run it again: what was done is linked in the store"
            ) from None
        except (AssertionError, AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            # PyGithub takes for granted that the answer is GitHub's.
            raise UsageError(
                f"github: {self._host} does not answer as GitHub does, asked to {what}; "
                "--api must be the address of its API, e.g. https://HOST/api/v3"
            ) from None

    def _error(self, what: str, error: GithubException, number: int | None) -> ConformanceError:
        """Return our error for an answer of GitHub's."""
        status, said = error.status, self._hidden(_message(error))
        head = f"github: {self._name}: cannot {what} ({status}): {said}"
        if isinstance(error, RateLimitExceededException) or status == HTTPStatus.TOO_MANY_REQUESTS:
            return InfrastructureError(
                f"github: {self._name}: cannot {what} ({status}): the rate limit would last longer "
                f"than {LONGEST_WAIT} seconds; run it again later: what was done is linked"
            )
        if status not in _OURS:
            return InfrastructureError(f"{head}; run it again later: what was done is linked")
        if number is not None and status in _ABSENT:
            return _GoneError(f"{head}; was it deleted or moved?")
        if status == HTTPStatus.UNPROCESSABLE_ENTITY or "locked" in said.casefold():
            return RefusedError(head)
        return UsageError(f"{head}; {_ADVICE.get(status, _ACCESS)}")

    def _hidden(self, said: object) -> str:
        text = mask_text(str(said))
        text = text.replace(self._token, "***") if self._token else text
        return flatten(text, 300)


class _GoneError(RefusedError):
    """An issue that was deleted, or moved."""


def _message(error: GithubException) -> str:
    data: Any = error.data
    said = data.get("message") if isinstance(data, dict) else None
    return str(said or error.message or "no reason given")


def _issue(one: GithubIssue) -> Issue:
    closed = None
    if one.state == "closed":
        closed = Closed.DECLINED if one.state_reason in _DECLINED else Closed.COMPLETED
    return Issue(number=one.number, body=one.body or "", closed=closed, closed_at=one.closed_at)


def _is_pull_request(one: GithubIssue) -> bool:
    # Asked for its pull request, an issue without one would be read again, by itself.
    return urlsplit(one.html_url).path.split("/")[-2] == "pull"
