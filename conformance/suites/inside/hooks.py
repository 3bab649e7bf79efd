"""The plugin of pytest that tells what it does, and runs what it is told to run."""

from __future__ import annotations

import gc
import importlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suites.inside.fork_server import ForkServer, why_not
from conformance.suites.inside.item_runner import run_requests
from conformance.suites.inside.reports import TAIL, Ending, clean, described, reason_of
from conformance.suites.inside.warned import Warned

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from conformance.suites.inside.channel import Channel
    from conformance.suites.inside.examples import ExampleSettings
    from conformance.suites.inside.reading import DataFiles

SCOPES = ("function", "class", "module", "package")
"""Of fixtures, from the narrowest; those of a session bind no tests to one another."""


class Plugin:
    """Tells what pytest does, and runs what is ordered.

    Args:
        channel: Where messages go to, and where requests come from.
        examples: How Hypothesis looks for examples, None where the suite alone says so.
        data: Notes the data files that are read.
        facts: What is told of what is tested: `module:attribute` by name.
        forks: Whether workers are forked where that is safe.
        timeout: Seconds that one test may take.
        quiet: Seconds that all else may take.
    """

    def __init__(
        self,
        channel: Channel,
        examples: ExampleSettings | None,
        data: DataFiles,
        facts: Mapping[str, str],
        *,
        forks: bool,
        timeout: float,
        quiet: float,
    ) -> None:
        self._timeout, self._quiet = timeout, quiet
        self._channel, self._examples, self._data = channel, examples, data
        self._wanted_facts, self._forks = facts, forks
        self._names: dict[pytest.Item, str] = {}
        self._ending: Ending | None = None
        self._warned = Warned()
        self._at_collection: dict[str, Warned] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        """Tell of what cannot be collected, or is skipped as a whole."""
        result = yield
        report = result.get_result()
        if report.passed:
            return
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        error = None if excinfo is None else excinfo.value
        # An error of an import is the cause of one that says that there was one.
        error = getattr(error, "__cause__", None) or error
        file = str(getattr(collector, "path", ""))
        problem = {} if error is None else described(error, file)
        problem |= {"node": clean(report.nodeid), "broken": report.failed}
        problem |= {
            "reason": clean(reason_of(report)), "text": clean(report.longreprtext[-TAIL:]),
        }  # fmt: skip
        self._channel.send(problem=problem)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Name the tests, and settle how examples of them are found."""
        seen: dict[str, int] = {}
        for item in items:
            name = clean(item.nodeid)
            seen[name] = number = seen.get(name, 0) + 1
            self._names[item] = name if number == 1 else f"{name}#{number}"
        if self._examples is not None:
            self._examples.apply(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell what was collected, and where."""
        config = session.config
        for item in session.items:
            self._names.setdefault(item, clean(item.nodeid))
        tests = [{"name": self._names[item], **describe_item(item)} for item in session.items]
        self._channel.send(
            collected={
                "root": str(config.rootpath),
                "ini": "" if config.inipath is None else str(config.inipath),
                "tests": tests,
                "facts": self._facts(),
                "read": self._data.below(config.rootpath),
            }
        )

    def _facts(self) -> dict[str, str]:
        """Return what is told of what is tested, but for what is not there."""
        told = {}
        for name, place in self._wanted_facts.items():
            module, _, attributes = place.partition(":")
            try:
                value: Any = importlib.import_module(module)
                for attribute in attributes.split("."):
                    value = getattr(value, attribute)
                told[name] = clean(str(value))
            except Exception:  # noqa: BLE001, S112 - whatever stands there
                continue
        return told

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what is ordered, in place of pytest's own loop."""
        why = why_not() if self._forks else "not asked for"
        files = {str(getattr(item, "path", "")) for item in session.items}
        others = Warned()
        for file in [file for file in self._at_collection if file not in files]:
            others.add(self._at_collection.pop(file))
        ready = {"forks": not why, "why": why, "warnings": others.told()}
        self._channel.send(ready=ready)
        # What importing a module warns of is told with its first test.
        for item in session.items:
            if warned := self._at_collection.pop(str(getattr(item, "path", "")), None):
                self._at_collection[self._names.get(item, clean(item.nodeid))] = warned
        named = {self._names.get(item, clean(item.nodeid)): item for item in session.items}
        if why:
            gc.collect()
            gc.freeze()  # what is there now stays; looking through it again takes its time
            self._channel.send(idle=True)
            run_requests(session, named, self._channel, self._channel.receive())
            return True

        def worker(channel: Channel, request: dict[str, Any]) -> None:
            self._channel = channel
            run_requests(session, named, channel, request)

        ForkServer(session.config, self._channel, worker).serve()
        return True

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Tell when a test begins, and how it ended."""
        name = self._names.get(item, clean(item.nodeid))
        self._channel.send(begin=name, timeout=self._timeout)
        if self._examples is not None:
            self._examples.begin(name)
        self._ending, self._warned = Ending(name), Warned()
        result = yield
        left = None if result.excinfo is None else result.excinfo[1]
        if name in self._at_collection:
            self._warned.add(self._at_collection[name])
        told = self._warned.told()
        more = {"warnings": told, "read": self._data.below(item.config.rootpath)}
        more = {name: value for name, value in more.items() if value}
        self._channel.send(end={**self._ending.facts(left), **more}, timeout=self._quiet)
        self._ending = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """Note the exception of a phase with its report."""
        result = yield
        if call.excinfo is not None:
            file = str(getattr(item, "path", ""))
            result.get_result().conformance_error = described(call.excinfo.value, file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report of a phase, or of a part of it."""
        if self._ending is not None:
            self._ending.take(report)

    def pytest_warning_recorded(self, warning_message: Any, when: str) -> None:
        """Take a warning: of the test that runs, else of the file it comes from."""
        if when == "runtest":
            self._warned.take(warning_message)
        else:
            file = warning_message.filename if when == "collect" else ""
            self._at_collection.setdefault(file, Warned()).take(warning_message)


def describe_item(item: pytest.Item) -> dict[str, Any]:
    """Return the file of a test, the line it begins in, 0 if that is not known, and its bound."""
    file, line, _ = item.location
    path = str(getattr(item, "path", ""))
    known = line is not None and path.endswith(os.path.basename(file))  # noqa: PTH119 - pytest's own spelling
    return {"file": path, "line": (line or 0) + 1 if known else 0, "bound": bound(item)}


def bound(item: pytest.Item) -> str:
    """Return the widest scope of the fixtures of a test, below that of a session.

    Tests that use the same such fixture are to run in one process, one after another.
    """
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return "module"  # a test that pytest did not make itself
    found = {one.scope for defined in info.name2fixturedefs.values() for one in defined[-1:]}
    return max((s for s in SCOPES if s in found), key=SCOPES.index, default=SCOPES[0])
