"""The worker process: its identity, concurrent jobs, and its end."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from conformance.engine.workers.client import Worker, WorkerDiedError
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from conformance.worker.cgroups import MemoryGroups
from tests.workbench import OLD, Bench, leaf_of, planned_cell, python_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def spawning(bench: Bench) -> Iterator[Bench]:
    """A worker of the same release that gives each job a fresh interpreter."""
    with Bench(bench.planned, bench.folder, spawn=True) as made:
        yield made


def test_a_missing_interpreter_is_an_infrastructure_error(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(InfrastructureError, match="nowhere does not start: No such file"):
        Worker(tmp_path / "nowhere")


def test_a_worker_without_a_hello_shows_its_output(tmp_path: Path) -> None:
    """The message has the text that the worker printed instead."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no jax here >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(InfrastructureError, match="did not start; output: no jax here"):
        Worker(python)


def test_a_worker_that_sends_garbage_is_ended(tmp_path: Path) -> None:
    """Malformed bytes are no hello."""
    python = tmp_path / "python"
    python.write_text('#!/bin/bash\nprintf "\\377\\377\\377\\377" >&$4\nsleep 600\n')
    python.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not start"):
        Worker(python)
    assert time.monotonic() - start < 60


@pytest.mark.cell
def test_a_worker_reports_its_identity(bench: Bench) -> None:
    """Its packages are those of the lock, and it can fork."""
    identity = bench.worker.identity
    assert identity["versions"].items() >= dict(bench.planned.versions).items()
    assert identity["python"].startswith(bench.planned.cell.python)
    assert identity["spawn"] == ""


@pytest.mark.long(keep=1)
@pytest.mark.cell
def test_a_fork_and_a_fresh_interpreter_see_the_same(bench: Bench, spawning: Bench) -> None:
    """The two ways of running a job differ in nothing a case can observe."""
    body = """
        import jax, jax.numpy as jnp
        return {"numbers": jnp.sin(jnp.arange(5.0)), "random": jax.random.normal(jax.random.key(1)),
                "devices": len(jax.devices()), "x64": jnp.arange(3).dtype.name,
                "environment": sorted(os.environ), "path": sys.path[1:], "flags": str(sys.flags),
                "folder": sorted(os.listdir()), "module": __name__, "input": sys.stdin.read()}
    """
    decorator = "probe(devices=3, x64=True)"
    assert value_of(bench.run(body, decorator)) == value_of(spawning.run(body, decorator))


@pytest.mark.long(keep=2)
@pytest.mark.cell
@pytest.mark.parametrize(
    ("body", "timeout", "outcome"),
    [
        ("raise ValueError('x')", 60, "raised"),
        ("os.abort()", 60, "crashed"),
        ("time.sleep(60)", 3, "timed_out"),
    ],
)
def test_a_fresh_interpreter_ends_like_a_fork(
    spawning: Bench, body: str, timeout: int, outcome: str
) -> None:
    """Errors, crashes and hangs have the same outcomes."""
    assert spawning.run(body, f"probe(timeout={timeout})").outcome == outcome


@pytest.mark.cell
def test_the_server_preloads_what_many_jobs_load(bench: Bench) -> None:
    """LAPACK's home and the search for plugins cost more than most jobs; no backend is made.

    The pattern by which jax recognises a user's file is compiled again after a case file that
    drops it.
    """
    body = """
        from jax._src import source_info_util, xla_bridge
        return [xla_bridge._plugins_registered, "scipy.linalg.cython_lapack" in sys.modules,
                bool(source_info_util._exclude_path_regex.cache_info().currsize),
                xla_bridge.backends_are_initialized()]
    """
    forgotten = "from jax._src import source_info_util\nsource_info_util.register_exclusion('/a')"
    leaves = value_of(bench.run(body, top=forgotten)).leaves
    assert [leaf.data for leaf in leaves] == [b"True", b"True", b"True", b"False"]


@pytest.mark.cell
def test_each_job_has_its_devices_flags_and_config(bench: Bench) -> None:
    """Device count, XLA flags, x64 and config are set for one job after the other."""
    body = """
        import jax
        return [jax.device_count(), os.environ["XLA_FLAGS"], jax.numpy.ones(1).dtype.name]
    """
    some = bench.run(body, "probe(devices=5, xla_flags=['--xla_cpu_enable_fast_math=false'])")
    devices, flags, dtype = (leaf.data.decode() for leaf in value_of(some).leaves)
    assert devices == "5"
    assert flags.startswith("'--xla_cpu_enable_fast_math=false ")
    assert dtype == "'float32'"
    other = bench.run(body, "probe(x64=True)", topic="other")
    assert [leaf.data for leaf in value_of(other).leaves][::2] == [b"1", b"'float64'"]


