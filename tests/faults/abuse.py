"""Jobs that abuse their worker, each beside four innocent ones, and what must be true afterwards.

Used by `test_abusive_jobs.py`, which tries a few, and by `benchmarks/attack/abusive_jobs.py`, which
tries all.
"""
# ruff: noqa: E501 - each abuse is a short program, easier to read on its line

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psutil

from conformance.cells.accelerators import DeviceLock
from conformance.engine.local_executor import LocalExecutor
from conformance.engine.workers.client import Worker
from conformance.model.outcome import Outcome
from conformance.worker.job_process import SCRATCH
from tests.workbench import Bench, python_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.job import FinishedJob, PlannedCell

INNOCENTS: Final = 4
DELAY: Final = 0.4
"""Seconds that an abusive job waits, so that its neighbours have begun."""
GONE: Final = 5.0
"""Seconds within which what a job left behind must have ended."""
HELP: Final = """
import atexit, ctypes, gc, multiprocessing, resource, shutil, socket, subprocess, tempfile

class Rude(Exception):
    def __str__(self):
        raise RuntimeError("no message")

def fds():
    return [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2]

def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)

def fill(megabytes):
    block = bytearray(megabytes * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    return block

def forks(depth):
    for _ in range(3):
        if depth and os.fork() == 0:
            forks(depth - 1)
            time.sleep(60)
            os._exit(0)

def each_fd(act):
    for fd in fds():
        try:
            act(fd)
        except OSError:
            pass

def parents_fds(act):
    for fd in os.listdir(f"/proc/{os.getppid()}/fd"):
        try:
            if int(fd) > 2 and os.readlink(f"/proc/{os.getppid()}/fd/{fd}").startswith("pipe:"):
                act(f"/proc/{os.getppid()}/fd/{fd}")
        except OSError:
            pass

def scribble(path):
    out = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(out, b"\\xff" * 512)

def frame(header):
    import json
    head = json.dumps({**header, "body": 0}).encode()
    return len(head).to_bytes(4, "big") + head
"""


@dataclass(frozen=True, slots=True)
class Abuse:
    """One way to abuse a worker.

    Attributes:
        body: Body of the case.
        outcomes: Outcomes that are right for it.
        decorator: Decorator of the case.
    """

    body: str
    outcomes: str
    decorator: str = "probe(timeout=4)"


ABUSES: Final = {
    "kills its parent": Abuse("os.kill(os.getppid(), 9); time.sleep(60)", "crashed"),
    "ends its parent politely": Abuse("os.kill(os.getppid(), 15); time.sleep(60)", "crashed"),
    "kills its parent's group": Abuse("os.killpg(os.getpgid(os.getppid()), 9); time.sleep(60)", "crashed"),
    "kills its parent and returns": Abuse("os.kill(os.getppid(), 9); return 1", "crashed ok"),
    "kills its neighbours": Abuse(
        "[os.kill(p, 9) for p in map(int, open(f'/proc/{os.getppid()}/task/{os.getppid()}/children')"
        ".read().split()) if p != os.getpid()]; return 1", "ok",
    ),
    "kills its own group": Abuse("os.killpg(0, 9)", "crashed"),
    "leaves a daemon that kills the parent": Abuse(
        "parent = os.getppid()\ndaemon(lambda: (time.sleep(0.2), os.kill(parent, 9)))\n"
        "time.sleep(1); return 1", "crashed ok",
    ),
    "stops itself": Abuse("os.kill(os.getpid(), signal.SIGSTOP); return 1", "timed_out"),
    "stops its parent": Abuse("os.kill(os.getppid(), signal.SIGSTOP); return 1", "ok"),
    "stops its parent again and again": Abuse(
        "while True: os.kill(os.getppid(), signal.SIGSTOP); time.sleep(0.2)", "timed_out crashed",
    ),
    "forks a tree of 120 processes": Abuse("forks(4); time.sleep(1); return 1", "ok timed_out"),
    "allocates without end": Abuse(
        "kept = []\nwhile True: kept.append(fill(64)); time.sleep(0.02)", "out_of_memory",
        "probe(timeout=20, memory=1024)",
    ),
    "has a child that allocates": Abuse(
        "if os.fork() == 0:\n    kept = fill(2000); time.sleep(60)\ntime.sleep(30); return 1",
        "out_of_memory", "probe(timeout=40, memory=1024)",
    ),
    "has a daemon that allocates": Abuse(
        "daemon(lambda: (fill(2000), time.sleep(60)))\ntime.sleep(30); return 1",
        "out_of_memory", "probe(timeout=40, memory=1024)",
    ),
    "has children that allocate together": Abuse(
        "for _ in range(6):\n    if os.fork() == 0:\n        kept = fill(250); time.sleep(60)\n"
        "time.sleep(30); return 1", "out_of_memory", "probe(timeout=40, memory=1024)",
    ),
    "asks for more memory than there is": Abuse("return np.zeros(2**50, np.uint8)", "out_of_memory raised"),
    "closes every descriptor": Abuse("os.closerange(0, 4096); return 1", "crashed"),
    "writes to every descriptor": Abuse("each_fd(lambda fd: os.write(fd, b'\\xff' * 64)); time.sleep(1); return 1", "crashed"),
    "reads from every descriptor": Abuse(
        "each_fd(lambda fd: (os.set_blocking(fd, False), os.read(fd, 2**20))); time.sleep(1); return 1",
        "ok crashed",
    ),
    "writes frames that nobody knows": Abuse(
        "each_fd(lambda fd: os.write(fd, frame({'nonsense': [1]}))); return 1", "infra",
    ),
    "writes frames of wrong types": Abuse(
        "each_fd(lambda fd: os.write(fd, frame({'value': 3}) + frame({'error': None}))); return 1", "infra",
    ),
    "writes to its parent's pipes": Abuse("parents_fds(scribble); time.sleep(1); return 1", "crashed ok"),
    "prints 400 MB": Abuse("[os.write(fd, b'x' * 2**20) for fd in (1, 2) for _ in range(200)]; return 1", "ok", "probe(timeout=30)"),
    "prints bytes that are no text": Abuse("os.write(1, bytes(range(256)) * 999); raise ValueError('\\xff')", "raised"),
    "recurses without end": Abuse("def f(n):\n    return f(n + 1)\nreturn f(0)", "raised"),
    "recurses without end in C": Abuse(
        "sys.setrecursionlimit(10**8)\nx = []\nfor _ in range(10**6): x = [x]\nreturn repr(x)", "crashed raised",
        "probe(timeout=30)",
    ),
    "reads address 0": Abuse("ctypes.string_at(0)", "crashed"),
    "exits at once": Abuse("os._exit(0)", "crashed"),
    "loops in C": Abuse("return sum(iter(int, 1))", "timed_out"),
    "leaves a daemon that holds its pipes": Abuse("daemon(lambda: time.sleep(60)); return 1", "ok"),
    "leaves threads that never end": Abuse(
        "[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(50)]; return 1", "ok",
    ),
    "hangs at exit": Abuse("atexit.register(time.sleep, 60); return 1", "ok"),
    "raises half a surrogate pair": Abuse("raise RuntimeError('no such file: \\udcff.txt')", "raised"),
    "raises a class named by half a pair": Abuse("raise type('\\udcff', (Exception,), {})('\\ud800')", "raised"),
    "raises what has no message": Abuse("raise Rude", "raised"),
    "returns half a surrogate pair": Abuse("return '\\udcff'", "ok"),
    "blocks every signal": Abuse(
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); [signal.signal(n, signal.SIG_IGN) for n in (2, 15, 17)]\n"
        "time.sleep(60)", "timed_out",
    ),
    "deletes its folder": Abuse("shutil.rmtree(os.getcwd()); os.chdir('/'); return 1", "ok"),
    "fills its folder": Abuse("[open(f'f{n}', 'wb').write(b'x' * 2**20) for n in range(200)]; return 1", "ok"),
    "takes all limits from itself": Abuse(
        "resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "open('x', 'wb').write(b'x'); return 1", "ok crashed raised",
    ),
    "is nobody's child": Abuse(
        "if os.fork(): os._exit(0)\nos.setsid(); ctypes.CDLL(None).prctl(1, 0); time.sleep(60)", "crashed",
    ),
}  # fmt: skip
"""Each abuse by its name."""


