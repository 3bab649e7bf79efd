"""Checks `conformance bisect` on pasted reports, with the oldest and the newest release as ends.

`python benchmarks/reproduction/measure.py [NAME ...]`. Each report of `truth.toml` is searched from
0.4.30 to the newest release. An answer is right if it names both releases at the border and the
error; it is falsely confirmed if it names others and exits with 0. The truth was found
without bisection, by running each script on the releases themselves.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import tomllib

HERE = Path(__file__).resolve().parent
ENDS = ("--good", "0.4.30", "--bad", "latest")
ALIKE = "alike"
USAGE = 2
"""Exit status where nothing differs."""


class Result(NamedTuple):
    """The answer to one report, judged.

    Attributes:
        verdict: `right`, `wrong`, `falsely confirmed` or `no answer`.
        seconds: Seconds of the command.
        headline: First line of the answer, or the error.
    """

    verdict: str
    seconds: float
    headline: str


def measure(report: dict[str, Any]) -> Result:
    """Search for the change of one report, and compare the answer with the truth."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, "-m", "conformance", "bisect", f"reports/{report['file']}"]
        command += [*ENDS, *report.get("options", []), "--fresh", "--json", str(found)]
        start = time.monotonic()
        ended = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start
        answer = json.loads(found.read_text()) if found.exists() else {}
    lines = ended.stdout.splitlines()
    heads = ("first bad: ", "fixed in ", "broken since ", "first good: ")
    headline = next((line for line in lines if line.startswith(heads)), "")
    headline = headline or (ended.stderr.strip().splitlines() or [""])[-1]
    return Result(_verdict(report, answer, ended.returncode, headline), seconds, headline)


def _verdict(report: dict[str, Any], answer: dict[str, Any], status: int, headline: str) -> str:
    if report["kind"] == ALIKE:
        if answer:
            return "falsely confirmed"
        refused = status == USAGE and re.search(report.get("says", "are alike"), headline)
        return "right" if refused else "wrong"
    if not answer:
        return "no answer"
    pair, truth = ([one["last_good"], one["first_bad"]] for one in (answer, report))
    # A search by output cannot know which of the two outputs is the right one.
    either = answer["predicate"]["name"] in ("output", "value")
    named = pair == truth or (either and sorted(pair) == sorted(truth))
    if named and re.search(report["says"], f"{headline}\n{json.dumps(answer['timeline'])}"):
        return "right" if status == 0 else "right, but not confirmed"
    return "falsely confirmed" if status == 0 else "wrong"


def main() -> None:
    """Print a line for each report, and how many are right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    reports = tomllib.loads((HERE / "truth.toml").read_text())["report"]
    if unknown := set(names) - {Path(report["file"]).stem for report in reports}:
        parser.error(f"{', '.join(sorted(unknown))}: no report; expected a file without its suffix")
    results = []
    for report in reports:
        if names and Path(report["file"]).stem not in names:
            continue
        result = measure(report)
        results.append(result)
        head = f"{report['file']:<24} {result.verdict:<18} {result.seconds:5.1f} s"
        print(f"{head}  {result.headline[:150]}", flush=True)
    verdicts = [result.verdict for result in results]
    for verdict in dict.fromkeys(verdicts):
        print(f"{verdicts.count(verdict)} of {len(verdicts)} {verdict}")
    print(f"median {median(result.seconds for result in results):.1f} s")


if __name__ == "__main__":
    main()
