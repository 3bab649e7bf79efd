"""Jobs of several processes have one outcome, and leave nothing behind."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from conformance.model.outcome import Outcome, Stage
from conformance.model.value import to_array
from tests.workbench import OLD, Bench, leaf_of, planned_cell, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.job import PlannedCell

pytestmark = pytest.mark.cell
TOP = """
import jax, jax.numpy as jnp
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec as P

def meet():
    multihost_utils.sync_global_devices("here")
"""
PROBE = "probe(devices=2)"
PATIENT = "probe(devices=2, timeout=600)"
"""Of a job that would wait for ten minutes: whatever ends it within two does not wait."""
TOTAL = """
    mesh = env.mesh(4, "x")
    total = env.compat.shard_map(
        lambda x: (x + lax.axis_index("x"), lax.psum(x.sum(), "x")),
        mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))
    return Program(total, args=(np.arange(8, dtype=np.float32),), reference=lambda x: (
        x + np.repeat(np.arange(4), 2), x.sum()))
"""


def of_processes(planned: PlannedCell, count: int) -> PlannedCell:
    """Return a cell as one of several processes."""
    return replace(planned, cell=replace(planned.cell, platform=f"cpu-mp{count}"))


@pytest.fixture
def ranks(shared_bench: Bench, tmp_path: Path) -> Iterator[Bench]:
    """A kept worker, its jobs run as two ranks; none of them leaves a process behind."""
    yield Bench(of_processes(shared_bench.planned, 2), tmp_path, shared_bench.worker)
    end = time.monotonic() + 2
    while (left := psutil.Process(shared_bench.pid).children()) and time.monotonic() < end:
        time.sleep(0.02)
    assert left == []


def test_ranks_assemble_one_value(ranks: Bench) -> None:
    """NumPy arguments are distributed over the ranks."""
    finished = ranks.run(TOTAL, "program(devices=4)", TOP)
    moved, total = value_of(finished).leaves
    assert to_array(moved).tolist() == [0, 1, 3, 4, 6, 7, 9, 10]
    assert moved.sharding == "tiles[0=0:2 1=2:4 2=4:6 3=6:8]"
    assert (to_array(total).item(), total.sharding) == (28, "replicated[4]")
    assert {"jaxpr", "stablehlo", "hlo", "layout", "reference"} <= set(finished.blobs)
    assert "stdout" not in finished.blobs
    assert {"import", "compile", "execute", "job"} <= set(finished.seconds)


def test_every_rank_has_its_devices(ranks: Bench) -> None:
    """Consecutive devices, and as many in all as the case needs."""
    body = """
        seen = [device.process_index for device in env.devices]
        return seen, len(jax.local_devices()), jax.process_count()
    """
    value = value_of(ranks.run(body, "probe(devices=4)", TOP))
    assert [leaf.data for leaf in value.leaves] == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_the_reference_gets_whole_arguments(ranks: Bench) -> None:
    """An array distributed by `env.put` is one NumPy array for the reference."""
    body = """
        sharding = NamedSharding(env.mesh(2, "x"), P("x"))
        x = env.put(np.arange(4.0), sharding)
        return Program(lambda x: x * 2, args=(x,), reference=lambda x: x * 2)
    """
    finished = ranks.run(body, "program(devices=2)", TOP)
    assert to_array(leaf_of(finished)).tolist() == [0, 2, 4, 6]
    assert "reference" in finished.blobs


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("deed", "ending"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        ("os._exit(3)", "exited with status 3 before the job ended"),
    ],
)
def test_a_rank_that_dies_ends_the_job(ranks: Bench, rank: int, deed: str, ending: str) -> None:
    """At once, although the others wait for it in a collective."""
    start = time.monotonic()
    body = f"""
        if jax.process_index() == {rank}:
            {deed}
        meet()
        return 1
    """
    finished = ranks.run(body, PATIENT, TOP)
    assert finished.outcome is Outcome.CRASHED
    assert finished.error is not None
    assert finished.error.message == f"rank {rank} of 2 {ending}"
    assert time.monotonic() - start < 120


def test_ranks_with_the_same_end_are_all_named(ranks: Bench) -> None:
    """A compiler that crashes does so on every rank.

    The first rank last: it holds what connects them, and would take the others along.
    """
    body = """
        import ctypes
        if jax.process_index() == 0:
            time.sleep(0.3)
        ctypes.string_at(0)
    """
    finished = ranks.run(body, PROBE, TOP)
    assert finished.error is not None
    assert finished.error.message == "each of 2 ranks was ended by SIGSEGV"


def test_a_rank_that_hangs_is_named(ranks: Bench) -> None:
    """At the timeout everything ends, and the error names the rank that is behind."""
    body = """
        if jax.process_index() == 1:
            time.sleep(60)
        return Program(lambda x: x + 1, args=(np.ones(2),))
    """
    finished = ranks.run(body, "program(devices=2, timeout=5)", TOP)
    assert (finished.outcome, finished.stage) == (Outcome.TIMED_OUT, Stage.BUILD)
    assert finished.error is not None
    assert finished.error.message.endswith("; rank 1 of 2 did not get beyond build")


def test_a_rank_that_raises_alone_is_named(ranks: Bench) -> None:
    """The other ranks, which wait for it in a collective, are ended soon."""
    start = time.monotonic()
    body = """
        if jax.process_index() == 1:
            raise ValueError("bad shape")
        meet()
        return 1
    """
    finished = ranks.run(body, PATIENT, TOP)
    assert finished.error is not None
    assert (finished.outcome, finished.error.type) == ("raised", "ValueError")
    assert finished.error.message == "on rank 1 of 2 only: bad shape"
    assert time.monotonic() - start < 120


def test_an_error_of_all_ranks_is_one_error(ranks: Bench) -> None:
    """As of a single process."""
    finished = ranks.run("raise ValueError('bad shape')", PROBE, TOP)
    assert finished.error is not None
    assert (finished.outcome, finished.error.message) == ("raised", "bad shape")
    assert b"bad shape" in finished.blobs["traceback"]


def test_a_feature_that_no_rank_has_is_unsupported(ranks: Bench) -> None:
    """With the reason, once."""
    finished = ranks.run("env.unsupported('no such thing')", PROBE, TOP)
    assert finished.error is not None
    assert (finished.outcome, finished.error.message) == ("unsupported", "no such thing")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("fn = lambda x: x + jax.process_index()", "jaxpr: of ranks 0 and 1: semantic (constant)"),
        (
            """fn = env.compat.shard_map(
                lambda x: x + lax.axis_index("x"), mesh=env.mesh(2, "x"),
                in_specs=P(), out_specs=P(), check=False)""",
            "value: out at [0] is 1.0 on rank 0, 2.0 on rank 1; 2 of 2 elements differ",
        ),
    ],
    ids=["program", "replicas"],
)
def test_ranks_that_differ_are_an_error(ranks: Bench, case: str, said: str) -> None:
    """It names the artifact, the ranks and the first difference; each rank's artifact is kept."""
    body = f"{case}\nreturn Program(fn, args=(np.ones(2, np.float32),))"
    finished = ranks.run(body, "program(devices=2)", TOP)
    assert finished.error is not None
    assert (finished.outcome, finished.error.type) == ("raised", "RanksDiffer")
    assert said in finished.error.message
    name = said.partition(":")[0]
    assert finished.blobs[f"{name}.rank0"] != finished.blobs[f"{name}.rank1"]
    assert name not in finished.blobs


