"""Fixtures, groups and skips of all tests."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cache_folder import SHARED_URL, SHARED_WRITE
from conformance.cells.interpreters import DOWNLOADS, MissingInterpreterError, find_interpreter
from conformance.pytest_scheduling import make_scheduler

from .projects import ROOT
from .workbench import NEWEST, OLD, Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .projects import Project

PROJECTS = "3.11"
"""Python of the cells of `tests.projects`."""
BENCHES = frozenset({"bench", "bench_of_each_age", "new_bench", "shared_bench"})
"""Fixtures that find the interpreters of their cells themselves."""

SETUPS = {
    "cli/test_bisect_nightly": "nightlies",
    "cli/test_ecosystem": "ecosystem",
    "cli/test_review.py": "review",
    "cli/test_review_terminal": "review",
    "cli/test_upgrade.py": "upgrade",
    "report/site/test_browser": "browser",
    "store/": "store",
    "test_changes": "corpus",
    "test_corpus": "corpus",
    "test_coverage_page": "coverage",
    "test_house": "house",
    "test_wheel": "wheel",
}
"""Names of set-ups that take long, by the beginning of the paths of the tests that share one.

A set-up is a browser, a database, cached jobs of a project, a parsed source, or all goldens.
"""
SAMPLE = "CONFORMANCE_SAMPLE"
"""Variable that leaves out tests marked `long`, as .ci/run does."""
CELLS = ("cli", "faults", "suites/running", "suites/test_inside.py", "cells/test_provision.py")
"""Tests of whole commands and of the processes that run programs; a few start no real worker."""
SERVERS = ("store", "remote_cache/test_s3.py", "report/site/test_browser", "notify/test_github.py")
"""Tests that talk to a browser, a database or an HTTP server."""


def pytest_configure(config: pytest.Config) -> None:
    """Catch signals that `nohup` or a background job ignores, so that tests can send them.

    Processes inherit an ignored signal but not a handler: with an empty handler the tests ignore
    the signal, and the processes that they start do not.
    """
    # Tests with a shared cache name their own.
    for name in (SHARED_URL, SHARED_WRITE):
        os.environ.pop(name, None)
    for sent in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(sent) is signal.SIG_IGN:
            signal.signal(sent, lambda *_: None)
    if config.pluginmanager.hasplugin("hypothesispytest"):
        _register_hypothesis_profiles()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its group, `unit`, `cells` or `servers`, and skip what a sample lacks."""
    if SAMPLE in os.environ:
        for item in _list_left_out(items):
            item.add_marker(pytest.mark.skip(reason=f"{SAMPLE} is set: a sample of the long tests"))
    for item in items:
        if item.nodeid.startswith("tests/"):  # `pytest cases` loads this file, too
            item.add_marker(_group_of(item))


def _list_left_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the long tests that a sample lacks: it keeps some parameters of a test, spread evenly.

    The choice is among the collected parameters: one that is named by its id is kept if `keep` is
    at least 1.
    """
    functions: dict[str, list[tuple[pytest.Item, int]]] = {}
    for item in items:
        if marker := item.get_closest_marker("long"):
            name = item.nodeid.partition("[")[0]
            functions.setdefault(name, []).append((item, marker.kwargs.get("keep", 0)))
    for members in functions.values():
        keep = max(keep for _, keep in members)
        kept = {index * len(members) // keep for index in range(keep)}
        yield from (item for index, (item, _) in enumerate(members) if index not in kept)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send the tests that share a set-up to one worker."""

    def find_setup(nodeid: str) -> str:
        place = nodeid.removeprefix("tests/")
        return next((name for begin, name in SETUPS.items() if place.startswith(begin)), "")

    return make_scheduler(config, log, find_setup)


def _group_of(item: pytest.Item) -> str:
    place = item.nodeid.removeprefix("tests/")
    if place.startswith(SERVERS):
        return "servers"
    marked = any(map(item.get_closest_marker, ("cell", "fresh")))
    benches = not BENCHES.isdisjoint(getattr(item, "fixturenames", ()))
    return "cells" if marked or benches or place.startswith(CELLS) else "unit"


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of cells, before its fixtures, if this host lacks their Python.

    The cells of the projects that tests make have Python 3.11, unless the marker names others:
    `cell("3.12")`. A bench itself looks for the Pythons of its cells.
    """
    marker = item.get_closest_marker("cell")
    if marker is None or not BENCHES.isdisjoint(getattr(item, "fixturenames", ())):
        return
    for python in marker.args or (PROJECTS,):
        try:
            find_interpreter(python)
        except MissingInterpreterError as error:
            os.environ[DOWNLOADS] = "0"
            pytest.skip(str(error))


_ORIGINAL = MissingInterpreterError.__init__


def _skip(error: MissingInterpreterError, python: str, rejected: Sequence[str]) -> None:
    """Skip the test instead of raising the error."""
    os.environ[DOWNLOADS] = "0"  # it has just been tried: no other test waits for it
    _ORIGINAL(error, python, rejected)
    pytest.skip(str(error))


@pytest.fixture(scope="session", autouse=True)
def _skip_without_interpreter() -> Iterator[None]:
    """Skip a test as soon as one of its cells needs a Python that this host lacks.

    A skip is no `Exception`, so nothing between the search and pytest takes it for a fault.
    """
    with pytest.MonkeyPatch.context() as patched:
        # Not the class itself: a module first imported meanwhile would keep its replacement.
        patched.setattr(MissingInterpreterError, "__init__", _skip)
        yield


@pytest.fixture
def missing_interpreter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the error that users get for a missing interpreter, instead of skipping the test."""
    monkeypatch.setattr(MissingInterpreterError, "__init__", _ORIGINAL)


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A temporary project with the files of the marker `project` of the module or test.

    `pytestmark = pytest.mark.project({"cases/family/topic.py": TEXT}, locks=["jax0.5.3-py311"])`
    names files by path, and committed locks in addition to that of the usual release. Without it
    the project has no cases. A module that needs more than files overrides this fixture and
    requests it.
    """
    marker = request.node.get_closest_marker("project")
    files = {} if marker is None else dict(marker.args[0])
    locks = () if marker is None else marker.kwargs.get("locks", ())
    for lock in (f"matrix/locks/{name}.txt" for name in locks):
        files[lock] = (ROOT / lock).read_text(encoding="utf-8")
    # Cases write below a folder that only their test knows.
    files = {name: text.replace("TMP_PATH", str(tmp_path)) for name, text in files.items()}
    made: Project = request.getfixturevalue("new_project")(files)
    return made


@pytest.fixture(scope="session", params=[OLD, NEWEST])
def shared_bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """A worker of an old and of the newest release, kept for the whole session."""
    with Bench(planned_cell(request.param), tmp_path_factory.mktemp("cases")) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: Bench, tmp_path: Path) -> Bench:
    """The shared worker, with a new folder for case files."""
    return shared_bench.at(tmp_path)


@pytest.fixture(
    scope="session", params=["0.4.30", pytest.param("0.7.2", marks=pytest.mark.long), NEWEST]
)
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
