"""The beginning of a process that runs pytest in a cell."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from typing import Any

import pytest

from conformance.suites.inside.channel import Channel
from conformance.suites.inside.examples import ExampleSettings
from conformance.suites.inside.hooks import Plugin
from conformance.suites.inside.reading import DataFiles
from conformance.worker.processes import take_standard_input


def run(replies: int, order: dict[str, Any]) -> None:
    """Collect a suite, and run the tests that are then requested on standard input.

    Args:
        replies: Descriptor that messages are written to.
        order: As `conformance.suites.running.session.Launch` writes it.
    """
    channel = Channel(take_standard_input(), replies)
    channel.send(started=True)
    arguments = list(order["arguments"])
    loaded = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and "no:xdist" not in arguments
    if loaded and importlib.util.find_spec("xdist"):
        arguments.append("-n0")  # the tests of one session are reported by one process
    examples = None if order["examples"] is None else ExampleSettings(**order["examples"])
    data = DataFiles()
    if order["data"]:
        data.watch()
    plugin = Plugin(
        channel, examples, data, order["facts"], forks=order["forks"],
        timeout=order["timeout"], quiet=order["quiet"],
    )  # fmt: skip
    status = pytest.main(arguments, plugins=[plugin])
    for stream in (sys.stdout, sys.stderr):  # what is over is ended at once
        with contextlib.suppress(Exception):  # whatever a test has put in their place
            stream.flush()
    channel.send(over=int(status))
