"""The pytest plugin that reports collection and outcomes, and runs the tests that are requested."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suites.inside.channel import Channel
from conformance.suites.inside.data_files import DataFileLog
from conformance.suites.inside.examples import ExampleSettings
from conformance.suites.inside.fork_server import ForkServer, explain_unforkable
from conformance.suites.inside.reports import (
    TAIL,
    TestOutcome,
    WarningCounts,
    describe_error,
    extract_reason,
    replace_surrogates,
)
from conformance.worker.processes import take_standard_input

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

SCOPES = ("function", "class", "module", "package")
"""Scopes of fixtures, from the narrowest; fixtures of a session do not bind tests together."""


def run_pytest(replies: int, order: dict[str, Any]) -> None:
    """Collect a suite, and run the tests that are then requested on standard input.

    Args:
        replies: Descriptor that messages are written to.
        order: Settings, as `conformance.suites.running.session.SessionLaunch` writes them.
    """
    channel = Channel(take_standard_input(), replies)
    channel.send(started=True)
    arguments = list(order["arguments"])
    loaded = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and "no:xdist" not in arguments
    if loaded and importlib.util.find_spec("xdist"):
        arguments.append("-n0")  # one process must run all tests of a session
    examples = None if order["examples"] is None else ExampleSettings(**order["examples"])
    data = DataFileLog()
    if order["data"]:
        data.watch()
    status = pytest.main(arguments, plugins=[Plugin(channel, examples, data, order)])
    # The process is ended as soon as this is sent: nothing else flushes what pytest printed.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a test may have replaced them
            stream.flush()
    channel.send(over=int(status))


class Plugin:
    """Reports what pytest does, and runs the tests that are requested.

    Args:
        channel: Takes messages and provides requests.
        examples: Settings of Hypothesis, None for those of the suite alone.
        data: Records the data files that are read.
        order: Settings: `facts`, `forks`, `timeout` of a test and `quiet` of everything else, in
            seconds.
    """

    def __init__(
        self,
        channel: Channel,
        examples: ExampleSettings | None,
        data: DataFileLog,
        order: Mapping[str, Any],
    ) -> None:
        self._channel, self._examples, self._data, self._order = channel, examples, data, order
        self._names: dict[pytest.Item, str] = {}
        self._outcome: TestOutcome | None = None
        self._warnings = WarningCounts()
        self._at_collection: dict[str, WarningCounts] = {}
        """Warnings of collection, by file and later by the first test of the file."""

    def _name(self, item: pytest.Item) -> str:
        return self._names.get(item, replace_surrogates(item.nodeid))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        """Report a module or class that cannot be collected, or is skipped as a whole."""
        result = yield
        report = result.get_result()
        if report.passed:
            return
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        error = None if excinfo is None else excinfo.value
        # pytest wraps the error of an import in a CollectError.
        error = getattr(error, "__cause__", None) or error
        file = str(getattr(collector, "path", ""))
        self._channel.send(problem={
            **({} if error is None else describe_error(error, file)),
            "node": replace_surrogates(report.nodeid),
            "broken": report.failed,
            "reason": replace_surrogates(extract_reason(report)),
            "text": replace_surrogates(report.longreprtext[-TAIL:]),
        })  # fmt: skip

    # Last: other plugins may remove or reorder tests, and the numbers depend on the order.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Name the tests, and apply the settings of Hypothesis."""
        counts: dict[str, int] = {}
        for item in items:
            name = replace_surrogates(item.nodeid)
            counts[name] = number = counts.get(name, 0) + 1
            self._names[item] = name if number == 1 else f"{name}#{number}"
        if self._examples is not None:
            self._examples.apply(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Report the collected tests, and the folder of their project."""
        config = session.config
        for item in session.items:  # a plugin may have added tests after they were named
            self._names.setdefault(item, replace_surrogates(item.nodeid))
        self._channel.send(
            collected={
                "root": str(config.rootpath),
                "ini": "" if config.inipath is None else str(config.inipath),
                "tests": [
                    {"name": self._names[item], **describe_item(item)} for item in session.items
                ],
                "facts": self._find_facts(),
                "read": self._data.list_below(config.rootpath),
            }
        )

    def _find_facts(self) -> dict[str, str]:
        """Return the facts about the tested package that exist."""
        facts = {}
        for name, place in self._order["facts"].items():
            module, _, attributes = place.partition(":")
            with contextlib.suppress(Exception):  # an import, or a property, may raise anything
                value: Any = importlib.import_module(module)
                for attribute in attributes.split("."):
                    value = getattr(value, attribute)
                facts[name] = replace_surrogates(str(value))
        return facts

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the requested tests, in place of pytest's own loop."""
        why = explain_unforkable() if self._order["forks"] else "not requested"
        files = {str(getattr(item, "path", "")) for item in session.items}
        others = WarningCounts()
        for file in [file for file in self._at_collection if file not in files]:
            others.merge(self._at_collection.pop(file))
        self._channel.send(ready={"forks": not why, "why": why, "warnings": others.describe()})
        # The warnings of importing a module are reported with its first test.
        for item in session.items:
            if counts := self._at_collection.pop(str(getattr(item, "path", "")), None):
                self._at_collection[self._name(item)] = counts
        items = {self._name(item): item for item in session.items}
        if why:
            gc.collect()
            gc.freeze()  # modules stay in memory; each later collection would scan them again
            self._channel.send(idle=True)
            run_requests(session, items, self._channel, self._channel.receive())
            return True

        def run_worker(channel: Channel, request: dict[str, Any]) -> None:
            self._channel = channel
            run_requests(session, items, channel, request)

        ForkServer(session.config, self._channel, run_worker).serve()
        return True

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Report the beginning and the end of a test."""
        name = self._name(item)
        self._channel.send(begin=name, timeout=self._order["timeout"])
        if self._examples is not None:
            self._examples.seed_test(name)
        self._outcome, self._warnings = TestOutcome(name), WarningCounts()
        result = yield
        exit_error = None if result.excinfo is None else result.excinfo[1]
        if name in self._at_collection:
            self._warnings.merge(self._at_collection[name])
        end = self._outcome.describe(exit_error)
        if warnings := self._warnings.describe():
            end["warnings"] = warnings
        if read := self._data.list_below(item.config.rootpath):
            end["read"] = read
        self._channel.send(end=end, timeout=self._order["quiet"])
        self._outcome = None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """Attach the exception of a phase to its report."""
        result = yield
        if call.excinfo is not None:
            file = str(getattr(item, "path", ""))
            result.get_result().conformance_error = describe_error(call.excinfo.value, file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report of a phase, or of a part of it."""
        if self._outcome is not None:
            self._outcome.take(report)

    def pytest_warning_recorded(self, warning_message: Any, when: str) -> None:
        """Count a warning: of the running test, else of the file it comes from."""
        if when == "runtest":
            self._warnings.count(warning_message)
        else:
            file = warning_message.filename if when == "collect" else ""
            self._at_collection.setdefault(file, WarningCounts()).count(warning_message)


def run_requests(
    session: pytest.Session,
    items: Mapping[str, pytest.Item],
    channel: Channel,
    request: Mapping[str, Any] | None,
) -> None:
    """Run the test of each request until no more come.

    A request names the following test, too: pytest keeps the fixtures that both use.

    Args:
        session: The session that collected the tests.
        items: The tests by name.
        channel: Provides requests.
        request: The first request.

    Raises:
        BaseException: An exception that ends a session of pytest.
    """
    while request is not None:
        if item := items.get(request["test"]):
            following = items.get(request["next"])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        else:  # a plugin has replaced it since it was collected
            channel.send(end={"test": request["test"], "outcome": "unknown"})
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        channel.send(idle=True)
        request = channel.receive()


def describe_item(item: pytest.Item) -> dict[str, Any]:
    """Return the file of a test, the line it begins in, 0 if that is unknown, and its bound."""
    file, line, _ = item.location
    path = str(getattr(item, "path", ""))
    # A test may be defined in one file and collected from another.
    known = line is not None and path.endswith(os.path.basename(file))  # a text of pytest's
    return {"file": path, "line": (line or 0) + 1 if known else 0, "bound": find_bound(item)}


def find_bound(item: pytest.Item) -> str:
    """Return the widest scope of the fixtures of a test, below that of a session.

    Tests that share such a fixture must run in one process, one after another.
    """
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return "module"  # a test that pytest did not make itself
    # Of fixtures with the same name the last one is used: it overrides the others.
    scopes = {fixtures[-1].scope for fixtures in info.name2fixturedefs.values() if fixtures}
    return max((s for s in SCOPES if s in scopes), key=SCOPES.index, default=SCOPES[0])
