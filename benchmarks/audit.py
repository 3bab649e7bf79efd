"""Checks statements drawn at random from the pages by running them on their two releases.

    python benchmarks/audit.py [--count 60] [--seed 0]

A third each is drawn from the table of the README, the history and `docs/coverage.md`, as far as
they have enough. A statement about a case holds if a fresh run matches the goldens on both
releases, and the stated artifact differs. A statement with a script holds if both outputs are
equal, or differ where `statements/statements.toml` declares it. Each is printed with the behaviour
before and after, so that you can judge its wording. Exit status 1: a statement does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from audit_sources import RELEASES, locate_script, read_coverage, read_history, read_readme
from common import ROOT, checkout_context, prepare

from conformance.cells.provision import provision
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.workers.environment import make_worker_environment
from conformance.model.outcome import Verdict
from conformance.report.behaviour.markdown import describe_golden_change
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from audit_sources import Statement

    from conformance.model.record import Record

    Records = Mapping[tuple[str, str], Record]

EXPECTED = {Verdict.MATCH, Verdict.KNOWN, Verdict.DRIFTED}
NOTHING_RAN = 3
PATIENCE = 120.0
"""Seconds within which a script ends."""
WIDTH = 200


def main() -> int:
    """Draw, run, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    statements = draw_statements(
        [[*read_readme()], [*read_history()], [*read_coverage()]], options.count, options.seed
    )
    records = run_statements(statements)
    true = 0
    for statement in statements:
        lines, holds = (
            check_by_script(statement) if statement.script else check_by_cases(statement, records)
        )
        true += holds
        print(f"{'holds' if holds else 'FALSE'}  {statement.last} to {statement.first}, ", end="")
        print(f"{statement.source}: {statement.text}")
        print(*(f"       {flatten(line, WIDTH)}" for line in lines), sep="\n")
    seconds = time.monotonic() - start
    print(f"{true} of {len(statements)} hold (seed {options.seed}, {seconds:.0f} s)")
    return 0 if true == len(statements) else 1


def draw_statements(sources: Sequence[list[Statement]], count: int, seed: int) -> list[Statement]:
    """Return some statements, from each source in turn."""
    draw = random.Random(seed)  # noqa: S311 - the same statements for the same seed
    shuffled = [draw.sample(source, len(source)) for source in sources]
    return [one for one in chain.from_iterable(zip_longest(*shuffled)) if one][:count]


def run_statements(statements: Iterable[Statement]) -> Records:
    """Run the cases of all statements, and return their records by case and release."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        cases = {*statement.starts, *(one.case.id for one in statement.evidence)}
        for release in (statement.last, statement.first):
            wanted[release] |= cases
    with tempfile.TemporaryDirectory() as folder:
        return {
            (record.case, release): record
            for release in sorted(wanted, key=RELEASES.index)
            if wanted[release]
            for record in run_cases(sorted(wanted[release]), release, Path(folder) / release)
        }


def run_cases(cases: Sequence[str], release: str, folder: Path) -> list[Record]:
    """Run cases on a release, and return the records; cases that are not for it have none."""
    command = [sys.executable, "-m", "conformance", "run", *cases, "--cell", release]
    command += ["--fresh", "--run", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 1, NOTHING_RAN}:
        sys.exit(f"conformance run on {release} ends with {ended.returncode}: {ended.stderr}")
    return [] if ended.returncode == NOTHING_RAN else RunDirectory(folder).read_records()


def check_by_cases(statement: Statement, records: Records) -> tuple[list[str], bool]:
    """Return lines about the cases of a statement, and whether the statement holds."""
    lines, holds = [], bool(statement.evidence or statement.starts)
    for one in statement.evidence:
        before, after = (records.get((one.case.id, r)) for r in (statement.last, statement.first))
        good = is_expected(before) and is_expected(after) and differs(before, after, one.shown_by)
        holds = holds and good
        problem = "" if good else f" (seen: {describe_verdict(before)}, {describe_verdict(after)})"
        lines.append(f"{one.case.id}, {one.shown_by}: {describe_golden_change(one)}{problem}")
    for case in statement.starts:
        before, after = (records.get((case, r)) for r in (statement.last, statement.first))
        good = not (before and before.outcome.observed) and is_expected(after)
        holds = holds and good
        lines.append(f"{case}: {describe_verdict(before)} → {describe_verdict(after)}")
    return lines or ["no golden shows it"], holds


def is_expected(record: Record | None) -> bool:
    """Say whether the verdict of a job is an expected one."""
    return record is not None and record.verdict in EXPECTED


def describe_verdict(record: Record | None) -> str:
    """Return the verdict of a job, or that the case is not for the release."""
    return str(record.verdict) if record else "not for this release"


def differs(before: Record | None, after: Record | None, shown_by: str) -> bool:
    """Say whether two jobs differ in the artifact that shows a change."""
    assert before
    assert after
    if shown_by == "outcome":
        return before.outcome != after.outcome
    if shown_by == "error":
        one, other = (
            (r.outcome, r.error and (r.error.type, r.error.signature)) for r in (before, after)
        )
        return one != other
    if shown_by == "value":
        return before.artifacts.get("value") != after.artifacts.get("value")
    if shown_by == "facts":
        return before.facts != after.facts
    name, _, exact = shown_by.partition("-")
    irs = [record.ir[name] for record in (before, after)]
    return len({ir.exact if exact else ir.canonical for ir in irs}) > 1


def check_by_script(statement: Statement) -> tuple[list[str], bool]:
    """Return a line about the script of a statement, and whether the statement holds."""
    before, after = (run_script(statement, r) for r in (statement.last, statement.first))
    shown = " / ".join(before.splitlines())
    if statement.differs:
        return [f"{statement.script}: {shown} → {' / '.join(after.splitlines())}"], before != after
    alike = before == after and "exit status" not in before
    return [f"{statement.script}: {shown}" if alike else f"{shown} → {after}"], alike


def run_script(statement: Statement, release: str) -> str:
    """Return the output of a statement's script on a release, with its status if it fails."""
    command = [
        str(provide_interpreter(release)),
        "-s",
        "-W",
        "ignore",
        str(locate_script(statement)),
    ]
    variables = make_worker_environment(os.environ, {}, keep_python_path=False)
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env=variables, timeout=PATIENCE
    )
    failed = f"exit status {ended.returncode}" if ended.returncode else ""
    return f"{ended.stdout}{failed}".strip()


@cache
def provide_interpreter(release: str) -> Path:
    """Return the interpreter of a release's environment, provisioned if it is missing."""
    preparation = prepare(f"{release}@cpu8")
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    return provision(planned.cell, lock=lock, cache=checkout_context().cache).python


if __name__ == "__main__":
    sys.exit(main())
