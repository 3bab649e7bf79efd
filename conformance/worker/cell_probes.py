"""Probes of a cell itself, before its jobs: a missing feature is reported once, not by every job.

XLA ends the process when it does not know a flag, and a plugin may abort while it is loaded, so
devices are counted in a child process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.kit.case import Observed, Unsupported
from conformance.kit.env import get_topology_devices
from conformance.worker.processes import find_refused_flags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.kit.env import Env


ACCELERATORS = ("gpu", "tpu")
STDERR_FILE = "stderr.txt"
ANSWER_FILE = "answer.txt"
LONGEST_OUTPUT = 16 * 1024
"""Bytes that are read of a child's output: XLA lists all known flags after an unknown one."""
_LOGGED = re.compile(
    r"^(?:[EF]\d{4} .*?\]|\d{4}-\d\d-\d\d [\d:.]+: [EF] .*?\]) +(.*)$", re.MULTILINE
)


class CheckError(Exception):
    """The devices of a cell cannot be counted, for a reason that is not the release's."""


def check_devices(env: Env, devices: int) -> Observed:
    """Count the devices of a cell.

    Args:
        env: Environment of the cell.
        devices: Number of devices that the cell needs.

    Returns:
        The number of devices.

    Raises:
        Unsupported: If the release refuses the platform, the topology or an XLA flag.
        CheckError: If the child process fails in another way.
    """
    child = os.fork()
    if child == 0:
        _count_in_child(env)
    _, status = os.waitpid(child, 0)
    output = Path(STDERR_FILE).read_bytes()[:LONGEST_OUTPUT].decode("utf-8", "replace")
    # Before the status: XLA aborts at an unknown flag, which would look like a crash.
    if refused := find_refused_flags(output):
        raise Unsupported(refused)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        raise CheckError(
            f"the process was ended by {signal.Signals(-code).name}: {_find_last_message(output)}"
        )
    if not Path(ANSWER_FILE).exists():
        raise CheckError(f"the process exited with status {code}: {_find_last_message(output)}")
    kind, _, answer = Path(ANSWER_FILE).read_text(encoding="utf-8").partition(" ")
    if kind != "devices":
        raise Unsupported(answer)
    if int(answer) < devices:
        raise Unsupported(f"the cell has {devices} devices, here are {answer}")
    return Observed({"devices": np.int64(answer)})


def _count_in_child(env: Env) -> None:
    """Count the devices in a child, and write the number to a file; never returns."""
    try:
        # The descriptor, not `sys.stderr`: XLA and plugins write to it directly.
        os.dup2(os.open(STDERR_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        answer = _describe_devices(env)
        Path(ANSWER_FILE).write_text(answer, encoding="utf-8")
    except BaseException:  # reported on standard error
        traceback.print_exc()
    finally:
        os._exit(0)


def _describe_devices(env: Env) -> str:
    """Return `devices N`, or `unsupported REASON`."""
    try:
        devices = env.devices
        # Some releases describe a topology and compile nothing for it.
        if env.compile_only:
            env.try_compiling()
        kind, wanted = devices[0].platform, env.cell.platform
        # Without a plugin for it, jax falls back to the next allowed platform.
        if kind == "cpu" and wanted in ACCELERATORS:
            return f"unsupported it sees no {wanted.upper()} here, only CPUs"
        return f"devices {len(devices)}"
    except Unsupported as reason:
        return f"unsupported {reason}"
    except Exception as error:  # a plugin may raise any exception
        # A missing backend is reported as a RuntimeError, or as an error of the plugin.
        return f"unsupported {_get_first_line(error)}"


def _get_first_line(error: BaseException) -> Any:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _find_last_message(output: str) -> str:
    """Return the first logged error, else the last line."""
    logged = _LOGGED.search(output)
    if logged:
        return logged[1].strip()
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def describe_topologies(env: Env, topologies: Mapping[str, Mapping[str, Any]]) -> Observed:  # noqa: ARG001 - a probe
    """Describe the devices of several topologies.

    Args:
        env: Environment of the cell.
        topologies: Arguments of `get_topology_desc`, by name of the platform.

    Returns:
        The number of known topologies. The artifact `answers` has the number and kind of the
        devices of each topology, or the reason why the plugin refuses it.
    """
    answers: dict[str, dict[str, Any]] = {}
    for name, arguments in topologies.items():
        try:
            devices = get_topology_devices(arguments)
            answers[name] = {"devices": len(devices), "kind": devices[0].device_kind}
        except Unsupported as reason:
            answers[name] = {"refused": str(reason)}
    known = sum("devices" in answer for answer in answers.values())
    return Observed({"known": known}, artifacts={"answers": json.dumps(answers)})
