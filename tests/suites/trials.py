"""Suites on the spot, and sessions of them: of the pytest that runs these tests, without jax."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.engine.job import Job
from conformance.suites.running.collection import Collection, Test
from conformance.suites.running.crew import Crew
from conformance.suites.running.launching import arguments
from conformance.suites.running.seat import Seat
from conformance.suites.running.session import Launch, Session
from conformance.suites.running.told import collection_of
from conformance.suites.running.units import Units
from conformance.suites.suite import suite_of
from tests.engine.worlds import planned

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from conformance.engine.job import Finished
    from conformance.suites.running.watch import Event
    from conformance.suites.suite import Examples

ALONE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""No plugin of this very environment has a say."""


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def session(
    folder: Path, *more: str, timeout: float = 20.0, memory: int = 4096, forks: bool = False,
    facts: Mapping[str, str] | None = None, examples: Examples | None = None,
) -> Session:  # fmt: skip
    """Return a session of all that is in a folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH"))}
    return Session(
        Launch(
            python=Path(sys.executable),
            environment={**kept, **ALONE},
            folder=Path.cwd(),
            arguments=[*arguments(Collection()), *more, str(folder)],
            timeout=timeout, memory=memory, forks=forks, facts=facts or {}, examples=examples,
        )
    )  # fmt: skip


def collected(folder: Path, *more: str) -> Collection:
    """Return what pytest collects in a folder."""
    one = session(folder, *more)
    assert one.collect()
    found = collection_of(one.told)
    one.close()
    return found


def told(one: Session, *tests: str) -> Iterator[Event]:
    """Yield what a session tells of some tests, of all without a name."""
    one.collect()
    one.send({"run": list(tests or (name for name, *_ in (one.told.collected or {})["tests"]))})
    one.send({"over": True})
    yield from one.events()


def jobs_of(folder: Path, *names: str, **more: Any) -> list[Job]:
    """Return the tests of a folder as jobs, or those of some names, whether they are there."""
    suite = suite_of([str(folder)], timeout=more.pop("timeout", 20.0), start=folder)
    found = collected(folder)
    known = {test.name: test for test in found.tests}
    tests = tuple(
        known.get(name, Test(name=name, file=str(folder / name.partition("::")[0])))
        for name in names or known
    )
    place = planned()
    only = Collection(root=found.root, tests=tests)
    return [Job(case=case, planned=place) for case in suite.cases([only])]


def run(
    jobs: Sequence[Job], begin: Callable[[], Session], known: Container[str] = frozenset()
) -> list[Finished]:
    """Run tests in one seat, with sessions as they are made, and return how each ended."""
    crew = Crew(planned(), Units([jobs]), [], lambda: False)

    def made(_: Sequence[Job], *, forks: bool) -> Session:
        return begin() if forks else Session(replace(begin().launch, forks=False))

    crew.enter()
    try:
        return list(Seat(crew.units, partial(crew.worker, made), known=known).run())
    finally:
        crew.leave()


def ran(folder: Path, *names: str, **more: Any) -> dict[str, Finished]:
    """Run the tests of a folder to the last, and return how each ended, by its own name."""
    jobs = jobs_of(folder, *names, **{k: v for k, v in more.items() if k == "timeout"})
    finished = run(jobs, lambda: session(folder, **more))
    assert sorted(one.job.case.id for one in finished) == sorted(job.case.id for job in jobs)
    return {one.job.case.name.partition("::")[2] or one.job.case.name: one for one in finished}
