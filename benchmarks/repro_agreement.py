"""Checks that the files of `conformance repro` end as the harness recorded the cases.

`python benchmarks/repro_agreement.py RUN CELL [SELECT ...]`: for each job of a run in a cell the
file is written and run with the interpreter of the cell, without the harness. It must end with
status 0 if the case conforms or has no reference, else with the recorded error type, or an
assertion.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.app.context import load_context
from conformance.app.diff.inputs import load_records, select_recorded_cases, select_recorded_cells
from conformance.app.session import Session
from conformance.cells.provision import get_environment_folder
from conformance.cli import main as conformance
from conformance.model.outcome import Conformance, Outcome

if TYPE_CHECKING:
    from conformance.model.record import Record

REMOVED = ("JAX_", "XLA_", "PYTHON")
"""Prefixes of variables that a user's shell would not have."""


def main() -> None:
    """Compare, and print what differs and how many agree."""
    name, selector, *selects = sys.argv[1:]
    context = load_context()
    run = context.runs.open(name)
    (cell,) = select_recorded_cells(context, run, [selector])
    records = load_records(run)
    planned = Session(context=context).prepare([context.find_cell(cell)])
    (lock,) = planned.locks.values()
    folder = get_environment_folder(planned.cells[0].cell, lock, context.cache)
    chosen = [
        case for case in select_recorded_cases(selects, records, name) if (case, cell) in records
    ]
    observed = [records[case, cell] for case in chosen if records[case, cell].outcome.observed]
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        files = [write_repro(record, run.path, Path(scratch)) for record in observed]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            python = folder / "bin" / "python"
            comparisons = pool.map(compare_ending, observed, files, repeat(python))
            for record, comparison in zip(observed, comparisons, strict=True):
                found[comparison.partition(":")[0]] += 1
                if comparison not in {"agrees", "refused"}:
                    print(f"{record.case}: {comparison}")
    print(f"{cell}: {found['agrees']} of {len(observed) - found['refused']} agree", dict(found))


def write_repro(record: Record, run: Path, folder: Path) -> Path | None:
    """Write the file of a job; return None if `repro` refuses the case."""
    plain = "".join(sign if sign.isalnum() else "_" for sign in record.case)
    file = folder / f"{plain}.py"
    arguments = ["repro", record.case, "--cell", record.cell, "--run", str(run), "--out", str(file)]
    with contextlib.redirect_stderr(io.StringIO()):
        return file if conformance(arguments) == 0 else None


def compare_ending(record: Record, file: Path | None, python: Path) -> str:
    """Run a file, and say how its end differs from the record: `agrees`, `refused` or a reason."""
    if file is None:
        return "refused"
    environment = {name: text for name, text in os.environ.items() if not name.startswith(REMOVED)}
    done = subprocess.run(
        [python, file], check=False, capture_output=True, text=True, timeout=300, env=environment,
        cwd=file.parent,
    )  # fmt: skip
    last = (done.stderr.strip().splitlines() or [""])[-1]
    fine = record.conformance is not Conformance.DEVIATES and record.outcome is Outcome.OK
    fine = fine or record.conformance is Conformance.CONFORMS
    if fine:
        return "agrees" if done.returncode == 0 else f"fails: {last}"
    if record.outcome is Outcome.OK:
        return "agrees" if "AssertionError" in done.stderr else f"no assertion: {last}"
    kind = record.error.type if record.error is not None else ""
    if record.outcome is Outcome.CRASHED:
        return "agrees" if done.returncode < 0 else f"does not crash: {last}"
    return "agrees" if kind in done.stderr else f"another error: {last}"


if __name__ == "__main__":
    main()
