"""`conformance notify` against a fake GitHub REST server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.model.outcome import ExitCode, Verdict
from conformance.notify import github
from tests.engine.written_runs import A, record, write
from tests.notify.github_server import REPOSITORY, TOKEN, Fault, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notify.github_server import GithubServer
    from tests.projects import Ending, Project


REASON = "out[0] differs in 12 elements"
FINE = record("f/a", A)


def regressed_job(case: str = "f/a", reason: str = REASON) -> Any:
    """Return the record of a regressed job with several attempts."""
    return record(case, A, Verdict.REGRESSED, reasons=(reason,), attempts=3)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GithubServer]:
    """A server of one repository, and a client without delays."""
    monkeypatch.setattr(github, "BETWEEN_WRITES", 0)
    monkeypatch.setattr(github, "BACKOFF", 0.01)
    yield from served()


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch, server: GithubServer) -> Project:
    """A project without cases, with a token and a server; tests write its runs directly."""
    for name in ("CONFORMANCE_STORE", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    return project


def add_run(project: Project, day: int, *records: Any, **info: Any) -> Path:
    """Make a run of some jobs, and add it to the store."""
    fields = {
        "started": f"2026-05-{day:02}T03:00:00+00:00", "finished": f"2026-05-{day:02}T04:00:00Z",
        **info,
    }  # fmt: skip
    path = write(project.path / "reports" / "runs" / f"night-{day:02}", *records, **fields).path
    assert project.run("history", "add").code == (0 if fields["finished"] else ExitCode.NOTHING)
    return path


def run_notify(project: Project, *arguments: str | Path) -> Ending:
    """Run the command, and check that it does not print the token."""
    ending = project.run("notify", "--github", REPOSITORY, *arguments)
    assert TOKEN not in ending.out + ending.err
    return ending


def test_notify_without_yes_only_prints_the_actions(project: Project, server: GithubServer) -> None:
    """With `--yes` they are done once and linked in the store."""
    add_run(project, 1, regressed_job())
    ending = run_notify(project)
    assert (ending.code, ending.err) == (0, "")
    first, last = ending.out.splitlines()
    assert first.startswith(f"open f/a regressed: {REASON} (")
    assert last == "nothing was done; --yes does it"
    assert server.writes == []
    ending = run_notify(project, "--yes", "--url", "https://owner.example/site")
    assert (ending.code, ending.err) == (0, "")
    assert ending.out.startswith(f"open #1 f/a regressed: {REASON} (")
    assert "https://owner.example/site/causes.html" in server.issues[1]["body"]
    known = project.run("history", "regressions").out
    assert known.startswith("known")
    assert "owner/repo#1" in known
    ending = run_notify(project, "--yes", "--url", "https://owner.example/site")
    assert ending.out == "1 root cause: nothing to do\n"
    assert len(server.issues) == 1


def test_two_notify_processes_open_an_issue_once(project: Project, server: GithubServer) -> None:
    """The second waits for the first and finds the issue."""
    add_run(project, 1, regressed_job())
    both = [project.start("notify", "--github", REPOSITORY, "--yes") for _ in range(2)]
    first_words = sorted(process.communicate()[0].split()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert first_words == ["1", "open"]  # `1 root cause: nothing to do`
    assert len(server.issues) == 1


def test_issue_is_opened_closed_and_reopened(project: Project, server: GithubServer) -> None:
    """Seen twice, fixed, and back."""
    actions = []
    for day, job in enumerate((regressed_job(), regressed_job(), FINE, regressed_job()), 1):
        add_run(project, day, job)
        server.now = server.now.replace(day=day, hour=6)
        actions.append(run_notify(project, "--yes").out.partition(" (")[0].splitlines()[0])
    assert actions == [
        f"open #1 f/a regressed: {REASON}", "1 root cause: nothing to do", "close #1", "reopen #1",
    ]  # fmt: skip
    assert server.issues[1]["state"] == "open"
    assert [text.split()[0] for text in server.comments[1]] == ["Fixed:", "This"]


def test_notify_json_lists_every_action(project: Project, server: GithubServer) -> None:
    """Also those that do nothing; text goes to standard error."""
    path = add_run(project, 1, regressed_job(), regressed_job("g/b", "other"))
    ending = run_notify(project, path, "--yes", "--limit", "1", "--json", "-")
    data = ending.json
    assert (data["run"], data["repository"], data["done"]) == ("night-01", REPOSITORY, True)
    assert [(one["kind"], one["issue"]) for one in data["actions"]] == [("open", 1), ("hold", None)]
    assert data["actions"][0]["title"] == server.issues[1]["title"]
    assert "1 root cause held back by --limit 1" in ending.err
    run_notify(project, "--json", "actions.json")
    kept = json.loads((project.path / "actions.json").read_text())
    assert [one["kind"] for one in kept["actions"]] == ["nothing", "open"]
    assert kept["done"] is False


def test_notify_without_repository_sends_no_request(project: Project, server: GithubServer) -> None:
    """The actions are derived from the store."""
    add_run(project, 1, regressed_job())
    ending = project.run("notify")
    assert ending.code == 0
    assert ending.out.startswith("open f/a regressed")
    assert server.requests == []
    add_run(project, 2, FINE)
    assert project.run("notify").out == "nothing to report\n"
    ending = project.run("notify", "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--yes: expected --github OWNER/REPO with it"


def test_token_is_required_only_to_write(
    project: Project, server: GithubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From either variable; a rejected token is never printed."""
    add_run(project, 1, regressed_job())
    monkeypatch.delenv("GITHUB_TOKEN")
    assert run_notify(project).code == 0
    ending = run_notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--yes: expected a token in GITHUB_TOKEN or GH_TOKEN"
    monkeypatch.setenv("GH_TOKEN", "ghp_another_one")
    ending = run_notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert "(401): Bad credentials" in ending.error
    assert "ghp_another_one" not in ending.err
    monkeypatch.setenv("GH_TOKEN", f" {TOKEN}\n")
    assert run_notify(project, "--yes").code == 0
    assert len(server.issues) == 1


