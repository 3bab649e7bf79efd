"""Clocks and counters of this process: time, instructions, resident memory."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import resource
import struct
import sys
import time
from typing import NamedTuple

from conformance.worker.processes import measure_resident

_SYSCALL = {"x86_64": 298, "aarch64": 241}
"""Number of `perf_event_open` by machine."""
_HARDWARE, _INSTRUCTIONS = 0, 1
_SIZE = 128
# Bits of the attribute: starts disabled, children too, without the kernel and the hypervisor.
_FLAGS = 1 << 0 | 1 << 1 | 1 << 5 | 1 << 6
_ENABLE = 0x2400


class Reading(NamedTuple):
    """Cost of a piece of work.

    Attributes:
        wall: Seconds of wall-clock time.
        cpu: Seconds of processor time of all threads, and of child processes that ended.
        instructions: Instructions of all threads in user mode, None if they are not counted.
    """

    wall: float
    cpu: float
    instructions: int | None

    def per(self, calls: int) -> Reading:
        """Return the cost of one of several equal calls."""
        counted = None if self.instructions is None else self.instructions // calls
        return Reading(self.wall / calls, self.cpu / calls, counted)


class Counters:
    """The clocks and counters; made before threads start, whose instructions count then."""

    def __init__(self) -> None:
        self._fd = _open_instructions()

    @property
    def counts_instructions(self) -> bool:
        """Whether this host counts instructions; most virtual machines do not."""
        return self._fd >= 0

    def read(self) -> Reading:
        """Return the present readings."""
        counted = None
        if self._fd >= 0:
            (counted,) = struct.unpack("q", os.read(self._fd, 8))
        # With the processes that a case starts and waits for, e.g. to import something in one.
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() + ended.ru_utime + ended.ru_stime
        return Reading(time.perf_counter(), cpu, counted)

    def since(self, start: Reading) -> Reading:
        """Return the cost since a reading."""
        now = self.read()
        counted = None
        if now.instructions is not None and start.instructions is not None:
            counted = now.instructions - start.instructions
        return Reading(now.wall - start.wall, now.cpu - start.cpu, counted)


def _open_instructions() -> int:
    """Return a descriptor that counts the instructions of this process, -1 if there is none."""
    number = _SYSCALL.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return -1
    attribute = bytearray(_SIZE)
    struct.pack_into("IIQ", attribute, 0, _HARDWARE, _SIZE, _INSTRUCTIONS)
    struct.pack_into("Q", attribute, 40, _FLAGS)
    buffer = (ctypes.c_char * _SIZE).from_buffer(attribute)
    fd = ctypes.CDLL(None, use_errno=True).syscall(number, buffer, 0, -1, -1, 0)
    if fd < 0:
        return -1
    try:
        fcntl.ioctl(fd, _ENABLE, 0)
    except OSError:
        os.close(fd)
        return -1
    return int(fd)


class Memory(NamedTuple):
    """Resident memory of this process.

    Attributes:
        now: Bytes at present.
        peak: Largest number of bytes since the last `reset_peak`.
    """

    now: int
    peak: int


def read_memory() -> Memory:
    """Return the resident memory of this process."""
    now = peak = measure_resident(os.getpid())
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                peak = max(now, int(line.split()[1]) * 1024)
    return Memory(now, peak)


def reset_peak() -> None:
    """Make the present memory the peak; without the right to do so the old peak remains."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
