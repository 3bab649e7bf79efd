"""The client of GitHub against a server on this host: what it reads, does, and survives."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.notify import github
from conformance.notify.github import GithubTracker
from conformance.notify.tracker import CloseReason, RefusedError
from tests.notify.github_server import REPOSITORY, TOKEN, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.notify.github_server import GithubServer

LABEL = "conformance"
RATE = {"message": "API rate limit exceeded for user ID 1."}
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait."}


def tracker(server: GithubServer, **more: Any) -> GithubTracker:
    """Return a client of a server."""
    given = {
        "repository": REPOSITORY, "token": TOKEN, "api": server.url, "label": LABEL,
        "inform": pytest.fail, **more,
    }  # fmt: skip
    return GithubTracker(**given)


def refused(do: Callable[[], object]) -> ConformanceError:
    """Return the error of what is refused; it never has the token, nor has what it came from."""
    with pytest.raises(ConformanceError) as caught:
        do()
    assert TOKEN not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_issue_from_its_opening_to_its_end(server: GithubServer) -> None:
    """With its label, which is made; closed as completed, and opened again."""
    client = tracker(server)
    assert client.issues([]) == []
    number = client.open("a title", "a text")
    assert server.labels == {LABEL}
    assert [one["name"] for one in server.issues[number]["labels"]] == [LABEL]
    client.edit(number, "another")
    client.comment(number, "a comment")
    assert server.issues[number]["title"] == "a title"
    assert server.issues[number]["body"] == "another"
    assert server.comments[number] == ["a comment"]
    client.close(number, "closed")
    assert server.issues[number]["state_reason"] == "completed"
    (issue,) = tracker(server).issues([])
    assert (issue.number, issue.body, issue.closed) == (number, "closed", CloseReason.COMPLETED)
    assert issue.closed_at == server.now
    client.reopen(number, "open")
    (issue,) = tracker(server).issues([])
    assert (issue.body, issue.closed) == ("open", None)


def test_issues_are_listed_by_page_without_a_request_for_each(server: GithubServer) -> None:
    """A hundred a page; pull requests are no issues, nor is what has another label."""
    for number in range(1, 251):
        server.add(f"issue {number}", "", LABEL)
    server.issues[7]["html_url"] = f"https://github.example/{REPOSITORY}/pull/7"
    server.add("of others", "", "bug")
    found = tracker(server).issues([3])
    assert [one.number for one in found] == [n for n in range(1, 251) if n != 7]
    assert len(server.requests) == 4  # the repository, and pages


def test_an_issue_without_the_label_is_read_by_its_number(server: GithubServer) -> None:
    """One that is gone is left out."""
    server.add("the label was taken away", "text")
    assert [one.number for one in tracker(server).issues([1, 9])] == [1]


@pytest.mark.parametrize(
    ("reason", "closed"),
    [
        ("completed", CloseReason.COMPLETED),
        (None, CloseReason.COMPLETED),
        ("not_planned", CloseReason.DECLINED),
        ("duplicate", CloseReason.DECLINED),
    ],
)
def test_why_an_issue_is_closed(
    server: GithubServer, reason: str | None, closed: CloseReason
) -> None:
    """Not planned is a decision of people's."""
    server.add("one", "", LABEL)
    server.edit(1, {"state": "closed", "state_reason": reason})
    (issue,) = tracker(server).issues([])
    assert issue.closed is closed


def test_a_public_repository_is_read_without_a_token(server: GithubServer) -> None:
    """As the dry run does."""
    server.add("one", "", LABEL)
    assert len(tracker(server, token="").issues([])) == 1


def test_a_label_that_cannot_be_created_is_reported_once(server: GithubServer) -> None:
    """The issue is opened nevertheless."""
    server.may_label = False
    said: list[str] = []
    client = tracker(server, inform=said.append)
    assert [client.open("a", ""), client.open("b", "")] == [1, 2]
    assert len(said) == 1
    assert "label conformance is missing and cannot be created (403)" in said[0]


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Fault("GET", "issues", 502, "<html>"), 0),
        (Fault("GET", "issues", 503, {"message": "no"}, {"Retry-After": "1"}), 1),
        (Fault("GET", "issues", 403, RATE, {"Retry-After": "1"}), 1),
        (Fault("GET", "issues", 403, SECONDARY), 0),
        (Fault("GET", "issues", 429, RATE, {"Retry-After": "1"}), 1),
        (Fault("GET", "issues", 0), 0),
        (Fault("POST", "issues", 403, SECONDARY, {"Retry-After": "1"}), 1),
        (Fault("POST", "issues", 429, SECONDARY, {"Retry-After": "1"}), 1),
        (Fault("PATCH", "issues", 500, {"message": "no"}), 0),
    ],
    ids=lambda value: f"{value.method}-{value.status}" if isinstance(value, Fault) else "",
)
def test_temporary_faults_are_retried(server: GithubServer, fault: Fault, waits: float) -> None:
    """As long as the answer says; and it is done once."""
    server.labels.add(LABEL)
    server.faults.append(fault)
    began = time.monotonic()
    client = tracker(server)
    assert client.issues([]) == []
    client.edit(client.open("a", "b"), "c")
    assert time.monotonic() - began >= waits
    assert fault.times == 0
    assert [one["body"] for one in server.issues.values()] == ["c"]


