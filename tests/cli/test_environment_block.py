"""The environment of a running command, as other processes can read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import os, subprocess, sys
from conformance.cli.environment_block import erase_environment_block

erase_environment_block(lambda name, value: name == "HOME")
other = f"print(open('/proc/{os.getpid()}/environ').read())"
print("seen:", subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stdout)
print("own:", os.environ["APITOKEN"])
print("child:", subprocess.check_output(["sh", "-c", "echo $APITOKEN"], text=True))
print("status:", "Uid" in open(f"/proc/{os.getpid()}/status").read())
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="this system has no /proc"
)


def test_secrets_are_erased_from_proc_environ() -> None:
    """The process and the programs that it starts still have them."""
    environment = {"APITOKEN": "hunter22", "HOME": "/h", "PATH": os.environ["PATH"]}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout
    seen, rest = printed.split("own:")
    assert "hunter22" not in seen
    if os.geteuid() == 0:  # the file is closed to other users
        assert "APITOKEN=********" in seen
        assert "HOME=/h" in seen
    assert rest.split() == ["hunter22", "child:", "hunter22", "status:", "True"]
