"""The site of 300 cases in 120 cells: how long it takes, how large it is, how fast in a browser.

    python benchmarks/report_site.py RUN|DIR...

The report is made of real runs: where they have fewer cases and cells, theirs are taken several
times under other names, and a job that is missing is another of the same case. Needs Chromium.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from playwright.sync_api import sync_playwright

from conformance.engine.run_directory import Results, RunDirectory
from conformance.engine.run_loader import LoadedRun, find_runs, load_readable_runs
from conformance.report.report import Report
from conformance.report.site.matrix_page import render_matrix_pages
from conformance.report.site.site import load_assets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from playwright.sync_api import Browser, Page

    from conformance.engine.stored_job import StoredJob
    from conformance.model.run import RunCell

T = TypeVar("T")
CASES, CELLS = 300, 120
ROUNDS = 7
SITES = 5
KEYS = "while"
WATCH = """
() => {
  window.paints = [];
  addEventListener("input", (event) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.paints.push(performance.now() - event.timeStamp);
    channel.port2.postMessage(0);
  }), true);
}
"""
"""Notes the time from a keystroke until what it changed is painted."""


def main() -> None:
    """Measure and print."""
    runs, _ = load_readable_runs([run for path in sys.argv[1:] for run in find_runs(Path(path))])
    report = grown(Report(tuple(runs)))
    print(f"{len(report.cases)} cases x {len(report.runs[-1].info.cells)} cells, "
          f"{len(report.records):,} results")  # fmt: skip
    for case in report.cases:
        report.timelines(case)  # every page needs them; they are no part of this one
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        python = write(report, site)
        size = sum((site / name).stat().st_size for name in needed(site))
        print(f"matrix page made in {python:.2f} s, {size / 1e6:.2f} MB with scripts and data")
        browse(site)
    with tempfile.TemporaryDirectory(dir=report.runs[0].blobs.folder.parent.parent) as folder:
        generate(report, runs, Path(folder))


def grown(report: Report) -> Report:
    """Return a report of the size wanted, made of the jobs of another.

    Args:
        report: Real runs.
    """
    cells = [cell for track in report.tracks for cell in track.cells]
    several = [(cell, copy_of(cell, number)) for number, cell in enough(cells, CELLS)]
    names = [
        (name, name if not number else f"{name}~{number}")
        for number, name in enough(list(report.cases), CASES)
    ]
    any_of: dict[str, StoredJob] = {}
    for (case, _), side in report.jobs.items():
        any_of.setdefault(case, side)
    records = tuple(
        replace(report.jobs.get((case, cell.id), any_of[case]).record, case=name, cell=copy.id)
        for case, name in names
        for cell, copy in several
    )
    info = replace(
        report.runs[-1].info,
        cells=tuple(copy for _, copy in several),
        cases={name: report.cases[case] for case, name in names},
        plan=(),
        exclusions=(),
    )
    blobs = report.runs[-1].blobs
    return Report((LoadedRun(id="grown", info=info, records=records, blobs=blobs),))


def generate(report: Report, runs: Sequence[LoadedRun], folder: Path) -> None:
    """Store the report as a run, have its site made, and print how long that takes.

    Args:
        report: The report of the size wanted.
        runs: The real runs, whose artifacts it refers to.
        folder: On the disk of those, for artifacts are linked.
    """
    directory = RunDirectory(folder / "run")
    for run in runs:
        for blob in run.blobs.folder.iterdir():
            link(blob, directory.blobs.folder)
    directory.write_run(report.runs[-1].info)
    results = Results(directory)
    for record in report.records:
        results.append(record, sync=False)
    results.close()
    cache, out = folder / "cache", folder / "site"
    for kept in (False, True):
        seconds, peaks = [], []
        for _ in range(SITES):
            shutil.rmtree(out, ignore_errors=True)
            if not kept:
                shutil.rmtree(cache, ignore_errors=True)
            took, peak = made(directory.path, out, {"CONFORMANCE_CACHE": str(cache)})
            seconds.append(took)
            peaks.append(peak)
        span = f"{min(seconds):.1f} to {max(seconds):.1f}"
        print(f"site with {'differences' if kept else 'nothing'} kept: {median(seconds):.1f} s "
              f"({span}), {max(peaks) / 2**20:.0f} MiB")  # fmt: skip
    files = [file for file in out.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


def link(blob: Path, folder: Path) -> None:
    """Give a blob to another folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.link(blob, folder / blob.name)


def made(run: Path, out: Path, environment: Mapping[str, str]) -> tuple[float, int]:
    """Make the site of a run as the command does; return seconds and peak bytes of a process."""
    command = [sys.executable, "-m", "conformance", "report", str(run), "--out", str(out)]
    before = perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **environment})
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return perf_counter() - before, usage.ru_maxrss * 1024


def enough(given: Sequence[T], wanted: int) -> Iterable[tuple[int, T]]:
    """Yield as many as are wanted, each with how often it was taken before."""
    return ((at // len(given), one) for at, one in enumerate(islice(cycle(given), wanted)))


def copy_of(cell: RunCell, number: int) -> RunCell:
    """Return a cell of another platform, the first time itself."""
    return replace(cell, id=f"{cell.id}-{number}") if number else cell


def write(report: Report, site: Path) -> float:
    """Write the matrix page with what it needs, and return the seconds its making took."""
    before = perf_counter()
    made = list(render_matrix_pages(report))
    seconds = perf_counter() - before
    for path, content in (*made, *load_assets()):
        (site / path).parent.mkdir(exist_ok=True)
        (site / path).write_bytes(content)
    return seconds


def needed(site: Path) -> list[str]:
    """Return the files that the matrix page loads, and itself."""
    return [str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()]


def browse(site: Path) -> None:
    """Open the page several times, type into its filter, and print medians."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        ready, paints, changed = [], [], []
        for _ in range(ROUNDS):
            page = opened(browser, f"{site.as_uri()}/index.html")
            ready.append(
                float(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
            )
            paints += typed(page)
            page.click("[data-only=changed]")
            page.fill("#filter-text", "")
            changed += typed(page)
            page.context.close()
        browser.close()
    print(f"interactive after {median(ready):.0f} ms, at most {max(ready):.0f}")
    print(f"keystroke to paint {median(paints):.0f} ms, at most {max(paints):.0f}")
    print(f"with columns folded {median(changed):.0f} ms, at most {max(changed):.0f}")


def opened(browser: Browser, address: str) -> Page:
    """Return the page, opened anew."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(address)
    page.evaluate(WATCH)
    return page


def typed(page: Page) -> list[float]:
    """Type into the filter, and return the milliseconds from each key until it was painted."""
    page.evaluate("window.paints = []")
    page.focus("#filter-text")
    for number, key in enumerate((*KEYS, *["Backspace"] * len(KEYS)), 1):
        page.keyboard.press(key)
        page.wait_for_function(f"window.paints.length >= {number}")
    return [float(each) for each in page.evaluate("window.paints")]


if __name__ == "__main__":
    main()
