"""Finds the releases at which the behaviour of each script changes, by running all releases.

`python benchmarks/behaviour_changes/every_release.py [NAME...]`, a name as in `tree_map`; all
scripts if none is named. Each is run in a plain process of every release's environment, and its
endings are printed as spans of releases, without cache or bisection. Exit status 1 if
`answers.toml` disagrees.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomllib

from conformance.app.context import ProjectContext
from conformance.app.session import Session
from conformance.cells.provision import provision
from conformance.engine.workers.environment import make_worker_environment
from conformance.judge.errors import make_signature, normalise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent
ANSWERS = HERE / "answers.toml"
AT_ONCE = 2
PATIENCE = 60.0
TRACEBACK = "Traceback (most recent call last):"
RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?:: |:?$)(.*)", re.MULTILINE | re.DOTALL)

SUGGESTION = re.compile(r"\. Did you (?:mean: '[^']*'|forget to import '[^']*')\?$")
"""Suggestion that some interpreters add to the printed message, but not to the exception."""


class Ending(NamedTuple):
    """The outcome of a script on one release."""

    status: int
    error: str
    """Type of the uncaught exception, without its module; empty for none."""
    message: str
    """Message of the exception, in normal form."""
    stdout: str
    """Hash of standard output."""

    def __str__(self) -> str:
        return f"exit {self.status:<3} {self.error or '-':24} stdout {self.stdout}"

    def project(self, when: str) -> str:
        """Return the part of this outcome that `--when` compares."""
        if when == "output":
            return self.stdout
        if when == "error":
            return make_signature(self.error, self.message) if self.error else f"exit {self.status}"
        return str(self.status)


def provide_interpreters() -> dict[str, Path]:
    """Return the interpreter of every release's environment, from old to new."""
    context = ProjectContext(HERE)
    cells, _ = context.select_cells("releases", ())
    preparation = Session(context=context).prepare(cells)
    return {
        planned.cell.release: provision(
            planned.cell, lock=preparation.locks[planned.cell.id], cache=context.cache
        ).python
        for planned in preparation.cells
    }


def run(script: Path, python: Path) -> Ending:
    """Run a script in a plain process."""
    variables = make_worker_environment(os.environ, {}, keep_python_path=False)
    done = subprocess.run(
        [python, "-s", script],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=PATIENCE,
    )
    _, raised, tail = done.stderr.rpartition(TRACEBACK)
    found = RAISED.search(tail) if raised else None
    return Ending(
        status=done.returncode,
        error=found[1].rpartition(".")[2] if found else "",
        message=SUGGESTION.sub("", normalise(found[2])) if found else "",
        stdout=hashlib.sha256(done.stdout.encode()).hexdigest()[:8],
    )


def render_timeline(endings: Mapping[str, Ending]) -> list[str]:
    """Return a line for each span of releases with the same ending."""
    lines = []
    for ending, group in groupby(endings, key=lambda release: endings[release]):
        span = list(group)
        text = f" {ending.message.splitlines()[0][:70]}" if ending.message else ""
        lines.append(f"  {span[0]:>8} .. {span[-1]:8} {ending}{text}")
    return lines


def find_changes(endings: Mapping[str, Ending], answer: Mapping[str, Any]) -> list[str]:
    """Return the releases between an answer's ends at which the compared part changes."""
    ends = {answer["good"], answer["bad"]}
    inside = [release for release in endings if release in ends]
    order = list(endings)
    between = order[order.index(inside[0]) : order.index(inside[-1]) + 1]
    parts = {release: endings[release].project(answer["when"]) for release in between}
    return [after for before, after in pairwise(between) if parts[before] != parts[after]]


def find_disagreements(endings: Mapping[str, Ending], answer: Mapping[str, Any]) -> list[str]:
    """Return the points in which an answer differs from the observed endings."""
    found = []
    expected = answer.get("changes", [answer["first"]])
    if (got := find_changes(endings, answer)) != expected:
        found.append(f"changes at {', '.join(got) or 'no release'}, not at {', '.join(expected)}")
    good, bad = endings[answer["good"]], endings[answer["bad"]]
    if good.status != 0:
        found.append(f"the good end {answer['good']} ends with {good}")
    failed = {
        "error": bool(bad.error),
        "exit": bad.status > 0 and not bad.error,
        "output": bad.status == 0,
        "crash": bad.status < 0,
    }[answer["when"]]
    if not failed:
        found.append(f"the bad end {answer['bad']} ends with {bad}, which is no {answer['when']}")
    return found


def run_everywhere(scripts: Mapping[str, Path]) -> dict[str, dict[str, Ending]]:
    """Run every script on every release, and return the endings by script and release.

    The outer loop is over releases, so that each environment is read from disk only once.
    """
    found: dict[str, dict[str, Ending]] = {name: {} for name in scripts}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for release, python in provide_interpreters().items():
            print(f"jax {release}", file=sys.stderr, flush=True)
            endings = pool.map(partial(run, python=python), scripts.values())
            for name, ending in zip(scripts, endings, strict=True):
                found[name][release] = ending
    return found


def main(names: Sequence[str]) -> int:
    """Print the timeline of each script, and where the answers disagree with it."""
    answers = {
        Path(answer["script"]).stem: answer
        for answer in tomllib.loads(ANSWERS.read_text(encoding="utf-8"))["change"]
    }
    endings_by_name = run_everywhere(
        {name: HERE / answers[name]["script"] for name in names or sorted(answers)}
    )
    agree = 0
    for name, endings in endings_by_name.items():
        print(name, *render_timeline(endings), sep="\n")
        wrong = find_disagreements(endings, answers[name])
        agree += not wrong
        for line in wrong:
            print(f"  ! {line}")
    print(f"{agree} of {len(endings_by_name)} answers agree with what was seen")
    return 0 if agree == len(endings_by_name) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
