"""`conformance report`: the site of a run, several runs, other formats, and unreadable runs."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from conformance.app import golden_state as state
from conformance.model.outcome import Verdict
from tests.builders import f32
from tests.fuzz.test_script_file import make_finding
from tests.holders import another_writer
from tests.projects import GOOD, ROOT, SMOKE
from tests.report.fuzz.test_markdown import make_log
from tests.report.runs import CELLS, Directory
from tests.report.site.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project

    from .conftest import MakeProject


def make_run(
    project: Project, name: str, day: int = 1, *, matrix: str = "smoke", **more: Any
) -> Path:
    """Make a run of one case that started on a day in May."""
    run = Directory(project.path / "reports" / "runs" / name)
    run.job("f/a", CELLS[0], f32(1)).job("f/a", CELLS[1], f32(2), **more)
    return run.written(started=f"2026-05-{day:02}T10:00:00+00:00", matrix=matrix).path


def test_report_of_the_newest_run_by_default(project: Project) -> None:
    """The site is written into its directory; the last line is a link to it."""
    make_run(project, "a")
    newest = make_run(project, "b", 2)
    ending = project.run("report")
    assert (ending.code, ending.err) == (0, "")
    link = ending.out.splitlines()[-1].removeprefix("report in ")
    page = newest / "report" / "index.html"
    assert unquote(urlsplit(link).path) == str(page)
    assert link.startswith("file:///")
    assert page.exists()
    assert (newest / "report" / "cases" / "f" / "a.html").exists()


def test_every_link_of_the_site_has_a_target(project: Project) -> None:
    """Pages, styles, scripts and anchors."""
    make_run(project, "a")
    make_run(project, "b", 2, verdict=Verdict.REGRESSED, reasons=("out is 2, golden 1",))
    site = project.path / "site"
    assert project.run("report", "reports/runs", "--out", site).code == 0
    pages = {file: Page(file.read_bytes()) for file in site.rglob("*.html")}
    assert len(pages) >= 5
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            assert target.exists(), f"{file} links to {link}"
            if address.fragment and target in pages and "=" not in address.fragment:
                assert unquote(address.fragment) in pages[target].ids, f"{file} links to {link}"


def test_report_of_a_folder_shows_the_newest_run(project: Project) -> None:
    """A job of two runs counts once; the older runs are history."""
    make_run(project, "a", 1, verdict=Verdict.REGRESSED, reasons=("broken",))
    make_run(project, "b", 2)
    ending = project.run("report", "reports/runs", "--json", "-", "--out", "site")
    assert ending.json["runs"] == ["b"]
    assert ending.json["counts"] == {"match": 2}
    history = (project.path / "site" / "history.html").read_text()
    assert "broken" in history
    assert "2026-05-01" in history


def test_report_takes_history_of_deleted_runs_from_the_store(project: Project) -> None:
    """The newest run counts once, although the store has it, too."""
    make_run(project, "a", 1, verdict=Verdict.REGRESSED, reasons=("broken",))
    make_run(project, "b", 2)
    assert project.run("history", "add", "reports/runs").code == 0
    shutil.rmtree(project.path / "reports" / "runs" / "a")
    ending = project.run("report", "--out", "site", "--store", "reports/history.db")
    assert (ending.code, ending.err) == (0, "")
    history = (project.path / "site" / "history.html").read_text()
    assert "broken" in history
    assert "2 runs" in history
    assert project.run("report", "--out", "site", "--store", "no.db").code == 0
    assert not (project.path / "no.db").exists()


def test_unreadable_store_only_loses_its_history(project: Project) -> None:
    """The run is shown; the error is printed and shown on every page."""
    make_run(project, "a")
    (project.path / "broken.db").write_bytes(b"no database at all" * 100)
    ending = project.run("report", "--out", "site", "--store", "broken.db")
    assert ending.code == 2
    assert ending.error.endswith("; its runs are no history here")
    assert "broken.db" in (project.path / "site" / "index.html").read_text()


def test_report_combines_the_runs_it_is_given(project: Project) -> None:
    """Such as a run on CPUs and one on TPUs."""
    one = make_run(project, "a")
    other = Directory(project.path / "other").job("f/b", CELLS[2], f32(1)).written().path
    ending = project.run("report", one, other, "--json", "-")
    assert sorted((r["case"], r["cell"]) for r in ending.json["results"]) == [
        ("f/a", CELLS[0]),
        ("f/a", CELLS[1]),
        ("f/b", CELLS[2]),
    ]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--markdown", b"# Conformance: "),
        ("--junit", b"<testsuites "),
        ("--csv", b"f/a"),
        ("--jobs-csv", b"f/a"),
        ("--json", b'"transitions"'),
        ("--jsonl", b'"case":"f/a"'),
    ],
)
def test_report_writes_a_format_to_a_file_or_stdout(
    project: Project, option: str, words: bytes
) -> None:
    """Nothing else is on standard output, and without `--out` no site is made."""
    run = make_run(project, "a")
    file = project.path / "out"
    ending = project.run("report", option, file)
    assert (ending.code, ending.out, ending.err) == (0, "", "")
    assert words in file.read_bytes()
    printed = project.run("report", option, "-").out
    assert printed.replace("\r\n", "\n") == file.read_bytes().decode().replace("\r\n", "\n")
    assert not (run / "report").exists()


def test_jsonl_has_one_line_per_job(project: Project) -> None:
    """No empty line, which line-based tools would have to skip."""
    make_run(project, "a")
    lines = project.run("report", "--jsonl", "-").out.splitlines()
    assert [json.loads(line)["cell"] for line in lines] == [CELLS[0], CELLS[1]]


def test_report_writes_several_formats_at_once(project: Project) -> None:
    """And the site, because of `--out`."""
    make_run(project, "a")
    project.run("report", "--json", "j", "--csv", "c", "--out", "site", "--terminal")
    assert json.loads((project.path / "j").read_text())["run"] == "a"
    rows = list(csv.reader(io.StringIO((project.path / "c").read_text())))
    assert rows[1][0].endswith("f/a")
    assert (project.path / "site" / "index.html").exists()


def test_report_terminal_prints_the_summary_of_a_run(project: Project) -> None:
    """The same text as at the end of the run."""
    make_run(project, "a")
    out = project.run("report", "--terminal").out
    assert "1 match" not in out
    assert "2 match" in out
    assert "results in " in out


def test_unreadable_runs_are_reported_and_skipped(project: Project) -> None:
    """Exit 2; the error has the file and is shown on the pages, too."""
    good = make_run(project, "a")
    broken = make_run(project, "b", 2)
    (broken / "results.jsonl").write_text("{}\n")
    foreign = project.path / "reports" / "runs" / "c"
    foreign.mkdir()
    (foreign / "run.json").write_text('{"name": "another tool"}')
    ending = project.run("report", "reports/runs", "--out", "site")
    assert ending.code == 2
    first, second = ending.err.splitlines()
    assert "reports/runs/b/results.jsonl:1: expected a record" in first
    assert "reports/runs/c: expected a run, got a folder without any job" in second
    on_every_page = (project.path / "site" / "data" / "search.js").read_text()
    assert "results.jsonl:1: expected a record" in on_every_page
    assert project.run("report", good, "--out", "site").code == 0


def test_golden_pages_wait_for_the_lock_of_accept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--check` only reads and does not wait."""
    monkeypatch.setattr(state, "MATRICES", ("smoke",))
    project.write({"cases/family/topic.py": GOOD})
    with another_writer(project.path / "cases", 2) as released:
        assert project.run("report", "--goldens", "--check").code == 1
        assert not released.is_set()
        assert project.run("report", "--goldens").code == 0
        assert released.is_set()
    assert project.run("report", "--goldens", "--check").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "holds no run, expected one; `conformance run` makes it"),
        (["none"], "none: expected the directory of a run, or a folder of them"),
        (["--fuzz", "--run", "none"], "--fuzz is about campaigns alone: no --goldens or --run"),
        (["--goldens", "none"], "--goldens is about the goldens alone: no DIR or --run with it"),
    ],
)
def test_report_without_a_run_exits_2(project: Project, arguments: list[str], words: str) -> None:
    """One line."""
    ending = project.run("report", *arguments)
    assert ending.code == 2
    assert words in ending.error


