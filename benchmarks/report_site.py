"""Seconds, size and speed in a browser of the site of 300 cases in 120 cells.

    python benchmarks/report_site.py RUN|DIR...

The report is made of real runs: if they have fewer cases and cells, these are repeated under other
names, and a missing job is replaced by another of the same case. Requires Chromium.
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

from conformance.engine.runs.directory import Results, RunDirectory
from conformance.engine.runs.loader import LoadedRun, find_runs, load_readable_runs
from conformance.report.report import Report
from conformance.report.site.matrix_page import render_matrix_pages
from conformance.report.site.site import load_assets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from playwright.sync_api import Browser, Page

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.model.run import RunCell

T = TypeVar("T")
CASES, CELLS = 300, 120
ROUNDS = 7
SITES = 5
KEYS = "while"
"""Text typed into the filter."""
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
"""Records the time from each keystroke to the paint that follows it."""


def main() -> None:
    """Measure and print."""
    runs, _ = load_readable_runs([run for path in sys.argv[1:] for run in find_runs(Path(path))])
    report = grow_report(Report(tuple(runs)))
    print(f"{len(report.cases)} cases x {len(report.runs[-1].info.cells)} cells, "
          f"{len(report.records):,} results")  # fmt: skip
    for case in report.cases:
        report.timelines(case)  # computed once for all pages, so not part of the time of this page
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        python = write_matrix_page(report, site)
        size = sum((site / name).stat().st_size for name in list_files(site))
        print(f"matrix page made in {python:.2f} s, {size / 1e6:.2f} MB with scripts and data")
        browse(site)
    # Hard links to the artifacts need the same file system.
    with tempfile.TemporaryDirectory(dir=report.runs[0].blobs.folder.parent.parent) as folder:
        generate(report, runs, Path(folder))


def grow_report(report: Report) -> Report:
    """Return a report of the wanted size, made of the jobs of another.

    Args:
        report: Real runs.
    """
    cells = [cell for track in report.tracks for cell in track.cells]
    several = [(cell, copy_cell(cell, number)) for number, cell in repeat_to(cells, CELLS)]
    names = [
        (name, name if not number else f"{name}~{number}")
        for number, name in repeat_to(list(report.cases), CASES)
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
    """Store the report as a run, generate its site, and print the seconds.

    Args:
        report: The report of the size wanted.
        runs: The real runs, whose artifacts it refers to.
        folder: Folder on the disk of those runs, as artifacts are hard links.
    """
    directory = RunDirectory(folder / "run")
    for run in runs:
        for blob in run.blobs.folder.iterdir():
            link_blob(blob, directory.blobs.folder)
    directory.write_run(report.runs[-1].info)
    results = Results(directory)
    for record in report.records:
        results.append(record, sync=False)
    results.close()
    cache, out = folder / "cache", folder / "site"
    for warm in (False, True):
        seconds, peaks = [], []
        for _ in range(SITES):
            shutil.rmtree(out, ignore_errors=True)
            if not warm:
                shutil.rmtree(cache, ignore_errors=True)
            took, peak = measure_site(directory.path, out, {"CONFORMANCE_CACHE": str(cache)})
            seconds.append(took)
            peaks.append(peak)
        span = f"{min(seconds):.1f} to {max(seconds):.1f}"
        print(f"site with {'differences' if warm else 'nothing'} kept: {median(seconds):.1f} s "
              f"({span}), {max(peaks) / 2**20:.0f} MiB")  # fmt: skip
    files = [file for file in out.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


def link_blob(blob: Path, folder: Path) -> None:
    """Link a blob into another folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.link(blob, folder / blob.name)


def measure_site(run: Path, out: Path, environment: Mapping[str, str]) -> tuple[float, int]:
    """Generate the site of a run by the command; return seconds and peak bytes."""
    command = [sys.executable, "-m", "conformance", "report", str(run), "--out", str(out)]
    before = perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **environment})
    # RUSAGE_CHILDREN would give the maximum over all rounds.
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return perf_counter() - before, usage.ru_maxrss * 1024


def repeat_to(given: Sequence[T], wanted: int) -> Iterable[tuple[int, T]]:
    """Yield as many items as wanted, each with the number of its earlier repetitions."""
    return ((at // len(given), one) for at, one in enumerate(islice(cycle(given), wanted)))


def copy_cell(cell: RunCell, number: int) -> RunCell:
    """Return a cell under the id of its copy; copy 0 is the cell itself."""
    return replace(cell, id=f"{cell.id}-{number}") if number else cell


def write_matrix_page(report: Report, site: Path) -> float:
    """Write the matrix page with its assets, and return the seconds to render it."""
    before = perf_counter()
    made = list(render_matrix_pages(report))
    seconds = perf_counter() - before
    for path, content in (*made, *load_assets()):
        (site / path).parent.mkdir(exist_ok=True)
        (site / path).write_bytes(content)
    return seconds


def list_files(site: Path) -> list[str]:
    """Return the files that the matrix page consists of."""
    return [str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()]


def browse(site: Path) -> None:
    """Open the page several times, type into its filter, and print medians."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        ready, paints, changed = [], [], []
        for _ in range(ROUNDS):
            page = open_page(browser, f"{site.as_uri()}/index.html")
            ready.append(
                float(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
            )
            paints += type_filter(page)
            page.click("[data-only=changed]")
            page.fill("#filter-text", "")
            changed += type_filter(page)
            page.context.close()
        browser.close()
    print(f"interactive after {median(ready):.0f} ms, at most {max(ready):.0f}")
    print(f"keystroke to paint {median(paints):.0f} ms, at most {max(paints):.0f}")
    print(f"with columns folded {median(changed):.0f} ms, at most {max(changed):.0f}")


def open_page(browser: Browser, address: str) -> Page:
    """Open the page in a new browser context."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(address)
    page.evaluate(WATCH)
    return page


def type_filter(page: Page) -> list[float]:
    """Type into the filter, and return the milliseconds from each key to its paint."""
    page.evaluate("window.paints = []")
    page.focus("#filter-text")
    for number, key in enumerate((*KEYS, *["Backspace"] * len(KEYS)), 1):
        page.keyboard.press(key)
        page.wait_for_function(f"window.paints.length >= {number}")
    return [float(each) for each in page.evaluate("window.paints")]


if __name__ == "__main__":
    main()
