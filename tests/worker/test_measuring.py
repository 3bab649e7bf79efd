"""Measurements of a case in a real worker: time, memory, leaks, the plan of the compiler."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.bench.measured import MEASUREMENTS, PHASES, Measured, decode_measured
from conformance.model.outcome import Outcome
from tests.workbench import Bench, planned_cell

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob, Job

pytestmark = pytest.mark.cell
WANTED = {"sizes": [None], "seconds": 0.2, "calls": 0, "scaled": False}


TOP = "import jax\nKEPT = []\n"


def measure(
    bench: Bench, body: str, decorator: str = "program()", **wanted: object
) -> tuple[Measured, ...]:
    """Return what a job with this program measured, at each size."""
    job = replace(bench.job(body, decorator, TOP), measure=WANTED | wanted, alone=True)
    finished = bench.worker.run(job)
    assert finished.outcome is Outcome.OK, finished.error
    return decode_measured(finished.blobs[MEASUREMENTS])


def test_each_phase_of_a_program_is_measured(bench: Bench) -> None:
    """Several times, of which the fastest counts; the size of the executable is known."""
    (seen,) = measure(bench, "return Program(lambda a: (a @ a).sum(), (np.ones((64, 64)),))")
    assert tuple(seen.phases) == PHASES
    assert all(0 < taken.cpu < 10 and 0 < taken.wall < 10 for taken in seen.phases.values())
    assert seen.phases["run"].wall < seen.phases["compile"].wall
    assert seen.compiled.plan["argument_size_in_bytes"] == 64 * 64 * 4
    assert seen.compiled.cost["flops"] >= 64**3
    assert seen.compiled.hlo_instructions
    assert seen.memory["baseline"] > 2**20


def test_two_jobs_take_turns(bench: Bench, tmp_path: Path) -> None:
    """Each phase has as many turns in both, however long a call takes in each of them."""
    body = """\
        steps = 20_000 if os.getpid() % 2 else 10
        fn = lambda a: jax.lax.fori_loop(0, steps, lambda i, a: a * 0.5 + i, a)
        return Program(fn, (np.ones(3, np.float32),))
    """
    job = bench.job(body, "program()", TOP)
    turns = {"path": str(tmp_path / "turns")}

    def run(is_first: bool) -> Measured:
        own = {**WANTED, "seconds": 0.5, "turns": {**turns, "first": is_first}}
        finished = bench.worker.run(replace(job, measure=own, alone=True))
        (seen,) = decode_measured(finished.blobs[MEASUREMENTS])
        return seen

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(run, (True, False))
    assert first.passes == second.passes
    counts = [{name: len(t.turns) for name, t in one.phases.items()} for one in (first, second)]
    assert counts[0] == counts[1]
    assert counts[0]["trace"] == first.passes
    assert counts[0]["run"] > first.passes


def test_the_job_of_a_partner_that_raises_goes_on(bench: Bench, tmp_path: Path) -> None:
    """It is measured alone then."""
    good = bench.job("return Program(lambda a: a + 1, (np.ones(3),))", "program()", TOP)
    bad = bench.job("raise KeyError('x')", "program()", TOP, topic="other")
    turns = {"path": str(tmp_path / "turns")}

    def run(one: Job, is_first: bool) -> FinishedJob:
        own = {**WANTED, "turns": {**turns, "first": is_first}}
        return bench.worker.run(replace(one, measure=own, alone=True))

    with ThreadPoolExecutor(2) as threads:
        ended, raised = threads.map(run, (good, bad), (True, False))
    assert (ended.outcome, raised.outcome) == (Outcome.OK, Outcome.RAISED)


@pytest.mark.parametrize(("leaks", "low", "high"), [(True, 0.9e6, 1.2e6), (False, -1e5, 1e5)])
def test_a_leak_is_seen_by_what_calls_leave_behind(
    bench: Bench, leaks: bool, low: float, high: float
) -> None:
    """A case that keeps one MB of each call."""
    body = f"""\
        def keep(a):
            if {leaks}:
                KEPT.append(np.random.rand(2**17))
            return a

        fn = lambda a: jax.pure_callback(keep, jax.ShapeDtypeStruct((3,), np.float32), a)
        return Program(fn, (np.ones(3, np.float32),))
    """
    (seen,) = measure(bench, body, calls=50)
    assert low < seen.memory["leak"] < high


def test_a_donated_argument_is_copied_for_each_call(bench: Bench) -> None:
    """Its number may be 0."""
    body = "return Program(lambda a: a + 1, (jax.numpy.zeros((4, 4)),), jit={'donate_argnums': 0})"
    (seen,) = measure(bench, body)
    assert "run" in seen.phases
    assert "dispatch" not in seen.phases


def test_a_slow_call_is_not_repeated(bench: Bench) -> None:
    """Its first call tells enough."""
    body = """\
        import time
        def wait(a):
            time.sleep(1.1)
            return a

        shape = jax.ShapeDtypeStruct((3,), np.float32)
        return Program(lambda a: jax.pure_callback(wait, shape, a), (np.ones(3, np.float32),))
    """
    (seen,) = measure(bench, body, calls=50)
    assert seen.phases["first"].wall > 1
    assert "run" not in seen.phases


@pytest.mark.long
def test_the_compilation_of_a_call_is_no_dispatch(tmp_path: Path) -> None:
    """From 0.4.36 to 0.5.0 a call compiles again what was compiled ahead of time."""
    body = """\
        arrays = [np.full(4, i, np.float32) for i in range(200)]
        return Program(lambda *arrays: sum(a[0] for a in arrays), arrays)
    """
    with Bench(planned_cell("0.5.0"), tmp_path) as bench:
        (seen,) = measure(bench, body)
    assert seen.phases["dispatch"].wall < seen.phases["compile"].wall / 5


@pytest.mark.long
def test_calls_over_several_devices_wait_for_each_other(tmp_path: Path) -> None:
    """Collectives of calls in flight wait for threads that other calls hold, e.g. on 0.5.1."""
    body = """\
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
        place = lambda a, *axes: jax.device_put(a, NamedSharding(mesh, PartitionSpec(*axes)))
        w = place(np.ones((64, 64), np.float32), None, "y")
        x = place(np.ones((32, 64), np.float32), "x")
        return Program(jax.grad(lambda w, x: ((x @ w) ** 2).sum()), (w, x))
    """
    with Bench(planned_cell("0.5.1"), tmp_path) as bench:
        (seen,) = measure(bench, body, "program(devices=4)")
    assert seen.phases["dispatch"].wall < seen.phases["first"].wall


def test_a_longer_leading_axis_takes_more(bench: Bench) -> None:
    """The plan of the compiler follows the arguments."""
    body = "return Program(lambda a: a + 1, (np.ones((8, 4), np.float32),))"
    seen = measure(bench, body, sizes=[1, 4], scaled=True)
    assert [one.size for one in seen] == [1, 4]
    sizes = [one.compiled.plan["argument_size_in_bytes"] for one in seen]
    assert sizes == [8 * 4 * 4, 4 * 8 * 4 * 4]


def test_an_error_of_the_case_is_an_outcome(bench: Bench) -> None:
    """As in a run."""
    job = replace(bench.job("raise KeyError('x')"), measure=WANTED, alone=True)
    finished = bench.worker.run(job)
    assert (finished.outcome, finished.error.type) == (Outcome.RAISED, "KeyError")  # type: ignore[union-attr]


def test_malformed_measurements_are_refused() -> None:
    """A job can write anything."""
    with pytest.raises(ValueError, match="measurements of a worker"):
        decode_measured(b'{"passes": -1, "phases": {}}')
