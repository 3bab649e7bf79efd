"""The beginning of a process that runs pytest in a cell."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from typing import Any

import pytest

from conformance.suites.inside.channel import Channel
from conformance.suites.inside.examples import Examples
from conformance.suites.inside.hooks import Plugin
from conformance.suites.inside.reading import DataFiles


def versions() -> dict[str, str]:
    """Return the version of every package that can be imported here, by normalised name."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"] or "").lower()
        found.setdefault(name, one.version)
    return found


def run(descriptor: int, order: dict[str, Any]) -> None:
    """Collect a suite, and run what is then asked for.

    Args:
        descriptor: Where events are told, and orders come from.
        order: `arguments` of pytest, `facts` that are wanted, `examples` as Hypothesis is to look
            for them or null, whether a worker may be forked: `forks`, and whether the data files
            that tests read are noted: `data`.
    """
    channel = Channel(descriptor)
    python = ".".join(map(str, sys.version_info[:3]))
    channel.say("hello", pid=os.getpid(), python=python, versions=versions())
    arguments = list(order["arguments"])
    loaded = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and "no:xdist" not in arguments
    if loaded and importlib.util.find_spec("xdist"):
        arguments.append("-n0")  # the tests of one session are told of by one process
    examples = None if order["examples"] is None else Examples(**order["examples"])
    data = DataFiles()
    if order["data"]:
        data.watch()
    plugin = Plugin(channel, examples, data, order["facts"], forks=order["forks"])
    status = pytest.main(arguments, plugins=[plugin])
    for stream in (sys.stdout, sys.stderr):  # what is over is ended at once
        with contextlib.suppress(Exception):  # whatever a test has put in their place
            stream.flush()
    channel.say("over", status=int(status))