def test_output_is_labelled_by_rank(ranks: Bench) -> None:
    """Also if the job fails, and if the last line has no end."""
    body = """
        os.write(1, b"line of %d\\npart of %d" % (jax.process_index(), jax.process_index()))
        raise ValueError
    """
    finished = ranks.run(body, PROBE, TOP)
    lines = finished.blobs["stdout"].decode().splitlines()
    assert sorted(lines) == [
        "[rank 0] line of 0", "[rank 0] part of 0", "[rank 1] line of 1", "[rank 1] part of 1",
    ]  # fmt: skip


def test_the_memory_of_all_ranks_counts(ranks: Bench) -> None:
    """The limit is for the job; shared memory counts once."""
    body = "kept = np.ones(2**25); time.sleep(20); return kept[:1]"
    finished = ranks.run(body, "probe(devices=2, memory=550)", TOP)
    assert finished.outcome is Outcome.OUT_OF_MEMORY
    assert 550 * 2**20 < finished.max_rss_bytes < 1500 * 2**20


def test_concurrent_jobs_have_separate_coordinators(ranks: Bench) -> None:
    """No rank joins another job."""
    jobs = [ranks.job(TOTAL, "program(devices=4)", TOP)] * 6
    with ThreadPoolExecutor(6) as pool:
        finished = list(pool.map(ranks.worker.run, jobs))
    assert {one.outcome for one in finished} == {Outcome.OK}
    assert len({one.blobs["value"] for one in finished}) == 1


def test_fresh_interpreters_fork_ranks_too(tmp_path: Path) -> None:
    """Without a fork server, ranks are forked before jax is imported; also four of them."""
    with Bench(of_processes(planned_cell(OLD), 4), tmp_path, spawn=True) as bench:
        finished = bench.run(TOTAL, "program(devices=4)", TOP)
    assert to_array(value_of(finished).leaves[0]).tolist() == [0, 1, 3, 4, 6, 7, 9, 10]
