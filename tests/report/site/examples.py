"""Sites of runs made by hand: one with all there is to see, one of what others would like to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from conformance.engine.cache.differences import DiffCache
from conformance.engine.runs.loader import load_run
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run import Exclusion, RunCase, RunCell
from conformance.model.traceback import RaisedException, encode_traceback
from conformance.report.history import make_history
from conformance.report.report import Report
from conformance.report.site.site import render_site
from conformance.report.suites.conformance_history import SuiteOutcome as Ended
from conformance.report.suites.conformance_history import SuiteResult, TrackedTest
from conformance.report.suites.conformance_runs import make_suite_history
from tests.builders import value
from tests.report.raising import FRAMES, library, own
from tests.report.runs import Directory, cell_of
from tests.report.suite_runs import suite_run

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = ("0.5.3", "0.6.2", "0.7.0", "0.8.3", "0.10.2")
CPU = tuple(f"jax{release}-py311-cpu8" for release in RELEASES)
TPU = tuple(f"jax{release}-py311-tpu.v5e.2x2" for release in RELEASES[1:])
FAR = "runs on cpu, the cell is tpu:v5e:2x2"
ATTACK = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
NASTY = f"{ATTACK} \"quoted\" 'single' \x00\x1b[31m \u202egnihton\u202c \u2028 &amp; ${{1}} `x`"
HOSTILE_CASE = f"hostile/{NASTY}"
HUGE = 10_000_000


def full_report(folder: Path) -> Report:
    """Return a report with every kind of cell and of change.

    Args:
        folder: Where the run's directory is put.
    """
    run = Directory(folder / "night-1")
    for cell in (*CPU, *TPU):
        run.job("loops/steady", cell, value(np.arange(4.0)))
    for at, cell in enumerate(CPU):
        wrong = at < 2
        run.job(
            "loops/mended", cell, value(np.array([2.0 if wrong else 1.0])),
            conformance=Conformance.DEVIATES if wrong else Conformance.CONFORMS,
            verdict=Verdict.KNOWN if wrong else Verdict.MATCH,
            reasons=("deviation jax<0.7: doubles",) if wrong else (),
        )  # fmt: skip
        broken = at >= 3
        run.job(
            "shapes/broken", cell, None if broken else value(np.ones(2)),
            error=("ValueError", "no such axis") if broken else None,
            texts=FRAMES if broken else {},
            verdict=Verdict.REGRESSED if broken else Verdict.MATCH,
            reasons=("raised ValueError, golden gave a value",) if broken else (),
        )  # fmt: skip
        run.job("shapes/even", cell, value(np.ones(3)))
    run.job(
        "shapes/killed", CPU[-1], verdict=Verdict.CRASHED, outcome=Outcome.CRASHED,
        conformance=Conformance.DEVIATES, reasons=("ended by SIGSEGV",),
        error=("SIGSEGV", ""),
    ).job(
        "shapes/unlucky", CPU[-1], verdict=Verdict.INFRA, outcome=Outcome.INFRA,
        conformance=Conformance.UNKNOWN, reasons=("no space left on device",),
    )  # fmt: skip
    titles = {
        "loops/steady": "A loop that stays as it is.\n\nMore of it.",
        "loops/mended": "A sum that was doubled.",
        "shapes/broken": "An axis that went away.",
    }
    cases = {
        record.case: RunCase(file="cases/f/t.py", line=3, doc=titles.get(record.case, "A case."))
        for record in run.records
    }
    left_out = [
        Exclusion(case=case, cell=cell, reason=FAR) for case in cases for cell in TPU
        if case != "loops/steady"
    ]  # fmt: skip
    plan = [(record.case, record.cell) for record in run.records]
    loaded = run.loaded(
        cases=cases, exclusions=tuple(left_out), plan=(*plan, ("shapes/even", TPU[0])),
        cells=tuple(map(cell_of, (*CPU, *TPU))),
    )  # fmt: skip
    return Report((loaded,))


def hostile_report(folder: Path) -> Report:
    """Return a report whose every text wants to be more than text.

    Args:
        folder: Where the run's directory is put.
    """
    run = Directory(folder / "hostile")
    cells = (CPU[0], NASTY)
    for cell in cells:
        run.job(
            HOSTILE_CASE, cell, verdict=Verdict.REGRESSED, outcome=Outcome.RAISED,
            reasons=(f"{NASTY} because", NASTY), conformance=Conformance.DEVIATES,
        )  # fmt: skip
    run.job("hostile/huge", CPU[0], verdict=Verdict.REGRESSED, reasons=("x" * HUGE,))
    frame = own(file=f"/{NASTY}", function=NASTY, source=NASTY)
    frames = (frame, *(library(NASTY, function=NASTY, source=NASTY) for _ in range(3)), frame)
    chain = (RaisedException(type=NASTY, message=NASTY, notes=(NASTY,), frames=frames),)
    run.job(
        f"hostile/{ATTACK}[1]", CPU[0], verdict=Verdict.CHANGED, error=(NASTY, NASTY + "y" * HUGE),
        conformance=Conformance.UNKNOWN, reasons=("changed",),
        texts={"frames": encode_traceback(chain).decode()},
    )  # fmt: skip
    case = RunCase(file=NASTY, line=1, doc=NASTY, code=f"def f():\n    '''{NASTY}'''", source=NASTY)
    left_out = (Exclusion(case="hostile/huge", cell=NASTY, reason=NASTY),)
    loaded = run.loaded(
        cases={record.case: case for record in run.records}, exclusions=left_out, matrix=NASTY,
        cells=(cell_of(CPU[0]), RunCell(id=NASTY, versions={"jax": NASTY})),
        host={NASTY: NASTY},
    )  # fmt: skip
    return Report((loaded,), (f"{NASTY}: expected a run",))


def write(report: Report, folder: Path) -> Path:
    """Write a report's site and return its folder.

    Args:
        report: What is told.
        folder: That of its runs; the site goes beside them.
    """
    for path, content in render_site(report, make_history(()), DiffCache(folder / "cache", 1)):
        file = folder / "site" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder / "site"


def suite_report(folder: Path) -> Report:
    """Return a report on a suite over releases, with what is kept of releases before.

    Args:
        folder: Where the run's directories are put.
    """
    before = ("0.5.3", "0.6.2")
    tests = {
        "array object/tests/test_signs.py::test_add[a]": "ppkkp",
        "array object/tests/test_signs.py::test_add[b]": "kkkkk",
        "array object/tests/test_signs.py::test_old": "pp---",
        "linear algebra/tests/test_solve.py::test_solve": "pppFF",
        "linear algebra/tests/test_solve.py::test_inverse": "FFppp",
        "linear algebra/tests/test_solve.py::test_norm": "sspps",
        "fft/tests/test_fft.py::test_shift": "--ppp",
        "fft/tests/test_fft.py::test_wild": "pp?pp",
    }
    known = [{"category": "DeprecationWarning", "message": "a.b is deprecated", "where": "a.py:3"}]
    new = [{"category": "FutureWarning", "message": "x will go", "where": "b.py:9", "count": 4}]
    solve = "linear algebra/tests/test_solve.py::test_solve"
    standards = {"0.5.3": "2023.12", "0.6.2": "2023.12"}
    whole = suite_run(folder / "all", RELEASES, tests, standards=standards)
    kept = make_suite_history(load_run(whole.run), {})
    case = TrackedTest(
        group="own_devices", doc="Where `x.device` is.",
        results={r: SuiteResult(outcome=Ended.KNOWN, reason="no device") for r in RELEASES[:4]}
        | {RELEASES[4]: SuiteResult(outcome=Ended.PASSED)},
    )  # fmt: skip
    kept = replace(kept, own_cases={"own_devices/place": case})
    after = RELEASES[len(before) :]
    run = suite_run(
        folder / "suite-1", after, {name: said[len(before) :] for name, said in tests.items()},
        warnings={(solve, r): [*known, *(new if r == RELEASES[-1] else [])] for r in after},
        texts={(solve, r): {"falsifying": f"test_solve(\n    x={NASTY!r},\n)"} for r in after[1:]},
    )  # fmt: skip
    return Report((load_run(run.run),), conformance={"signs": kept})