def test_report_of_campaigns_has_a_page_and_a_page_of_the_site(project: Project) -> None:
    """In the folder of the project."""
    assert project.run("report", "--fuzz").code == 3
    make_log(project.path / "reports" / "campaigns" / "one", make_finding())
    ending = project.run("report", "--fuzz")
    assert ending.code == 0, ending.err
    assert "jnp.sin" in (project.path / "reports" / "fuzz.md").read_text()
    make_run(project, "a")
    assert project.run("report", "--out", "site").code == 0
    assert "jnp.sin" in (project.path / "site" / "fuzz.html").read_text()
    assert '"fuzz":"fuzz.html"' in (project.path / "site" / "data" / "search.js").read_text()


def test_report_of_only_unreadable_runs_exits_3(project: Project) -> None:
    """Nothing is left to report."""
    broken = make_run(project, "b")
    (broken / "run.json").write_text("{")
    ending = project.run("report")
    assert ending.code == 3
    assert "run.json: expected the description of a run" in ending.error


def test_unwritable_output_file_is_reported_with_its_option(project: Project) -> None:
    """Before the report is made."""
    make_run(project, "a")
    ending = project.run("report", "--junit", "no/such/folder.xml")
    assert ending.code == 2
    assert ending.error.startswith("--junit no/such/folder.xml: cannot be written")


def test_run_in_a_pipe_makes_its_site_only_with_report(new_project: MakeProject) -> None:
    """Otherwise the last line has the folder of the results."""
    project = new_project({"cases/fam/good.py": GOOD, "matrix/smoke.toml": SMOKE})
    quiet = project.run("run", "fam/one", "--run", "quiet")
    assert quiet.out.splitlines()[-1].startswith("results in ")
    assert not (project.path / "quiet" / "report").exists()
    reported = project.run("run", "fam/one", "--run", "told", "--report")
    assert reported.code == 0
    assert reported.out.splitlines()[-1].endswith("/told/report/index.html")
    assert (project.path / "told" / "report" / "cases" / "fam" / "one.html").exists()


def run_in_terminal(project: Project, *arguments: str) -> str:
    """Run a command in a pseudo-terminal, and return its output."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "conformance", *arguments],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        with contextlib.suppress(
            OSError
        ):  # a pseudo-terminal raises EIO when its other end is closed
            while data := os.read(ours, 65536):
                shown += data
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.cell
def test_run_in_a_terminal_ends_with_a_link_to_its_site(new_project: MakeProject) -> None:
    """`--no-report` omits it."""
    project = new_project({"cases/fam/good.py": GOOD, "matrix/smoke.toml": SMOKE})
    shown = run_in_terminal(project, "run", "fam/one", "--run", "told")
    *_, last = shown.strip().splitlines()
    assert last.startswith("report in file:///")
    assert (project.path / "told" / "report" / "index.html").exists()
    shown = run_in_terminal(project, "run", "fam/one", "--run", "quiet", "--no-report")
    assert "report in" not in shown
    assert not (project.path / "quiet" / "report").exists()
