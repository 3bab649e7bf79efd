"""A pytest suite run in a cell, against plain pytest: seconds, and what came of each test.

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

from common import ROOT, line, seconds, setting

from conformance.app.suites import prepare_suite, resolve_suite_requirements
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
TOLD: Final = {"ok": "passed", "raised": "failed", "unsupported": "skipped"}


def plain_command(checkout: Path, report: Path) -> list[str]:
    """Return what runs the suite by plain pytest."""
    definition = load_suite(NAME, setting().project.suites).definition
    return [
        "-m", "pytest", "-q", "-n", WORKERS, "-p", "no:cacheprovider",
        "-o", "junit_family=xunit1", "--junit-xml", str(report),
        definition.max_examples, EXAMPLES, *definition.arguments,
        *(str(checkout / path) for path in definition.paths),
    ]  # fmt: skip


def run_ours(words: Sequence[str], cell: str, report: Path, *more: str) -> None:
    """Run a suite by the command line."""
    command = [sys.executable, "-m", "conformance", "suite", "run", *words, "--cell", cell]
    command += ["--jobs", WORKERS, "--json", str(report), *more]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 1}:
        raise SystemExit(f"suite run ended with {ended.returncode}: {ended.stderr}")
    run = json.loads(report.read_text())["run"]
    shutil.rmtree(ROOT / "reports" / "runs" / run, ignore_errors=True)


def plain_outcomes(report: Path) -> dict[str, str]:
    """Return what came of each test by plain pytest, by its node id."""
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


def our_outcomes(report: Path) -> dict[str, str]:
    """Return what came of each test in a run of ours, by its node id."""
    found = {}
    for one in json.loads(report.read_text())["results"]:
        outcome = TOLD.get(one["outcome"], one["outcome"])
        expected = outcome == "failed" and "xfail" in one["artifacts"]
        found[one["case"].removeprefix(f"{NAME}/")] = "xfailed" if expected else outcome
    return found


def told(ours: Mapping[str, str], plain: Mapping[str, str]) -> str:
    """Return how two runs differ, test by test."""
    differ = {test for test in ours.keys() | plain.keys() if ours.get(test) != plain.get(test)}
    lines = [f"  {len(plain)} tests, {len(differ)} differ; plain: {dict(Counter(plain.values()))}"]
    lines += [f"    {one}: {ours.get(one)}, plain {plain.get(one)}" for one in sorted(differ)]
    return "\n".join(lines)


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock seconds of a call, and those that its processes had a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = seconds(work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(release: str, checkout: Path, rounds: int, *, equal: bool) -> None:
    """Run the suite in both ways, one after the other, and tell how long each took."""
    here = setting()
    suite = load_suite(NAME, here.project.suites)
    cells, _ = here.select_cells(None, [release])
    wanted = (*resolve_suite_requirements(here, suite.definition.requires), "pytest-xdist")
    preparation = prepare_suite(here, cells, wanted)
    (planned,) = preparation.cells
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = Path(scratch) / "ours.json", Path(scratch) / "plain.xml"
        words = (NAME, "--suite-path", str(checkout), "--max-examples", EXAMPLES)
        bare = bare_suite(checkout, suite)
        with SuiteCells(preparation.locks, here.cache, bare).provide(planned) as place:
            command = [str(place.python), *plain_command(checkout, theirs)]

            def plain() -> None:
                subprocess.run(
                    command, cwd=checkout, env=dict(place.variables), check=False,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip

            took: dict[str, list[tuple[float, float]]] = {"plain": [], "ours": []}
            for _ in range(rounds):
                took["plain"].append(measured(plain))
                took["ours"].append(measured(partial(run_ours, words, release, ours, "--fresh")))
            again = [seconds(partial(run_ours, words, release, ours)) for _ in range(2)]
        for number, what in enumerate(("wall clock", "processor")):
            of = {name: [one[number] for one in pairs] for name, pairs in took.items()}
            print(line(f"{release}, {what}: pytest -n {WORKERS}", of["plain"]))
            print(line(f"{release}, {what}: suite run --fresh", of["ours"]))
            pairs = [a / b for a, b in zip(of["ours"], of["plain"], strict=True)]
            print(line(f"{release}, {what}: ratio, pair by pair", pairs, "x"))
        print(line(f"{release}: unchanged", again[1:]))
        if equal:
            print(told(our_outcomes(ours), plain_outcomes(theirs)))


def bare_suite(checkout: Path, named: NamedSuite) -> Suite:
    """Return as much of the suite as decides the variables that it runs with."""
    return Suite(paths=(), arguments=(), timeout=1.0, hash="", folder=checkout, named=named)


def made_up(number: int, release: str) -> None:
    """Run tests that do nothing, by plain pytest and in a cell."""
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
            wall, cpu = measured(work)
            print(line(f"{number} tests: {what}, wall clock", [wall]))
            print(line(f"{number} tests: {what}, processor", [cpu]), flush=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{number} tests: {peak:.0f} MiB in the largest process")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=["0.8.3", "0.10.2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--equal", action="store_true", help="compare outcomes, test by test")
    parser.add_argument("--made-up", type=int, metavar="TESTS")
    asked = parser.parse_args()
    if asked.made_up:
        made_up(asked.made_up, asked.releases[0])
        return
    if not (named := os.environ.get(CHECKOUT)):
        print(f"skipped: {CHECKOUT} names no checkout of {NAME}")
        return
    for release in asked.releases:
        compare(release, Path(named).absolute(), asked.rounds, equal=asked.equal)


if __name__ == "__main__":
    main()
