"""What all tests share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from conformance.cells.interpreters import MissingInterpreterError, find_interpreter

from .bench import NEWEST, OLD, Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_configure(config: pytest.Config) -> None:
    """Under `nohup`, or in the background of a script, tests of Ctrl-C and of a hangup hold, too.

    A signal that is ignored is ignored by every process that a test starts, too; one that is caught
    is not. The tests themselves go on without heeding it.
    """
    for sent in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(sent) is signal.SIG_IGN:
            signal.signal(sent, lambda *_: None)
    if config.pluginmanager.hasplugin("hypothesispytest"):
        _register_hypothesis_profiles()


def _register_hypothesis_profiles() -> None:
    """Make examples reproducible; `--hypothesis-profile explore` looks for new ones.

    Imported here because pytest also loads this file for `pytest cases` where only the extra
    `pytest` is installed.
    """
    from hypothesis import settings  # noqa: PLC0415 - see above

    # A loaded machine is no failure of the law under test, so there is no deadline.
    settings.register_profile("house", deadline=None, derandomize=True)
    settings.register_profile("explore", deadline=None, max_examples=2000)
    settings.load_profile("house")


@pytest.fixture(scope="session", params=[OLD, NEWEST])
def shared_bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """A worker of an old and of the newest release, kept for the whole session."""
    planned = planned_cell(request.param)
    try:
        find_interpreter(planned.cell.python)
    except MissingInterpreterError as error:
        pytest.skip(str(error))
    with Bench(planned, tmp_path_factory.mktemp("cases")) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: Bench, tmp_path: Path) -> Bench:
    """The kept worker, with a folder of case files of this test's own."""
    return shared_bench.at(tmp_path)


@pytest.fixture(scope="session", params=["0.4.30", "0.7.2", NEWEST])
def bench_of_each_age(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """A worker of the oldest, of a middle and of the newest release."""
    with Bench(planned_cell(request.param), tmp_path_factory.mktemp("cases")) as made:
        yield made


@pytest.fixture
def new_bench(tmp_path: Path) -> Iterator[Bench]:
    """A worker of an old release for tests that wear it out."""
    with Bench(planned_cell(OLD), tmp_path) as made:
        yield made
