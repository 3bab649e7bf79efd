"""The data of a run that a review reads: judged jobs, results of triage, earlier rejections."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.engine.runs.directory import CorruptRunError
from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error, read_regular
from conformance.model.run_files import EVIDENCE, Evidence
from conformance.review.decisions import REVIEW, Choice, DecisionLog
from conformance.review.proposals import propose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.record_judge import Judge
    from conformance.engine.runs.directory import RunDirectory
    from conformance.review.decisions import Decision, Terms
    from conformance.review.groups import ReviewGroup
    from conformance.review.judged_jobs import JudgedJob
    from conformance.review.proposals import EditProposal

_EARLIER: Final = 50
"""Maximum number of earlier runs that are searched for rejections."""


@dataclass(frozen=True, kw_only=True)
class RunData:
    """The data that decisions and their evidence are made from.

    Attributes:
        jobs: All jobs of the run.
        known: Every known jax release.
        blobs: Artifacts of the run.
        new_judge: Makes a judge of the run's records, by the goldens at that moment.
        triage: Results of triage, by root cause.
        rejected: Name of the last earlier run in which a group was rejected, and the decision, by
            group.
    """

    jobs: Sequence[JudgedJob]
    known: Sequence[str]
    blobs: BlobStore
    new_judge: Callable[[], Judge]
    triage: Mapping[str, Evidence] = field(default_factory=dict)
    rejected: Mapping[str, tuple[str, Decision]] = field(default_factory=dict)

    @cached_property
    def releases(self) -> frozenset[str]:
        """Releases of the run; a span of places may not skip any of them."""
        return frozenset(one.release for one in self.jobs)

    def make_proposal(self, group: ReviewGroup, terms: Terms | None = None) -> EditProposal:
        """Return the edits that would declare a group.

        Args:
            group: The group.
            terms: Values that the reviewer chose.
        """
        return propose(group.members, self.jobs, self.known, terms)


def read_decisions(directory: RunDirectory) -> DecisionLog:
    """Return the decisions that are stored next to a run.

    Raises:
        UsageError: If the file is damaged.
        CorruptRunError: If it cannot be read.
    """
    path = directory.path / REVIEW
    try:
        return DecisionLog.loads(read_regular(path), str(path))
    except FileNotFoundError:
        return DecisionLog()
    except OSError as error:
        raise CorruptRunError(f"{path}: cannot be read: {describe_os_error(error)}") from None


def read_triage(directory: RunDirectory) -> dict[str, Evidence]:
    """Return the results of triage that are stored next to a run, by root cause.

    Raises:
        CorruptRunError: If the file cannot be read.
    """
    path = directory.path / EVIDENCE
    try:
        found = msgspec.json.decode(read_regular(path), type=tuple[Evidence, ...])
    except FileNotFoundError:
        return {}
    except (OSError, *MALFORMED) as error:
        raise CorruptRunError(
            f"{path}: expected what was found out: {str(error).lower()}; delete it"
        ) from None
    return {one.cause: one for one in found}


def read_rejections(directory: RunDirectory) -> dict[str, tuple[str, Decision]]:
    """Return the last rejection of each group in earlier runs of the same folder."""
    found: dict[str, tuple[str, Decision]] = {}
    run = directory.path.resolve()
    # Run ids begin with their time, so names are in order.
    files = sorted(run.parent.glob(f"*/{REVIEW}"))
    for file in [file for file in files if file.parent.name < run.name][-_EARLIER:]:
        with contextlib.suppress(UsageError, OSError):  # another run's file may be damaged
            for one in DecisionLog.loads(file.read_bytes(), str(file)).decisions:
                if one.choice is Choice.REJECT:
                    found[one.group] = (file.parent.name, one)
    return found
