"""`conformance notify`: against a server that speaks GitHub's REST, from the command line."""

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


def bad(case: str = "f/a", reason: str = REASON) -> Any:
    """Return a job that is unexpected, and was repeated."""
    return record(case, A, Verdict.REGRESSED, reasons=(reason,), attempts=3)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GithubServer]:
    """A server of one repository, and a client that does not wait."""
    monkeypatch.setattr(github, "BETWEEN_WRITES", 0)
    monkeypatch.setattr(github, "BACKOFF", 0.01)
    yield from served()


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch, server: GithubServer) -> Project:
    """A project without cases, whose runs are project by hand; a token, and a server."""
    for name in ("CONFORMANCE_STORE", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    return project


def night(project: Project, day: int, *records: Any, **info: Any) -> Path:
    """Make a run of some jobs, and add it to the store."""
    said = {
        "started": f"2026-05-{day:02}T03:00:00+00:00", "finished": f"2026-05-{day:02}T04:00:00Z",
        **info,
    }  # fmt: skip
    path = write(project.path / "reports" / "runs" / f"night-{day:02}", *records, **said).path
    assert project.run("history", "add").code == (0 if said["finished"] else ExitCode.NOTHING)
    return path


def notify(project: Project, *arguments: str | Path) -> Ending:
    """Run the command; it never prints the token."""
    ending = project.run("notify", "--github", REPOSITORY, *arguments)
    assert TOKEN not in ending.out + ending.err
    return ending


def test_nothing_is_done_without_yes(project: Project, server: GithubServer) -> None:
    """It is only said; with --yes it is done, once, and the store knows."""
    night(project, 1, bad())
    ending = notify(project)
    assert (ending.code, ending.err) == (0, "")
    first, last = ending.out.splitlines()
    assert first.startswith(f"open f/a regressed: {REASON} (")
    assert last == "nothing was done; --yes does it"
    assert server.writes == []
    ending = notify(project, "--yes", "--url", "https://owner.example/site")
    assert (ending.code, ending.err) == (0, "")
    assert ending.out.startswith(f"open #1 f/a regressed: {REASON} (")
    assert "https://owner.example/site/causes.html" in server.issues[1]["body"]
    known = project.run("history", "regressions").out
    assert known.startswith("known")
    assert "owner/repo#1" in known
    ending = notify(project, "--yes", "--url", "https://owner.example/site")
    assert ending.out == "1 root cause: nothing to do\n"
    assert len(server.issues) == 1


def test_two_at_once_open_an_issue_once(project: Project, server: GithubServer) -> None:
    """The second waits, and then finds it open and linked."""
    night(project, 1, bad())
    both = [project.start("notify", "--github", REPOSITORY, "--yes") for _ in range(2)]
    said = sorted(process.communicate()[0].split()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert said == ["1", "open"]  # `1 root cause: nothing to do`
    assert len(server.issues) == 1


def test_night_after_night(project: Project, server: GithubServer) -> None:
    """Opened, seen by a second night, fixed, back."""
    said = []
    for day, job in enumerate((bad(), bad(), FINE, bad()), 1):
        night(project, day, job)
        server.now = server.now.replace(day=day, hour=6)
        said.append(notify(project, "--yes").out.partition(" (")[0].splitlines()[0])
    assert said == [
        f"open #1 f/a regressed: {REASON}", "1 root cause: nothing to do", "close #1", "reopen #1",
    ]  # fmt: skip
    assert server.issues[1]["state"] == "open"
    assert [text.split()[0] for text in server.comments[1]] == ["Fixed:", "This"]


def test_json(project: Project, server: GithubServer) -> None:
    """Every action, also those that do nothing; the lines go elsewhere."""
    path = night(project, 1, bad(), bad("g/b", "other"))
    ending = notify(project, path, "--yes", "--limit", "1", "--json", "-")
    data = ending.json
    assert (data["run"], data["repository"], data["done"]) == ("night-01", REPOSITORY, True)
    assert [(one["kind"], one["issue"]) for one in data["actions"]] == [("open", 1), ("hold", None)]
    assert data["actions"][0]["title"] == server.issues[1]["title"]
    assert "1 root cause held back by --limit 1" in ending.err
    notify(project, "--json", "actions.json")
    kept = json.loads((project.path / "actions.json").read_text())
    assert [one["kind"] for one in kept["actions"]] == ["nothing", "open"]
    assert kept["done"] is False


def test_from_the_store_alone(project: Project, server: GithubServer) -> None:
    """Without a repository nothing is asked of anybody."""
    night(project, 1, bad())
    ending = project.run("notify")
    assert ending.code == 0
    assert ending.out.startswith("open f/a regressed")
    assert server.requests == []
    night(project, 2, FINE)
    assert project.run("notify").out == "nothing to report\n"
    ending = project.run("notify", "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--yes: expected --github OWNER/REPO with it"


def test_a_token_is_needed_to_write_alone(
    project: Project, server: GithubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From either variable; one that is refused is never shown."""
    night(project, 1, bad())
    monkeypatch.delenv("GITHUB_TOKEN")
    assert notify(project).code == 0
    ending = notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--yes: expected a token in GITHUB_TOKEN or GH_TOKEN"
    monkeypatch.setenv("GH_TOKEN", "ghp_another_one")
    ending = notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert "(401): Bad credentials" in ending.error
    assert "ghp_another_one" not in ending.err
    monkeypatch.setenv("GH_TOKEN", f" {TOKEN}\n")
    assert notify(project, "--yes").code == 0
    assert len(server.issues) == 1


def test_what_was_done_is_told_when_the_network_goes(
    project: Project, server: GithubServer
) -> None:
    """And linked: the next run goes on."""
    night(project, 1, bad(), bad("g/b", "other"), bad("h/c", "another"))
    gone = Fault("POST", "issues$", 0, after=1)
    server.faults.append(gone)
    ending = notify(project, "--yes")
    assert ending.code == ExitCode.INFRA
    assert "cannot be reached to open an issue" in ending.error
    (line,) = ending.out.splitlines()
    assert line.startswith(f"open #1 f/a regressed: {REASON} (")
    assert line.endswith(": seen in 1 job)")
    assert len(server.issues) == 1
    ending = notify(project, "--yes")
    assert [line.split()[:2] for line in ending.out.splitlines()[:2]] == [
        ["open", "#2"], ["open", "#3"]
    ]  # fmt: skip
    assert len(server.issues) == 3


def test_one_issue_that_is_refused(project: Project, server: GithubServer) -> None:
    """The others are opened; exit status 2."""
    night(project, 1, bad(), bad("g/b", "other"))
    server.faults.append(Fault("POST", "issues$", 422, {"message": "Validation Failed"}))
    ending = notify(project, "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.error.endswith("cannot open an issue (422): Validation Failed")
    assert ending.out.startswith("open #1 g/b regressed: other (")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--github", "owner"], "--github owner: expected OWNER/REPO"),
        (["--github", REPOSITORY, "--url", "a b"], "--url a b: expected http://... or https://..."),
        (["--github", REPOSITORY, "--label", "a,b"],
         "--label a,b: expected at most 50 characters without a comma"),
        (["--github", REPOSITORY, "--api", "http://github.example"],
         "--api http://github.example: expected https://HOST/PATH"),
    ],
)  # fmt: skip
def test_arguments(project: Project, arguments: list[str], said: str) -> None:
    """What is wrong is one sentence."""
    ending = project.run("notify", *arguments)
    assert (ending.code, ending.error) == (ExitCode.USAGE, said)


def test_the_client_is_an_extra(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed that is said, and how to."""
    monkeypatch.setattr("conformance.app.notification.find_spec", lambda _: None)
    ending = notify(project)
    assert ending.code == ExitCode.USAGE
    assert ending.error == "--github: needs PyGithub; pip install 'jax-conformance[github]'"


def test_runs_that_cannot_be_told(project: Project) -> None:
    """One that did not end, one that is not in the store, none at all."""
    ending = notify(project)
    assert ending.code == ExitCode.USAGE
    assert "holds no run, expected one" in ending.error
    half = night(project, 1, bad(), finished="", exit=None)
    ending = notify(project)
    assert ending.code == ExitCode.USAGE
    assert ending.error.endswith(f"conformance run --resume --run {half}")
    write(project.path / "reports" / "runs" / "night-02", bad())
    ending = notify(project)
    assert ending.code == ExitCode.USAGE
    problem = "is not in the store, expected a run of its history; conformance history add"
    assert problem in ending.error
