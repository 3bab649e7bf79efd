"""Workflows: as their schema has them, pinned, with as few rights as they need; and thin."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from ruamel.yaml import YAML

from conformance.cli import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.y*ml"))
SCAN = ROOT / "examples" / "code-scanning" / "scan.yml"
"""For projects that have their own code scanned."""
PINNED = re.compile(r"uses: (?P<action>[\w./-]+)@(?P<sha>[0-9a-f]{40}) # v\d+(\.\d+)*")
LINES = 1
"""Of shell that a step may have."""

every_file = pytest.mark.parametrize("file", [*FILES, SCAN], ids=lambda file: file.name)


def read(file: Path) -> Any:
    """Return a workflow."""
    return YAML(typ="safe").load(file.read_text())


def steps(file: Path) -> Iterator[dict[str, Any]]:
    """Yield every step of a workflow."""
    for job in read(file)["jobs"].values():
        yield from job["steps"]


def run(*command: str | Path) -> str:
    """Run a tool of this environment, and return what is wrong by it."""
    ending = subprocess.run(
        [str(Path(sys.executable).with_name(str(command[0]))), *map(str, command[1:])],
        check=False, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    return "" if ending.returncode == 0 else ending.stdout + ending.stderr


def test_workflows_are_what_their_schema_says() -> None:
    """By a copy of the schema: nothing is asked of the network."""
    assert [file.name for file in FILES] == ["nightly.yml", "pull-request.yml"]
    assert (
        run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *FILES, SCAN) == ""
    )


def test_nothing_in_them_is_unsafe() -> None:
    """By a linter: injection into shells, credentials that stay, rights that are too wide."""
    assert run("zizmor", "--offline", "--no-progress", "--persona", "pedantic", FOLDER, SCAN) == ""


def test_tox_lints_all_of_them() -> None:
    """Each is named there; the versions are those of the tests."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    lint = config["testenv:lint"]
    assert all(f".github/workflows/{file.name}" in lint["commands"] for file in FILES)
    assert "zizmor" in lint["commands"]


@every_file
def test_actions_are_pinned(file: Path) -> None:
    """By the digest of a commit, with the release it is in a comment; everywhere the same."""
    lines = [line for line in file.read_text().splitlines() if "uses:" in line]
    assert lines
    assert all(PINNED.search(line) for line in lines), lines


def test_an_action_is_everywhere_the_same() -> None:
    """One release of each, and of its parts."""
    found: dict[str, set[str]] = {}
    for file in [*FILES, SCAN]:
        for match in PINNED.finditer(file.read_text()):
            action = "/".join(match["action"].split("/")[:2])
            found.setdefault(action, set()).add(match[0].partition("@")[2])
    assert {action: len(pins) for action, pins in found.items()} == dict.fromkeys(found, 1)


@every_file
def test_rights_are_given_job_by_job(file: Path) -> None:
    """None by default; the only ones that write open issues, publish pages or show hits."""
    workflow = read(file)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        writes = {right for right, kind in job["permissions"].items() if kind != "read"}
        may = {
            "notify": {"issues"},
            "pages": {"pages", "id-token"},
            "scan": {"security-events"},
        }.get(name, set())
        assert writes == may, name


@every_file
def test_nothing_runs_for_ever_or_beside_itself(file: Path) -> None:
    """Every job has a limit of time; two nights at once would share a history."""
    workflow = read(file)
    assert all(0 < job["timeout-minutes"] <= 360 for job in workflow["jobs"].values())
    assert workflow["concurrency"]["group"]


def test_a_night_is_not_cancelled_by_the_next() -> None:
    """It waits."""
    concurrency = read(FOLDER / "nightly.yml")["concurrency"]
    assert concurrency == {"group": "nightly", "cancel-in-progress": False}


@every_file
def test_shells_are_thin(file: Path) -> None:
    """A line a step, without expressions in it: these would be pasted into the shell."""
    for step in steps(file):
        script = step.get("run", "")
        assert len(script.splitlines()) <= LINES, script
        assert "${{" not in script
        assert not re.search(r"\bif\b|\bfor\b|&&|\|\||;|[^|]\|[^|]", script), script


@every_file
def test_secrets_are_given_step_by_step(file: Path) -> None:
    """A whole job that knows one hands it to the code of the night."""
    workflow = read(file)
    around = [workflow.get("env", {}), *(job.get("env", {}) for job in workflow["jobs"].values())]
    assert not re.search(r"secrets\.|github\.token", str(around))
    for step in steps(file):
        if re.search(r"secrets\.|github\.token", str(step)):
            assert re.match(r"conformance (merge|history|report|notify)\b", step["run"]), step


@every_file
def test_checkouts_leave_no_token_behind(file: Path) -> None:
    """What runs later could read it."""
    checkouts = [step for step in steps(file) if "actions/checkout@" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def calls() -> Iterator[list[str]]:
    """Yield every call of the command line in workflows and in `tox -e nightly`."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    local = config["testenv:nightly"]["commands"].replace("\\\n", " ").splitlines()
    scripts = [step.get("run", "") for file in [*FILES, SCAN] for step in steps(file)]
    for script in [*scripts, *local]:
        for match in re.finditer(r"conformance ([a-z][^)]*)", script):
            yield shlex.split(re.sub(r"\{[^{}]*\}", "", match[1]))


def test_the_command_line_has_what_they_call() -> None:
    """Every subcommand and every option."""
    found = list(calls())
    assert {"plan", "run", "merge", "history", "triage", "report", "notify"} <= {
        words[0] for words in found
    }
    for words in found:
        command = cli.get_command(click.Context(cli), words[0])
        if isinstance(command, click.Group):
            command = command.commands[words[1]]
        assert command is not None, words
        options = {option for one in command.params for option in one.opts}
        assert {word for word in words if word.startswith("-")} <= options, words


def test_the_night_on_one_machine_is_the_same_night() -> None:
    """The same commands in the same order; but it opens no issue."""
    order = ["history", "bench", "triage", "report", "notify"]
    nightly = [
        words[0]
        for step in steps(FOLDER / "nightly.yml")
        if (words := step.get("run", "").split()[1:]) and step["run"].startswith("conformance")
    ]
    assert nightly == ["fuzz", "ecosystem", "run", "merge", *order]
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    local = re.findall(
        r"^(?:- )?conformance (\w+)", config["testenv:nightly"]["commands"], re.MULTILINE
    )
    assert local == ["fuzz", "ecosystem", "run", *order]
    assert "--yes" not in config["testenv:nightly"]["commands"]