def test_the_reset_of_a_rate_limit_is_waited_for(server: GithubServer) -> None:
    """The primary one, which says when it ends."""
    reset = {"X-RateLimit-Reset": str(int(time.time()) + 1), "X-RateLimit-Remaining": "0"}
    server.faults.append(Fault("GET", "issues", 403, RATE, reset))
    assert tracker(server).issues([]) == []


def test_a_rate_limit_that_lasts_is_an_error(server: GithubServer) -> None:
    """Nobody waits for an hour; a later run goes on."""
    reset = {"X-RateLimit-Reset": str(int(time.time()) + 3000), "X-RateLimit-Remaining": "0"}
    server.faults.append(Fault("GET", "issues", 403, RATE, reset))
    error = refused(lambda: tracker(server).issues([]))
    assert isinstance(error, InfrastructureError)
    assert "the rate limit would last longer than 600 seconds; run it again later" in str(error)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", "issues$", 0, done=True),
        Fault("POST", "issues$", 502, {"message": "bad gateway"}, done=True),
    ],
    ids=["gone", "502"],
)
def test_a_post_with_a_lost_answer_is_not_repeated(server: GithubServer, fault: Fault) -> None:
    """An issue whose answer was lost is there, and is found by the next run."""
    server.faults.append(fault)
    client = tracker(server)
    error = refused(lambda: client.open("a", "b"))
    assert isinstance(error, InfrastructureError)
    assert "what was done is linked" in str(error)
    assert len(tracker(server).issues([])) == 1


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (Fault("GET", "issues", 401, {"message": "Bad credentials"}), UsageError,
         "GITHUB_TOKEN or GH_TOKEN must hold a token that is valid"),
        (Fault("GET", "issues", 403, {"message": "Resource not accessible by integration"}),
         UsageError, "a token that may read and write its issues"),
        (Fault("GET", "issues", 404, {"message": "Not Found"}), UsageError,
         "expected owner/name of a repository"),
        (Fault("GET", "issues", 410, {"message": "Issues are disabled for this repo"}),
         UsageError, "issues must be enabled in the settings of the repository"),
        (Fault("GET", "issues", 500, {"message": "no"}, times=99), InfrastructureError, "500"),
        (Fault("GET", "issues", 0, times=99), InfrastructureError, "cannot be reached"),
        (Fault("GET", "issues", 200, "<html>a login</html>"), UsageError,
         "does not answer as GitHub does"),
        (Fault("GET", "issues", 200, "{"), UsageError, "does not answer as GitHub does"),
        (Fault("POST", "issues", 422, {"message": f"Validation Failed {TOKEN}"}), RefusedError,
         "cannot open an issue (422): Validation Failed ***"),
        (Fault("PATCH", "issues", 410, {"message": "This issue was deleted"}), RefusedError,
         "cannot edit #1 (410): This issue was deleted; was it deleted or moved?"),
        (Fault("POST", "comments", 403, {"message": "Unable to comment: issue is locked"}),
         RefusedError, "cannot comment on #1 (403)"),
    ],
)  # fmt: skip
def test_faults_are_one_sentence(
    server: GithubServer, fault: Fault, kind: type[ConformanceError], said: str
) -> None:
    """Which says what to do; those of one issue leave the others be."""
    server.faults.append(fault)

    def all_of_it() -> None:
        client = tracker(server)
        client.issues([])
        number = client.open("a", "b")
        client.edit(number, "c")
        client.comment(number, "d")

    error = refused(all_of_it)
    assert type(error) is kind or isinstance(error, RefusedError) is (kind is RefusedError)
    assert said in str(error)
    assert error.exit_code == kind.exit_code


def test_a_missing_repository_is_an_error(server: GithubServer) -> None:
    """Or that the token must not see."""
    client = tracker(server, repository="owner/none")
    error = refused(lambda: client.issues([]))
    assert isinstance(error, UsageError)
    assert "github: owner/none: cannot read its issues (404)" in str(error)


def test_a_server_that_does_not_answer_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """A port that is closed; of what was tried again nothing is logged."""
    client = GithubTracker(REPOSITORY, TOKEN, "http://127.0.0.1:9", LABEL, pytest.fail)
    error = refused(lambda: client.issues([]))
    assert isinstance(error, InfrastructureError)
    assert "127.0.0.1 cannot be reached to read its issues" in str(error)
    assert [one for one in caplog.records if one.levelname != "DEBUG"] == []


@pytest.mark.parametrize("api", ["http://github.example", "ftp://127.0.0.1", "github.example", ""])
def test_a_token_is_not_sent_in_the_clear(api: str) -> None:
    """But to this host; what is no address is told."""
    with pytest.raises(UsageError, match=re.escape(f"--api {api}: expected https://HOST/PATH")):
        GithubTracker(REPOSITORY, TOKEN, api, LABEL, pytest.fail)


def test_a_page_elsewhere_is_not_followed(server: GithubServer) -> None:
    """The token would go there."""
    page = [server.add("one", "", LABEL)]
    elsewhere = {"Link": '<https://other.example/next>; rel="next"'}
    server.faults.append(Fault("GET", "issues", 200, page, elsewhere))
    assert "does not answer as GitHub does" in str(refused(lambda: tracker(server).issues([])))


def test_writes_keep_a_second_apart(server: GithubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As GitHub wants it, by default."""
    monkeypatch.undo()
    assert github.BETWEEN_WRITES == 1
    server.labels.add(LABEL)
    client = tracker(server)
    client.open("a", "b")
    began = time.monotonic()
    client.open("c", "d")
    assert time.monotonic() - began > 0.8
