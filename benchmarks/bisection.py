"""Bisection of historical behaviour changes: correctness, number of probes and seconds.

    python benchmarks/bisection.py [SCRIPT ...]

Each script of `behaviour_changes/` is searched for the release that changed it, from its good to
its bad end, and the result is compared with the documented release. If there are several changes, a
search with `--when message`, which separates errors by their message, must name all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import tomllib

FOLDER = Path(__file__).parent / "behaviour_changes"
WHEN = {"output": "output"}
"""Value of `--when` for a kind of change; all other kinds show as a failure."""


def main() -> None:
    """Search, compare and print."""
    answers = tomllib.loads((FOLDER / "answers.toml").read_text())["change"]
    wanted = sys.argv[1:]
    right, seconds, probes = 0, [], []
    chosen = [a for a in answers if not wanted or Path(a["script"]).stem in wanted]
    for answer in chosen:
        found, took = run_bisect(answer, WHEN.get(answer["when"], "exit"))
        named = read_first_bad(found)
        if named == answer["first"] and answer.get("changes"):
            found, took = run_bisect(answer, WHEN.get(answer["when"], "message"))
            missing = set(answer["changes"]) - {change["after"] for change in found["changes"]}
            named = f"{answer['first']}, and not {', '.join(missing)}" if missing else named
        right += named == answer["first"]
        seconds.append(took)
        probes.append(len([step for step in found.get("steps", []) if not step["again"]]))
        mark = "" if named == answer["first"] else f"  expected {answer['first']}"
        print(
            f"{answer['script']:45} {named:12} {probes[-1]:3} probes {took:6.1f} s{mark}",
            flush=True,
        )
    times = f"median {median(seconds):.1f} s, at most {max(seconds):.1f}"
    counts = f"median {median(probes):g} probes, at most {max(probes)}"
    print(f"{right} of {len(chosen)} right; {times}; {counts}")


def run_bisect(answer: dict[str, Any], when: str) -> tuple[dict[str, Any], float]:
    """Bisect a change without the log; return the JSON and the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        start = perf_counter()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "conformance", "bisect", str(FOLDER / answer["script"])),
                *("--good", answer["good"], "--bad", answer["bad"], "--when", when, "--fresh"),
                *("--find", answer.get("find", "bad"), "--json", str(file)),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        took = perf_counter() - start
        if not (file.exists() and file.stat().st_size):
            return {"error": done.stderr.strip().rpartition("\n")[2]}, took
        found: dict[str, Any] = json.loads(file.read_text())
        return found, took


def read_first_bad(found: dict[str, Any]) -> str:
    """Return the first release of the changed behaviour, or the error."""
    if "error" in found:
        return f"error: {found['error']}"
    return str(found["changes"][0]["after"])


if __name__ == "__main__":
    main()
