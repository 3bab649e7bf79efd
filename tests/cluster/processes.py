"""A Dask cluster of processes on this host: a scheduler, and workers with their nannies."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from conformance.cache_folder import VARIABLE
from conformance.corpus.project import PACKAGE

if TYPE_CHECKING:
    from pathlib import Path


def get_free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """A scheduler and workers with nannies, each a process of its own.

    Attributes:
        folder: Folder of the workers' files.
        cache: Cache folder of the workers, and of the runs.
    """

    folder: Path
    cache: Path
    port: int = field(default_factory=get_free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process of the cluster."""
        # The package of this process, which may be an installed one: tracebacks name its files.
        environment = {**os.environ, VARIABLE: str(self.cache), "PYTHONPATH": str(PACKAGE.parent)}
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], env={**environment, **variables},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler, and wait until it listens."""
        process = self.start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port),
            "--no-dashboard",
        )  # fmt: skip
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise AssertionError("the scheduler does not listen")

    def start_worker(self, **variables: str) -> subprocess.Popen[bytes]:
        """Start a worker with its nanny; the process is the nanny."""
        return self.start(
            "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard",
            "--local-directory", str(self.folder), **variables,
        )  # fmt: skip

    def find_workers(self) -> list[psutil.Process]:
        """Return the worker processes, children of the nannies."""
        nannies = [process.pid for process in self.processes if process.poll() is None]
        return [
            child
            for pid in nannies
            for child in psutil.Process(pid).children()
            if any("spawn_main" in word for word in child.cmdline())
        ]

    def close(self) -> None:
        """End all processes, without the seconds that Dask takes to end in order."""
        workers = self.find_workers()
        for process in self.processes:
            process.kill()
            process.wait()
        # Without their nannies, which would start them again.
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