def try_abuse(name: str, planned: PlannedCell, folder: Path) -> tuple[FinishedJob, list[str]]:
    """Run an abusive job beside innocent ones in one worker.

    Args:
        name: The abuse.
        planned: The cell.
        folder: An empty folder.

    Returns:
        How the abusive job ended, and what is not as it should be.
    """
    abuse = ABUSES[name]
    bench = Bench.__new__(Bench)
    bench.planned, bench.folder = planned, folder
    body = f"time.sleep({DELAY})\n{abuse.body}"
    jobs = [bench.job(body, abuse.decorator, HELP, topic="abusive")]
    calm = "import jax.numpy as jnp\ntime.sleep(1.5)\nreturn np.asarray(jnp.arange(3) + {n})"
    jobs += [bench.job(calm.replace("{n}", str(n)), topic=f"innocent{n}") for n in range(INNOCENTS)]
    temporary = folder / "tmp"
    temporary.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        executor = LocalExecutor(
            lambda one: Worker(python_of(one)), slots=len(jobs), device_lock=DeviceLock(folder)
        )
        found: dict[str, list[FinishedJob]] = {}
        for finished in executor.run(jobs):
            found.setdefault(finished.job.case.topic, []).append(finished)
    finally:
        tempfile.tempdir = before
    (abusive,) = found["abusive"]
    problems = [] if abusive.outcome in abuse.outcomes.split() else [f"it is {_said(abusive)}"]
    for number in range(INNOCENTS):
        problems += _blamed(number, found.get(f"innocent{number}", []))
    return abusive, [*problems, *_left(temporary)]


def _blamed(number: int, found: list[FinishedJob]) -> Iterator[str]:
    if len(found) != 1:
        yield f"innocent {number} ended {len(found)} times"
    for one in found:
        if one.outcome is not Outcome.OK:
            yield f"innocent {number} is {_said(one)}"
        elif value_of(one).leaves[0].data[:4] != number.to_bytes(4, "little"):
            yield f"innocent {number} has another value"


def _left(temporary: Path) -> Iterator[str]:
    """Yield the processes and files that are left."""
    end = time.monotonic() + GONE
    while (left := _processes(temporary)) and time.monotonic() < end:
        time.sleep(0.05)
    for process in left:
        yield f"process {process.pid} is left"
        process.kill()
    yield from (f"{path} is left" for path in temporary.iterdir())


def _processes(temporary: Path) -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            mark = one.environ().get(SCRATCH, "")
            if mark.startswith(f"{temporary}{os.sep}") and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def _said(finished: FinishedJob) -> str:
    error = finished.error
    return f"{finished.outcome}: {error.message[:300] if error is not None else ''}"
