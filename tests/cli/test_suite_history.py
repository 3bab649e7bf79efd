"""`conformance suite history`: runs made by hand, put together and kept."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.holders import another_writer
from tests.report.suites import SUITE, suite_run

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


def run(project: Project, name: str, releases: tuple[str, ...], letters: str, **info: Any) -> Path:
    """Make a run of the suite."""
    folder = project.path / "reports" / "runs" / name
    tests = {"t/z.py::test_last": letters[::-1], "t/a.py::test_one": letters}
    return suite_run(folder, releases, tests, **info).run.path


def files(project: Project) -> tuple[str, str]:
    """Return what is kept: data and page."""
    data, page = (project.path / name for name in (DATA, PAGE))
    return data.read_text("utf-8"), page.read_text("utf-8")


def test_releases_come_to_those_that_are_kept(project: Project) -> None:
    """A run of more releases need not run the others again; the same run changes nothing."""
    first = run(project, "a", OLD, "pk")
    ending = project.run("suite", "history", "signs", first)
    assert (ending.code, ending.err) == (0, "")
    assert ending.out.startswith("2 releases; written: ")
    kept = files(project)
    second = run(project, "b", NEW, "kp")
    ending = project.run("suite", "history", "signs", second)
    assert ending.out.startswith("3 releases, 0.7.0 new; written: ")
    both = files(project)
    assert both != kept
    assert "| 0.7.0 | 2025-07-22 |" in both[1]
    assert "| release | signs |" in both[1]
    project.run("suite", "history", "signs", second, first)  # of 0.6.2 the later run counts
    assert files(project) == both
    assert project.run("suite", "history", "signs", project.path / "reports/runs").code == 0
    assert files(project) == both


def test_releases_that_another_process_adds_are_kept(project: Project) -> None:
    """Who writes the data waits, and adds to them; who only compares them does not wait."""
    first, more = run(project, "a", OLD, "pk"), run(project, "b", NEW, "pkp")
    assert project.run("suite", "history", "signs", first).code == 0
    with another_writer(project.path / "reports", 2) as released:
        assert project.run("suite", "history", "signs", "--check").code == 0
        assert not released.is_set()
        assert project.run("suite", "history", "signs", more).code == 0
        assert released.is_set()


def test_the_page_is_what_the_data_give(project: Project) -> None:
    """As CI asks: it says what to do, and writes nothing."""
    assert "there are no data" in project.run("suite", "history", "signs", "--check").error
    project.run("suite", "history", "signs", run(project, "a", OLD, "pk"))
    assert project.run("suite", "history", "signs", "--check").code == 0
    page = project.path / PAGE
    page.write_text(page.read_text("utf-8").replace("0.6.2", "0.6.1"))
    ending = project.run("suite", "history", "signs", "--check")
    assert ending.code == 1
    assert "signs-of-zeros.md: differs from the data" in ending.error
    assert ending.error.endswith("regenerate it: conformance suite history signs")
    assert project.run("suite", "history", "signs").code == 0
    assert project.run("suite", "history", "signs", "--check").code == 0


def test_tests_of_no_group_are_told(project: Project) -> None:
    """They are in the page, under other."""
    project.write({"suites/signs/groups.toml": ""})
    ending = project.run("suite", "history", "signs", run(project, "a", OLD, "pk"))
    assert ending.error == "2 tests in no group, such as t/a.py::test_one"
    assert "| release | other |" in files(project)[1]


@pytest.mark.parametrize(
    ("change", "info", "said"),
    [
        ({"complete": False}, {}, "only a part of the suite was asked for; run the suite whole"),
        ({}, {"finished": ""}, "it did not end; run the suite whole, and to its end: conformance"),
        ({"name": "other"}, {}, "is a run of other, expected signs"),
        ({"revision": "6" * 40}, {}, "another revision: 5+ is what is kept, 6+ what is new; keep"),
        ({"settings": {"seed": 3}}, {}, "another settings: .*; keep it under another --file"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    project: Project, change: dict[str, Any], info: dict[str, Any], said: str
) -> None:
    """With what to do; nothing is written."""
    project.run("suite", "history", "signs", run(project, "a", OLD, "pk"))
    before = files(project)
    other = run(project, "b", NEW, "pp", suite=replace(SUITE, **change), **info)
    ending = project.run("suite", "history", "signs", other)
    assert ending.code == 2
    assert re.search(said, ending.error)
    assert files(project) == before


def test_a_folder_holds_runs_of_all_kinds(project: Project) -> None:
    """Those of other suites are passed over, and those that are not complete are told of."""
    run(project, "a", OLD, "pk")
    run(project, "b", NEW, "pp", suite=replace(SUITE, name="other"))
    run(project, "c", NEW, "pp", finished="")
    run(project, "d", NEW, "pp", suite=replace(SUITE, settings={"max_examples": 50}))
    ending = project.run("suite", "history", "signs", "reports/runs")
    assert ending.out.startswith("2 releases; written: ")
    first, second = ending.err.splitlines()
    assert first == "conformance: c: is passed over: it did not end"
    assert second.startswith("conformance: d: is passed over: another settings: ")


def test_bad_input(project: Project) -> None:
    """It is named."""
    for arguments, said in (
        (("nothing",), "nothing: no such suite, expected one of signs"),
        (("signs", project.path), "expected the directory of a run"),
        (("signs", "--file", "x.toml"), "expected a name that ends in .json"),
        (("signs", project.path, "--check"), "give it no run"),
    ):
        ending = project.run("suite", "history", *arguments)
        assert ending.code == 2
        assert said in ending.err
    project.write({DATA: "{"})
    assert (
        "expected the data of a conformance history"
        in project.run("suite", "history", "signs").error
    )


def test_the_site_shows_what_is_kept(project: Project) -> None:
    """Beside the releases of the run."""
    project.run("suite", "history", "signs", run(project, "a", OLD, "pk"))
    suite = replace(SUITE, title="Signs of zeros")
    project.run("report", run(project, "b", NEW, "kp", suite=suite), "--out", "site")
    page = (project.path / "site" / "suites" / "signs.html").read_text("utf-8")
    assert "jax 0.5.3 to 0.7.0" in page
