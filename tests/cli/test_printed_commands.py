"""The command line accepts every command that a page, a report or a message proposes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click
import msgspec
import pytest
from rich.console import Console

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.runs.digests import make_digest
from conformance.engine.runs.directory import RunDirectory
from conformance.errors import ConformanceError
from conformance.model.outcome import Verdict
from conformance.model.run import RunCase, RunCell
from conformance.notify.issue_body import make_body
from conformance.notify.night import read_night
from conformance.report.junit import render_junit
from conformance.report.markdown import render_markdown
from conformance.report.terminal import print_report
from conformance.report.upgrade.file import make_upgrade_file
from conformance.report.upgrade.text import render_upgrade, render_upgrade_markdown
from conformance.store.database import parse_address
from conformance.store.run_insertion import make_entry
from conformance.store.store import Store
from conformance.triage.upgrade.comparison import UpgradeAxis
from tests import printed
from tests.builders import f32
from tests.report.runs import CELLS, Directory
from tests.report.site.examples import full_report, suite_report, write
from tests.report.upgrades import OK, RAISED, WRONG, Tried
from tests.workbench import planned_cell, python_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.report.report import Report

    from .conftest import MakeProject

PATH_CELL = Cell(
    release="path:/opt/my env/bin/python", python="3.11", devices=4, x64=True,
    config=(("jax_default_matmul_precision", "high-est/@1"),), xla_flags=("--xla_a=b-c/d",),
)  # fmt: skip


def find_rejected(commands: Iterable[str]) -> list[str]:
    """Return the commands that the command line rejects, each with the error."""
    found = []
    for command in sorted(set(commands)):
        try:
            printed.parse_command(command)
        except (click.ClickException, ConformanceError, ValueError) as error:
            reason = error.format_message() if isinstance(error, click.ClickException) else error
            found.append(f"{command}: {reason}")
    return found


def list_documents() -> list[Path]:
    """Return the README and the pages of the documentation."""
    return [printed.ROOT / "README.md", *sorted((printed.ROOT / "docs").rglob("*.md"))]


def test_commands_in_the_documentation_are_valid() -> None:
    """In code blocks and in backticks."""
    found = {
        one
        for file in list_documents()
        for one in printed.find_in_markdown(file.read_text("utf-8"))
    }
    assert len(found) > 100
    assert find_rejected(found) == []


def test_commands_in_help_texts_are_valid() -> None:
    """The examples of each command."""
    found = list(printed.find_in_help())
    assert {name.split()[1] for name, _ in found if " " in name} >= {"run", "blame", "upgrade"}
    assert find_rejected(command for _, command in found) == []


def test_commands_in_messages_are_valid() -> None:
    """Found in the string literals of the package."""
    sources = sorted((printed.ROOT / "conformance").rglob("*.py"))
    found = {one for file in sources for one in printed.find_in_source(file)}
    assert len(found) > 20
    assert find_rejected(found) == []


def make_path_report(folder: Path) -> Report:
    """Return a report of a case, a script call and a test that fail in a path: cell."""
    run = Directory(folder)
    cells = (RunCell(id=PATH_CELL.id, selector=PATH_CELL.selector, versions={"jax": "0.6.2"}),)
    cases = {
        "f/a[x y]": RunCase(file="cases/f/t.py", line=3),
        "report/norm": RunCase(file="x", line=1, arguments="'my scripts/report.py::norm'"),
        "tests/t.py::test_a": RunCase(
            kind="test", arguments="'tests/t.py::test_a' -- -m 'not slow'"
        ),
    }
    for case in cases:
        for cell in (CELLS[0], PATH_CELL.id):
            run.job(case, cell, f32(1), verdict=Verdict.REGRESSED, reasons=(f"{case} differs",))
    run.job("f/b", PATH_CELL.id, error=("ValueError", "no"), verdict=Verdict.REGRESSED)
    return run.report(cases={**cases, "f/b": RunCase()}, cells=(*cells, RunCell(id=CELLS[0])))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Report, Path]]:
    """Reports of every kind, each with its folder."""
    made = []
    for make in (make_path_report, full_report, suite_report):
        folder = tmp_path_factory.mktemp(make.__name__)
        made.append((make(folder / "run"), folder))
    return made


def test_commands_in_reports_are_valid(reports: list[tuple[Report, Path]]) -> None:
    """In the terminal, Markdown and JUnit."""
    found: set[str] = set()
    for report, folder in reports:
        text = io.StringIO()
        print_report(Console(file=text, width=10_000), report, directory=folder, verbose=True)
        xml = render_junit(report).decode()
        found |= printed.find_in_text(text.getvalue()) | printed.find_in_text(
            xml.replace("&#10;", "\n")
        )
        found |= printed.find_in_text(render_markdown(report)) | printed.find_in_markdown(
            render_markdown(report)
        )
    assert any("-x64-" in command for command in found)
    assert find_rejected(found) == []


def test_commands_on_the_site_are_valid(reports: list[tuple[Report, Path]]) -> None:
    """On pages of cases, causes, suites and history."""
    found: set[str] = set()
    for report, folder in reports:
        for page in write(report, folder).rglob("*.html"):
            found |= printed.find_in_page(page.read_bytes())
    assert any(PATH_CELL.selector in command for command in found)
    assert find_rejected(found) == []


PLACES = (
    Cell(release="0.5.3", python="3.11", pins=("numpy==1.26.4",), x64=True),
    Cell(release="0.6.2", python="3.11", devices=4),
    PATH_CELL,
)


def test_commands_of_upgrades_are_valid(tmp_path: Path) -> None:
    """From a lock, a release and an environment: in the terminal, Markdown, JSON and pages."""
    cells = tuple(
        PlannedCell(
            cell=cell, versions={"jax": "0.6.2", "numpy": f"2.{place}"}, lock_hash="", cell_hash=""
        )
        for place, cell in enumerate(PLACES)
    )
    axis = UpgradeAxis(platform="cpu4", cells=cells, labels=("requirements.txt", "0.6.2", "env"))
    tried = Tried(tmp_path / "run")
    tried.case("f/broken[x y]", OK, RAISED, RAISED, axis=axis)
    tried.case("f/wrong", OK, OK, WRONG, axis=axis)
    tried.case("f/other", RAISED, RAISED, OK, axis=axis)
    tried.case("report/norm", OK, RAISED, OK, axis=axis, arguments="'my scripts/r.py::norm'")
    test = {"kind": "test", "arguments": "'tests/t.py::test a' --with ./mine -- -m 'not slow'"}
    tried.case("tests/t.py::test a", OK, OK, RAISED, axis=axis, **test)
    upgraded = tried.upgraded()
    found = printed.find_in_text("\n".join(render_upgrade(upgraded, every=True)))
    assert {command.split()[1] for command in found} >= {"repro", "diff", "suite", "blame"}
    assert not any("--good" in command for command in found if "blame" not in command), (
        "pins have no release to search"
    )
    found |= printed.find_in_markdown(render_upgrade_markdown(upgraded))
    found |= printed.find_in_text(render_upgrade_markdown(upgraded)) | printed.find_in_json(
        msgspec.to_builtins(make_upgrade_file(upgraded))
    )
    run_cells = tuple(RunCell(id=cell.id, selector=cell.selector) for cell in PLACES)
    for page in write(tried.report(cells=run_cells), tmp_path).rglob("*.html"):
        found |= printed.find_in_page(page.read_bytes())
    assert find_rejected(found) == []


def test_commands_in_issues_are_valid(tmp_path: Path) -> None:
    """In every issue about the newest nightly run."""
    make_path_report(tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    digest = make_digest(directory)
    store = Store(parse_address(str(tmp_path / "history.db")), pytest.fail)
    store.add(make_entry(directory, digest))
    night = read_night(directory, digest, store, [])
    found = {one for topic in night.topics for one in printed.find_in_text(make_body(topic, ""))}
    assert len(found) == len(night.topics) > 1
    assert find_rejected(found) == []


CASES = """\
import numpy as np
from conformance.kit import Program, program


