"""Compiling one program again and again in a real cell, whatever becomes of the process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.stored_job import load_value
from conformance.model.outcome import Conformance, Outcome
from conformance.model.value import to_array
from conformance.triage.passes.prober import PassProber
from conformance.triage.passes.settings import DISABLED, parse_pass_names
from tests.workbench import NEWEST, OLD, Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.runs.stored_job import StoredJob

pytestmark = pytest.mark.cell
DIVISION = """\
x = np.linspace(0.1, 7.7, 64, dtype=np.float32)
return Program(
    lambda x: x / 3.0, args=(x,), jit={"donate_argnums": 0}, reference=lambda x: x / np.float32(3)
)
"""
TOLD = """\
import jax, pathlib

def told():
    what = pathlib.Path(FILE).read_text()
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(60)
    return np.int32(what)

return Program(lambda: jax.pure_callback(told, jax.ShapeDtypeStruct((), np.int32)), reference=1)
"""


@contextmanager
def probing(
    folder: Path, body: str, decorator: str = "program()", release: str = OLD
) -> Iterator[PassProber]:
    """Probe a program with this body."""
    with Bench(planned_cell(release), folder) as bench:
        job = bench.job(body, decorator, top=f"FILE = {str(folder / 'told')!r}\n")
        with PassProber(bench.worker, job, BlobStore(folder / "blobs")) as prober:
            yield prober


def number(side: StoredJob) -> int:
    """Return the one number of a value."""
    (leaf,) = load_value(side).leaves
    return int(to_array(leaf))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("release", [OLD, NEWEST])
def test_passes_are_disabled_by_name(tmp_path: Path, release: str) -> None:
    """On releases of which an option may be no list, too; the program can be run many times."""
    with probing(tmp_path, DIVISION, "program(rtol=0.0, atol=0.0)", release) as prober:
        names = parse_pass_names(prober.list_dumps())
        assert "algsimp" in names
        assert "algsimp" not in parse_pass_names(prober.list_dumps(["algsimp"]))
        seen = {
            disabled: prober.compile({DISABLED: disabled}).record
            for disabled in ("", "algsimp", "no-such-pass", "no-such-pass,algsimp")
        }
        assert {record.outcome for record in seen.values()} == {Outcome.OK}
        conforming = {name for name in seen if seen[name].conformance is Conformance.CONFORMS}
        assert conforming == {"algsimp", "no-such-pass,algsimp"}
        assert prober.lost == 0


def test_a_process_that_is_lost_is_replaced(tmp_path: Path) -> None:
    """By a crash, or because it takes too long: each is an outcome, and the next one is as ever."""
    told = tmp_path / "told"
    with probing(tmp_path, TOLD, "program(timeout=2.0)") as prober:
        told.write_text("1")
        first = prober.compile({})
        assert (first.record.conformance, number(first)) == (Conformance.CONFORMS, 1)
        told.write_text("crash")
        crashed = prober.compile({}).record
        assert (crashed.outcome, crashed.stage) == (Outcome.CRASHED, "execute")
        assert crashed.error is not None
        assert crashed.error.type == "SIGSEGV"
        assert crashed.conformance is Conformance.DEVIATES
        told.write_text("hang")
        assert prober.compile({}).record.outcome is Outcome.TIMED_OUT
        told.write_text("2")
        last = prober.compile({})
        assert (last.record.conformance, number(last)) == (Conformance.DEVIATES, 2)
        assert prober.lost == 2


def test_a_flag_that_the_release_does_not_know_is_refused(tmp_path: Path) -> None:
    """By XLA itself, and the process goes on."""
    with probing(tmp_path, DIVISION) as prober:
        refused = prober.compile({"xla_no_such_flag": True}).record
        assert refused.error is not None
        assert "No such compile option" in refused.error.message
        assert prober.compile({}).record.outcome is Outcome.OK


def test_options_of_jax_are_those_of_the_cell(tmp_path: Path) -> None:
    """A program runs again with another setting."""
    body = "return Program(lambda x: x, args=(np.float64([1]),))"
    with probing(tmp_path, body) as prober:
        assert prober.config["jax_enable_x64"] is False
        (narrow,) = load_value(prober.compile({})).leaves
        (wide,) = load_value(prober.run_with_option("jax_enable_x64", True)).leaves
        assert (narrow.dtype, wide.dtype) == ("float32", "float64")


def test_a_program_that_is_not_compiled_says_why_each_time(tmp_path: Path) -> None:
    """With the error of its stage."""
    with probing(tmp_path, "return Program(lambda: 1 / 0)") as prober:
        assert prober.list_dumps() == []
        for _ in range(2):
            record = prober.compile({DISABLED: "algsimp"}).record
            assert (record.outcome, record.stage) == (Outcome.RAISED, "trace")
            assert record.error is not None
            assert record.error.type == "ZeroDivisionError"
