"""Compares a pytest suite in a cell with plain pytest: seconds, and the outcome of each test.

Run it with `python benchmarks/suites.py [RELEASE ...] [--rounds N] [--equal] [--made-up TESTS]`.
The suite is array-api-tests, in the checkout that CONFORMANCE_ARRAY_API_TESTS names; plain is
`pytest -n 2` by pytest-xdist in the same environment, with the same variables and arguments. With
`--made-up` it is a suite of that many tests that do nothing, against `pytest` and `pytest -n 2`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from common import ROOT, checkout_context, format_line, time_call

from conformance.app.suites.cells import prepare_suite, resolve_suite_requirements
from conformance.suites.catalogue.definition import load_suite
from conformance.suites.running.cells import SuiteCells
from conformance.suites.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.suites.catalogue.definition import NamedSuite

NAME: Final = "array-api-tests"
CHECKOUT: Final = "CONFORMANCE_ARRAY_API_TESTS"
EXAMPLES: Final = "5"
WORKERS: Final = "2"
PYTEST_WORDS: Final = {"ok": "passed", "raised": "failed", "unsupported": "skipped"}


def make_plain_command(checkout: Path, report: Path) -> list[str]:
    """Return the arguments that run the suite with plain pytest."""
    definition = load_suite(NAME, checkout_context().project.suites).definition
    return [
        "-m", "pytest", "-q", "-n", WORKERS, "-p", "no:cacheprovider",
        "-o", "junit_family=xunit1", "--junit-xml", str(report),
        definition.max_examples, EXAMPLES, *definition.arguments,
        *(str(checkout / path) for path in definition.paths),
    ]  # fmt: skip


def run_ours(words: Sequence[str], cell: str, report: Path, *more: str) -> None:
    """Run a suite with `conformance suite run`."""
    command = [sys.executable, "-m", "conformance", "suite", "run", *words, "--cell", cell]
    command += ["--jobs", WORKERS, "--json", str(report), *more]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 1}:
        raise SystemExit(f"suite run ended with {ended.returncode}: {ended.stderr}")
    run = json.loads(report.read_text())["run"]
    # Every round would leave a run directory in the checkout.
    shutil.rmtree(ROOT / "reports" / "runs" / run, ignore_errors=True)


def read_plain_outcomes(report: Path) -> dict[str, str]:
    """Return the outcome of each test in plain pytest, by node id."""
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - our own file
        file, inside = case.get("file", ""), case.get("classname", "")
        classes = inside.removeprefix(file.removesuffix(".py").replace("/", ".")).split(".")[1:]
        node = "::".join([file, *classes, case.get("name", "")])
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            found[node] = "failed"
        elif skipped is not None:
            found[node] = "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"
        else:
            found[node] = "passed"
    return found


def read_our_outcomes(report: Path) -> dict[str, str]:
    """Return the outcome of each test in a run of ours, by node id."""
    found = {}
    for one in json.loads(report.read_text())["results"]:
        outcome = PYTEST_WORDS.get(one["outcome"], one["outcome"])
        expected = outcome == "failed" and "xfail" in one["artifacts"]
        found[one["case"].removeprefix(f"{NAME}/")] = "xfailed" if expected else outcome
    return found


def describe_differences(ours: Mapping[str, str], plain: Mapping[str, str]) -> str:
    """Return the differences between two runs, test by test."""
    differ = {test for test in ours.keys() | plain.keys() if ours.get(test) != plain.get(test)}
    lines = [f"  {len(plain)} tests, {len(differ)} differ; plain: {dict(Counter(plain.values()))}"]
    lines += [f"    {one}: {ours.get(one)}, plain {plain.get(one)}" for one in sorted(differ)]
    return "\n".join(lines)


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock seconds of a call, and the processor seconds of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = time_call(work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(release: str, checkout: Path, rounds: int, *, equal: bool) -> None:
    """Run the suite both ways in turn, and print the time of each."""
    context = checkout_context()
    suite = load_suite(NAME, context.project.suites)
    cells, _ = context.select_cells(None, [release])
    wanted = (*resolve_suite_requirements(context, suite.definition.requires), "pytest-xdist")
    preparation = prepare_suite(context, cells, wanted)
    (planned,) = preparation.cells
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = Path(scratch) / "ours.json", Path(scratch) / "plain.xml"
        words = (NAME, "--suite-path", str(checkout), "--max-examples", EXAMPLES)
        bare = make_bare_suite(checkout, suite)
        with SuiteCells(preparation.locks, context.cache, bare).provide(planned) as place:
            command = [str(place.python), *make_plain_command(checkout, theirs)]

            def plain() -> None:
                subprocess.run(
                    command, cwd=checkout, env=dict(place.variables), check=False,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip

            took: dict[str, list[tuple[float, float]]] = {"plain": [], "ours": []}
            for _ in range(rounds):
                took["plain"].append(measure(plain))
                took["ours"].append(measure(partial(run_ours, words, release, ours, "--fresh")))
            again = [time_call(partial(run_ours, words, release, ours)) for _ in range(2)]
        for number, what in enumerate(("wall clock", "processor")):
            of = {name: [one[number] for one in pairs] for name, pairs in took.items()}
            print(format_line(f"{release}, {what}: pytest -n {WORKERS}", of["plain"]))
            print(format_line(f"{release}, {what}: suite run --fresh", of["ours"]))
            pairs = [a / b for a, b in zip(of["ours"], of["plain"], strict=True)]
            print(format_line(f"{release}, {what}: ratio, pair by pair", pairs, "x"))
        print(format_line(f"{release}: unchanged", again[1:]))
        if equal:
            print(describe_differences(read_our_outcomes(ours), read_plain_outcomes(theirs)))


def make_bare_suite(checkout: Path, named: NamedSuite) -> Suite:
    """Return a suite with only the fields that decide its environment variables."""
    return Suite(paths=(), arguments=(), timeout=1.0, hash="", folder=checkout, named=named)


def measure_made_up(number: int, release: str) -> None:
    """Run tests that do nothing, with plain pytest and in a cell."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "tests"
        folder.mkdir()
        (Path(scratch) / "pytest.ini").write_text("[pytest]\n")
        for file in range(50):
            (folder / f"test_{file}.py").write_text(
                "import pytest\n\n@pytest.mark.parametrize('n', range("
                f"{number // 50}))\ndef test_nothing(n):\n    pass\n"
            )
        report = Path(scratch) / "ours.json"

        def plain(*more: str) -> None:
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more]
            subprocess.run(
                [*command, str(folder)], cwd=scratch, stdout=subprocess.DEVNULL, check=True
            )

        works: dict[str, Callable[[], object]] = {
            "pytest": plain,
            "pytest -n 2": partial(plain, "-n", WORKERS),
            "suite run --fresh": partial(run_ours, (str(folder),), release, report, "--fresh"),
            "suite run, unchanged": partial(run_ours, (str(folder),), release, report),
        }
        for what, work in works.items():
            wall, cpu = measure(work)
            print(format_line(f"{number} tests: {what}, wall clock", [wall]))
            print(format_line(f"{number} tests: {what}, processor", [cpu]), flush=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{number} tests: {peak:.0f} MiB in the largest process")


def main() -> None:
    """Measure the named releases, or the made-up suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=["0.8.3", "0.10.2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--equal", action="store_true", help="compare outcomes, test by test")
    parser.add_argument("--made-up", type=int, metavar="TESTS")
    options = parser.parse_args()
    if options.made_up:
        measure_made_up(options.made_up, options.releases[0])
        return
    if not (named := os.environ.get(CHECKOUT)):
        print(f"skipped: {CHECKOUT} names no checkout of {NAME}")
        return
    for release in options.releases:
        compare(release, Path(named).absolute(), options.rounds, equal=options.equal)


if __name__ == "__main__":
    main()