@pytest.mark.cell
def test_config_of_a_case_is_set_before_it_is_built(bench: Bench) -> None:
    """`config=` reaches the case; a name that jax lacks raises in that job alone."""
    body = "import jax; return jax.config.jax_numpy_rank_promotion"
    seen = bench.run(body, "probe(config={'jax_numpy_rank_promotion': 'raise'})")
    assert leaf_of(seen).data == b"'raise'"
    unknown = bench.run(body, "probe(config={'jax_no_such_option': 1})", topic="unknown")
    assert unknown.error is not None
    assert unknown.error.type == "AttributeError"


@pytest.mark.cell
def test_a_flag_that_xla_does_not_know_is_unsupported(bench: Bench) -> None:
    """XLA aborts with a message; the next job is unharmed."""
    ended = bench.run(
        "import jax; return jax.device_count()", "probe(xla_flags=['--xla_no_such_flag=1'])"
    )
    assert ended.outcome is Outcome.UNSUPPORTED
    assert ended.error is not None
    assert "xla_no_such_flag" in ended.error.message
    assert bench.run("return 1", topic="next").outcome is Outcome.OK


@pytest.mark.cell
def test_one_worker_runs_two_jobs_at_a_time(bench: Bench) -> None:
    """Each caller gets its own frames."""
    body = "begin = time.time(); time.sleep(0.5); return [{n}, begin, time.time()]"
    jobs = [bench.job(body.replace("{n}", str(n)), topic=f"t{n}") for n in range(2)]
    for job in jobs:  # once, so that both case files are loaded
        bench.worker.run(job)
    with ThreadPoolExecutor(2) as pool:
        ended = [value_of(finished) for finished in pool.map(bench.worker.run, jobs)]
    (one, begin, end), (two, other_begin, other_end) = (
        [float(leaf.data) for leaf in value.leaves] for value in ended
    )
    assert (one, two) == (0, 1)
    assert begin < other_end
    assert other_begin < end


@pytest.mark.cell
def test_a_killed_worker_raises_for_each_job(new_bench: Bench) -> None:
    """For the running job and for the next one."""
    job = new_bench.job("time.sleep(60)")
    threading.Timer(0.5, os.kill, (new_bench.pid, signal.SIGKILL)).start()
    for _ in range(2):
        with pytest.raises(WorkerDiedError, match="the worker ended"):
            new_bench.worker.run(job)


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("way", ["close", "kill"])
def test_no_process_outlives_its_worker(new_bench: Bench, way: str) -> None:
    """No process outlives its worker."""
    job = new_bench.job("time.sleep(60)")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(new_bench.worker.run, job)
        processes = [psutil.Process(new_bench.pid)]
        while len(processes) < 2:
            processes = [processes[0], *processes[0].children(recursive=True)]
        getattr(new_bench.worker, way)()
        assert psutil.wait_procs(processes, timeout=5)[1] == []
        assert isinstance(running.exception(), WorkerDiedError)


@pytest.mark.long(keep=1)
@pytest.mark.cell
@pytest.mark.parametrize("killed", [False, True])
def test_a_worker_that_ended_leaves_no_folder(new_bench: Bench, *, killed: bool) -> None:
    """The scratch folder of a job that was under way goes as well, even if the worker is killed."""
    job = new_bench.job("open('mark', 'w').write(os.getcwd()); time.sleep(60)")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(new_bench.worker.run, job)
        folders: list[str] = []
        while not folders:
            folders = [
                child.cwd()
                for child in psutil.Process(new_bench.pid).children()
                if Path(child.cwd()).name.startswith("job-")
            ]
        if killed:
            new_bench.worker.kill()
        new_bench.worker.close()
    assert not Path(folders[-1]).parent.exists()


@pytest.mark.cell
def test_a_worker_ends_with_its_orchestrator(tmp_path: Path) -> None:
    """The end of its pipe is enough."""
    bench = Bench(planned_cell(OLD), tmp_path)
    process = psutil.Process(bench.pid)
    assert bench.worker._process.stdin is not None
    os.close(os.dup(bench.worker._process.stdin.fileno()))  # a copy that closes ends nothing
    assert process.is_running()
    bench.worker._process.stdin.close()
    assert psutil.wait_procs([process], timeout=5)[1] == []
    bench.worker.close()


@pytest.mark.cell
def test_a_cell_without_jax_does_not_start(tmp_path: Path) -> None:
    """The reason is in the message."""
    bare = python_of(planned_cell(OLD)).parent / "python"
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {bare} -S "$@"\n')  # no site-packages
    wrapper.chmod(0o755)
    with pytest.raises(InfrastructureError, match="No module named 'jax'"):
        Worker(wrapper)


@pytest.mark.cell
def test_a_cgroup_limits_memory_between_two_measurements(bench: Bench) -> None:
    """Within a tenth of a second a job could take all that the host has."""
    groups = MemoryGroups()
    if (group := groups.make(2**30)) is None:
        pytest.skip("this host has no cgroup that may be written")
    groups.give_back(group)
    body = "import mmap; m = mmap.mmap(-1, 3 * 2**30, flags=34 | 0x8000); return len(m)"
    finished = bench.run(body, "probe(memory=600)")
    assert finished.outcome == Outcome.OUT_OF_MEMORY
    assert finished.max_rss_bytes < 1200 * 2**20
