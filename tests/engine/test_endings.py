"""Each end of a job has one outcome, and the next job is unharmed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from conformance.model.outcome import Outcome, Stage
from conformance.model.traceback import decode_traceback
from tests.processes import ends_within
from tests.workbench import leaf_of

if TYPE_CHECKING:
    from tests.workbench import Bench

pytestmark = pytest.mark.cell


@pytest.mark.long(keep=7)
@pytest.mark.parametrize(
    ("body", "outcome", "type_", "message"),
    [
        ("raise ValueError('bad shape')", "raised", "ValueError", "bad shape"),
        ("raise KeyboardInterrupt", "raised", "KeyboardInterrupt", ""),
        ("sys.exit(3)", "raised", "SystemExit", "3"),
        ("return None", "raised", "CaseError", "captured nothing"),
        ("return object()", "raised", "TypeError", "out is a object, expected an array"),
        ("os._exit(3)", "crashed", "exit", "exited with status 3"),
        ("os._exit(0)", "crashed", "exit", "exited with status 0"),
        ("os.abort()", "crashed", "SIGABRT", "ended by SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV", "ended by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "SIGKILL", "ended by SIGKILL"),
        ("os.kill(os.getpid(), 35)", "crashed", "signal 35", "ended by signal 35"),
        ("raise MemoryError", "out_of_memory", "MemoryError", ""),
        ("env.unsupported('no such thing')", "unsupported", "unsupported", "no such thing"),
    ],
)
def test_each_kind_of_end_has_its_outcome(
    bench: Bench, body: str, outcome: str, type_: str, message: str
) -> None:
    """Exceptions, exits and signals are distinguished and named."""
    finished = bench.run(body)
    assert finished.error is not None
    assert (finished.outcome, finished.error.type) == (outcome, type_)
    assert message in finished.error.message
    assert finished.stage is Stage.EXECUTE


def test_a_job_that_ends_well(bench: Bench) -> None:
    """A value, the seconds of its stages, its memory, and nothing else."""
    finished = bench.run("return np.float32([1, 2])")
    assert (finished.outcome, finished.error) == (Outcome.OK, None)
    assert list(finished.blobs) == ["value"]
    assert {"import", "execute", "job"} <= set(finished.seconds)
    assert finished.max_rss_bytes > 2**20


def test_an_error_names_the_last_line_of_the_case(bench: Bench) -> None:
    """Not the frames of jax and NumPy below it."""
    finished = bench.run("x = 1\nnp.reshape(np.zeros(3), (2, 2))\nreturn x")
    assert finished.error is not None
    assert finished.error.where.endswith("family/topic.py:8")
    assert b"cannot reshape" in finished.blobs["traceback"]


def test_an_exception_whose_message_raises_is_named(bench: Bench) -> None:
    """It is an observation like any other."""
    top = "class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError('no words')\n"
    finished = bench.run("raise Odd", top=top)
    assert finished.error is not None
    assert (finished.outcome, finished.error.type) == ("raised", "Odd")


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    "body", ["time.sleep(600)", "while True: pass", "threading.Event().wait()"]
)
def test_a_hang_is_killed(bench: Bench, body: str) -> None:
    """Asleep, busy or waiting: the job ends at its timeout."""
    start = time.monotonic()
    finished = bench.run(body, "probe(timeout=0.3)")
    assert finished.outcome is Outcome.TIMED_OUT
    assert finished.error is not None
    assert finished.error.message == "no end within the timeout of 0.3 s"
    assert time.monotonic() - start < 60


def test_a_job_beyond_its_memory_is_ended(bench: Bench) -> None:
    """The limit is about resident memory, and the message names it."""
    body = "kept = []\nwhile True: kept.append(np.ones(2**23)); time.sleep(0.03)"
    finished = bench.run(body, "probe(memory=600)")
    assert finished.outcome is Outcome.OUT_OF_MEMORY
    assert finished.error is not None
    assert "600 MiB" in finished.error.message
    assert 600 * 2**20 < finished.max_rss_bytes < 2000 * 2**20


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return np.zeros(10**9)", "the observation has 7629 MiB, expected at most 256 MiB"),
        ("return Observed(1.0, reference=lambda: np.zeros(10**9))", "has 7629 MiB"),
        ("return Observed(1.0, artifacts={'note': 'x' * (257 << 20)})",
         "more than 256 MiB with the artifact note"),
    ],
    ids=["value", "reference", "artifact"],
)  # fmt: skip
def test_an_observation_that_is_too_large_is_one_clear_error(
    bench: Bench, body: str, said: str
) -> None:
    """The job raises before it copies data, and neither server nor orchestrator grows."""
    before = psutil.Process().memory_info().rss
    finished = bench.run(body)
    assert finished.outcome is Outcome.RAISED
    assert finished.error is not None
    assert finished.error.type == "CaseError"
    assert said in finished.error.message
    assert finished.error.message.endswith("observe less, or raise observation_mb")
    assert "value" not in finished.blobs or len(finished.blobs["value"]) < 1 << 20
    assert psutil.Process().memory_info().rss < before + (64 << 20)


def test_a_case_may_raise_its_observation_limit(bench: Bench) -> None:
    """The limit is for all of its artifacts together."""
    body = "return np.zeros(3 << 20, np.uint8)"
    finished = bench.run(body, "probe(observation_mb=2)")
    assert finished.error is not None
    assert "has 3 MiB, expected at most 2 MiB" in finished.error.message
    assert bench.run(body, "probe(observation_mb=3)").outcome is Outcome.OK


def test_what_cannot_be_computed_is_not_too_large(bench: Bench) -> None:
    """A result that fails while it is computed has that error, not that of its size.

    On an H200 an array of 400 GiB was reported as too large an observation, not as out of memory.
    """
    body = """
        def fail(x):
            raise ValueError("computed late")
        one = jax.ShapeDtypeStruct((), np.float32)
        slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, y: y @ y, x).sum())
        late = jax.jit(lambda x: jnp.broadcast_to(jax.pure_callback(fail, one, x), 1 << 20))
        return late(slow(jnp.eye(600)))
    """
    header = "import jax\nimport jax.numpy as jnp"
    finished = bench.run(body, "probe(observation_mb=2)", header)
    assert finished.error is not None
    assert "computed late" in finished.error.message


def test_a_job_that_bypasses_the_kit_is_ended_at_its_limit(bench: Bench) -> None:
    """By the supervisor, before the bytes are read."""
    body = """
        from conformance.worker import frames
        for fd in range(3, 64):
            with contextlib.suppress(OSError):
                frames.write(fd, {"artifact": "x"}, bytes(3 << 20))
        return 1
    """
    finished = bench.run(body, "probe(observation_mb=2)", "import contextlib")
    assert finished.outcome is Outcome.CRASHED
    assert finished.error is not None
    assert finished.error.message == "observed more than 2 MiB"


def test_the_end_of_a_flood_of_output_is_kept(bench: Bench) -> None:
    """Of 200 MB on each stream; the server does not grow."""
    (server,) = (p for p in psutil.Process().children() if p.pid == bench.pid)
    before = server.memory_info().rss
    body = """
        for fd in (1, 2):
            for _ in range(200):
                os.write(fd, b"x" * 2**20)
            os.write(fd, b"last words")
        raise ValueError("flooded")
    """
    finished = bench.run(body)
    for name in ("stdout", "stderr"):
        assert finished.blobs[name].endswith(b"x" * 100 + b"last words")
        assert finished.blobs[name].startswith(b"[209")
        assert len(finished.blobs[name]) < 20_000
    assert server.memory_info().rss < before + 50 * 2**20


def test_output_of_a_good_job_is_dropped(bench: Bench) -> None:
    """It is no artifact."""
    assert "stdout" not in bench.run("print('hello'); return 1").blobs


def test_output_of_a_crash_is_kept(bench: Bench) -> None:
    """Also a last line without a line end."""
    finished = bench.run("os.write(1, b'about to'); os.write(2, b'fall'); os.abort()")
    assert finished.blobs["stdout"] == b"about to"
    assert finished.blobs["stderr"].startswith(b"fall")


def test_a_thread_left_running_does_not_hold_the_job(bench: Bench) -> None:
    """A thread that is no daemon would keep an interpreter from ending."""
    start = time.monotonic()
    finished = bench.run("threading.Thread(target=time.sleep, args=(600,)).start(); return 1")
    assert finished.outcome is Outcome.OK
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("session", ["pass", "os.setsid()"], ids=["same session", "own session"])
def test_a_grandchild_does_not_outlive_its_job(bench: Bench, session: str) -> None:
    """In any session."""
    body = f"""
        pid = os.fork()
        if pid == 0:
            {session}
            time.sleep(60)
            os._exit(0)
        time.sleep(0.1)
        return pid
    """
    assert ends_within(int(leaf_of(bench.run(body)).data))


def test_a_tree_of_strays_does_not_outlive_its_job(bench: Bench) -> None:
    """A daemon and its own daemon."""
    body = """
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            inner = os.fork()
            if inner == 0:
                os.setsid()
                os.write(write, b"%d " % os.getpid())
            else:
                os.write(write, b"%d " % os.getpid())
            time.sleep(60)
            os._exit(0)
        time.sleep(0.2)
        return os.read(read, 100).decode()
    """
    pids = leaf_of(bench.run(body)).data.decode().strip("' ").split()
    assert len(pids) == 2
    assert all(ends_within(int(pid), 1) for pid in pids)


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("harm", "look"),
    [
        ("os.chdir('/')", "os.getcwd() == '/'"),
        ("os.environ['HARM'] = 'done'", "'HARM' in os.environ"),
        ("import jax; jax.config.update('jax_enable_x64', True)", "jnp.arange(2).dtype == 'int64'"),
        ("sys.modules['jax'].devices = None", "jnp is None or not callable(jax.devices)"),
        ("np.random.seed(3)", "np.random.random() == 0.5507979025745755"),
    ],
)
def test_changes_to_the_process_end_with_the_job(bench: Bench, harm: str, look: str) -> None:
    """The next job finds the same state as the first."""
    assert bench.run(f"{harm}; return 1").outcome is Outcome.OK
    after = bench.run(f"import jax, jax.numpy as jnp; return bool({look})", topic="next")
    assert leaf_of(after).data == b"False"


def test_each_job_has_an_empty_folder(bench: Bench) -> None:
    """Files in the working directory or the temporary folder are removed with it."""
    body = """
        import tempfile, pathlib
        pathlib.Path("here").write_text("x")
        tempfile.mkstemp()
        return os.getcwd() + " " + str(len(os.listdir()))
    """
    folder, count = leaf_of(bench.run(body)).data.decode().strip("'").split()
    assert count == "2"
    assert not Path(folder).exists()


def test_a_job_that_writes_into_the_workers_channel_is_ended(bench: Bench) -> None:
    """Bytes that are no frame end that job alone."""
    body = """
        for fd in range(3, 64):
            try:
                os.write(fd, b"\\xff" * 64)
            except OSError:
                pass
        time.sleep(5)
    """
    finished = bench.run(body)
    assert finished.outcome is Outcome.CRASHED
    assert finished.error is not None
    assert "channel" in finished.error.message
    assert bench.run("return 1", topic="next").outcome is Outcome.OK


def test_a_case_has_an_empty_standard_input(bench: Bench) -> None:
    """A prompt fails at once."""
    finished = bench.run("return input()")
    assert finished.error is not None
    assert finished.error.type == "EOFError"


def test_an_error_has_frames_of_the_user_and_of_jax(bench: Bench) -> None:
    """The user's first, then those of jax down to the raising frame; none of the harness."""
    top = "import jax.numpy as jnp\n\ndef helper(x):\n    return jnp.add(x, jnp.ones(4))\n"
    finished = bench.run("return helper(jnp.ones(3))", top=top)
    (one,) = decode_traceback(finished.blobs["frames"])
    assert (one.type, one.relation) == ("TypeError", "")
    assert [(f.function, f.source) for f in one.frames if not f.library] == [
        ("case", "return helper(jnp.ones(3))"),
        ("helper", "return jnp.add(x, jnp.ones(4))"),
    ]
    assert [bool(frame.library) for frame in one.frames][:3] == [False, False, True]
    assert one.frames[-1].library == "jax"
    assert one.frames[-1].file.startswith("jax/_src/")
    assert not any("conformance/worker" in frame.file for frame in one.frames)
