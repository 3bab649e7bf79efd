"""`conformance fuzz`: campaigns from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.fuzz import campaign
from tests.workbench import NEWEST

if TYPE_CHECKING:
    from tests.projects import Project

pytestmark = pytest.mark.cell


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a few programs."""
    monkeypatch.setattr(campaign, "PROGRAMS", 20)


@pytest.mark.long
def test_a_release_has_no_findings_against_itself(project: Project) -> None:
    """The folder has the log and a page; it cannot be used again without --resume."""
    short = ("fuzz", "--cell", NEWEST, "--minutes", "0.001", "--run", "here")
    ended = project.run(*short, "--json", "c.json")
    assert ended.code == 0, ended.err
    assert "programs are valid" in ended.out
    found = json.loads((project.path / "c.json").read_text())
    assert found["findings"] == []
    assert found["programs"] > 10
    assert {file.name for file in (project.path / "here").iterdir()} == {
        "campaign.json", "rounds.jsonl", "findings.md",
    }  # fmt: skip
    again = project.run(*short)
    assert again.code == 2
    assert "has a campaign: add --resume, or name another folder" in again.error
    assert project.run(*short, "--resume").code == 0


def test_a_night_without_minutes_runs_nothing(project: Project) -> None:
    """Not even the index of nightlies is read."""
    ended = project.run("fuzz", "--cell", "nightly-1", "--cell", "nightly", "--minutes", "0")
    assert (ended.code, ended.out) == (0, "no campaign: --minutes 0\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ops", "jnp.unknown"), "--ops jnp.unknown: matches none of"),
        (("--cell", f"{NEWEST}@tpu:v5e:2x2"), "fuzz runs programs on CPU"),
        (("--from", "0.12.0", "--to", "0.6.0"), "older"),
        (("--resume", "--run", "nowhere"), "nowhere has no campaign"),
    ],
)
def test_wrong_input_is_one_clear_error(
    project: Project, options: tuple[str, ...], message: str
) -> None:
    """Before anything runs."""
    ended = project.run("fuzz", *options)
    assert ended.code == 2
    assert message in ended.error
