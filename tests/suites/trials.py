"""Suites on the spot, and sessions of them: of the pytest that runs these tests, without jax."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.engine.job import Job
from conformance.suites.collection import Collection, Test, problem_of
from conformance.suites.executor import arguments
from conformance.suites.part import Part
from conformance.suites.session import Launch, Session
from conformance.suites.suite import suite_of
from tests.engine.worlds import planned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.job import Finished

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
    folder: Path, *more: str, tests: Sequence[str] | None = None, timeout: float = 20.0,
    memory: int = 4096,
) -> Session:  # fmt: skip
    """Return a session of all that is in a folder, or of some tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH"))}
    return Session(
        Launch(
            python=Path(sys.executable),
            environment={**kept, **ALONE},
            arguments=[*arguments(Collection()), *more, str(folder)],
            tests=tests, timeout=timeout, memory=memory,
        )
    )  # fmt: skip


def collected(folder: Path, *more: str) -> Collection:
    """Return what pytest collects in a folder."""
    events = list(session(folder, "--collect-only", *more).events())
    (found,) = (event for event in events if event["event"] == "collected")
    problems = (problem_of(event) for event in events if event["event"] in {"broken", "skipped"})
    tests = (Test(name=name, file=file, line=line) for name, file, line in found["tests"])
    return Collection(
        root=found["root"], ini=found["ini"], tests=tuple(tests), problems=tuple(problems)
    )


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


def ran(folder: Path, *names: str, **more: Any) -> dict[str, Finished]:
    """Run the tests of a folder to the last, and return how each ended, by its own name."""
    limits = {name: more.pop(name) for name in ("timeout", "memory") if name in more}
    jobs = jobs_of(folder, *names, **{k: v for k, v in limits.items() if k == "timeout"})

    def begin(left: Sequence[Job]) -> Session:
        return session(folder, tests=[job.case.name for job in left], **limits)

    finished = list(Part(jobs, begin).run())
    assert sorted(one.job.case.id for one in finished) == sorted(job.case.id for job in jobs)
    return {one.job.case.name.partition("::")[2] or one.job.case.name: one for one in finished}
