"""`conformance suite history`: runs combined into stored data and a page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.holders import another_writer
from tests.report.suite_runs import SUITE, suite_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


DEFINITION = """\
title = "Signs of zeros"
url = "https://example.org/signs.git"
revision = "5555555555555555555555555555555555555555"
licence = "MIT"
paths = ["tests"]
"""
GROUPS = """\
[[tests]]
match = 'test_(?P<function>\\w+)'

[functions]
signs = ["one", "last"]
"""
OLD, NEW = ("0.5.3", "0.6.2"), ("0.6.2", "0.7.0")
DATA, PAGE = "reports/signs-of-zeros.json", "reports/signs-of-zeros.md"


pytestmark = pytest.mark.project(
    {"suites/signs/suite.toml": DEFINITION, "suites/signs/groups.toml": GROUPS}
)
"""A project with a named suite."""


def make_run(
    project: Project, name: str, releases: tuple[str, ...], letters: str, **info: Any
) -> Path:
    """Make a run of the suite."""
    folder = project.path / "reports" / "runs" / name
    tests = {"t/z.py::test_last": letters[::-1], "t/a.py::test_one": letters}
    return suite_run(folder, releases, tests, **info).run.path


def read_files(project: Project) -> tuple[str, str]:
    """Return the stored data and the page."""
    data, page = (project.path / name for name in (DATA, PAGE))
    return data.read_text("utf-8"), page.read_text("utf-8")


def test_history_adds_releases_of_further_runs(project: Project) -> None:
    """Adding a run again changes nothing."""
    first = make_run(project, "a", OLD, "pk")
    ending = project.run("suite", "history", "signs", first)
    assert (ending.code, ending.err) == (0, "")
    assert ending.out.startswith("2 releases; written: ")
    kept = read_files(project)
    second = make_run(project, "b", NEW, "kp")
    ending = project.run("suite", "history", "signs", second)
    assert ending.out.startswith("3 releases, 0.7.0 new; written: ")
    both = read_files(project)
    assert both != kept
    assert "| 0.7.0 | 2025-07-22 |" in both[1]
    assert "| release | signs |" in both[1]
    project.run("suite", "history", "signs", second, first)  # of 0.6.2 the later run counts
    assert read_files(project) == both
    assert project.run("suite", "history", "signs", project.path / "reports/runs").code == 0
    assert read_files(project) == both


def test_history_waits_for_another_writer(project: Project) -> None:
    """`--check` only reads and does not wait."""
    first, more = make_run(project, "a", OLD, "pk"), make_run(project, "b", NEW, "pkp")
    assert project.run("suite", "history", "signs", first).code == 0
    with another_writer(project.path / "reports", 2) as released:
        assert project.run("suite", "history", "signs", "--check").code == 0
        assert not released.is_set()
        assert project.run("suite", "history", "signs", more).code == 0
        assert released.is_set()


def test_history_check_detects_an_outdated_page(project: Project) -> None:
    """It names the command that regenerates it, and writes nothing."""
    assert "there are no data" in project.run("suite", "history", "signs", "--check").error
    project.run("suite", "history", "signs", make_run(project, "a", OLD, "pk"))
    assert project.run("suite", "history", "signs", "--check").code == 0
    page = project.path / PAGE
    page.write_text(page.read_text("utf-8").replace("0.6.2", "0.6.1"))
    ending = project.run("suite", "history", "signs", "--check")
    assert ending.code == 1
    assert "signs-of-zeros.md: differs from the data" in ending.error
    assert ending.error.endswith("regenerate it: conformance suite history signs")
    assert project.run("suite", "history", "signs").code == 0
    assert project.run("suite", "history", "signs", "--check").code == 0


def test_tests_without_a_group_are_reported(project: Project) -> None:
    """On the page they are in the group `other`."""
    project.write({"suites/signs/groups.toml": ""})
    ending = project.run("suite", "history", "signs", make_run(project, "a", OLD, "pk"))
    assert ending.error == "2 tests in no group, such as t/a.py::test_one"
    assert "| release | other |" in read_files(project)[1]


@pytest.mark.parametrize(
    ("change", "info", "message"),
    [
        ({"complete": False}, {}, "only a part of the suite was asked for; run the suite whole"),
        ({}, {"finished": ""}, "it did not end; run the suite whole, and to its end: conformance"),
        ({"name": "other"}, {}, "is a run of other, expected signs"),
        ({"revision": "6" * 40}, {}, "another revision: 5+ is what is kept, 6+ what is new; keep"),
        ({"settings": {"seed": 3}}, {}, "another settings: .*; keep it under another --file"),
    ],
)
def test_history_refuses_runs_it_cannot_combine(
    project: Project, change: dict[str, Any], info: dict[str, Any], message: str
) -> None:
    """The message has a remedy, and nothing is written."""
    project.run("suite", "history", "signs", make_run(project, "a", OLD, "pk"))
    before = read_files(project)
    other = make_run(project, "b", NEW, "pp", suite=replace(SUITE, **change), **info)
    ending = project.run("suite", "history", "signs", other)
    assert ending.code == 2
    assert re.search(message, ending.error)
    assert read_files(project) == before


def test_history_of_a_folder_skips_other_and_incomplete_runs(project: Project) -> None:
    """Incomplete runs are reported."""
    make_run(project, "a", OLD, "pk")
    make_run(project, "b", NEW, "pp", suite=replace(SUITE, name="other"))
    make_run(project, "c", NEW, "pp", finished="")
    make_run(project, "d", NEW, "pp", suite=replace(SUITE, settings={"max_examples": 50}))
    ending = project.run("suite", "history", "signs", "reports/runs")
    assert ending.out.startswith("2 releases; written: ")
    first, second = ending.err.splitlines()
    assert first == "conformance: c: is passed over: it did not end"
    assert second.startswith("conformance: d: is passed over: another settings: ")


def test_invalid_arguments_of_history_are_refused(project: Project) -> None:
    """One line each."""
    for arguments, message in (
        (("nothing",), "nothing: no such suite, expected one of signs"),
        (("signs", project.path), "expected the directory of a run"),
        (("signs", "--file", "x.toml"), "expected a name that ends in .json"),
        (("signs", project.path, "--check"), "give it no run"),
    ):
        ending = project.run("suite", "history", *arguments)
        assert ending.code == 2
        assert message in ending.err
    project.write({DATA: "{"})
    assert (
        "expected the data of a conformance history"
        in project.run("suite", "history", "signs").error
    )


def test_site_shows_stored_releases_of_a_suite(project: Project) -> None:
    """In addition to those of the run."""
    project.run("suite", "history", "signs", make_run(project, "a", OLD, "pk"))
    suite = replace(SUITE, title="Signs of zeros")
    project.run("report", make_run(project, "b", NEW, "kp", suite=suite), "--out", "site")
    page = (project.path / "site" / "suites" / "signs.html").read_text("utf-8")
    assert "jax 0.5.3 to 0.7.0" in page