def test_issues_opened_before_a_network_error_are_linked(
    project: Project, server: GithubServer
) -> None:
    """The next run opens only the others."""
    add_run(
        project, 1, regressed_job(), regressed_job("g/b", "other"), regressed_job("h/c", "another")
    )
    gone = Fault("POST", "issues$", 0, after=1)
    server.faults.append(gone)
    ending = run_notify(project, "--yes")
    assert ending.code == ExitCode.INFRA
    assert "cannot be reached to open an issue" in ending.error
    (line,) = ending.out.splitlines()
    assert line.startswith(f"open #1 f/a regressed: {REASON} (")
    assert line.endswith(": seen in 1 job)")
    assert len(server.issues) == 1
    ending = run_notify(project, "--yes")
    assert [line.split()[:2] for line in ending.out.splitlines()[:2]] == [
        ["open", "#2"], ["open", "#3"]
    ]  # fmt: skip
    assert len(server.issues) == 3


def test_rejected_issue_does_not_stop_the_others(project: Project, server: GithubServer) -> None:
    """Exit status 2."""
    add_run(project, 1, regressed_job(), regressed_job("g/b", "other"))
    server.faults.append(Fault("POST", "issues$", 422, {"message": "Validation Failed"}))
    ending = run_notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error.endswith("cannot open an issue (422): Validation Failed")
    assert ending.out.startswith("open #1 g/b regressed: other (")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--github", "owner"], "--github owner: expected OWNER/REPO"),
        (["--github", REPOSITORY, "--url", "a b"], "--url a b: expected http://... or https://..."),
        (["--github", REPOSITORY, "--label", "a,b"],
         "--label a,b: expected at most 50 characters without a comma"),
        (["--github", REPOSITORY, "--api", "http://github.example"],
         "--api http://github.example: expected https://HOST/PATH"),
    ],
)  # fmt: skip
def test_invalid_arguments_of_notify_are_refused(
    project: Project, arguments: list[str], message: str
) -> None:
    """One line each."""
    ending = project.run("notify", *arguments)
    assert (ending.code, ending.error) == (ExitCode.USAGE, message)


def test_missing_pygithub_names_the_extra_to_install(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyGithub is an optional dependency."""
    monkeypatch.setattr("conformance.app.notification.find_spec", lambda _: None)
    ending = run_notify(project)
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--github: needs PyGithub; pip install 'jax-conformance[github]'"


def test_notify_refuses_missing_unfinished_and_unstored_runs(project: Project) -> None:
    """The message names the command that repairs it."""
    ending = run_notify(project)
    assert ending.code == ExitCode.USAGE
    assert "holds no run, expected one" in ending.error
    half = add_run(project, 1, regressed_job(), finished="", exit=None)
    ending = run_notify(project)
    assert ending.code == ExitCode.USAGE
    assert ending.error.endswith(f"conformance run --resume --run {half}")
    write(project.path / "reports" / "runs" / "night-02", regressed_job())
    ending = run_notify(project)
    assert ending.code == ExitCode.USAGE
    problem = "is not in the store, expected a run of its history; conformance history add"
    assert problem in ending.error
