"""The fork server itself, without its orchestrator."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from conformance.engine.workers.client import WORKER
from conformance.engine.workers.environment import make_worker_environment
from conformance.worker.job_process import SCRATCH
from tests.workbench import OLD, planned_cell, python_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.cell
def test_a_server_whose_orchestrator_dies_while_it_warms_up_ends(tmp_path: Path) -> None:
    """With its children, when it first reads the channel."""
    read_end, write_end = os.pipe()
    environment = make_worker_environment(os.environ, {}, keep_python_path=False)
    with subprocess.Popen(
        [python_of(planned_cell(OLD)), "-s", WORKER, "serve", str(write_end)],
        stdin=subprocess.PIPE,
        pass_fds=[write_end],
        env={**environment, SCRATCH: str(tmp_path)},
    ) as server:
        for fd in (read_end, write_end):
            os.close(fd)
        assert server.stdin is not None
        server.stdin.close()
        try:
            server.wait(60)
        finally:
            server.kill()