@program(params={"one": {"n": 1}, "two words": {"n": 2}})
def wrong(env, n):
    return Program(lambda x: x + n, args=(np.zeros(3),), reference=np.zeros(3))
"""


@pytest.mark.long
@pytest.mark.cell
def test_commands_proposed_by_a_run_can_be_executed(new_project: MakeProject) -> None:
    """In a user's environment with an option, one after another."""
    project = new_project({"cases/family/topic.py": CASES})
    python = python_of(planned_cell("0.6.2"))
    cell = f"path:{python}@cpu2-x64"
    ending = project.run("run", "family", "--cell", cell)
    assert project.run("report", "--markdown", "run.md").code == 0
    text = (project.path / "run.md").read_text()
    found = (
        printed.find_in_text(text)
        | printed.find_in_markdown(text)
        | printed.find_in_text(ending.out)
    )
    assert any(command.endswith(f"--cell {cell}") for command in found), text
    for command in sorted(found):
        again = project.run(*printed.split_command(command)[1:])
        assert again.code in {0, 1}, (command, again.err)
    for command in ("repro", "diff"):
        arguments = (
            "family/wrong[one]",
            "--cell",
            cell,
            *(["--cell", "0.6.2"] * (command == "diff")),
        )
        assert project.run(command, *arguments).code in {0, 1}
