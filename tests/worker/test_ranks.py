"""Helpers of the launcher of ranks, without jax."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.worker.ranks import LOOK, Labels, Work, hold_port


def test_a_port_is_held_for_one_job() -> None:
    """Other requests for any port get another one, in this process and in others."""
    with ExitStack() as stack:
        held = [stack.enter_context(hold_port()).getsockname()[1] for _ in range(300)]
        code = (
            "from conformance.worker.ranks import hold_port as h\n"
            "k = [h() for _ in range(300)]\n"
            "print(*(s.getsockname()[1] for s in k))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        others = list(map(int, said.stdout.split()))
    assert len({*held, *others}) == 600


@given(
    st.lists(st.tuples(st.integers(0, 2), st.text("a\n", min_size=1).map(str.encode)), max_size=20)
)
def test_labelled_output_is_complete(written: list[tuple[int, bytes]]) -> None:
    """Every line has its rank's number, and no byte is lost."""
    labels = Labels()
    lines = b"".join(labels.feed(rank, data) for rank, data in written).splitlines()
    assert all(line.startswith(b"[rank ") for line in lines)
    for rank in range(3):
        own = [line[9:] for line in lines if line.startswith(b"[rank %d] " % rank)]
        said = b"".join(data for number, data in written if number == rank)
        assert b"".join(own) == said.replace(b"\n", b"")


def test_working_and_waiting_are_distinguished() -> None:
    """A computing process works; a sleeping or ended process does not."""
    code = {"work": "while True: pass", "wait": "import time; time.sleep(60)"}
    with subprocess.Popen([sys.executable, "-c", code["work"]]) as busy:
        with subprocess.Popen([sys.executable, "-c", code["wait"]]) as idle:
            time.sleep(2 * LOOK)  # the start of an interpreter is work too
            looks = {name: Work() for name in ("busy", "idle", "gone")}
            pids = {"busy": [busy.pid, idle.pid], "idle": [idle.pid], "gone": [2**22 + 1]}
            found = dict.fromkeys(looks, 0)
            for _ in range(5):
                found = {name: work.count_idle(pids[name]) for name, work in looks.items()}
                time.sleep(LOOK)
            idle.kill()
        busy.kill()
    assert found["busy"] < 2
    assert found["idle"] >= 3
    assert found["gone"] >= 4


def test_idle_measurements_are_limited_by_time() -> None:
    """They are counted by time, not by calls."""
    work = Work()
    assert max(work.count_idle([os.getppid()]) for _ in range(50)) <= 1


@pytest.mark.parametrize("data", [b"", b"\n", b"x"])
def test_empty_output_has_no_label(data: bytes) -> None:
    """Other output has one."""
    assert Labels().feed(3, data) == (b"[rank 3] " + data if data else b"")
