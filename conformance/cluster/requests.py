"""Requests of batches: what a node needs of the jobs of a run, read and prepared once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.cluster.messages import BatchRequest, CellSpec, JobSpec
from conformance.cluster.suite_batch import locate_tests
from conformance.corpus.discovery import list_helpers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import msgspec

    from conformance.cells.lock import Lock
    from conformance.cluster.messages import ContentPlace
    from conformance.cluster.suite_batch import SuiteSpec
    from conformance.engine.job import Job
    from conformance.model.case import Case


class RequestMaker:
    """Makes the requests of the batches of a run.

    The same cases and files go to many cells: each is prepared for the first one, and kept.

    Args:
        topic: Topic of the events with the records of the run.
        locks: Lock of each cell, by cell id.
        content: Place of artifacts.
        spawn: Whether each job gets a fresh interpreter.
        require_platform: Whether a missing accelerator is a fault of the host.
    """

    def __init__(
        self,
        topic: str,
        locks: Mapping[str, Lock],
        content: ContentPlace,
        *,
        spawn: bool = False,
        require_platform: bool = False,
    ) -> None:
        self._topic = topic
        self._locks = locks
        self._content = content
        self._spawn = spawn
        self._require_platform = require_platform
        self._specs: dict[tuple[int, bool, bool], tuple[Case, msgspec.Raw]] = {}
        """Cases of the run with their encoded jobs, by identity and by how they may run.

        The hash of a case would read all of its fields.
        """
        self._helpers: dict[Path, list[Path]] = {}
        self._files: dict[Path, bytes] = {}

    def make_request(
        self, key: str, jobs: Sequence[Job], suite: SuiteSpec | None = None
    ) -> BatchRequest:
        """Return the request of a batch.

        Args:
            key: Key of the batch.
            jobs: Jobs of one cell.
            suite: Suite of the jobs, None if they are cases.

        Raises:
            OSError: If a case file cannot be read.
        """
        planned = jobs[0].planned
        if suite is None:
            files = self._read_files({job.case.file for job in jobs})
            specs = tuple(map(self._encode_spec, jobs))
        else:
            files = {}
            specs = tuple(JobSpec.encode(job, shorten(job.case)) for job in locate_tests(jobs))
        return BatchRequest(
            key=key, topic=self._topic, cell=CellSpec.of(planned, self._locks[planned.cell.id]),
            jobs=specs, content=self._content, spawn=self._spawn,
            require_platform=self._require_platform, suite=suite, files=files,
            # Generated cases call functions and scripts of the user, which are not sent.
            in_place=any(job.case.home is not None for job in jobs),
        )  # fmt: skip

    def _encode_spec(self, job: Job) -> msgspec.Raw:
        if job.measure is not None:
            return JobSpec.encode(job, shorten(job.case))
        key = (id(job.case), job.alone, job.may_share)
        known = self._specs.get(key)
        if known is None:
            known = self._specs[key] = (job.case, JobSpec.encode(job, shorten(job.case)))
        return known[1]

    def _read_files(self, cases: set[Path]) -> dict[str, bytes]:
        """Return the content of case files and of what their cases may use, by path."""
        wanted = set(cases)
        for folder in {file.parent for file in cases}:
            if folder not in self._helpers:
                self._helpers[folder] = list_helpers(folder)
            wanted.update(self._helpers[folder])
        for file in wanted - self._files.keys():
            self._files[file] = file.read_bytes()
        return {str(file): self._files[file] for file in sorted(wanted)}


def shorten(case: Case) -> Case:
    """Return a case without what only a judge needs: a node observes and does not judge.

    The rest is a third as large.

    Args:
        case: The case.
    """
    return replace(
        case, doc="", code="", source="", records="", deviations=(), facts={}, policy={},
        budgets=(), home=None, arguments="",
    )  # fmt: skip
